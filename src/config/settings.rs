//! Every setting of ralph: the table of keys, one entry for each.
//!
//! A higher source covers a lower one, value by value; under all of them are the defaults.

use std::path::PathBuf;
use std::time::Duration;

use super::command::{Program, PromptMode, ShellLine};
use super::judgement::{Dollars, HatList, OrOff, SessionChoice};
use super::origin::{Origin, Setting};
use super::table::layer;
use super::trust::Trust;
use super::value::{OneLine, RawBytes, RunMode};
use crate::run::budget::Pricing;
use crate::run::decide::Permission;
use crate::run::notify::Moment;
use crate::run::verify::Check;
use crate::signals::promise::Match;
use crate::transcript::Choice;

/// Declares the layer, and the settings that come of all layers.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $path:literal $field:ident: $type:ty = $default:expr;)*) => {
        layer! {
            /// What one source says; `None` where it says nothing.
            Layer { $($(#[doc = $doc])* $path $field: $type = $default;)* }
        }

        impl Layer {
            /// This layer over the defaults.
            pub fn settle(self) -> Settings {
                Settings { $($field: self.$field.unwrap_or_else(|| Setting::new($default, Origin::Default)),)* }
            }
        }

        /// What the rest of the program sees.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $field: Setting<$type>,)*
        }

        impl Settings {
            /// The same as one layer in which everything is said.
            pub(crate) fn layer(&self) -> Layer {
                Layer { $($field: Some(self.$field.clone()),)* }
            }
        }
    };
}

