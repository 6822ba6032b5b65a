//! The user's own commands decide whether a claim to be done is accepted.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::decide::Verification;
use super::iteration::{Inputs, record_order};
use super::judge::how_it_ended;
use super::recorder::Recorder;
use crate::control::Order;
use crate::error::UserError;
use crate::event::Stream;
use crate::journal::CheckResult;
use crate::process::{self, Clocks, Environment, Exit, Invocation, Lines, Output, StartError, StopReason};
use crate::signals::test_counts::{TestCounter, TestCounts};
use crate::transcript::strip_ansi;

/// How much of a command's output is kept.
const TAIL: usize = 8 * 1024;

/// How much of an output is read outside of a run.
const MOST_CAPTURED: usize = 16 * 1024 * 1024;

/// No summary of a test runner is a longer line.
const LONGEST_SUMMARY: usize = 4096;

/// How much of all outputs goes into the next prompt.
const TOLD: usize = 6 * 1024;

/// One command that must exit with 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub command: String,
    /// Where; relative to the working directory.
    pub directory: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
    pub when: When,
    /// False: it is shown, and decides nothing.
    pub required: bool,
    /// It also runs before the first iteration, to compare with.
    pub baseline: bool,
}

/// When a check runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// After a claim, or after each iteration where the checks alone decide.
    #[default]
    Claim,
    /// After each iteration that went well.
    Iteration,
    /// Once, before a run that would be complete ends.
    End,
}

/// How long a check may take when it is unknown.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

impl Check {
    /// A command and nothing else.
    pub(crate) fn new(command: impl Into<String>) -> Self {
        let command = command.into();
        Self {
            name: command.clone(),
            command,
            directory: None,
            timeout: DEFAULT_TIMEOUT,
            when: When::Claim,
            required: true,
            baseline: false,
        }
    }
}

/// What all checks said.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    /// Each command that was run.
    pub checks: Vec<CheckResult>,
    /// A person wants the run to end.
    pub interrupted: bool,
    /// A check whose command could not be run: no claim can pass it, so the run must not continue.
    pub broken: Option<UserError>,
}

impl Verified {
    /// True when all of them agree that decide something.
    pub(crate) fn passed(&self) -> bool {
        !self.interrupted && self.vetoes().next().is_none()
    }

    fn vetoes(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.passed && !check.optional)
    }

    pub(crate) fn verification(&self) -> Verification {
        match self.vetoes().next() {
            _ if self.interrupted => Verification::NotAsked,
            Some(CheckResult { name, ended, .. }) => Verification::Failed { summary: format!("`{name}`: {ended}") },
            None if self.checks.iter().all(|check| check.optional) => Verification::None,
            None => Verification::Passed,
        }
    }

    /// What the agent hears; `first` says why.
    pub(crate) fn for_prompt(&self, first: &str) -> String {
        let failed: Vec<_> = self.vetoes().collect();
        let mut text = format!("{first}: these checks failed. Fix these failures.\n");
        for check in &failed {
            let _ = writeln!(text, "$ {}\n({})", check.command, check.ended);
            let tail = ending(&check.tail, TOLD / failed.len().max(1));
            if !tail.is_empty() {
                let _ = writeln!(text, "{}", tail.trim_end());
            }
        }
        text
    }
}

/// Runs the checks one after the other; all of them, so that the agent can fix every failure at once.
pub(crate) async fn verify(
    checks: &[&Check],
    workspace: &Path,
    environment: &[(OsString, OsString)],
    inputs: &mut Inputs<'_>,
    recorder: &mut Recorder,
) -> Result<Verified, UserError> {
    let mut verified = Verified::default();
    for check in checks {
        let (result, exit, interrupted) = run(check, workspace, environment, inputs, recorder).await?;
        if let Some(Exit::Code(code @ (126 | 127))) = exit.filter(|_| check.required) {
            verified.broken.get_or_insert_with(|| cannot_run(check, code, &result.tail));
        }
        verified.checks.push(result);
        if interrupted {
            verified.interrupted = true;
            break;
        }
    }
    Ok(verified)
}

