//! One layer of settings for each source; a higher one covers a lower one, value by value.

use std::path::PathBuf;
use std::time::Duration;

use crate::transcript::Choice;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// A configuration file.
    File {
        /// Which.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// An environment variable.
    Environment(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Environment(name) => write!(formatter, "environment variable `{name}`"),
            Self::Flag(name) => write!(formatter, "`{name}`"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Its source.
    pub origin: Origin,
}

impl<T> Setting<T> {
    /// A value of this origin.
    pub const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// Declares the settings once: the layer of options, how layers combine, and the result with defaults.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $default:expr;)*) => {
        /// What one source says; `None` where it says nothing.
        #[derive(Clone, Debug, Default)]
        pub struct Layer {
            $($(#[doc = $doc])* pub $name: Option<Setting<$type>>,)*
        }

        impl Layer {
            /// This layer over a lower one.
            #[must_use]
            pub fn over(self, lower: Self) -> Self {
                Self { $($name: self.$name.or(lower.$name),)* }
            }

            /// This layer over the defaults.
            pub fn settle(self) -> Settings {
                Settings { $($name: self.$name.unwrap_or_else(|| Setting::new($default, Origin::Default)),)* }
            }
        }

        /// What the rest of the program sees.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])* pub $name: Setting<$type>,)*
        }
    };
}

settings! {
    /// The agent: a name, or `custom`.
    agent: Option<String> = None;
    /// The command line of a custom agent.
    agent_command: Option<Vec<String>> = None;
    /// How a custom agent takes its prompt: `stdin` or `arg`.
    prompt_mode: Option<String> = None;
    /// The flag before a prompt in `arg` mode.
    prompt_flag: Option<String> = None;
    /// Where the prompt is when none is given.
    prompt_file: Option<PathBuf> = None;
    /// Which adapter reads the output.
    transcript: Choice = Choice::Auto;
    /// The completion marker, instead of the known ones.
    completion_promise: Option<String> = None;
    /// `last-line` or `anywhere`.
    completion_match: crate::signals::promise::Match = crate::signals::promise::Match::LastLine;
    /// The most iterations.
    max_iterations: u32 = 100;
    /// The most time for the run.
    max_time: Duration = Duration::from_secs(4 * 3600);
    /// The most time for one iteration.
    timeout: Duration = Duration::from_secs(3600);
    /// The longest silence of an agent that also uses no CPU.
    idle_timeout: Duration = Duration::from_secs(600);
    /// The longest silence before its first byte.
    startup_timeout: Duration = Duration::from_secs(300);
    /// Whether the agent gets a terminal.
    pty: bool = false;
    /// Whether processes that an agent leaves behind go on.
    leave_running: bool = false;
    /// The longest line that is handed on in one part.
    max_line_bytes: usize = crate::process::lines::DEFAULT_LINE_CAP;
    /// How many failed iterations in a row end the run.
    max_consecutive_failures: u32 = 5;
    /// The longest total wait for rate limits.
    max_wait: Duration = Duration::from_secs(6 * 3600);
}
