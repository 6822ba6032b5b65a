//! The flags of `ralph run` as a layer of settings.

use std::time::Duration;

use clap::Parser as _;

use crate::cli::{Cli, Command, Run};
use crate::config::{
    Dollars, Layer, Merge, OneLine, OrOff, Origin, Program, RunMode, SessionChoice, Setting, Verify, shell_words,
};
use crate::error::UserError;
use crate::plugin;
use crate::run::Commit;
use crate::run::decide::Until;
use crate::run::verify::Check;
use crate::transcript::Choice;

/// The arguments of `ralph run` with these words behind it, for commands that plan a run of their own.
pub(crate) fn arguments(words: &[String]) -> Result<Box<Run>, UserError> {
    let line = ["ralph", "run"].map(str::to_owned).into_iter().chain(words.iter().cloned());
    match Cli::try_parse_from(line).map(|cli| cli.command) {
        Ok(Some(Command::Run(run))) => Ok(run),
        _ => Err(UserError::failed("cannot make up a command line")),
    }
}

/// What the flags say.
pub(crate) fn flags(args: &Run) -> Result<Layer, UserError> {
    if let (Some(agent), Some(_)) = (args.agent.as_deref().filter(|agent| *agent != "custom"), &args.agent_cmd) {
        return Err(UserError::usage(format!("`--agent {agent}` and `--agent-cmd` are two agents"))
            .hint("use one of them; `--agent custom --agent-cmd COMMAND` means `--agent-cmd COMMAND`"));
    }
    let agent = args.agent.clone().map(|name| Setting::new(name, Origin::Flag("--agent")));
    let wrapper = || Setting::new(plugin::wrapper::NAME.to_owned(), Origin::Flag("--claude-command"));
    let agent = agent.or_else(|| args.claude_command.is_some().then(wrapper));
    let transcript = match (&args.transcript, &args.transcript_cmd) {
        (Some(name), _) => Some(Setting::new(Choice::from(name.as_str()), Origin::Flag("--transcript"))),
        (None, Some(command)) => {
            Some(Setting::new(Choice::Command(words(command, "--transcript-cmd")?), Origin::Flag("--transcript-cmd")))
        }
        (None, None) => None,
    };
    if let Some(marker) = &args.completion
        && (marker.trim().is_empty() || marker.contains('\n'))
    {
        return Err(UserError::usage("`--completion` must be one line and not empty"));
    }
    let by_command = Origin::Flag(if args.claude_command.is_some() { "--claude-command" } else { "--agent-cmd" });
    let agent_command = match &args.claude_command {
        Some(command) => Some(words(command, "--claude-command")?),
        None => args
            .agent_cmd
            .as_deref()
            .map(|text| shell_words(text).map_or_else(|| words(text, "--agent-cmd"), Ok))
            .transpose()?,
    };
    let agent_command = agent_command.map(|argv| match argv.as_slice() {
        // A shell passes its own arguments on only when its command says so.
        [shell, flag, text] if shell == "sh" && flag == "-c" && !args.agent_args.is_empty() => {
            ["sh", "-c", &format!("{text} \"$@\""), "sh"].map(str::to_owned).to_vec()
        }
        _ => argv,
    });
    let (command, arguments) = agent_command
        .and_then(|argv| argv.split_first().map(|(program, rest)| (Program(program.clone()), rest.to_vec())))
        .map(|(program, rest)| (Setting::new(Some(program), by_command.clone()), Setting::new(rest, by_command)))
        .unzip();
    let flag = |name: &'static str| Origin::Flag(name);
    Ok(Layer {
        verify: (!args.verify.is_empty()).then(|| {
            Setting::new(
                Verify { checks: args.verify.iter().map(Check::new).collect(), ..Verify::default() },
                flag("--verify"),
            )
        }),
        judge: args.judge.clone().map(|agent| Setting::new(Some(agent), flag("--judge"))),
        until: args.until_checks.then(|| Setting::new(Until::Checks, flag("--until-checks"))),
        plan_file: args.plan_file.clone().map(|path| Setting::new(Some(path), flag("--plan-file"))),
        min_iterations: args.min_iterations.map(|count| Setting::new(count, flag("--min-iterations"))),
        confirmations: args.confirmations.map(|count| Setting::new(count, flag("--confirmations"))),
        max_tokens: args.max_tokens.map(|count| Setting::new(Some(count), flag("--max-tokens"))),
        max_cost_usd: args.max_cost.map(|usd| Setting::new(Some(Dollars(usd)), flag("--max-cost"))),
        list_prices: args.no_prices.then(|| Setting::new(false, flag("--no-prices"))),
        max_stalled: args.max_stalled.map(|count| Setting::new(OrOff(count), flag("--max-stalled"))),
        session: match (args.session, args.no_continue) {
            (Some(session), _) => Some(Setting::new(session, flag("--session"))),
            (None, true) => Some(Setting::new(SessionChoice::Fresh, flag("--no-continue"))),
            (None, false) => None,
        },
        merge: match (args.place.merge, args.place.pr) {
            (Some(merge), _) => Some(Setting::new(merge, flag("--merge"))),
            (None, true) => Some(Setting::new(Merge::Pr, flag("--pr"))),
            (None, false) => args.place.task_base.is_some().then(|| Setting::new(Merge::None, flag("--task-base"))),
        },
        commit: args.place.task_base.is_some().then(|| Setting::new(Commit::Iteration, flag("--task-base"))),
        max_wait: args.place.task_base.is_some().then(|| Setting::new(Duration::ZERO, flag("--task-base"))),
        fallback: (!args.fallback.is_empty()).then(|| Setting::new(args.fallback.clone(), flag("--fallback"))),
        agent,
        command,
        args: arguments,
        extra_args: (!args.agent_args.is_empty()).then(|| Setting::new(args.agent_args.clone(), flag("--"))),
        model: args.model.clone().map(|value| Setting::new(Some(value), Origin::Flag("--model"))),
        effort: args.effort.clone().map(|value| Setting::new(Some(value), Origin::Flag("--effort"))),
        tools: (!args.tools.is_empty()).then(|| Setting::new(args.tools.clone(), Origin::Flag("--tools"))),
        transcript,
        live: match (args.live, args.no_live) {
            (true, _) => Some(Setting::new(true, flag("--live"))),
            (false, true) => Some(Setting::new(false, flag("--no-live"))),
            (false, false) => None,
        },
        mode: args.interactive.then(|| Setting::new(RunMode::Interactive, Origin::Flag("--interactive"))),
        sandbox_mode: args.sandbox.map(|mode| Setting::new(mode, flag("--sandbox"))),
        pty: args.pty.then(|| Setting::new(true, Origin::Flag("--pty"))),
        max_iterations: args.max_iterations.map(|value| Setting::new(value, Origin::Flag("-n"))),
        max_time: args.max_time.map(|value| Setting::new(value, Origin::Flag("--max-time"))),
        timeout: args.timeout.map(|value| Setting::new(value, Origin::Flag("--timeout"))),
        idle_timeout: args.idle_timeout.map(|value| Setting::new(value, Origin::Flag("--idle-timeout"))),
        completion_promise: args
            .completion
            .clone()
            .map(|value| Setting::new(Some(OneLine(value)), Origin::Flag("--completion"))),
        ..Layer::default()
    })
}

fn words(text: &str, flag: &str) -> Result<Vec<String>, UserError> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => {
            Err(UserError::usage(format!("`{flag}` is empty")).hint("use a command, such as `'./my-agent.sh --fast'`"))
        }
        None => Err(UserError::usage(format!("`{flag}` has an unclosed quote: {text}"))),
    }
}
