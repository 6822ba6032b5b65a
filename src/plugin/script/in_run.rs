//! The contract of agent scripts in the loop: pre, invoke, display, extract, post, in this order.

use std::path::PathBuf;

use super::{Beginning, PLAN, Script, exports, fill, prompt_variables};
use crate::agent::{PluginFile, Turn};
use crate::error::{UserError, io_reason};
use crate::event::{Event, FailureClass, Messages, Tag};
use crate::journal::{Outcome, Raw};
use crate::plugin::attempt::Attempt;
use crate::plugin::loop_config::RETRIES;
use crate::process::{Exit, Invocation};
use crate::run::decide::Failure;
use crate::run::filter::Display;
use crate::run::iteration::Iteration;
use crate::run::iteration_result::IterationResult;
use crate::run::plugins::{Output, Steps, Upcoming};
use crate::signals::Signal;
use crate::signals::promise::{REPLAN, Rule, Watch};
use crate::user_file;

/// The line of the plan that says how another one is made.
const PLAN_COMMAND: &str = "Plan Command:";

pub(crate) struct ScriptInRun {
    script: Script,
    home: PathBuf,
    /// What a prompt may use beside the plan: what `config` sets, and what the loop exports.
    exports: Vec<(String, String)>,
    rule: Option<Rule>,
    /// How often a failed iteration is tried again, and how often this one was.
    retries: u32,
    retried: u32,
}

impl Steps for ScriptInRun {
    /// Calls the hook before, and makes the iteration the script's.
    async fn before(&mut self, next: &Upcoming<'_>, iteration: &mut Iteration<'_>) -> Result<Vec<String>, UserError> {
        self.rule = Some(iteration.rule.clone());
        let mode = prompt_variables::mode(next.prompt, &self.home);
        let environment = next.environment.iter().cloned().chain([("MODE".into(), mode.into())]);
        self.script.export(&environment.collect::<Vec<_>>()).await?;
        let variables = prompt_variables::all(&self.exports, mode, &self.home, next.workspace);
        let prompts = iteration.context.prompts.iter().map(|prompt| fill(prompt, &variables));
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
        let failed = report.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::Agent);
        if failed && !report.interrupted && !report.out_of_time && self.retried < self.retries {
            self.retried += 1;
            report.free = Some(format!("retry {} of {}", self.retried, self.retries));
        } else {
            self.retried = 0;
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

    async fn end(self, _: Outcome, _: &str) {
        self.script.close().await;
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
        let retries = file.globals.iter().rev().find(|(name, _)| name == "MAX_RETRIES");
        let retries = retries.and_then(|(_, count)| count.parse().ok()).unwrap_or(RETRIES);
        let home = next.workspace.join(file.home());
        Self { script, home, exports: exports(file), rule: None, retries, retried: 0 }
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
        let any_line = Rule::new(None, Match::AnyLine);
        let early = format!("<promise>COMPLETE</promise>\n{}", "x\n".repeat(300_000));
        assert!(matches!(meaning(&anywhere, &early), Some(Signal::Complete { .. })));
        assert!(!matches!(meaning(&Rule::new(None, Match::LastLine), &early), Some(Signal::Complete { .. })));
        assert!(matches!(meaning(&anywhere, "a <promise>REPLAN</promise> b"), Some(Signal::Replan { .. })));
        let both = "<promise>REPLAN</promise> and <promise>COMPLETE</promise>";
        assert!(matches!(meaning(&anywhere, both), Some(Signal::Complete { .. })));
        let inexact = meaning(&anywhere, "<promise> COMPLETE </promise> <promise>complete</promise>");
        assert!(!matches!(inexact, Some(Signal::Complete { .. })), "{inexact:?}");
        for response in
            [early.as_str(), "All done. <promise>COMPLETE</promise>\nBye.", "x\n**<promise>COMPLETE</promise>**\ny"]
        {
            assert!(matches!(meaning(&any_line, response), Some(Signal::Complete { .. })), "{}", &response[..40]);
        }
        for response in [
            "I will not output <promise>COMPLETE</promise> yet\nbye",
            "Not done: <promise>COMPLETE</promise>\nbye",
            "> <promise>COMPLETE</promise>\n\nbye",
            "```\n<promise>COMPLETE</promise>\n```\nbye",
            "I do not say \"<promise>COMPLETE</promise>\"\nbye",
        ] {
            assert!(matches!(meaning(&any_line, response), Some(Signal::NearMiss { .. })), "{response}");
        }
        let both = "<promise>REPLAN</promise>\n<promise>COMPLETE</promise>\n<promise>REPLAN</promise>";
        assert!(matches!(meaning(&any_line, both), Some(Signal::Complete { .. })));
    }
}
