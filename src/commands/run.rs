//! `ralph run`: settings, agent, prompt, journal and view are put together; then the loop runs.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::choose::{Chosen, choose};
use super::dry_run;
use super::looks::line_view;
use super::runtime;
use crate::agent::{Agent, Source as DefinedBy, Turn};
use crate::cli::{Output, Run};
use crate::config::{self, Layer, OneLine, Origin, Program, Setting, Settings};
use crate::error::{UserError, io_reason};
use crate::journal::{Holder, Journal, Lock, LockError, Store};
use crate::process::{self, Clocks};
use crate::run::decide::Policy;
use crate::run::prompt::Source;
use crate::run::{Filter, LeftBehind, Plan, Recorder, Screen, run as run_loop, start_error};
use crate::signals::promise::Rule;
use crate::transcript::{Choice, PLAIN, Selected, names, select};
use crate::ui::{Feed, JsonView, Shown, View};

/// How long the view may stand still when the run is over, before it is given up. Ctrl-C ends it sooner.
const LAST_LINES: Duration = Duration::from_secs(60);

/// Runs the loop and gives its exit code.
pub fn run(args: &Run) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    // Looking for agents already starts some.
    process::protect(process::own_program());
    let output = args.output;
    let looks_view = || -> Box<dyn View> {
        match output {
            Output::Lines => Box::new(line_view(&args.looks)),
            Output::Json => Box::new(JsonView::new(std::io::stdout())),
        }
    };
    let Planned { mut plan, settings, defined_by } = plan(args, workspace)?;
    if args.dry_run {
        let report = dry_run::report(&plan, &settings, defined_by.as_ref())?;
        // Nobody may be left to read it.
        let _ = std::io::stdout().write_all(report.as_bytes());
        return Ok(0);
    }
    let unusable = |error: &std::io::Error| {
        UserError::usage(format!("cannot use `{}`: {}", plan.workspace.join(".ralph").display(), io_reason(error)))
            .hint("ralph keeps its journal there: make room on the disk or mend the permissions; nothing was run")
    };
    let store = Store::open(&plan.workspace).map_err(|error| unusable(&error))?;
    let mut lock = Lock::take(&store.lock()).map_err(|error| match error {
        LockError::Held(holder) => held(holder.as_ref(), &plan.workspace),
        LockError::Io(error) => unusable(&error),
    })?;
    let directory = store.create_run().map_err(|error| unusable(&error))?;
    let journal = Journal::create(&directory.journal()).map_err(|error| unusable(&error))?;
    lock.sign(&Holder {
        pid: std::process::id(),
        run: directory.id.clone(),
        agent: plan.agent.id().to_owned(),
        since: jiff::Timestamp::now(),
    })
    .map_err(|error| unusable(&error))?;

    plan.notices.extend(strays(&store));
    let feed = Feed::start(looks_view(), directory.journal())
        .map_err(|error| UserError::failed(format!("cannot start the view: {error}")))?;
    let feed = std::rc::Rc::new(std::cell::RefCell::new(feed));
    let observer = std::rc::Rc::clone(&feed);
    let mut recorder = Recorder::new(journal, Box::new(move |appended| observer.borrow_mut().send(appended)));
    let finished = runtime()?.block_on(run_loop(&plan, &directory, &mut recorder));
    drop(recorder);
    process::restore_signals();
    if let Some(feed) = std::rc::Rc::into_inner(feed)
        && feed.into_inner().finish(LAST_LINES) == Shown::InPart
    {
        let mut stderr = std::io::stderr();
        let place = directory.path.display();
        let _ = writeln!(stderr, "warning: not everything could be shown; everything that happened is in `{place}`");
    }
    let finished = finished?;
    drop(lock);
    match finished.interrupt {
        Some(interrupt) => process::die_by(interrupt.number()),
        None => Ok(finished.outcome.exit_code()),
    }
}

/// Where the user is.
pub fn working_directory() -> Result<PathBuf, UserError> {
    std::env::current_dir().map_err(|error| {
        UserError::usage(format!("the working directory is gone or not accessible: {}", io_reason(&error)))
            .hint("change to a directory that exists")
    })
}

/// What dead runs of this directory have left behind. The lock is ours, so that no other run is alive.
fn strays(store: &Store) -> Vec<String> {
    let found = process::strays(|run| !store.has_run(run));
    let told = found.iter().map(|found| {
        let process::Stray { pid, command } = &found.stray;
        format!("process {pid} of the dead run {} is still there: {command}\nend it with `kill {pid}`", found.run)
    });
    told.collect()
}

