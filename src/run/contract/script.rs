//! The contract of agent scripts in the loop: pre, invoke, display, extract, post, in this order.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Output, Stage};
use crate::agent::Turn;
use crate::agent::script::{Beginning, Script, fill};
use crate::error::{UserError, io_reason};
use crate::event::{Event, FailureClass, Messages, Tag};
use crate::journal::Raw;
use crate::process::{Exit, Invocation, PrivateFile};
use crate::run::decide::Failure;
use crate::run::filter::Display;
use crate::run::iteration::{Iteration, Played};
use crate::signals::Signal;
use crate::signals::promise::{REPLAN, Rule, Watch};

/// The plan of an agent script's loop, which says how another one is made.
const PLAN: &str = "implementation_plan.md";
/// The line of it that says so.
const PLAN_COMMAND: &str = "Plan Command:";

/// A script of the run.
pub struct OfScript {
    script: Script,
    home: PathBuf,
    /// What a prompt may use: a closed list.
    variables: Vec<(String, String)>,
    rule: Option<Rule>,
}

impl OfScript {
    /// Loads the script.
    pub async fn load(stage: &Stage<'_>, workspace: &Path) -> Result<Self, UserError> {
        let agent = stage.agent;
        let foreign = agent.foreign.as_ref().ok_or_else(|| UserError::failed("the agent is no script"))?;
        let turn = Turn { environment: stage.environment.clone(), ..Turn::new("", workspace) };
        let script = Script::load(foreign, workspace, agent.environment(&turn)).await?;
        Ok(Self { script, home: workspace.join(foreign.home()), variables: foreign.exports.clone(), rule: None })
    }

    /// Calls the hook before, and makes the iteration the script's.
    pub async fn prepare(
        &mut self,
        stage: &Stage<'_>,
        iteration: &mut Iteration<'_>,
    ) -> Result<Vec<String>, UserError> {
        self.rule = Some(iteration.rule.clone());
        self.script.export(&stage.environment).await?;
        let prompts = iteration.context.prompts.iter().map(|prompt| fill(prompt, &self.variables));
        let prompts: Vec<String> = prompts.collect();
        let mut notices = self.script.hook("agent_pre_iteration").await?;
        let sent = prompts.first().cloned().unwrap_or_default();
        let invocation = self.script.invocation(&sent).await?;
        let Invocation { link, leave_running, .. } = iteration.invocation;
        iteration.invocation = Invocation { link, leave_running, ..invocation };
        iteration.prompt_bytes = sent.len();
        iteration.context.prompts = prompts;
        let Beginning { invocation, state } = self.script.display().await?;
        iteration.display = Some(Display { invocation, state });
        if let Err(error) = self.script.remember_output(&Raw::stdout(&iteration.raw, iteration.number)) {
            notices.push(format!("`last_agent_output` cannot be made: {}", io_reason(&error)));
        }
        Ok(notices)
    }

    /// Extracts the response, which alone says what the agent means; then calls the hook after.
    pub async fn conclude(&mut self, played: &mut Played, output: &Output) -> Result<Vec<String>, UserError> {
        let class = played.report.failure.as_ref().map(|failure| failure.class);
        // The status and the response decide. A limit or a login that the agent's own events tell of is worth more.
        if played.ended_well() && matches!(class, Some(FailureClass::Agent | FailureClass::AgentLimit)) {
            played.forgive();
        }
        let report = &mut played.report;
        if let (None, Exit::Code(code @ 1..), None) = (&report.failure, played.process.exit, played.process.stopped) {
            report.failure = Some(failure(format!("`agent_invoke` gave exit code {code}")));
        }
        report.signal = None;
        let mut notices = Vec::new();
        if report.failure.is_none() && !report.interrupted {
            let attempt = Attempt::of(output)
                .map_err(|error| UserError::failed(format!("cannot read the agent's output: {}", io_reason(&error))))?;
            let response = self.script.extract(&attempt.path).await?;
            if let Some(trouble) = response.trouble {
                report.failure = Some(failure(trouble));
            } else if let Some(rule) = &self.rule {
                report.signal = meaning(rule, &response.text);
            }
        }
        if let Some(failure) = &report.failure {
            played.receipt.success = false;
            played.receipt.class = Some(failure.class);
            report.ended.clone_from(&failure.message);
            played.receipt.ended.clone_from(&failure.message);
        }
        if let Some(Signal::Replan { .. }) = report.signal {
            notices.push(self.replan());
        }
        notices.extend(self.script.hook("agent_post_iteration").await?);
        Ok(notices)
    }

