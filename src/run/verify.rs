//! The user's own commands have the last word: they are run when the agent claims to be done.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::control::Command;
use super::decide::Verification;
use super::interrupt::Came;
use super::iteration::{Ears, told};
use super::judge::how_it_ended;
use super::recorder::Recorder;
use crate::error::UserError;
use crate::journal::CheckResult;
use crate::process::{self, Clocks, Environment, Invocation, Output, StopReason};

/// How much of a command's output is kept.
const TAIL: usize = 8 * 1024;

/// How much of all outputs the agent hears.
const TOLD: usize = 6 * 1024;

/// One command that must exit with 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What people call it.
    pub name: String,
    /// For `sh -c`.
    pub command: String,
    /// Where; relative to the working directory.
    pub directory: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Duration,
}

/// How long a check may take when nobody says.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

impl Check {
    /// A command and nothing else.
    pub fn new(command: impl Into<String>) -> Self {
        let command = command.into();
        Self { name: command.clone(), command, directory: None, timeout: DEFAULT_TIMEOUT }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Verified {
    /// Each command that was run.
    pub checks: Vec<CheckResult>,
    /// A person wants the run to end.
    pub interrupted: bool,
}

impl Verified {
    /// True when all of them agree.
    pub fn passed(&self) -> bool {
        !self.interrupted && self.checks.iter().all(|check| check.passed)
    }

    /// For the decision.
    pub fn verification(&self) -> Verification {
        match self.checks.iter().find(|check| !check.passed) {
            _ if self.interrupted => Verification::NotAsked,
            Some(CheckResult { name, ended, .. }) => Verification::Failed { summary: format!("`{name}`: {ended}") },
            None if self.checks.is_empty() => Verification::None,
            None => Verification::Passed,
        }
    }

    /// What the agent hears about it.
    pub fn told(&self) -> String {
        let failed: Vec<_> = self.checks.iter().filter(|check| !check.passed).collect();
        let mut text =
            "you said that the work is done, but these commands disagree. Mend what they complain about.\n".to_owned();
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

/// Runs the checks one after the other; all of them, so that the agent hears of every fault at once.
pub async fn verify(
    checks: &[Check],
    workspace: &Path,
    environment: &[(OsString, OsString)],
    ears: &mut Ears<'_>,
    recorder: &mut Recorder,
) -> Result<Verified, UserError> {
    let mut verified = Verified::default();
    for check in checks {
        let (result, interrupted) = run(check, workspace, environment, ears, recorder).await?;
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
    ears: &mut Ears<'_>,
    recorder: &mut Recorder,
) -> Result<(CheckResult, bool), UserError> {
    let Check { name, command, directory, timeout } = check;
    let mut result = CheckResult { name: name.clone(), command: command.clone(), ..CheckResult::default() };
    let directory = directory.as_ref().map_or_else(|| workspace.to_owned(), |directory| workspace.join(directory));
    let invocation = Invocation {
        args: ["-c", command].map(Into::into).to_vec(),
        env: Environment { set: environment.to_vec(), ..Environment::default() },
        ..Invocation::new("sh", &directory)
    };
    let clocks = Clocks { total: Some(*timeout), startup: None, idle: None, ..Clocks::default() };
    let mut process = match process::start(invocation, clocks) {
        Ok(process) => process,
        Err(error) => {
            result.ended = super::start_error(&error).message;
            return Ok((result, false));
        }
    };
    let mut tail = Tail::default();
    let mut interrupted = false;
    let ended = loop {
        tokio::select! {
            biased;
            came = ears.interrupts.next() => match came {
                Came::Interrupt(..) if interrupted => process.kill(),
                Came::Interrupt(..) => {
                    interrupted = true;
                    process.stop(StopReason::Asked);
                }
                Came::Suspend => {
                    process.pause();
                    process::suspend_self();
                    process.resume();
                }
                Came::Resized | Came::Retry => {}
            },
            command = ears.inbox.next() => {
                told(&command, recorder)?;
                if command == (Command::Stop { now: true }) {
                    interrupted = true;
                    process.stop(StopReason::Asked);
                }
                ears.orders.take(command);
            }
            output = process.next() => match output {
                Output::Bytes { bytes, .. } => tail.push(bytes),
                Output::Ended(ended) => break ended,
            },
        }
    };
    result.passed = ended.exit.success() && ended.stopped.is_none();
    result.ended = how_it_ended(&ended);
    result.duration_ms = u64::try_from(ended.active.as_millis()).unwrap_or(u64::MAX);
    result.tail = tail.text();
    Ok((result, interrupted))
}

/// The last bytes of an output.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        // One byte more than is kept tells that something was cut.
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
    let at = text.len().saturating_sub(most);
    let at = (at..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
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
            Verified { checks: vec![result("a", true), result("b", false), result("c", false)], interrupted: false };
        assert_eq!(verified.verification(), Verification::Failed { summary: "`b`: exit code 1".into() });
        let told = verified.told();
        assert!(told.contains("$ b\n(exit code 1)\nx\n") && told.contains("$ c") && !told.contains("$ a"), "{told}");
        let stopped = Verified { interrupted: true, ..verified };
        assert_eq!(stopped.verification(), Verification::NotAsked);
        assert_eq!(Verified::default().verification(), Verification::None);
    }

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let mut tail = Tail::default();
        (0..5000).for_each(|number| tail.push(format!("line {number}\n").as_bytes()));
        let text = tail.text();
        assert!(text.len() <= TAIL && text.ends_with("line 4999\n") && text.starts_with("line "), "{}", &text[..20]);
    }
}