/// Who else runs here.
fn held(holder: Option<&Holder>, workspace: &Path) -> UserError {
    let place = workspace.display();
    match holder {
        Some(Holder { pid, run, agent, since }) => {
            let since = since.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S");
            UserError::usage(format!(
                "another run is active in `{place}`: run {run}, agent `{agent}`, process {pid}, since {since}"
            ))
            .hint(format!("wait for it, stop it with `kill -INT {pid}`, or work in another directory"))
        }
        None => UserError::usage(format!("another run is active in `{place}`"))
            .hint("wait for it, or work in another directory"),
    }
}

/// A run that can begin, and where its parts came from.
struct Planned {
    plan: Plan,
    settings: Settings,
    defined_by: Option<DefinedBy>,
}

/// Puts everything together; the agent is not started yet.
fn plan(args: &Run, workspace: PathBuf) -> Result<Planned, UserError> {
    let file = config::nearest_file(args.config.clone(), &workspace)?;
    let mut settings = flags(args)?.over(file.layer.clone()).settle();
    let Chosen { agent, source: defined_by, notices: told } = choose(&settings, &file, super::foreign::Wishes::default(), &workspace)?;
    // What the file says of one agent is nearer than what it says of all, and a flag is nearer still.
    if let (Origin::Default | Origin::File { .. }, Some(Setting { value: Some(timeout), origin })) =
        (&settings.timeout.origin, file.adapter(agent.id()).timeout)
    {
        settings.timeout = Setting::new(timeout, origin);
    }
    let transcript = select(std::slice::from_ref(&settings.transcript.value), Some(&agent.definition.dialect))
        .map_err(|error| {
            UserError::usage(format!("{error} (from {})", settings.transcript.origin))
                .hint(format!("known: {}", names().join(", ")))
        })?;
    let prompt = prompt_source(args, &settings, &agent, &workspace)?;
    process::check(&agent.invocation(&Turn::new(&prompt.read()?, &workspace))?).map_err(|error| start_error(&error))?;
    let mut notices = [file.warnings, told].concat();
    if let Selected::Command(argv) = &transcript {
        Filter::check(argv, &workspace)?;
        notices.push(format!("the agent's output is read by the command `{}`", argv.join(" ")));
    }
    let is_plain = transcript.name() == PLAIN.name;
    let positive = |duration: Duration| (!duration.is_zero()).then_some(duration);
    let plan = Plan {
        transcript,
        prompt,
        rule: Rule::new(
            settings.completion_promise.value.as_ref().map(|marker| marker.0.as_str()),
            settings.completion_match.value,
        ),
        policy: Policy {
            max_iterations: settings.max_iterations.value,
            max_time: positive(settings.max_time.value).unwrap_or(Duration::MAX),
            max_consecutive_failures: settings.max_consecutive_failures.value,
            max_wait: settings.max_wait.value,
        },
        clocks: Clocks {
            // An agent of plain text may say nothing until it is done: only its silence without work counts.
            startup: positive(settings.startup_timeout.value).filter(|_| !is_plain),
            idle: positive(settings.idle_timeout.value),
            total: positive(settings.timeout.value),
            ..Clocks::default()
        },
        screen: if settings.pty.value { Screen::Terminal } else { Screen::Pipes },
        left_behind: if settings.leave_running.value { LeftBehind::Leave } else { LeftBehind::Stop },
        line_cap: settings.max_line_bytes.value,
        notices,
        agent,
        workspace,
    };
    Ok(Planned { plan, settings, defined_by })
}