async fn run(
    check: &Check,
    workspace: &Path,
    environment: &[(OsString, OsString)],
    inputs: &mut Inputs<'_>,
    recorder: &mut Recorder,
) -> Result<(CheckResult, Option<Exit>, bool), UserError> {
    let Check { command, directory, timeout, .. } = check;
    let mut result = check.result();
    let directory = directory.as_ref().map_or_else(|| workspace.to_owned(), |directory| workspace.join(directory));
    let invocation = Invocation {
        args: ["-c", command].map(Into::into).to_vec(),
        env: Environment { set: environment.to_vec(), ..Environment::default() },
        ..Invocation::new("sh", &directory)
    };
    // The time of the run bounds its checks too.
    let left = inputs.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let total = left.map_or(*timeout, |left| left.max(Duration::from_millis(1)).min(*timeout));
    let clocks = Clocks { total: Some(total), startup: None, idle: None, ..Clocks::default() };
    let mut process = match process::start(invocation, clocks) {
        Ok(process) => process,
        Err(error) => {
            result.ended = super::start_error(&error).message;
            return Ok((result, None, false));
        }
    };
    let mut told = Told::default();
    let mut interrupted = false;
    let ended = loop {
        tokio::select! {
            biased;
            came = inputs.interrupts.next() => came.pass_to(&mut process, &mut interrupted),
            received = inputs.inbox.next() => {
                let order = record_order(received, recorder)?;
                if order == (Order::Stop { now: true }) {
                    interrupted = true;
                    process.stop(StopReason::Asked);
                }
                inputs.orders.take(order);
            }
            output = process.next() => match output {
                Output::Bytes { from, bytes } => told.push(from, bytes),
                Output::Ended(ended) => break ended,
            },
        }
    };
    result.passed = ended.exit.success() && ended.stopped.is_none();
    result.ended = how_it_ended(&ended);
    result.duration_ms = u64::try_from(ended.active.as_millis()).unwrap_or(u64::MAX);
    (result.tail, result.counts) = told.end();
    Ok((result, ended.stopped.is_none().then_some(ended.exit), interrupted))
}

/// Runs the checks outside of a run, one after the other, up to the first one that fails.
pub(crate) async fn alone(checks: &[Check], workspace: &Path) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for check in checks.iter().filter(|check| check.required) {
        let Check { command, directory, timeout, .. } = check;
        let mut result = check.result();
        let directory = directory.as_ref().map_or_else(|| workspace.to_owned(), |directory| workspace.join(directory));
        let args = ["-c", command].map(Into::into).to_vec();
        let started = Instant::now();
        match process::capture(Invocation { args, ..Invocation::new("sh", &directory) }, *timeout, MOST_CAPTURED).await
        {
            Ok(captured) => {
                result.passed = captured.success();
                result.ended = match captured.exit {
                    None => format!("timeout after {} s", timeout.as_secs()),
                    Some(Exit::Code(code)) => format!("exit code {code}"),
                    Some(Exit::Signal(number)) => format!("ended by {}", process::signal_name(number)),
                };
                let mut told = Told::default();
                told.push(Stream::Stdout, &captured.stdout);
                told.push(Stream::Stderr, &captured.stderr);
                (result.tail, result.counts) = told.end();
            }
            Err(error) => result.ended = super::start_error(&error).message,
        }
        result.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let passed = result.passed;
        results.push(result);
        if !passed {
            break;
        }
    }
    results
}

/// The shell's exit codes for a command that was not found (127) or cannot be executed (126).
fn cannot_run(check: &Check, code: i32, tail: &str) -> UserError {
    let said = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output");
    UserError::usage(format!("the check `{}` cannot run (exit code {code}): {said}", check.command))
        .hint("fix `verify`, then continue with `ralph resume`")
        .hint("if the agent is to write the program, let the check fail without it: `test -x ./check.sh && ./check.sh`")
}

/// What a shell knows without a file. Also its keywords.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit", "export",
    "false", "for", "getopts", "hash", "if", "kill", "let", "local", "printf", "pwd", "read", "readonly", "return",
    "set", "shift", "source", "test", "time", "times", "trap", "true", "type", "ulimit", "umask", "unset", "until",
    "wait", "while",
];

impl Check {
    /// Its result, before it is known.
    fn result(&self) -> CheckResult {
        let (name, command, optional) = (self.name.clone(), self.command.clone(), !self.required);
        CheckResult { name, command, optional, ..CheckResult::default() }
    }

