//! `ralph completions`: the completions of a shell, with the names of the built-in agents.

use std::io::Write as _;

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory as _, Id};
use clap_complete::Shell;

use crate::agent::Catalog;
use crate::cli::{self, Cli, Completions};
use crate::transcript;
use crate::ui::out;

/// Prints them.
pub(crate) fn run(args: &Completions) -> u8 {
    // The script is sourced by a shell: no name from the repository may be in it.
    let catalog = Catalog::built_in();
    let mut command = named(Cli::command(), &catalog);
    let shell = match args.shell {
        cli::Shell::Bash => Shell::Bash,
        cli::Shell::Zsh => Shell::Zsh,
        cli::Shell::Fish => Shell::Fish,
    };
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "ralph", &mut text);
    text.extend_from_slice(ids(&command, shell).as_bytes());
    // The reader may be gone.
    let _ = out::stdout().write_all(&text);
    0
}

/// Runs are known by ids that only the directory knows: the shell asks for them.
fn ids(command: &clap::Command, shell: Shell) -> String {
    let takes_id = |one: &&clap::Command| one.get_positionals().any(|positional| positional.get_id() == "id");
    let names: Vec<&str> = command.get_subcommands().filter(takes_id).map(clap::Command::get_name).collect();
    let template = match shell {
        Shell::Bash => include_str!("completions/ids.bash"),
        Shell::Zsh => include_str!("completions/ids.zsh"),
        _ => include_str!("completions/ids.fish"),
    };
    let between = if shell == Shell::Fish { " " } else { "|" };
    template.replace("@COMMANDS@", &names.join(between))
}

/// The same command line, in which agents and dialects are choices. For completion only: a run also takes others.
fn named(command: clap::Command, catalog: &Catalog) -> clap::Command {
    let agents: Vec<String> = catalog.names().into_iter().map(str::to_owned).collect();
    let choosable: Vec<String> = agents.iter().cloned().chain(["auto", "custom"].map(str::to_owned)).collect();
    let dialects: Vec<String> = transcript::names().into_iter().map(str::to_owned).collect();
    let subcommands: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let command = subcommands.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| {
            let lists = [("agent", &choosable), ("transcript", &dialects), ("from", &dialects)];
            lists.into_iter().fold(subcommand, |subcommand, (id, names)| chosen_from(subcommand, id, names))
        })
    });
    command.mut_subcommand("agents", |all| all.mut_subcommand("show", |show| chosen_from(show, "name", &agents)))
}

/// The same command, in which an argument, if it has it, is one of these names.
fn chosen_from(command: clap::Command, id: &str, names: &[String]) -> clap::Command {
    let places: Vec<Id> = command.get_positionals().map(|positional| positional.get_id().clone()).collect();
    if !command.get_arguments().any(|argument| argument.get_id() == id) {
        return command;
    }
    let names = names.to_vec();
    let command = command.mut_arg(id, |argument| argument.value_parser(PossibleValuesParser::new(names)));
    // A changed argument goes to the end of the list: so the places are said.
    places
        .into_iter()
        .enumerate()
        .fold(command, |command, (at, id)| command.mut_arg(id, |argument| argument.index(at + 1)))
}