/// What flags and environment say. clap has read both; it cannot say which of them spoke.
fn flags(args: &Run) -> Result<Layer, UserError> {
    let environment = |name: &'static str| {
        let value = std::env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(Setting::new(value, Origin::Environment(name)))
    };
    // Inside an agent of ralph the variable says who that agent is, not whom to run.
    let inside = std::env::var_os("RALPH_RUN_ID").is_some();
    let agent = match &args.agent {
        Some(name) => Some(Setting::new(name.clone(), Origin::Flag("--agent"))),
        None if args.agent_cmd.is_some() || inside => None,
        None => environment("RALPH_AGENT"),
    };
    let transcript = match (&args.transcript, &args.transcript_cmd) {
        (Some(name), _) => Some(Setting::new(Choice::from(name.as_str()), Origin::Flag("--transcript"))),
        (None, Some(command)) => {
            Some(Setting::new(Choice::Command(words(command, "--transcript-cmd")?), Origin::Flag("--transcript-cmd")))
        }
        (None, None) => {
            environment("RALPH_TRANSCRIPT").map(|name| Setting::new(Choice::from(name.value.as_str()), name.origin))
        }
    };
    if let Some(marker) = &args.completion
        && (marker.trim().is_empty() || marker.contains('\n'))
    {
        return Err(UserError::usage("`--completion` must be one line that is not empty"));
    }
    let by_command = Origin::Flag("--agent-cmd");
    let agent_command = args.agent_cmd.as_deref().map(command_line).transpose()?;
    let (command, arguments) = agent_command
        .and_then(|argv| argv.split_first().map(|(program, rest)| (Program(program.clone()), rest.to_vec())))
        .map(|(program, rest)| (Setting::new(Some(program), by_command.clone()), Setting::new(rest, by_command)))
        .unzip();
    Ok(Layer {
        agent,
        command,
        args: arguments,
        model: args.model.clone().map(|value| Setting::new(Some(value), Origin::Flag("--model"))),
        effort: args.effort.clone().map(|value| Setting::new(Some(value), Origin::Flag("--effort"))),
        tools: (!args.tools.is_empty()).then(|| Setting::new(args.tools.clone(), Origin::Flag("--tools"))),
        transcript,
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

/// A command line as an argument vector. What needs a shell gets one; everything else is run directly, so
/// that a stop reaches the agent itself.
fn command_line(text: &str) -> Result<Vec<String>, UserError> {
    const SHELL_SIGNS: &[char] = &['|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '~', '#', '\n'];
    if text.contains(SHELL_SIGNS) && !text.trim().is_empty() {
        return Ok(["sh", "-c", text].map(str::to_owned).to_vec());
    }
    words(text, "--agent-cmd")
}

fn words(text: &str, flag: &str) -> Result<Vec<String>, UserError> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(words),
        Some(_) => {
            Err(UserError::usage(format!("`{flag}` is empty")).hint("give a command, such as `'./my-agent.sh --fast'`"))
        }
        None => Err(UserError::usage(format!("`{flag}` has an open quote: {text}"))),
    }
}

fn prompt_source(args: &Run, settings: &Settings, agent: &Agent, workspace: &Path) -> Result<Source, UserError> {
    if args.words.as_slice() == ["-"] {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(|error| {
            UserError::usage(format!("cannot read the prompt from standard input: {}", io_reason(&error)))
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| UserError::usage("the prompt on standard input is not UTF-8").hint("give it as UTF-8"))?;
        return Ok(Source::Text { text, from: "standard input".to_owned() });
    }
    if let [only] = args.words.as_slice()
        && Path::new(only).is_file()
    {
        return Err(UserError::usage(format!("`{only}` is a file, and its name alone is no prompt"))
            .hint(format!("to read the prompt from it: `ralph run -P {only}`")));
    }
    if args.words.len() > 1 && args.words.iter().any(|word| word == "-") {
        return Err(UserError::usage("`-` reads the prompt from standard input, and stands alone")
            .hint("give either `-` or words"));
    }
    if !args.words.is_empty() {
        return Ok(Source::Text { text: args.words.join(" "), from: "command line".to_owned() });
    }
    if let Some(path) = args.prompt_file.as_ref().or(settings.prompt_file.value.as_ref()) {
        let source = Source::File(path.clone());
        // A pipe can be read once only, and nobody may be at its other end the second time.
        return match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                Ok(Source::Text { text: source.read()?, from: path.display().to_string() })
            }
            _ => Ok(source),
        };
    }
    let usual = [workspace.join("PROMPT.md"), workspace.join(".ralph").join("PROMPT.md")];
    if let Some(path) = usual.into_iter().find(|path| path.exists()) {
        return Ok(Source::File(path));
    }
    match &agent.definition.own_prompt {
        Some(text) => Ok(Source::Text { text: text.clone(), from: format!("built into agent `{}`", agent.id()) }),
        None => Err(UserError::usage("no prompt: none was given, and there is no `PROMPT.md` here")
            .hint("say what to do, `ralph run \"fix the tests\"`, or write it to `PROMPT.md`")
            .hint("from a pipe: `… | ralph run -`")),
    }
}
