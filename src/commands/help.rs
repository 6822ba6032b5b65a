//! `ralph --help` and `ralph help`: the main commands in groups; `--all` lists every command. The sentences are clap's own.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::agent::Contract;
use crate::app::find::print;
use crate::app::working_directory;
use crate::cli::{Cli, DRIVER_FLAGS, Help};
use crate::error::UserError;
use crate::nearest::nearest;
use crate::plugin::files;

/// What most people need, in the order in which they need it.
const MAIN: &[(&str, &[&str])] = &[
    ("Run", &["run", "plan", "build", "batch", "resume", "merge", "undo"]),
    ("Steer", &["status", "hint", "pause", "stop"]),
    ("Look back", &["runs", "show", "diff", "tui", "serve"]),
    ("Set up", &["init", "doctor", "agents", "config"]),
];

/// Every command, plumbing last.
const ALL: &[(&str, &[&str])] = &[
    (
        "Run",
        &[
            "run",
            "plan",
            "build",
            "review",
            "understand",
            "resume",
            "answer",
            "batch",
            "tasks",
            "worker",
            "merge",
            "discard",
            "undo",
        ],
    ),
    ("Steer", &["status", "hint", "pause", "continue", "stop", "retry", "limit"]),
    ("Look back", &["runs", "show", "diff", "logs", "tui", "serve", "replay", "stats", "export", "path", "clean"]),
    ("Set up", &["init", "doctor", "agents", "config", "sandbox", "notify", "hats", "prompt", "completions", "man"]),
    ("Plumbing", &["emit", "as-claude", "translate", "schema", "help"]),
];

const EXIT_CODES: &str = "Exit codes:
  0  completed
  1  the run failed
  2  usage or configuration error; nothing was run
  3  the agent asked for a new plan or for a person
  4  the agent is not usable: missing, not logged in, not permitted
  5  stopped at a limit: iterations, time, tokens, cost
  6  stopped without progress
  7  rate-limited for longer than allowed
  128 + N  ended by Unix signal N (130: Ctrl-C)
";

/// `ralph help`.
pub(crate) fn run(args: &Help) -> Result<u8, UserError> {
    if args.command.is_empty() {
        return print(&if args.all { all() } else { main() });
    }
    let mut command = command();
    command.build();
    let mut found = &mut command;
    for name in &args.command {
        let known: Vec<String> = found.get_subcommands().map(|one| one.get_name().to_owned()).collect();
        let unknown = || {
            let error = UserError::usage(format!("unknown command `{name}`"));
            match nearest(name, known.iter().map(String::as_str)) {
                Some(close) => error.hint(format!("did you mean `{close}`? `ralph help --all` lists every command")),
                None => error.hint("`ralph help --all` lists every command"),
            }
        };
        found = found.find_subcommand_mut(name).ok_or_else(unknown)?;
    }
    print(&found.render_long_help().to_string())
}

/// The page of `ralph --help`.
pub(crate) fn main() -> String {
    let command = Cli::command();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\n\nUsage: ralph <COMMAND>\n");
    groups(&mut text, &command, MAIN);
    text += "\n`ralph` alone says what to do next here. `ralph help --all` lists every command, `ralph COMMAND --help` explains one.\n";
    text
}

fn all() -> String {
    let mut text = "Usage: ralph <COMMAND>\n".to_owned();
    groups(&mut text, &Cli::command(), ALL);
    text + "\nOptions:\n  -h, --help     Print help\n  -V, --version  Print version\n\n" + EXIT_CODES
}

fn groups(text: &mut String, command: &clap::Command, groups: &[(&str, &[&str])]) {
    for (title, names) in groups {
        let _ = write!(text, "\n{title}:\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let _ = writeln!(text, "  {name:<12} {}", about.map(ToString::to_string).unwrap_or_default());
        }
    }
}

/// The command line for its help: where a driver is used here, its flags are shown.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let uses_drivers = |workspace: PathBuf| {
        workspace.join(".ralphrc").is_file() || !files::list(Contract::Driver, &workspace).is_empty()
    };
    if !working_directory().is_ok_and(uses_drivers) {
        return command;
    }
    ["run", "plan", "build", "review", "understand"].into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |sub| {
            DRIVER_FLAGS.into_iter().fold(sub, |sub, flag| sub.mut_arg(flag, |arg| arg.hide(false)))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_has_a_sentence() {
        let command = Cli::command();
        let mut listed: Vec<&str> = ALL.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut known: Vec<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(clap::Command::get_name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
        assert!(MAIN.iter().flat_map(|(_, names)| *names).all(|name| known.contains(name)));
        assert!(command.get_subcommands().all(|one| one.get_about().is_some()));
    }
}