settings! {
    /// The agent: a name that `ralph agents` shows, `auto` or `custom`.
    "cli.backend" agent: String = "auto".to_owned();
    /// The program of a custom agent; a path is relative to this file.
    "cli.command" command: Option<Program> = None;
    /// The arguments of a custom agent, before the prompt.
    "cli.args" args: Vec<String> = Vec::new();
    /// More arguments for the chosen agent, besides its own; after `--` on the command line.
    "cli.extra_args" extra_args: Vec<String> = Vec::new();
    /// How a custom agent takes its prompt: `stdin` (which is usual) or `arg`.
    "cli.prompt_mode" prompt_mode: Option<PromptMode> = None;
    /// The flag before the prompt of a custom agent, with `prompt_mode: arg`.
    "cli.prompt_flag" prompt_flag: Option<String> = None;
    /// The model, in the agent's own words.
    "cli.model" model: Option<String> = None;
    /// How hard the agent thinks, in its own words.
    "cli.effort" effort: Option<String> = None;
    /// The only tools the agent may use, in its own words.
    "cli.tools" tools: Vec<String> = Vec::new();
    /// Whether the agent gets a terminal instead of pipes.
    "cli.pty" pty: bool = false;
    /// Who is at the keys: nobody (`autonomous`), or a person (`interactive`), who gets the agent's own program in the terminal.
    "cli.default_mode" mode: RunMode = RunMode::Autonomous;
    /// With a person at the keys: the silence after which the agent's turn is over; 0: only its end ends it.
    "cli.idle_timeout_secs" interactive_idle: Duration = Duration::from_secs(30);
    /// Whether a driver's output is shown as it comes, where the driver can.
    "cli.live" live: bool = true;
    /// Whether processes that an agent leaves behind go on.
    "cli.leave_running" leave_running: bool = false;
    /// Where the prompt is when none is given; unset: `PROMPT.md`, then `.ralph/PROMPT.md`.
    "event_loop.prompt_file" prompt_file: Option<PathBuf> = None;
    /// The completion marker, instead of the known ones.
    "event_loop.completion_promise" completion_promise: Option<OneLine> = None;
    /// The most iterations.
    "event_loop.max_iterations" max_iterations: u32 = 100;
    /// The most time for the whole run; 0: no limit.
    "event_loop.max_runtime_seconds" max_time: Duration = Duration::from_secs(4 * 3600);
    /// How many failed iterations in a row end the run.
    "event_loop.max_consecutive_failures" max_consecutive_failures: u32 = 5;
    /// The most money for the whole run, in US dollars; unset: no limit.
    "event_loop.max_cost_usd" max_cost_usd: Option<Dollars> = None;
    /// The event that begins a run with hats; unset: `task.start`.
    "event_loop.starting_event" starting_event: Option<String> = None;
    /// Commands that must exit with 0 before a claim to be done counts: texts for `sh -c`, or mappings of `run`, `name`, `timeout` and `cwd`.
    "verify" verify: Vec<Check> = Vec::new();
    /// A task list whose open items (`- [ ]`) veto a claim to be done.
    "completion.plan_file" plan_file: Option<PathBuf> = None;
    /// Markers that complete the run besides the usual ones, such as `<<<RALPHEX:REVIEW_DONE>>>`.
    "completion.also" completion_also: Vec<String> = Vec::new();
    /// A claim to be done before this many iterations does not count.
    "completion.min_iterations" min_iterations: u32 = 1;
    /// How many claims to be done in a row make a completion.
    "completion.confirmations" confirmations: u32 = 1;
    /// How many iterations in a row without progress end the run; 0: any number.
    "no_progress" no_progress: OrOff = OrOff(10);
    /// What becomes of a run whose agent is not permitted something: `continue`, `halt`, or `threshold` for two iterations in a row without progress.
    "permission" permission: Permission = Permission::Threshold;
    /// The only paths that may change, such as `PLAN.md` or `docs/**`; empty: all.
    "allowed_paths" allowed_paths: Vec<String> = Vec::new();
    /// Whether an iteration goes on with the agent's last session: `fresh`, `resume`, or `resume-until: context 60%`, until so much of its context is used.
    "session" session: SessionChoice = SessionChoice::Fresh;
    /// A session that was not used for so long is not taken up again.
    "session_expiry" session_expiry: Duration = Duration::from_secs(24 * 3600);
    /// How many tokens the model's context has room for, where the agent does not tell; for `resume-until`.
    "context_window" context_window: Option<u64> = None;
    /// Agents that take over while the chosen one is limited or locked out, in this order.
    "fallback" fallback: Vec<String> = Vec::new();
    /// Your own prices: model (or the beginning of its name) to `input`, `output`, `cached` and `cache_write`, in dollars for a million tokens.
    "pricing" pricing: Pricing = Pricing::default();
    /// Roles that events choose: for each hat `triggers`, `publishes`, `instructions` and more.
    "hats" hats: HatList = HatList::default();
    /// Where in the agent's words a completion marker counts.
    "completion.match" completion_match: Match = Match::LastLine;
    /// What the agent's output is: `auto`, a dialect, or a mapping with a `command` that reads raw lines and prints RTF1.
    "transcript" transcript: Choice = Choice::Auto;
    /// Whether code of a repository runs without a question: `always`, or `ask` the first time and after each change. One question lists drivers, agent scripts, agent files, programs in the workspace, and the commands in `verify`, `notify.command`, `transcript.command`, `cli.command` and `adapters`. Read from your own configuration too (`~/.config/ralph/ralph.yml`), where a repository cannot change it.
    "trust" trust: Trust = Trust::Always;
    /// The most time for one iteration; 0: no limit. `adapters.NAME.timeout` wins over it.
    "limits.timeout" timeout: Duration = Duration::from_secs(3600);
    /// The longest silence of an agent that also uses no CPU; 0: no limit.
    "limits.idle_timeout" idle_timeout: Duration = Duration::from_secs(600);
    /// The longest silence before an agent's first byte; 0: no limit. Unset: 5 minutes, and no limit for agents of plain text, which may print nothing until they are done.
    "limits.startup_timeout" startup_timeout: Option<Duration> = None;
    /// The longest total wait for rate limits; 0: do not wait.
    "limits.max_wait" max_wait: Duration = Duration::from_secs(6 * 3600);
    /// The most tokens for the whole run; unset: no limit.
    "limits.max_tokens" max_tokens: Option<u64> = None;
    /// The most starts of an agent in an hour; unset: no limit.
    "limits.calls_per_hour" calls_per_hour: Option<u32> = None;
    /// The longest line that is handed on in one part, in bytes.
    "limits.max_line_bytes" max_line_bytes: usize = crate::process::lines::DEFAULT_LINE_CAP;
    /// When to notify: on `complete`, `failed`, `blocked` and `waiting` (for a rate limit).
    "notify.on" notify_on: Vec<Moment> = Moment::ALL.to_vec();
    /// A command that notifies you; it gets the event in `RALPH_NOTICE` and `RALPH_REASON`, and as JSON on standard input. With shell signs such as `|` or `$` it is run by `sh -c`. `ralph notify --test` tries it.
    "notify.command" notify_command: Option<ShellLine> = None;
    /// A URL that the notification is sent to, as JSON; `https` needs `curl`.
    "notify.webhook" notify_webhook: Option<OneLine> = None;
    /// Whether the terminal rings, and shows a notice of the desktop where it can.
    "notify.terminal" notify_terminal: bool = true;
    /// Where runs are kept, instead of ralph's state directory; relative to this file. Inside of the workspace the agent can change or delete them.
    "journal.directory" journal_directory: Option<PathBuf> = None;
    /// Whether the raw files of a run are kept `redacted`, without secrets, or `exact`, byte for byte.
    "journal.raw" raw: RawBytes = RawBytes::Redacted;
    /// Whether large raw files are packed with zstd while a run is under way.
    "journal.compress" compress: bool = true;
    /// How many runs are kept, the newest; older completed ones are removed when a run ends. Unset: all.
    "journal.keep_runs" keep_runs: Option<u32> = None;
    /// Whether what each iteration changed is kept with the run, committed or not, without secrets: for `ralph diff` and the exported page. In a git repository, for files up to 32 MiB; the repository itself is not touched.
    "journal.keep_diffs" keep_diffs: bool = true;
    /// A file that gets a copy of what agents say and publish, as canonical events, one JSON object a line: such as `.agent/events.jsonl`. Unset: none.
    "journal.events_file" events_file: Option<PathBuf> = None;
}

impl Settings {
    /// The program and arguments of a custom agent, if it has one.
    pub(crate) fn custom_command(&self) -> Option<Setting<Vec<String>>> {
        let program = self.command.value.as_ref()?;
        let argv = std::iter::once(&program.0).chain(&self.args.value).cloned().collect();
        Some(Setting::new(argv, self.command.origin.clone()))
    }
}
