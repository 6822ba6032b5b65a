//! The subcommands: each turns its arguments into a call of the library and shows what came of it.

mod agents;
mod as_claude;
mod batch;
mod clean;
mod completions;
mod config;
mod demo_agent;
pub(crate) mod diff;
mod discard;
mod doctor;
mod dry_run;
mod export;
mod foreign_flags;
mod hats;
mod help;
mod init;
mod jq_service;
mod logs;
mod man;
mod merge;
mod notify;
mod path;
mod plugins;
mod prompt;
mod replay;
mod run;
mod runs;
mod sandbox;
mod schema;
mod serve;
mod show;
mod stats;
mod status;
mod steer;
mod tasks;
mod translate;
mod tui;
mod undo;
mod welcome;
mod worker;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::app::resume;
use crate::cli::{Cli, Command};
use crate::error::{UserError, exit_code};
use crate::ui::out;

/// Reads the command line. Its errors quote arguments, which may be names of files.
pub fn command_line() -> Result<Cli, ExitCode> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let asks_for_help = |word: &std::ffi::OsString| word == "--help" || word == "-h";
    if let [only] = words.as_slice()
        && asks_for_help(only)
    {
        let _ = out::print(&help::main());
        return Err(ExitCode::SUCCESS);
    }
    // Scripts ask for the version before every call: it needs no parser.
    if let [only] = words.as_slice()
        && (only == "--version" || only == "-V")
    {
        let _ = out::print(concat!("ralph ", env!("CARGO_PKG_VERSION"), "\n"));
        return Err(ExitCode::SUCCESS);
    }
    // What the help shows may depend on the directory; a command that runs something does not pay for that.
    let command = if words.iter().any(asks_for_help) { help::command() } else { Cli::command() };
    command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        if let Some(hint) = foreign_flags::hint(&error) {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default();
            out::tell(format_args!("{first}\nhint: {hint}; see docs/coming-from.md"));
            return ExitCode::from(exit_code::USAGE);
        }
        if std::env::args_os().all(|word| out::is_clean(&word.to_string_lossy())) {
            error.exit();
        }
        out::tell(error.to_string().trim_end());
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// Runs a command; the exit code says how it went.
pub fn dispatch(cli: Cli) -> ExitCode {
    let Some(command) = cli.command else { return told(welcome::run()) };
    let result = match command {
        Command::Run(args) => run::run(&args, None),
        Command::Plan(args) => run::run(&args.run, Some("plan")),
        Command::Build(args) => run::run(&args.run, Some("build")),
        Command::Understand(args) => run::run(&args.run, Some("understand")),
        Command::Review(args) => run::run(&args.run, Some("review")),
        Command::Hint(args) => steer::hint(&args),
        Command::Pause(which) => steer::pause(&which),
        Command::Continue(which) => steer::go_on(&which),
        Command::Stop(args) => steer::stop(&args),
        Command::Retry(which) => steer::retry(&which),
        Command::Limit(args) => steer::limit(&args),
        Command::Emit(args) => steer::emit(&args),
        Command::Hats(args) => hats::run(&args),
        Command::Prompt(args) => prompt::run(&args),
        Command::Answer(args) => resume::answer(args),
        Command::Resume(args) => resume::run(&args),
        Command::Runs(args) => runs::run(&args),
        Command::Path(args) => path::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Tui(args) => tui::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Clean(args) => clean::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Discard(args) => discard::run(&args),
        Command::Batch(args) => batch::run(&args),
        Command::Tasks(args) => tasks::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Agents(args) => agents::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::AsClaude(args) => as_claude::run(&args.agent, &args.arguments),
        Command::Translate(args) => translate::run(&args),
        Command::Notify(args) => notify::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Sandbox(args) => sandbox::run(&args),
        Command::Schema(args) => Ok(schema::run(&args)),
        Command::Completions(args) => Ok(completions::run(&args)),
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
            out::error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
