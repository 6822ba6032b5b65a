//! Puts a driver or an agent script through its contract, point by point, with a fake command instead of the agent's.
//!
//! It runs the file's code and nothing else: the agent itself is never started.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::bash::Shell;
use super::bash::jq::Call;
use super::driver::Driver;
use super::script::Script;
use crate::agent::{Contract, Live, PluginFile};
use crate::error::UserError;
use crate::process::{self, Environment, Exit, Invocation, Stdin};
use crate::run::plugins::Output;

/// What is in the prompt, and must come back only where it belongs.
const PROMPT: &str = "Say 'hello' and \"goodbye\".\nPROMPT-MARK $(touch ralph-check-was-here)\n";
const PROMPT_MARK: &str = "PROMPT-MARK";
/// What the fake agent says.
const WORDS: &str = "words of the fake agent";
/// How long one step may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// One point of the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) grade: Grade,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    /// As the contract wants it.
    Good,
    /// Allowed, and worth knowing.
    Note,
    /// Against the contract.
    Bad,
}

/// The points of one file.
#[derive(Debug, Default)]
struct Points(Vec<Point>);

impl Points {
    fn add(&mut self, grade: Grade, text: impl Into<String>) {
        self.0.push(Point { grade, text: text.into() });
    }

    /// A point that holds, or does not.
    fn holds(&mut self, good: bool, text: &str, otherwise: &str) {
        if good { self.add(Grade::Good, text) } else { self.add(Grade::Bad, otherwise) }
    }

    /// A point that holds, or is worth knowing.
    fn better(&mut self, good: bool, text: &str, otherwise: &str) {
        if good { self.add(Grade::Good, text) } else { self.add(Grade::Note, otherwise) }
    }
}

/// What is known of a file: its points, its command, and the oldest version of that.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    pub(crate) points: Vec<Point>,
    pub(crate) cli: Option<String>,
    pub(crate) minimum: Option<String>,
}

/// Whether the command of a file is there. It is not started.
pub(super) fn program(cli: &str, workspace: &Path) -> Point {
    match process::check(&Invocation::new(cli, workspace)) {
        Ok(path) => Point { grade: Grade::Good, text: format!("its command `{cli}` is `{}`", path.display()) },
        Err(_) => Point { grade: Grade::Bad, text: format!("its command `{cli}` was not found") },
    }
}

/// What a run would ask at its start: the file loads, its hooks answer, its command is there. The command is not started.
pub(crate) async fn examine(file: &PluginFile, workspace: &Path) -> Examined {
    let mut points = Points::default();
    let mut known = Examined::default();
    let examined = match file.contract {
        Contract::Driver => examine_driver(file, workspace, &mut points, &mut known).await,
        Contract::Script => Script::load(file, workspace, Environment::default()).await.map(|script| {
            points.add(Grade::Good, format!("it loads; its command `{}` was found", script.cli));
            known.cli = Some(script.cli);
        }),
    };
    if let Err(error) = examined {
        points.add(Grade::Bad, error.message);
    }
    Examined { points: points.0, ..known }
}

async fn examine_driver(
    file: &PluginFile,
    workspace: &Path,
    points: &mut Points,
    known: &mut Examined,
) -> Result<(), UserError> {
    let mut driver = Driver::load(file, workspace, Environment::default()).await?;
    points.add(Grade::Good, "it loads; all five required hooks are there and answer");
    let (version, available) = driver.metadata().await?;
    let binary = driver.facts.binary.clone();
    driver.close().await;
    points.0.push(program(&binary, workspace));
    match available {
        Some(true) => points.add(Grade::Good, "`driver_check_available`: its command can be used"),
        Some(false) => points.add(Grade::Bad, "`driver_check_available`: its command cannot be used"),
        None => {}
    }
    (known.cli, known.minimum) = (Some(binary), version);
    Ok(())
}

