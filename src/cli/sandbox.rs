//! `ralph sandbox`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::sandbox::Mode;

pub(super) const EXAMPLES: &str = "Examples:
  ralph sandbox -- cargo test                    this command, as if an agent had started it
  ralph sandbox --mode strict -- sh -c 'cat ~/.ssh/id_rsa'
  ralph sandbox explain                          everything the wall allows, hides and does not stop
  ralph sandbox explain ~/.ssh                   may it read or write this? which rule says so?
  ralph sandbox explain example.com:443          may it connect?";

/// `ralph sandbox`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SandboxArgs {
    /// Explain instead of running something.
    #[command(subcommand)]
    pub action: Option<SandboxAction>,

    /// `workspace` or `strict` [default: `sandbox.mode`, or `workspace` where that is `off`].
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub mode: Option<Mode>,

    /// Allow what this agent needs: its state and its hosts.
    #[arg(short = 'b', long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The command, after `--`.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// The subcommands of `ralph sandbox`.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxAction {
    /// Show what the wall allows, or whether it allows one path or host
    Explain(Explain),
}

/// `ralph sandbox explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A path or a host. Without one: everything.
    #[arg(value_name = "PATH|HOST")]
    pub subject: Option<String>,

    /// `workspace` or `strict`, instead of what is configured.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub mode: Option<Mode>,

    /// What this agent may do.
    #[arg(short = 'b', long, value_name = "NAME")]
    pub agent: Option<String>,
}

pub(super) fn mode(text: &str) -> Result<Mode, String> {
    [Mode::Off, Mode::Workspace, Mode::Strict]
        .into_iter()
        .find(|mode| mode.name() == text)
        .ok_or_else(|| "use `off`, `workspace` or `strict`".to_owned())
}
