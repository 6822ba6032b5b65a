//! `ralph completions`: the completions of a shell, with the names of the agents that are known here.

use std::io::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{Arg, CommandFactory as _};
use clap_complete::Shell;

use super::choose;
use super::run::working_directory;
use crate::agent::Catalog;
use crate::cli::{self, Cli, Completions};
use crate::config::FileLayer;
use crate::error::UserError;
use crate::transcript;

/// Prints them.
pub fn run(args: &Completions) -> Result<u8, UserError> {
    let catalog = working_directory()
        .and_then(|workspace| choose::catalog(&workspace, &FileLayer::default()))
        .or_else(|_| Catalog::built_in())?;
    let mut command = named(Cli::command(), &catalog);
    let shell = match args.shell {
        cli::Shell::Bash => Shell::Bash,
        cli::Shell::Zsh => Shell::Zsh,
        cli::Shell::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "ralph", &mut text);
    // Nobody may be left to read it.
    let _ = std::io::stdout().write_all(&text);
    Ok(0)
}

/// The same command line, in which agents and dialects are choices. For completion only: a run also takes others.
fn named(command: clap::Command, catalog: &Catalog) -> clap::Command {
    let agents: Vec<String> = catalog.names().into_iter().map(str::to_owned).collect();
    let choosable: Vec<String> = agents.iter().cloned().chain(["auto", "custom"].map(str::to_owned)).collect();
    let of = |names: &[String]| {
        let names = names.to_vec();
        move |argument: Arg| argument.value_parser(PossibleValuesParser::new(names))
    };
    let dialects: Vec<String> = transcript::names().into_iter().map(str::to_owned).collect();
    command
        .mut_subcommand("run", |run| run.mut_arg("agent", of(&choosable)).mut_arg("transcript", of(&dialects)))
        .mut_subcommand("init", |init| init.mut_arg("agent", of(&choosable)))
        .mut_subcommand("translate", |translate| translate.mut_arg("from", of(&dialects)))
        .mut_subcommand("agents", |all| {
            // A changed argument goes to the end of the list: so the places are said.
            let show = |show: clap::Command| show.mut_arg("name", of(&agents)).mut_arg("name", |name| name.index(1));
            all.mut_subcommand("show", |command| show(command).mut_arg("prompt", |prompt| prompt.index(2)))
        })
}