/// Checks a file, point by point.
pub(crate) async fn check(file: &PluginFile, workspace: &Path) -> Result<Vec<Point>, UserError> {
    // The shells work somewhere else.
    let file = PluginFile { path: workspace.join(&file.path), ..file.clone() };
    let scratch = Scratch::new()?;
    let mut points = Points::default();
    let checked = match file.contract {
        Contract::Driver => driver(&file, &scratch, &mut points).await,
        Contract::Script => script(&file, &scratch, &mut points).await,
    };
    if let Err(error) = checked {
        points.add(Grade::Bad, error.message);
    }
    let touched = scratch.path.join("work/ralph-check-was-here").exists();
    points.holds(!touched, "the prompt is handled as text", "the prompt was run by a shell");
    Ok(points.0)
}

async fn driver(file: &PluginFile, scratch: &Scratch, points: &mut Points) -> Result<(), UserError> {
    let work = scratch.path.join("work");
    let mut driver = Driver::load(file, &work, Environment::default()).await?;
    points.add(Grade::Good, "all five required hooks are there and answer");
    let facts = driver.facts.clone();
    let (version, available) = driver.metadata().await?;
    driver.close().await;
    let short = !facts.name.is_empty()
        && facts.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c));
    points.holds(
        short,
        &format!("`driver_name` is `{}`", facts.name),
        &format!("`driver_name` must be a short lower-case name, found `{}`", facts.name),
    );
    let stem = file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    points.better(
        stem == facts.name,
        "the file is called like the driver",
        &format!("the file is called `{stem}`, the driver `{}`", facts.name),
    );
    points.holds(
        !facts.display_name.is_empty(),
        "`driver_display_name` says something",
        "`driver_display_name` is empty",
    );
    points.holds(
        !facts.binary.is_empty(),
        &format!("`driver_cli_binary` is `{}`", facts.binary),
        "`driver_cli_binary` is empty",
    );
    points.better(!facts.tools.is_empty(), "`driver_valid_tools` names tools", "`driver_valid_tools` names no tools");
    points.better(version.is_some(), "`driver_min_version` says a version", "there is no `driver_min_version`");
    match available {
        Some(true) => points.add(Grade::Good, "`driver_check_available`: the command is installed"),
        Some(false) => points.add(Grade::Note, "`driver_check_available`: the command is not installed"),
        None => points.add(Grade::Note, "there is no `driver_check_available`"),
    }
    scratch.fake(&facts.binary)?;
    for (what, live) in [("plain", Live::Off), ("live", Live::Wanted)] {
        if live == Live::Wanted && !facts.live {
            points.add(Grade::Note, "it has no live output");
            continue;
        }
        let file = PluginFile { live, ..file.clone() };
        let mut driver = Driver::load(&file, &work, scratch.environment()).await?;
        commands(&mut driver, what, scratch, points).await?;
        if live == Live::Wanted {
            match driver.filter().await? {
                None => points.add(Grade::Note, "`driver_stream_filter` shows nothing; ralph's own view is shown"),
                Some(filter) => match Call::parse(&["-j".to_owned(), filter]).and_then(|call| call.compile()) {
                    Ok(_) => points.add(Grade::Good, "`driver_stream_filter` is a program of jq"),
                    Err(refused) => points.add(Grade::Bad, format!("`driver_stream_filter`: {}", refused.0)),
                },
            }
        }
        let output = scratch.path.join("output");
        std::fs::write(&output, "{\"session_id\":\"ses-1\"}\n").map_err(|error| scratch.broken(&error))?;
        let session = driver.session(&Output { path: output, start: 0 }, None).await?;
        let known = session.as_deref().is_none_or(|id| !id.contains(' '));
        points.holds(known, "the session is found, or nothing", "what is given as a session is no id");
        driver.close().await;
    }
    Ok(())
}

