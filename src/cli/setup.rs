//! The subcommands that look after ralph itself: its settings, its files, its shell.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `ralph config`.
#[derive(Debug, Args)]
pub struct Config {
    /// One setting, instead of all.
    #[command(subcommand)]
    pub action: Option<ConfigAction>,

    /// Print JSON: each key with its value and its origin.
    #[arg(long, global = true)]
    pub json: bool,

    /// The configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// `ralph notify`.
#[derive(Debug, Args)]
pub struct Notify {
    /// Send one notification by every channel that `ralph.yml` configures.
    #[arg(long, required = true)]
    pub test: bool,

    /// The configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The subcommands of `ralph config`.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Print the value of one key; nothing when it is not set
    Get(Get),
}

/// `ralph config get`.
#[derive(Debug, Args)]
pub struct Get {
    /// The key, such as `event_loop.max_iterations`.
    #[arg(value_name = "KEY")]
    pub key: String,
}

/// `ralph doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR)]
pub struct Doctor {
    /// One agent, instead of all that are installed.
    #[arg(value_name = "AGENT")]
    pub agent: Option<String>,

    /// Run the checks of drivers, agent scripts and agent files of this repository. Without it nothing of the repository
    /// runs that you have not run here before.
    #[arg(long)]
    pub plugins: bool,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// The configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

const DOCTOR: &str = "Exit codes:
  0  a run would work here; notes are only worth knowing
  1  the machine is in the way: no room on the disk, no right to write
  2  usage or configuration
  4  the agent that a run would take, or AGENT, cannot be used";

/// `ralph init`.
#[derive(Debug, Args)]
pub struct Init {
    /// The agent to write down, instead of the first that is installed.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Take over what the configuration of another loop says here: `.ralphrc`, `config` or `.ralphex/config`.
    #[arg(long, conflicts_with = "agent")]
    pub from: bool,

    /// Write over a `ralph.yml` that is there.
    #[arg(long)]
    pub force: bool,
}

/// `ralph schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Of what.
    #[arg(value_enum, default_value_t = Subject::Config)]
    pub subject: Subject,
}

/// What has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Subject {
    /// `ralph.yml`.
    Config,
    /// A file in `.ralph/agents/`.
    Agent,
}

/// `ralph completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The shells that can be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
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

The names of agents are those known here and now, so print them anew after adding an agent.";

/// `ralph man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Where to write the pages of all subcommands [default: print the page of `ralph`].
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
