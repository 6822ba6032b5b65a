//! `ralph sandbox`: any command behind the wall of this directory, and what that wall does.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::Catalog;
use crate::app::{choose, sandbox, working_directory};
use crate::cli::{Explain, SandboxAction, SandboxArgs};
use crate::config::{self, Settings};
use crate::error::UserError;
use crate::process::wall::machine;
use crate::process::{self, Clocks, Exit, Invocation, Link, Needs, Output, Place, Stdin, runtime};
use crate::run::{Interrupts, start_error};
use crate::sandbox::{Built, Mode, Purpose, describe_machine};
use crate::ui::out;

/// Runs the command, or explains.
pub(crate) fn run(args: &SandboxArgs) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(args.config.clone(), &workspace)?;
    let mut settings = choose::settle(file.layer.clone(), &file, &workspace)?;
    let configured = settings.sandbox_mode.value;
    let explained = args.action.as_ref().map(|SandboxAction::Explain(explain)| explain);
    let mode = explained.and_then(|explain| explain.mode).or(args.mode);
    let named = explained.and_then(|explain| explain.agent.clone()).or_else(|| args.agent.clone());
    let usual = if configured == Mode::Off { Mode::Workspace } else { configured };
    settings.sandbox_mode.value = mode.unwrap_or(usual);
    let catalog = choose::catalog(&workspace, &file);
    let agent = named.or_else(|| Some(settings.agent.value.clone()).filter(|name| name != "auto"));
    let needs = agent.as_deref().map(|name| sandbox::needs_of(name, &catalog)).unwrap_or_default();
    match &args.action {
        Some(SandboxAction::Explain(explain)) => {
            self::explain(explain, &settings, configured, &catalog, &workspace, (&needs, agent.as_deref()))
        }
        None if args.command.is_empty() => Err(UserError::usage("no command given")
            .hint("run one behind the wall: `ralph sandbox -- COMMAND`")
            .hint("see what the wall does: `ralph sandbox explain`")),
        None => start(&args.command, &settings, &catalog, &workspace, needs),
    }
}

fn start(
    command: &[String],
    settings: &Settings,
    catalog: &Catalog,
    workspace: &Path,
    needs: Needs,
) -> Result<u8, UserError> {
    process::protect(process::own_program());
    let mut notices = Vec::new();
    let wall = sandbox::raise(settings, catalog, workspace, &mut notices)?;
    // The first line is for people who try it; warnings are for everybody.
    notices.iter().skip(usize::from(wall.is_some())).for_each(|notice| out::warn(notice.clone()));
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let stdin = stdin.map_err(|error| UserError::failed(format!("cannot use stdin: {error}")))?;
    let invocation = Invocation {
        args: command.iter().skip(1).map(Into::into).collect(),
        stdin: Stdin::From(Arc::new(stdin)),
        link: Link::Inherited,
        place: Place::Inside(needs),
        ..Invocation::new(command.first().map_or("", String::as_str), workspace)
    };
    let exit = runtime()?.block_on(supervise(invocation));
    if let Some(wall) = &wall {
        wall.close();
    }
    let exit = exit?;
    for refused in wall.iter().flat_map(|wall| wall.refusals.take()) {
        out::warn(format!("sandbox refused {refused}; add it to `sandbox.network`"));
    }
    Ok(match exit {
        Exit::Code(code) => u8::try_from(code).unwrap_or(1),
        Exit::Signal(number) => u8::try_from(128 + number).unwrap_or(1),
    })
}

async fn supervise(invocation: Invocation) -> Result<Exit, UserError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| UserError::failed(format!("cannot listen for Unix signals: {error}")))?;
    let clocks = Clocks { startup: None, idle: None, total: None, ..Clocks::default() };
    let mut process = process::start(invocation, clocks).map_err(|error| start_error(&error))?;
    let mut interrupted = false;
    loop {
        tokio::select! {
            biased;
            came = interrupts.next() => came.pass_to(&mut process, &mut interrupted),
            output = process.next() => if let Output::Ended(ended) = output {
                return Ok(ended.exit);
            },
        }
    }
}

fn explain(
    args: &Explain,
    settings: &Settings,
    configured: Mode,
    catalog: &Catalog,
    workspace: &Path,
    (needs, agent): (&Needs, Option<&str>),
) -> Result<u8, UserError> {
    let options = settings.sandbox();
    let offered = format!("this machine: {}\n", describe_machine(&machine()));
    let Built { sandbox, notices } = sandbox::build(options, catalog, workspace, Purpose::Look)?;
    let Some(sandbox) = sandbox else {
        let _ = out::print(&format!("{offered}{}\n", notices.join("\n")));
        return Ok(1);
    };
    let Some(subject) = &args.subject else {
        let off = match configured {
            Mode::Off => "the sandbox is off here (`sandbox.mode`); this is what it would do\n",
            Mode::Workspace | Mode::Strict => "",
        };
        let _ = out::print(&format!("{offered}{off}{}", sandbox.describe(needs, agent)));
        return Ok(0);
    };
    let yes = |allowed: bool| if allowed { "yes" } else { "no " };
    let said = |answer: &Result<String, String>| match answer {
        Ok(why) | Err(why) => why.clone(),
    };
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let is_path =
        subject.contains('/') && !subject.starts_with("http") || Path::new(subject).exists() || subject == "~";
    if is_path {
        let path = match (subject.strip_prefix('~'), home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => workspace.join(subject),
        };
        let answer = sandbox.path_for(&path, needs);
        let setting = |answer: &Result<String, String>, key: &str| match answer {
            Ok(_) => String::new(),
            Err(_) => format!("; `sandbox.{key}` would allow it"),
        };
        let text = format!(
            "read   {}  {}{}\nwrite  {}  {}{}\n",
            yes(answer.read.is_ok()),
            said(&answer.read),
            setting(&answer.read, "read"),
            yes(answer.write.is_ok()),
            said(&answer.write),
            setting(&answer.write, "write"),
        );
        let _ = out::print(&text);
        return Ok(0);
    }
    let host = crate::sandbox::hosts::of_url(subject).unwrap_or_else(|| subject.clone());
    let answer = sandbox.host(&host, needs);
    let _ = out::print(&format!("reach  {}  {}\n", yes(answer.is_ok()), said(&answer)));
    Ok(0)
}