/// The command lines of a driver: new and resumed, with and without context, and without a prompt file.
async fn commands(driver: &mut Driver, what: &str, scratch: &Scratch, points: &mut Points) -> Result<(), UserError> {
    let work = scratch.path.join("work");
    let prompt = work.join("PROMPT.md");
    let words = |invocation: &Invocation| -> Vec<String> {
        invocation.args.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let new = driver.build(&prompt, "", "", &work).await?;
    for notice in &new.notices {
        points.add(Grade::Note, notice.clone());
    }
    let path = prompt.to_string_lossy();
    let carries = words(&new.invocation).iter().any(|word| word.contains(PROMPT_MARK) || word.contains(&*path));
    points.holds(
        carries,
        &format!("the {what} command carries the prompt"),
        &format!("the {what} command carries neither the prompt nor its path"),
    );
    let plain = words(&new.invocation);
    let context = words(&driver.build(&prompt, "CONTEXT-MARK ", "", &work).await?.invocation);
    let told = context.iter().any(|word| word.contains("CONTEXT-MARK"));
    points.better(
        told,
        &format!("the {what} command carries the loop context"),
        &format!("the {what} command leaves the loop context out"),
    );
    let resumed = words(&driver.build(&prompt, "", "ses-1", &work).await?.invocation);
    let goes_on = resumed.iter().any(|word| word.contains("ses-1"));
    match (driver.facts.sessions, goes_on) {
        (true, _) => points.holds(
            goes_on,
            &format!("the {what} command resumes a session"),
            &format!("the {what} command leaves the session out, and `driver_supports_sessions` says it can"),
        ),
        (false, _) => points.holds(
            resumed == plain,
            "without sessions the id is ignored",
            "it says it has no sessions, and uses the id",
        ),
    }
    driver.set("CLAUDE_USE_CONTINUE", "false").await?;
    let off = words(&driver.build(&prompt, "", "ses-1", &work).await?.invocation);
    driver.set("CLAUDE_USE_CONTINUE", "true").await?;
    points.better(
        off == plain,
        "`CLAUDE_USE_CONTINUE=false` starts a fresh session",
        "`CLAUDE_USE_CONTINUE` is ignored",
    );
    let missing = driver.build(&work.join("no-such-file"), "", "", &work).await.is_err();
    points.better(missing, "a missing prompt file is a failure", "a missing prompt file is not noticed");
    let captured = process::capture(new.invocation, PATIENCE, 64 * 1024).await;
    match captured {
        Ok(captured) if captured.exit == Some(Exit::Code(0)) => {
            points.add(Grade::Good, format!("the {what} command runs (a fake `{}` answered)", driver.facts.binary));
        }
        Ok(captured) => {
            let said = String::from_utf8_lossy(&captured.stderr).trim().to_owned();
            points.add(Grade::Bad, format!("the {what} command failed with the fake command: {said}"));
        }
        Err(error) => points.add(Grade::Bad, format!("the {what} command cannot be started: {error}")),
    }
    Ok(())
}

async fn script(file: &PluginFile, scratch: &Scratch, points: &mut Points) -> Result<(), UserError> {
    let work = scratch.path.join("work");
    let mut shell = Shell::start(&file.path, &work, Environment::default(), &file.helper)?.patient(PATIENCE);
    shell.load().await?;
    let cli = shell.value("AGENT_CLI").await?.unwrap_or_default();
    let found = shell.ask("command", &[b"-v", cli.as_bytes()]).await.is_ok_and(|called| called.succeeded());
    shell.close().await;
    points.better(
        found,
        &format!("`AGENT_CLI`: `{cli}` is installed"),
        &format!("`AGENT_CLI`: `{cli}` is not installed"),
    );
    scratch.fake(&cli)?;
    let mut script = Script::load(file, &work, scratch.environment()).await?;
    points.add(Grade::Good, "the three required functions are there, and `AGENT_CLI` is set");
    for hook in ["agent_pre_iteration", "agent_post_iteration"] {
        for said in script.hook(hook).await? {
            points.add(Grade::Note, format!("`{hook}` says: {said}"));
        }
    }
    let captured = process::capture(script.invocation(PROMPT).await?, PATIENCE, 1024 * 1024).await;
    let captured = captured.map_err(|error| UserError::agent(format!("`agent_invoke` cannot be started: {error}")))?;
    let said = String::from_utf8_lossy(&captured.stderr).trim().to_owned();
    points.holds(
        captured.success(),
        "`agent_invoke` gives the status of the agent",
        &format!("`agent_invoke` failed with the fake command: {said}"),
    );
    let heard = std::fs::read_to_string(scratch.path.join("heard")).unwrap_or_default();
    points.holds(heard.contains(PROMPT_MARK), "the agent gets the prompt", "the agent did not get the prompt");
    let output = scratch.path.join("output");
    std::fs::write(&output, &captured.stdout).map_err(|error| scratch.broken(&error))?;
    points.holds(
        !captured.stdout.is_empty(),
        "the agent's output comes on standard output",
        "nothing came on standard output",
    );
    let response = script.extract(&output).await?;
    points.holds(
        !response.text.contains(PROMPT_MARK),
        "`agent_extract_response` leaves an echo of the prompt out",
        "`agent_extract_response` takes an echo of the prompt for the agent's words: a false completion",
    );
    let dialects = "the fake agent speaks the lines of claude, amp, cline, pi and codex, and plain ones";
    points.better(
        response.text.contains(WORDS),
        "`agent_extract_response` finds the agent's words",
        &format!("`agent_extract_response` found no words; {dialects}"),
    );
    let display = script.display().await?;
    let stdin = [display.state, captured.stdout.clone()].concat();
    let display = Invocation { stdin: Stdin::Bytes(stdin.into()), ..display.invocation };
    let shown =
        process::capture(display, PATIENCE, 1024 * 1024).await.map_err(|error| UserError::agent(error.to_string()))?;
    points.holds(
        shown.exit.is_some(),
        "`agent_format_display` ends with its input",
        "`agent_format_display` does not end",
    );
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    points.better(
        text.contains(WORDS),
        "`agent_format_display` shows the agent's words, also after a broken line",
        &format!("`agent_format_display` showed no words; {dialects}"),
    );
    script.close().await;
    Ok(())
}

/// A place to work in, with a fake command first on `PATH`.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Result<Self, UserError> {
        let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let path = std::env::temp_dir().join(format!("ralph-check-{}-{chance:x}", std::process::id()));
        let scratch = Self { path };
        let make = || {
            std::fs::create_dir_all(scratch.path.join("bin"))?;
            std::fs::create_dir_all(scratch.path.join("work"))?;
            std::fs::write(scratch.path.join("work/PROMPT.md"), PROMPT)
        };
        make().map_err(|error| scratch.broken(&error))?;
        Ok(scratch)
    }

    fn broken(&self, error: &std::io::Error) -> UserError {
        UserError::failed(format!("cannot work in `{}`: {error}", self.path.display()))
    }

    /// Puts a command of this name there: it keeps what it reads, and speaks several dialects.
    fn fake(&self, name: &str) -> Result<(), UserError> {
        let name = Path::new(name).file_name().unwrap_or_default();
        let heard = self.path.join("heard");
        let heard = shlex::try_quote(&heard.to_string_lossy()).map(std::borrow::Cow::into_owned).unwrap_or_default();
        let lines = [
            format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"text","text":"{PROMPT_MARK}"}}]}}}}"#
            ),
            "this line is not JSON {".to_owned(),
            format!(
                r#"{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":"{WORDS}"}}]}}}}"#
            ),
            format!(r#"{{"type":"say","say":"text","text":"{WORDS}","partial":false}}"#),
            format!(
                r#"{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{WORDS}"}}]}}}}"#
            ),
            format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{WORDS}"}}}}"#),
            WORDS.to_owned(),
        ];
        let body = lines.map(|line| format!("printf '%s\\n' '{line}'\n")).concat();
        let path = self.path.join("bin").join(name);
        let write = || {
            std::fs::write(&path, format!("#!/bin/sh\n/bin/cat > {heard}\n{body}"))?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
        };
        write().map_err(|error| self.broken(&error))
    }

    fn environment(&self) -> Environment {
        let mut path = OsString::from(self.path.join("bin"));
        if let Some(usual) = std::env::var_os("PATH") {
            path.push(":");
            path.push(usual);
        }
        Environment { set: vec![("PATH".into(), path)], remove: Vec::new() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing of it is needed any more.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
