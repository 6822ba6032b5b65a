//! Arguments of the commands that set ralph up: settings, files, shell.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `ralph config`.
#[derive(Debug, Args)]
pub(crate) struct Config {
    /// One setting.
    #[command(subcommand)]
    pub action: Option<ConfigAction>,

    /// Print JSON: each key with its value and origin.
    #[arg(long, global = true)]
    pub json: bool,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// `ralph notify`.
#[derive(Debug, Args)]
pub(crate) struct Notify {
    /// Send one notification through every configured channel.
    #[arg(long, required = true)]
    pub test: bool,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The subcommands of `ralph config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print the value of one key; nothing if it is not set
    Get(Get),
}

/// `ralph config get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The key, such as `event_loop.max_iterations`.
    #[arg(value_name = "KEY")]
    pub key: String,
}

/// `ralph doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR)]
pub(crate) struct Doctor {
    /// One agent, driver or script [default: all that are installed].
    #[arg(value_name = "AGENT")]
    pub agent: Option<String>,

    /// Also run the checks that execute code of this repository: drivers, agent scripts, agent files. Without it, only
    /// those that you have run here before are executed.
    #[arg(long)]
    pub plugins: bool,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

const DOCTOR: &str = "Exit codes:
  0  a run would work here
  1  a problem with this machine: disk full, directory not writable
  2  usage or configuration
  4  the agent that a run would use, or AGENT, is not usable";

/// `ralph init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The agent [default: the first one installed].
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Convert the configuration of another loop: `.ralphrc`, `config` or `.ralphex/config`.
    #[arg(long, conflicts_with = "agent")]
    pub from: bool,

    /// Write every key with its default and a comment.
    #[arg(long, conflicts_with = "from")]
    pub full: bool,

    /// Overwrite an existing `ralph.yml`.
    #[arg(long)]
    pub force: bool,
}

/// `ralph schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The file to describe.
    #[arg(value_enum, default_value_t = Subject::Config)]
    pub subject: Subject,
}

/// What has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// `ralph.yml`.
    Config,
    /// A file in `.ralph/agents/`.
    Agent,
}

/// `ralph completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The shells that can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash.
    Bash,
    /// Z shell.
    Zsh,
    /// fish.
    Fish,
}

const COMPLETIONS: &str = "Examples:
  ralph completions bash > ~/.local/share/bash-completion/completions/ralph
  ralph completions zsh > ~/.zfunc/_ralph
  ralph completions fish > ~/.config/fish/completions/ralph.fish

Agent names are included, so print the completions again after adding an agent.";

/// `ralph man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write the pages of all commands to this directory [default: print the page of `ralph`].
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