    /// How another plan is made.
    fn replan(&self) -> String {
        let plan = std::fs::read_to_string(self.home.join(PLAN)).unwrap_or_default();
        let command = plan.lines().find_map(|line| line.split_once(PLAN_COMMAND)).map(|(_, command)| {
            command.trim_matches(|letter: char| letter.is_whitespace() || "`*\"'".contains(letter)).to_owned()
        });
        match command.filter(|command| !command.is_empty()) {
            Some(command) => format!("the agent asks for another plan: run `{command}`, then start again"),
            None => "the agent asks for another plan: make one, then start again".to_owned(),
        }
    }

    /// The run is over.
    pub async fn close(self) {
        self.script.close().await;
    }
}

/// What a response says to the loop. Completion wins over a wish for another plan.
fn meaning(rule: &Rule, response: &str) -> Option<Signal> {
    let heard = |words: &str| {
        let mut watch = Watch::new(rule.clone(), Messages::Whole);
        watch.see(&Event::text(Tag::Ai, words));
        watch.end().signal
    };
    let signal = heard(response);
    match signal {
        Some(Signal::Replan { .. }) => match heard(&response.replace(REPLAN, "")) {
            done @ Some(Signal::Complete { .. }) => done,
            _ => signal,
        },
        _ => signal,
    }
}

fn failure(message: String) -> Failure {
    Failure { class: FailureClass::Agent, message, retry_after: None }
}

/// The output of one try as a file that ends in a line: a shell does not read a last line without its end.
struct Attempt {
    path: PathBuf,
    _copy: Option<PrivateFile>,
}

impl Attempt {
    fn of(output: &Output) -> std::io::Result<Self> {
        let mut file = std::fs::File::open(&output.path)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > output.start {
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
        }
        if output.start == 0 && last == *b"\n" {
            return Ok(Self { path: output.path.clone(), _copy: None });
        }
        file.seek(SeekFrom::Start(output.start))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if last != *b"\n" {
            bytes.push(b'\n');
        }
        let copy = PrivateFile::new(&std::env::temp_dir(), &bytes)?;
        Ok(Self { path: copy.path().to_owned(), _copy: Some(copy) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::promise::Match;

    #[test]
    fn a_try_is_read_from_where_it_began_and_to_its_last_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("1.stdout");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(
            Attempt::of(&Output { path: path.clone(), start: 0 }).unwrap().path,
            path,
            "no copy where none is needed"
        );
        let attempt = Attempt::of(&Output { path: path.clone(), start: 4 }).unwrap();
        assert_eq!(std::fs::read_to_string(&attempt.path).unwrap(), "two\n");
        let copy = attempt.path.clone();
        drop(attempt);
        assert!(!copy.exists(), "the copy goes with the try");
        std::fs::write(&path, "one\ntwo").unwrap();
        let attempt = Attempt::of(&Output { path, start: 0 }).unwrap();
        assert_eq!(std::fs::read_to_string(&attempt.path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn the_response_alone_says_what_is_meant() {
        let anywhere = Rule::new(None, Match::Anywhere);
        let early = format!("<promise>COMPLETE</promise>\n{}", "x\n".repeat(300_000));
        assert!(matches!(meaning(&anywhere, &early), Some(Signal::Complete { .. })));
        assert!(!matches!(meaning(&Rule::new(None, Match::LastLine), &early), Some(Signal::Complete { .. })));
        assert!(matches!(meaning(&anywhere, "a <promise>REPLAN</promise> b"), Some(Signal::Replan { .. })));
        let both = "<promise>REPLAN</promise> and <promise>COMPLETE</promise>";
        assert!(matches!(meaning(&anywhere, both), Some(Signal::Complete { .. })));
        let inexact = meaning(&anywhere, "<promise> COMPLETE </promise> <promise>complete</promise>");
        assert!(!matches!(inexact, Some(Signal::Complete { .. })), "{inexact:?}");
    }
}
