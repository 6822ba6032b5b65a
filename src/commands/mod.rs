//! The subcommands: each turns its arguments into a call of the library and shows what came of it.

mod agents;
mod as_claude;
mod choose;
mod clean;
mod completions;
mod config;
mod converse;
mod demo_agent;
mod diff;
mod doctor;
mod dry_run;
mod export;
mod find;
mod foreign;
mod hats;
mod init;
mod jq_service;
mod logs;
mod looks;
mod man;
mod perform;
mod planning;
mod plugins;
mod prompt;
mod replay;
mod resume;
mod run;
mod runs;
mod schema;
mod show;
mod showing;
mod stats;
mod steer;
mod translate;
mod trust;
mod tui;
mod wrapper;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::error::UserError;
use crate::journal::Redactor;

/// Runs a subcommand and tells how it went.
pub fn dispatch(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Run(args) => run::run(&args, None),
        Command::Plan(args) => run::run(&args.run, Some("plan")),
        Command::Build(args) => run::run(&args.run, Some("build")),
        Command::Understand(args) => run::run(&args.run, Some("understand")),
        Command::Review(args) => run::run(&args.run, Some("review")),
        Command::Hint(args) => steer::hint(&args),
        Command::Pause => steer::pause(),
        Command::Continue => steer::go_on(),
        Command::Stop(args) => steer::stop(&args),
        Command::Retry => steer::retry(),
        Command::Limit(args) => steer::limit(&args),
        Command::Emit(args) => steer::emit(&args),
        Command::Hats(args) => hats::run(&args),
        Command::Prompt(args) => prompt::run(&args),
        Command::Answer(args) => resume::answer(args),
        Command::Resume(args) => resume::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Tui(args) => tui::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Agents(args) => agents::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::AsClaude(args) => as_claude::run(&args.agent, &args.arguments),
        Command::Translate(args) => translate::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Schema(args) => Ok(schema::run(&args)),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::JqService(args) => Ok(jq_service::run(&args)),
        Command::DemoAgent => demo_agent::run(),
    };
    told(result)
}

/// A link to this program called `AGENT-as-claude` plays Claude Code with that agent.
pub fn by_name() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let agent = as_claude::agent_of_link(&words.next()?)?;
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Some(told(as_claude::run(&agent, &words)))
}

fn told(result: Result<u8, UserError>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            use std::io::Write as _;
            // It may quote a command line, or an agent.
            let mut text = error.to_string();
            Redactor::of_environment().clean(&mut text);
            // Nobody may be left to read it.
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Tells what the user should know, though it stops nothing: on standard error, each marked as what it is.
fn warn(warnings: impl IntoIterator<Item = impl std::fmt::Display>) {
    use std::io::Write as _;
    for warning in warnings {
        // Nobody may be left to read it.
        let _ = writeln!(std::io::stderr(), "warning: {warning}");
    }
}

/// The runtime that drives processes: one thread is enough, since all it does is wait.
fn runtime() -> Result<tokio::runtime::Runtime, UserError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| UserError::failed(format!("cannot start: {error}")))
}
