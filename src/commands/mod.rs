//! The subcommands: each turns its arguments into a call of the library and shows what came of it.

mod agents;
mod choose;
mod demo_agent;
mod dry_run;
mod foreign;
mod jq_service;
mod looks;
mod planning;
mod plugins;
mod run;
mod translate;
mod trust;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::error::UserError;

/// Runs a subcommand and tells how it went.
pub fn dispatch(cli: Cli) -> ExitCode {
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Agents(args) => agents::run(&args),
        Command::Translate(args) => translate::run(&args),
        Command::JqService(args) => jq_service::run(&args),
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
