//! How an agent is invoked: a description in, an [`Invocation`](crate::process::Invocation) out.
//!
//! This room knows nothing of what an agent prints. It starts nothing but probes: `agent --version`.

mod catalog;
mod custom;
pub(crate) mod definition;
mod detect;
mod help;
mod invocation;
mod plugin_file;
mod question;
pub mod schema;
mod version;
mod wrapper_variables;

use std::ffi::OsString;
use std::path::PathBuf;

pub use catalog::Catalog;
pub(crate) use catalog::is_users;
pub(crate) use catalog::{Entry, Source};
pub use custom::custom;
pub use definition::Definition;
pub use definition::Permissions;
pub(crate) use definition::{By, PromptForm};
pub(crate) use detect::{Auth, Installation, Probe, auth, locate, not_installed};
pub(crate) use detect::{Question, Start, first, probe_all};
pub(crate) use help::Flags;
pub use help::flags;
pub use invocation::LONGEST_ARGUMENT;
pub use invocation::Mode;
pub use invocation::Session;
pub use invocation::Turn;
pub(crate) use invocation::Way;
pub use plugin_file::Contract;
pub use plugin_file::Live;
pub use plugin_file::PluginFile;
pub(crate) use plugin_file::home_of;
pub use question::Answer;
pub(crate) use question::PATIENCE;
pub use question::ask;
pub(crate) use question::{found_inside, is_inside};
pub use version::Known;
pub(crate) use wrapper_variables::Phase;

/// An agent that can be run: what its file says, what the user says, and the program.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The file.
    pub definition: Definition,
    /// The user.
    pub options: Options,
    /// The program, as it is looked up.
    pub program: OsString,
    /// What is before all other arguments, as in `npx PACKAGE`.
    pub leading: Vec<String>,
    /// The bash file that it is, when it is one.
    pub plugin: Option<PluginFile>,
}

/// What the user wants of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which model.
    pub model: Option<String>,
    /// How hard it thinks.
    pub effort: Option<String>,
    /// The only tools it may use.
    pub tools: Vec<String>,
    /// What it may do; unset, what its file says.
    pub permissions: Option<Permissions>,
    /// Who asks for `model`, `effort` or `tools`, where that is no flag.
    pub asked: Vec<(&'static str, String)>,
    /// Instead of what its file says.
    pub overrides: Overrides,
    /// Words as they come, or whole messages.
    pub partial: Partial,
    /// Who it runs as.
    pub user: User,
    /// The status block of the driver contract counts.
    pub status_blocks: bool,
    /// The git directories that it must write to commit, where `.git` is not all.
    pub git_directories: Vec<PathBuf>,
}

/// What a user can put in place of an agent file's words, so that nobody waits for a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Instead of `commands`: a program with its first arguments.
    pub command: Option<Vec<String>>,
    /// Instead of all arguments that make it work alone.
    pub args: Option<Vec<String>>,
    /// After all other arguments, before session and prompt.
    pub extra_args: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
}

/// Words as they come, or whole messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// Whole messages.
    #[default]
    Off,
    /// As they come, where the agent can.
    On,
}

/// Who an agent runs as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum User {
    /// Any user but root.
    #[default]
    Ordinary,
    /// Root, as which some agents refuse to work.
    Root,
}

impl User {
    /// Who we are.
    pub fn current() -> Self {
        if rustix::process::geteuid().is_root() { Self::Root } else { Self::Ordinary }
    }
}

impl Agent {
    /// The name it was chosen by.
    pub(crate) fn id(&self) -> &str {
        &self.definition.id
    }
}
