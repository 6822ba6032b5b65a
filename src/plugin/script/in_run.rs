//! The contract of agent scripts in the loop: pre, invoke, display, extract, post, in this order.

use std::path::PathBuf;

use super::{Beginning, Script, fill};
use crate::agent::{PluginFile, Turn};
use crate::error::{UserError, io_reason};
use crate::event::{Event, FailureClass, Messages, Tag};
use crate::journal::{Outcome, Raw};
use crate::plugin::attempt::Attempt;
use crate::process::{Exit, Invocation};
use crate::run::decide::Failure;
use crate::run::filter::Display;
use crate::run::iteration::Iteration;
use crate::run::iteration_result::IterationResult;
use crate::run::plugins::{Doing, Output, Plugin, Upcoming};
use crate::signals::Signal;
use crate::signals::promise::{REPLAN, Rule, Watch};
use crate::user_file;

/// The plan of an agent script's loop, which says how another one is made.
const PLAN: &str = "implementation_plan.md";
/// The line of it that says so.
const PLAN_COMMAND: &str = "Plan Command:";

pub(crate) struct ScriptInRun {
    script: Script,
    home: PathBuf,
    /// What a prompt may use: a closed list.
    variables: Vec<(String, String)>,
    rule: Option<Rule>,
}

impl Plugin for ScriptInRun {
    fn prepare<'a>(
        &'a mut self,
        next: &'a Upcoming<'_>,
        iteration: &'a mut Iteration<'_>,
    ) -> Doing<'a, Result<Vec<String>, UserError>> {
        Box::pin(self.before(next, iteration))
    }

    fn conclude<'a>(
        &'a mut self,
        result: &'a mut IterationResult,
        output: &'a Output,
    ) -> Doing<'a, Result<Vec<String>, UserError>> {
        Box::pin(self.after(result, output))
    }

    fn close<'a>(self: Box<Self>, outcome: Outcome, reason: &'a str) -> Doing<'a, ()>
    where
        Self: 'a,
    {
        Box::pin(self.end(outcome, reason))
    }
}

impl ScriptInRun {
    pub(crate) async fn load(next: &Upcoming<'_>, file: &PluginFile) -> Result<Self, UserError> {
        let turn = Turn { environment: next.environment.clone(), ..Turn::new("", next.workspace) };
        let script = Script::load(file, next.workspace, next.agent.environment(&turn)).await?;
        Ok(Self::new(script, next, file))
    }

    /// A script that was loaded.
    pub(crate) fn new(script: Script, next: &Upcoming<'_>, file: &PluginFile) -> Self {
        Self { script, home: next.workspace.join(file.home()), variables: file.exports.clone(), rule: None }
    }

    /// Calls the hook before, and makes the iteration the script's.
    async fn before(&mut self, next: &Upcoming<'_>, iteration: &mut Iteration<'_>) -> Result<Vec<String>, UserError> {
        self.rule = Some(iteration.rule.clone());
        self.script.export(&next.environment).await?;
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
    async fn after(&mut self, result: &mut IterationResult, output: &Output) -> Result<Vec<String>, UserError> {
        let class = result.report.failure.as_ref().map(|failure| failure.class);
        // The status and the response decide. A limit or a login that the agent's own events tell of is worth more.
        if result.ended_well() && matches!(class, Some(FailureClass::Agent | FailureClass::AgentLimit)) {
            result.forgive();
        }
        let report = &mut result.report;
        if let (None, Exit::Code(code @ 1..), None) = (&report.failure, result.process.exit, result.process.stopped) {
            report.failure = Some(failure(format!("`agent_invoke` gave exit code {code}")));
        }
        report.signal = None;
        let mut notices = Vec::new();
        if report.failure.is_none() && !report.interrupted {
            let attempt = Attempt::of(output)
                .map_err(|error| UserError::failed(format!("cannot read the agent's output: {}", io_reason(&error))))?;
            let response = self.script.extract(attempt.path()).await?;
            if let Some(trouble) = response.trouble {
                report.failure = Some(failure(trouble));
            } else if let Some(rule) = &self.rule {
                report.signal = meaning(rule, &response.text);
            }
        }
        if let Some(failure) = &report.failure {
            result.receipt.class = Some(failure.class);
            report.ended.clone_from(&failure.message);
            result.receipt.ended.clone_from(&failure.message);
        }
        if let Some(Signal::Replan { .. }) = report.signal {
            notices.push(self.replan());
        }
        notices.extend(self.script.hook("agent_post_iteration").await?);
        Ok(notices)
    }

    /// How another plan is made.
    fn replan(&self) -> String {
        let plan = user_file::read_text(&self.home.join(PLAN), user_file::MOST_BYTES).unwrap_or_default();
        let command = plan.lines().find_map(|line| line.split_once(PLAN_COMMAND)).map(|(_, command)| {
            command.trim_matches(|letter: char| letter.is_whitespace() || "`*\"'".contains(letter)).to_owned()
        });
        match command.filter(|command| !command.is_empty()) {
            Some(command) => format!("the agent asks for another plan: run `{command}`, then start again"),
            None => "the agent asks for another plan: make one, then start again".to_owned(),
        }
    }

    async fn end(self, _: Outcome, _: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::promise::Match;

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