    /// Looks for the program before the run starts. Only the first word of the command is examined, and only where it
    /// plainly names a program; the rest is the shell's.
    pub(crate) fn find_program(&self, workspace: &Path) -> Result<(), UserError> {
        let plain = |letter: char| letter.is_alphanumeric() || "_-./+@%".contains(letter);
        let word = self.command.split_whitespace().next().unwrap_or_default();
        if word.is_empty() || !word.chars().all(plain) || SHELL_WORDS.contains(&word) {
            return Ok(());
        }
        let directory = self.directory.as_ref().map_or_else(|| workspace.to_owned(), |place| workspace.join(place));
        match process::check(&Invocation::new(word, &directory)) {
            // A script without a first line is the shell's own business.
            Ok(_) | Err(StartError::WrongFormat { .. }) => Ok(()),
            Err(error) => Err(UserError::usage(format!("the check `{}` cannot run: {error}", self.command))
                .hint("check the spelling, and that the program is installed")
                .hint(
                    "if the agent is to write the program, let the check fail without it: \
                     `test -x ./check.sh && ./check.sh`",
                )),
        }
    }
}

/// What a check prints: the end of it is kept, and tests are counted.
struct Told {
    tail: Tail,
    lines: [Lines; 2],
    counter: TestCounter,
}

impl Default for Told {
    fn default() -> Self {
        let lines = [(); 2].map(|()| Lines::new(LONGEST_SUMMARY));
        Self { tail: Tail::default(), lines, counter: TestCounter::default() }
    }
}

impl Told {
    fn push(&mut self, from: Stream, bytes: &[u8]) {
        self.tail.push(bytes);
        let counter = &mut self.counter;
        self.lines[usize::from(from == Stream::Stderr)].push(bytes, |line| counter.line(&strip_ansi(&line.text())));
    }

    fn end(mut self) -> (String, Option<TestCounts>) {
        let counter = &mut self.counter;
        for lines in &mut self.lines {
            lines.finish(|line| counter.line(&strip_ansi(&line.text())));
        }
        (self.tail.text(), self.counter.counts())
    }
}

/// The last bytes of an output.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        // One byte more than is kept says that something was cut.
        self.0.extend(&bytes[bytes.len().saturating_sub(TAIL + 1)..]);
        let extra = self.0.len().saturating_sub(TAIL + 1);
        self.0.drain(..extra);
    }

    fn text(mut self) -> String {
        let text = String::from_utf8_lossy(self.0.make_contiguous()).into_owned();
        ending(&text, TAIL).to_owned()
    }
}

/// The last `most` bytes, from the beginning of a line where there is one.
fn ending(text: &str, most: usize) -> &str {
    let at = text.ceil_char_boundary(text.len().saturating_sub(most));
    if at == 0 {
        return text;
    }
    text[at..].find('\n').map_or(&text[at..], |newline| &text[at + newline + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, passed: bool) -> CheckResult {
        CheckResult {
            name: name.into(),
            command: name.into(),
            passed,
            ended: "exit code 1".into(),
            tail: "x\n".into(),
            ..CheckResult::default()
        }
    }

    #[test]
    fn one_refusal_is_enough_and_all_of_them_are_told() {
        let verified =
            Verified { checks: vec![result("a", true), result("b", false), result("c", false)], ..Verified::default() };
        assert_eq!(verified.verification(), Verification::Failed { summary: "`b`: exit code 1".into() });
        let told = verified.for_prompt("completion rejected");
        assert!(told.contains("$ b\n(exit code 1)\nx\n") && told.contains("$ c") && !told.contains("$ a"), "{told}");
        let stopped = Verified { interrupted: true, ..verified };
        assert_eq!(stopped.verification(), Verification::NotAsked);
        assert_eq!(Verified::default().verification(), Verification::None);
        let optional = Verified {
            checks: vec![result("a", true), CheckResult { optional: true, ..result("b", false) }],
            ..Verified::default()
        };
        assert!(optional.passed() && optional.verification() == Verification::Passed, "it is no veto");
    }

    #[test]
    fn a_missing_program_is_found_and_the_shells_own_words_are_not_looked_for() {
        let here = Path::new("/");
        for command in ["no-such-program-x", "./no-such-program-x --fast", "no-such-program-x && true"] {
            assert!(Check::new(command).find_program(here).is_err(), "{command}");
        }
        for command in ["test -f x", "sh -c true", "X=1 no-such-program-x", "! false", "(no-such)", "cd x && make"] {
            assert!(Check::new(command).find_program(here).is_ok(), "{command}");
        }
    }

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let mut tail = Tail::default();
        (0..5000).for_each(|number| tail.push(format!("line {number}\n").as_bytes()));
        let text = tail.text();
        assert!(text.len() <= TAIL && text.ends_with("line 4999\n") && text.starts_with("line "), "{}", &text[..20]);
    }
}
