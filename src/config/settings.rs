//! Every setting of ralph: the table of keys, one entry for each.
//!
//! A higher source covers a lower one, value by value; under all of them are the defaults.

use std::path::PathBuf;
use std::time::Duration;

use super::adapter::Variables;
use super::command::{Program, PromptMode, ShellLine};
use super::judgement::{Dollars, HatList, OrOff, Percent, SessionChoice};
use super::merge::Merge;
use super::origin::{Origin, Setting};
use super::sandbox::{Bytes, Place};
use super::table::layer;
use super::trust::Trust;
use super::value::{OneLine, RawBytes, RunMode};
use super::verify::Verify;
use crate::agent::Permissions;
use crate::run::Commit;
use crate::run::budget::Pricing;
use crate::run::decide::{Permission, Until};
use crate::run::hooks::OnError;
use crate::run::notify::Moment;
use crate::sandbox::{Backend, Environment, Mode, Network, Tamper};
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
    /// The agent: a name from `ralph agents`, `auto` (the first one installed) or `custom`. `cli.backend` means the same.
    "agent" agent: String = "auto".to_owned();
    /// Agents that `auto` looks for first, in this order.
    "agent_priority" agent_priority: Vec<String> = Vec::new();
    /// The program of a custom agent. A path is relative to this file.
    "cli.command" command: Option<Program> = None;
    /// The arguments of a custom agent, before the prompt.
    "cli.args" args: Vec<String> = Vec::new();
    /// Extra arguments for the agent; on the command line they follow `--`.
    "cli.extra_args" extra_args: Vec<String> = Vec::new();
    /// How a custom agent takes its prompt: `stdin` or `arg`. Unset: `arg` where `prompt_flag` or `cli.backend` is set, else `stdin`.
    "cli.prompt_mode" prompt_mode: Option<PromptMode> = None;
    /// The flag before the prompt of a custom agent.
    "cli.prompt_flag" prompt_flag: Option<String> = None;
    /// The model, passed to the agent as is.
    "cli.model" model: Option<String> = None;
    /// Reasoning effort, passed to the agent as is.
    "cli.effort" effort: Option<String> = None;
    /// The only tools the agent may use, passed to the agent as is.
    "cli.tools" tools: Vec<String> = Vec::new();
    /// What the agent may do without asking: `safe` or `full`, as described in `docs/guide/agents.md`. Unset: `adapters.NAME.permissions`, then the agent's own default.
    "cli.permissions" permissions: Option<Permissions> = None;
    /// Give the agent a terminal instead of pipes.
    "cli.pty" pty: bool = false;
    /// Mode: `autonomous`, or `interactive`: you work in the agent's own program in your terminal.
    "cli.default_mode" mode: RunMode = RunMode::Autonomous;
    /// Interactive mode: end the iteration after this many seconds without output; 0 waits until the agent exits.
    "cli.idle_timeout_secs" interactive_idle: Duration = Duration::from_secs(30);
    /// Show a driver's output as it comes, where the driver supports it.
    "cli.live" live: bool = true;
    /// Keep processes that an agent leaves running, instead of stopping them.
    "cli.leave_running" leave_running: bool = false;
    /// The prompt file used when no prompt is given. Unset: `PROMPT.md`, then `.ralph/PROMPT.md`.
    "event_loop.prompt_file" prompt_file: Option<PathBuf> = None;
    /// The completion marker, instead of the built-in ones.
    "event_loop.completion_promise" completion_promise: Option<OneLine> = None;
    /// Maximum iterations.
    "event_loop.max_iterations" max_iterations: u32 = 100;
    /// Maximum time for the run; 0: no limit.
    "event_loop.max_runtime_seconds" max_time: Duration = Duration::from_secs(4 * 3600);
    /// Stop after this many failed iterations in a row.
    "event_loop.max_consecutive_failures" max_consecutive_failures: u32 = 5;
    /// Maximum cost of the run in US dollars. Unset: no limit.
    "event_loop.max_cost_usd" max_cost_usd: Option<Dollars> = None;
    /// The first event of a run with hats. Unset: `task.start`.
    "event_loop.starting_event" starting_event: Option<String> = None;
    /// Rules that are added to every prompt, one sentence each.
    "core.guardrails" guardrails: Vec<String> = Vec::new();
    /// What ends a run as complete: `claim` (the agent says so, and the checks accept it) or `checks` (all checks pass after an iteration; no marker is needed).
    "until" until: Until = Until::Claim;
    /// Commands that must exit with 0 before a completion is accepted: strings for `sh -c`, or mappings with `run`, `name`, `timeout`, `cwd`, `when` (`claim`, `iteration` or `end`), `required` and `baseline`. A mapping with `judge` (an agent), `model`, `effort` and `prompt` is another agent that must accept it, read-only.
    "verify" verify: Verify = Verify::default();
    /// Another agent that must accept a completion, read-only, besides those in `verify`.
    "judge" judge: Option<String> = None;
    /// A task list; a completion is rejected while it has open items (`- [ ]`).
    "completion.plan_file" plan_file: Option<PathBuf> = None;
    /// Additional completion markers, such as `<<<RALPHEX:REVIEW_DONE>>>`.
    "completion.also" completion_also: Vec<String> = Vec::new();
    /// Reject a completion before this many iterations.
    "completion.min_iterations" min_iterations: u32 = 1;
    /// How many claims in a row are needed.
    "completion.confirmations" confirmations: u32 = 1;
    /// Stop after this many iterations in a row without a change; 0: never.
    "max_stalled" max_stalled: OrOff = OrOff(10);
    /// What to do when the agent is denied a tool: `continue`, `halt`, or `threshold`: stop after two such iterations in a row without progress.
    "permission" permission: Permission = Permission::Threshold;
    /// The only paths the agent may change, such as `PLAN.md` or `docs/**`. Empty: all.
    "allowed_paths" allowed_paths: Vec<String> = Vec::new();
    /// Who commits what an iteration leaves uncommitted: `agent` (or nobody), or `iteration`: ralph commits it after each iteration, without hooks and unsigned, and never files under `.ralph` or files with secrets.
    "commit" commit: Commit = Commit::Agent;
    /// What happens to the branch of a completed run (`--branch`, `--worktree`): `none`, `ff` (rebase, run the checks, fast-forward the base branch), `squash` (the same as one commit) or `pr` (push and open a pull request with `gh`).
    "merge" merge: Merge = Merge::None;
    /// Where worktrees are made, instead of ralph's state directory; relative to this file. Do not use a directory inside the repository: build tools find the parent.
    "worktree.dir" worktree_dir: Option<PathBuf> = None;
    /// Files and directories that are copied into a new worktree although git does not track them, such as `.env`; relative to the repository.
    "worktree.copy" worktree_copy: Vec<String> = Vec::new();
    /// A command that prepares a new worktree, such as `npm ci`, run by `sh -c` in it.
    "worktree.setup" worktree_setup: Option<OneLine> = None;
    /// Session of the next iteration: `fresh`, `resume`, or `resume-until: context 60%`: resume until that much of the context is used.
    "session" session: SessionChoice = SessionChoice::Fresh;
    /// A session that has not been used for this long is not resumed.
    "session_expiry" session_expiry: Duration = Duration::from_secs(24 * 3600);
    /// Size of the model's context in tokens, for `resume-until`, where the agent does not report it.
    "context_window" context_window: Option<u64> = None;
    /// Agents that take over while the chosen one is rate-limited or not logged in, in this order.
    "fallback" fallback: Vec<String> = Vec::new();
    /// Agents that take turns, one per iteration. The first one starts.
    "rotate" rotate: Vec<String> = Vec::new();
    /// Your own prices: model name or prefix to `input`, `output`, `cached` and `cache_write`, in dollars per million tokens.
    "pricing" pricing: Pricing = Pricing::default();
    /// Estimate costs from the list prices that ralph ships, where the agent reports none.
    "list_prices" list_prices: bool = true;
    /// Roles selected by events: for each hat `triggers`, `publishes`, `instructions` and more.
    "hats" hats: HatList = HatList::default();
    /// Where in the agent's text a completion marker counts.
    "completion.match" completion_match: Match = Match::LastLine;
    /// Format of the agent's output: `auto`, a dialect, or a mapping with a `command` that reads raw lines and prints RTF1.
    "transcript" transcript: Choice = Choice::Auto;
    /// Whether code of the repository may run: `always`, or `ask` before it runs for the first time and after each change. One question lists drivers, agent scripts, agent files, programs in the workspace, and the commands in `verify`, `hooks`, `commands`, `worktree.setup`, `notify.command`, `transcript.command`, `cli.command` and `adapters`. Also read from your own `~/.config/ralph/ralph.yml`, which a repository cannot change.
    "trust" trust: Trust = Trust::Always;
    /// The wall around everything an agent starts, and around checks: `off`, `workspace` (writes only the workspace, caches and the agent's state; secrets are hidden) or `strict` (also reads and reaches only what it needs). `sandbox: MODE` means the same.
    "sandbox.mode" sandbox_mode: Mode = Mode::Off;
    /// What builds it: `landlock`, `bubblewrap`, or `auto`: the stronger one that works.
    "sandbox.backend" sandbox_backend: Backend = Backend::Auto;
    /// Files and directories that can be changed, besides the workspace, the agent's state and, in mode `workspace`, caches.
    "sandbox.write" sandbox_write: Vec<Place> = Vec::new();
    /// Files and directories that can be read: in mode `strict`, besides the system and the workspace; in mode `workspace`, although they are hidden by default.
    "sandbox.read" sandbox_read: Vec<Place> = Vec::new();
    /// Files and directories that cannot be read, besides the default list.
    "sandbox.hide" sandbox_hide: Vec<Place> = Vec::new();
    /// What can be reached: `all`, `none`, or a list of hosts (`example.com`, `*.example.com`, `host:port`, an address, `localhost`) besides those of the agent. Unset: `all`, and in mode `strict` only the agent's own hosts.
    "sandbox.network" sandbox_network: Option<Network> = None;
    /// Variables that pass: `inherit`, `clean`, or a list of names besides those of `clean`. Unset: `inherit`, and `clean` in mode `strict`.
    "sandbox.env" sandbox_env: Option<Environment> = None;
    /// Maximum memory, such as `8G`; for everything together where a control group can be had, else for each process. Unset: no limit.
    "sandbox.memory" sandbox_memory: Option<Bytes> = None;
    /// Maximum processes. Unset: no limit.
    "sandbox.processes" sandbox_processes: Option<u64> = None;
    /// Maximum open files of a process. Unset: the user's limit.
    "sandbox.open_files" sandbox_open_files: Option<u64> = None;
    /// When git hooks, git configuration, `ralph.yml` or `.ralph` change in an iteration: `warn`, `stop` the run, or `restore` them.
    "sandbox.tamper" sandbox_tamper: Tamper = Tamper::Warn;
    /// Refuse to run where the sandbox is not available.
    "sandbox.required" sandbox_required: bool = true;
    /// Repositories that `ralph worker` works on, as git names them; `https://HOST/PATH/*` means all below. The keys of `worker` count only in your own `~/.config/ralph/ralph.yml`.
    "worker.repos" worker_repos: Vec<String> = Vec::new();
    /// Agents that tasks of `ralph worker` may use. A task that names none gets the first one.
    "worker.agents" worker_agents: Vec<String> = Vec::new();
    /// The sandbox of tasks of `ralph worker`. Its other options come from `sandbox` in your own file, never from the repository.
    "worker.sandbox" worker_sandbox: Mode = Mode::Workspace;
    /// Maximum iterations of a task of `ralph worker`. Unset: what the task says.
    "worker.limits.max_iterations" worker_max_iterations: Option<u32> = None;
    /// Maximum time for a task of `ralph worker`.
    "worker.limits.max_time" worker_max_time: Option<Duration> = None;
    /// Maximum cost of a task of `ralph worker` in US dollars.
    "worker.limits.max_cost" worker_max_cost: Option<Dollars> = None;
    /// Maximum time for one iteration; 0: no limit. `adapters.NAME.timeout` overrides it.
    "limits.timeout" timeout: Duration = Duration::from_secs(3600);
    /// Stop an agent that prints nothing and uses no CPU for this long; 0: never.
    "limits.idle_timeout" idle_timeout: Duration = Duration::from_secs(600);
    /// Stop an agent that prints nothing at all for this long; 0: never. Unset: 5 minutes, and never for plain-text agents, which may print only at the end.
    "limits.startup_timeout" startup_timeout: Option<Duration> = None;
    /// Maximum total wait for rate limits; 0: do not wait.
    "limits.max_wait" max_wait: Duration = Duration::from_secs(6 * 3600);
    /// Wait, or stop, when this much of the 5-hour quota of a subscription is used, such as `80%`. Only where the agent reports it (claude does). Unset: no limit.
    "limits.quota.5h" quota_5h: Option<Percent> = None;
    /// The same for the weekly quota.
    "limits.quota.week" quota_week: Option<Percent> = None;
    /// Maximum tokens for the run. Unset: no limit.
    "limits.max_tokens" max_tokens: Option<u64> = None;
    /// Maximum agent starts per hour. Unset: no limit.
    "limits.calls_per_hour" calls_per_hour: Option<u32> = None;
    /// Longest line of output that is read in one piece, in bytes.
    "limits.max_line_bytes" max_line_bytes: usize = crate::process::lines::DEFAULT_LINE_CAP;
    /// Commands whose output a prompt can use: `{{commands.NAME}}`. Each one that the prompt names runs before every iteration with `sh -c`, for at most 60 s; 32 KiB of its output are used.
    "commands" commands: Variables = Variables::default();
    /// A command that runs before the first iteration. Hooks get what happened as JSON on stdin. Exit code 0 continues; anything else is an error, except 10 where a hook can skip something.
    "hooks.before_run" before_run: Option<ShellLine> = None;
    /// A command that runs before each iteration; exit code 10 skips the iteration.
    "hooks.before_iteration" before_iteration: Option<ShellLine> = None;
    /// A command that runs after each iteration; exit code 10 skips the checks, and a completion is then not accepted.
    "hooks.after_iteration" after_iteration: Option<ShellLine> = None;
    /// A command that runs at the end of the run.
    "hooks.after_run" after_run: Option<ShellLine> = None;
    /// A command that runs when a completion is rejected.
    "hooks.on_rejected" on_rejected: Option<ShellLine> = None;
    /// A command that runs before a wait, such as for a rate limit; exit code 10 skips the wait.
    "hooks.on_wait" on_wait: Option<ShellLine> = None;
    /// How long a hook may take.
    "hooks.timeout" hook_timeout: Duration = Duration::from_secs(60);
    /// What to do when a hook fails: `warn` and continue, or `stop` the run.
    "hooks.on_error" hook_errors: OnError = OnError::Warn;
    /// When to notify: on `complete`, `failed`, `blocked` and `waiting` (for a rate limit).
    "notify.on" notify_on: Vec<Moment> = Moment::ALL.to_vec();
    /// A command that notifies you. It gets the event in `RALPH_NOTICE` and `RALPH_REASON`, and as JSON on stdin. With shell characters such as `|` or `$` it is run by `sh -c`. Test it with `ralph notify --test`.
    "notify.command" notify_command: Option<ShellLine> = None;
    /// A URL that gets the notification as JSON. `https` needs `curl`.
    "notify.webhook" notify_webhook: Option<OneLine> = None;
    /// The URL of a Slack incoming webhook.
    "notify.slack" notify_slack: Option<OneLine> = None;
    /// The URL of a Discord webhook.
    "notify.discord" notify_discord: Option<OneLine> = None;
    /// The ntfy server.
    "notify.ntfy.server" ntfy_server: OneLine = OneLine("https://ntfy.sh".to_owned());
    /// The ntfy topic to publish to.
    "notify.ntfy.topic" ntfy_topic: Option<OneLine> = None;
    /// The server of the Telegram bot API.
    "notify.telegram.server" telegram_server: OneLine = OneLine("https://api.telegram.org".to_owned());
    /// The token of the Telegram bot. `telegram.chat` is needed too.
    "notify.telegram.token" telegram_token: Option<OneLine> = None;
    /// The id of the Telegram chat.
    "notify.telegram.chat" telegram_chat: Option<OneLine> = None;
    /// Ring the terminal bell, and show a desktop notification where the terminal supports it.
    "notify.terminal" notify_terminal: bool = true;
    /// Where runs are kept, instead of ralph's state directory; relative to this file. Inside the workspace, the agent can change or delete them.
    "journal.directory" journal_directory: Option<PathBuf> = None;
    /// Raw output files: `redacted` (without secrets) or `exact` (byte for byte).
    "journal.raw" raw: RawBytes = RawBytes::Redacted;
    /// Compress large raw files with zstd.
    "journal.compress" compress: bool = true;
    /// Keep the newest N runs; older completed ones are removed when a run ends. Unset: keep all.
    "journal.keep_runs" keep_runs: Option<u32> = None;
    /// Keep the changes of each iteration, committed or not, with secrets redacted, for `ralph diff` and exports. Git repositories only, files up to 32 MiB; the repository itself is not touched.
    "journal.keep_diffs" keep_diffs: bool = true;
    /// How often the loop of a task of `ralph batch` is resumed when its work does not merge.
    "batch.merge_attempts" merge_attempts: u32 = 2;
    /// Also write the agent's output as canonical events to this file, one JSON object per line, such as `.agent/events.jsonl`. Unset: none.
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
