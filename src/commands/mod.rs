//! The subcommands: each turns its arguments into a call of the library and shows what came of it.

mod agents;
mod choose;
mod completions;
mod config;
mod demo_agent;
mod doctor;
mod dry_run;
mod foreign;
mod hats;
mod init;
mod jq_service;
mod looks;
mod man;
mod planning;
mod plugins;
mod prompt;
mod run;
mod schema;
mod steer;
mod translate;
mod trust;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::error::UserError;

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
        Command::Agents(args) => agents::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Translate(args) => translate::run(&args),
        Command::JqService(args) => Ok(jq_service::run(&args)),
        Command::Config(args) => config::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Schema(args) => Ok(schema::run(&args)),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::DemoAgent => demo_agent::run(),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            use std::io::Write as _;
            // Nobody may be left to read it.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// The runtime that drives processes: one thread is enough, since all it does is wait.
fn runtime() -> Result<tokio::runtime::Runtime, UserError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| UserError::failed(format!("cannot start: {error}")))
}
