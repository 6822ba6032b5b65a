//! Every setting of ralph: the table of keys, one entry for each.
//!
//! A higher source covers a lower one, value by value; under all of them are the defaults.

use std::path::PathBuf;
use std::time::Duration;

use super::command::{Program, PromptMode};
use super::origin::{Origin, Setting};
use super::table::layer;
use super::trust::Trust;
use super::value::OneLine;
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
            pub fn layer(&self) -> Layer {
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
    /// Where in the agent's words a completion marker counts.
    "completion.match" completion_match: Match = Match::LastLine;
    /// What the agent's output is: `auto`, a dialect, or a mapping with a `command` that reads raw lines and prints RTF1.
    "transcript" transcript: Choice = Choice::Auto;
    /// Whether drivers and agent scripts of a repository run without a question: `always`, or `ask` the first time and after each change. Read from your own configuration too (`~/.config/ralph/ralph.yml`), where a repository cannot change it.
    "trust" trust: Trust = Trust::Always;
    /// The most time for one iteration; 0: no limit. `adapters.NAME.timeout` wins over it.
    "limits.timeout" timeout: Duration = Duration::from_secs(3600);
    /// The longest silence of an agent that also uses no CPU; 0: no limit.
    "limits.idle_timeout" idle_timeout: Duration = Duration::from_secs(600);
    /// The longest silence before an agent's first byte; 0: no limit.
    "limits.startup_timeout" startup_timeout: Duration = Duration::from_secs(300);
    /// The longest total wait for rate limits; 0: do not wait.
    "limits.max_wait" max_wait: Duration = Duration::from_secs(6 * 3600);
    /// The longest line that is handed on in one part, in bytes.
    "limits.max_line_bytes" max_line_bytes: usize = crate::process::lines::DEFAULT_LINE_CAP;
}

impl Settings {
    /// The program and arguments of a custom agent, if it has one.
    pub fn custom_command(&self) -> Option<Setting<Vec<String>>> {
        let program = self.command.value.as_ref()?;
        let argv = std::iter::once(&program.0).chain(&self.args.value).cloned().collect();
        Some(Setting::new(argv, self.command.origin.clone()))
    }
}
