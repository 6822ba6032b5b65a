//! One layer of settings for each source; a higher one covers a lower one, value by value.

use std::path::PathBuf;
use std::time::Duration;

use crate::signals::promise::Match;
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

/// A value as a person reads it.
trait Shown {
    fn shown(&self) -> String;
}

impl Shown for bool {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for usize {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for u32 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for String {
    fn shown(&self) -> String {
        self.clone()
    }
}

impl Shown for PathBuf {
    fn shown(&self) -> String {
        self.display().to_string()
    }
}

impl Shown for Vec<String> {
    fn shown(&self) -> String {
        if self.is_empty() { "not set".to_owned() } else { self.join(" ") }
    }
}

impl Shown for Duration {
    fn shown(&self) -> String {
        if self.is_zero() { "none".to_owned() } else { format!("{} s", self.as_secs()) }
    }
}

impl Shown for Choice {
    fn shown(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Named(name) => name.clone(),
            Self::Command(argv) => format!("command `{}`", argv.join(" ")),
        }
    }
}

impl Shown for Match {
    fn shown(&self) -> String {
        match self {
            Self::LastLine => "last-line".to_owned(),
            Self::Anywhere => "anywhere".to_owned(),
        }
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref().map_or_else(|| "not set".to_owned(), Shown::shown)
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

        impl Settings {
            /// Every setting by name, with its value for people, and where it came from.
            pub fn rows(&self) -> Vec<(&'static str, String, &Origin)> {
                vec![$((stringify!($name), self.$name.value.shown(), &self.$name.origin),)*]
            }
        }
    };
}

settings! {
    /// The agent: a name, `auto` or `custom`.
    agent: String = "auto".to_owned();
    /// The command line of a custom agent.
    agent_command: Option<Vec<String>> = None;
    /// How a custom agent takes its prompt: `stdin` or `arg`.
    prompt_mode: Option<String> = None;
    /// The flag before a prompt in `arg` mode.
    prompt_flag: Option<String> = None;
    /// Which model.
    model: Option<String> = None;
    /// How hard the agent thinks.
    effort: Option<String> = None;
    /// The only tools it may use.
    tools: Vec<String> = Vec::new();
    /// Where the prompt is when none is given.
    prompt_file: Option<PathBuf> = None;
    /// Which adapter reads the output.
    transcript: Choice = Choice::Auto;
    /// The completion marker, instead of the known ones.
    completion_promise: Option<String> = None;
    /// `last-line` or `anywhere`.
    completion_match: Match = Match::LastLine;
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
