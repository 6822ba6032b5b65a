//! Before an iteration: which agent works on it, in which session, with which hat and which prompt.

use std::ffi::OsString;
use std::time::Duration;

use jiff::Timestamp;

use super::configured::{self, CommandEnd};
use super::coordinator::Looping;
use super::hats::{ActiveHat, Hat};
use super::iteration::{Iteration, Part, StatusBlocks, Time};
use super::plan::Worker;
use super::prompt::{LoopContext, compose};
use super::{CONTROL, Interrupts, LeftBehind, Plan, Recorder, Screen, template};
use crate::agent::{Contract, Session, Turn, Way};
use crate::error::UserError;
use crate::git;
use crate::journal::Fact;
use crate::process::{Clocks, Link, Stdin};
use crate::transcript::{Context, PLAIN, Selected};

/// How long a command may take whose output is part of the prompt.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// What reads a program that draws for a person.
static DRAWN: Selected = Selected::Dialect(&PLAIN);

/// Which worker does the next iteration, and how.
pub(super) struct Assignment {
    pub(super) worker: usize,
    pub(super) session: Session,
    pub(super) hat: Option<ActiveHat>,
}

impl<'p> Looping<'p> {
    /// Reads the prompt again, and fills in its variables. While an editor is saving it, the last version is used.
    pub(super) async fn read_prompt(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(), UserError> {
        match self.plan.prompt.read() {
            Ok(words) => {
                let more = self.asked_variables(&words, recorder, interrupts).await?;
                let iteration = self.memory.state.iterations + 1;
                self.words = self.plan.filled(&words, iteration, self.memory.last.as_deref(), &more);
            }
            Err(error) if self.words.is_empty() => return Err(error),
            Err(error) => {
                let message = format!("{}; using the last version of the prompt", error.message);
                recorder.fact(Fact::Notice { message })?;
            }
        }
        Ok(())
    }

    /// The variables that something has to be asked for: the branch, and the user's commands.
    async fn asked_variables(
        &self,
        words: &str,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Vec<(String, String)>, UserError> {
        let plan = self.plan;
        let mut values = Vec::new();
        if template::mentions(words, "branch") {
            let branch = match git::Repository::around(&plan.workspace) {
                Some(repository) => repository.head().await.branch,
                None => None,
            };
            values.push(("branch".to_owned(), branch.unwrap_or_else(|| "no branch".to_owned())));
        }
        for name in template::commands(words) {
            let Some((_, line)) = plan.commands.iter().find(|(known, _)| known == name) else { continue };
            let argv = ["sh", "-c", line].map(str::to_owned);
            let environment = self.run_environment();
            let end = configured::run(&argv, None, COMMAND_TIMEOUT, &plan.workspace, &environment, interrupts).await;
            let mut text = match end {
                CommandEnd::Ran { code: 0, stdout, .. } => stdout,
                CommandEnd::Ran { code, stdout, stderr } => format!("{stdout}{stderr}(exit code {code})"),
                CommandEnd::Broken(why) => {
                    recorder.fact(Fact::Notice { message: format!("`commands.{name}` failed: {why}") })?;
                    format!("({why})")
                }
                CommandEnd::Interrupted => break,
            };
            recorder.redactor().clean(&mut text);
            values.push((format!("commands.{name}"), text.trim_end().to_owned()));
        }
        Ok(values)
    }

    /// Chooses the worker, its session and its hat.
    pub(super) fn assignment(&mut self, recorder: &mut Recorder) -> Result<Assignment, UserError> {
        let plan = self.plan;
        let hat = if plan.hats.hats.is_empty() {
            None
        } else {
            let board = &mut self.memory.board;
            board.activate(&plan.hats).or_else(|| board.again(&plan.hats))
        };
        let turn = self.memory.state.iterations as usize % plan.rotation.len().max(1);
        let in_turn = plan.rotation.get(turn).copied().unwrap_or(0);
        let wanted = hat.as_ref().map_or(in_turn, |active| plan.worker_for(&active.hat));
        let worker = self.memory.cooldown.first(plan.order(wanted), Timestamp::now()).unwrap_or(wanted);
        let agent = &plan.workers[worker].agent;
        let (session, reason) = self.memory.sessions.next(plan.session, agent, Timestamp::now());
        if let Some(message) = reason {
            recorder.fact(Fact::Notice { message })?;
        }
        Ok(Assignment { worker, session, hat })
    }

    /// Variables for whatever the run starts.
    pub(super) fn run_environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            variable("RALPH_RUN_ID", &self.directory.id),
            variable("RALPH_ITERATION", &(self.memory.state.iterations + 1).to_string()),
            variable("RALPH_WORKSPACE", &self.plan.workspace),
        ]
    }

    /// Variables for the agent and for what the user runs about it.
    pub(super) fn environment(&self, assignment: &Assignment) -> Vec<(OsString, OsString)> {
        let mut variables = self.run_environment();
        variables.push(variable("RALPH_AGENT", &self.plan.workers[assignment.worker].agent.id()));
        variables.push(variable(CONTROL, &self.inbox.path()));
        variables.extend(assignment.hat.as_ref().map(|active| variable("RALPH_HAT", &active.hat.id)));
        variables
    }

    /// The next iteration: the prompt is composed, the time that is left is known.
    pub(super) fn iteration(&mut self, assignment: &Assignment) -> Result<Iteration<'p>, UserError> {
        let plan = self.plan;
        let words = self.words.clone();
        let policy = self.policy();
        let number = self.memory.state.iterations + 1;
        let marker = plan.marker_for(&words);
        let role = assignment.hat.as_ref().map(|active| active.told(&plan.hats));
        let mut remarks = [self.memory.remarks.clone(), std::mem::take(&mut self.memory.orders.words)].concat();
        remarks.extend(self.review_remark());
        let context = LoopContext {
            iteration: number,
            of: policy.max_iterations,
            last: self.memory.last.as_deref(),
            rules: &plan.rules,
            role: role.as_deref(),
            remarks: &remarks,
            marker,
            sandbox: plan.wall.as_ref().map(|wall| wall.told()),
        };
        let prompt = compose(&words, &context);
        let Worker { agent, transcript, timeout, startup, .. } = &plan.workers[assignment.worker];
        let mut turn = Turn { environment: self.environment(assignment), ..Turn::new(&prompt, &plan.workspace) };
        turn.session = assignment.session.clone();
        turn.way = plan.screen.way();
        if turn.way == Way::Usual && self.memory.other_way.contains(&assignment.worker) {
            turn.way = Way::Large;
        }
        turn.mode = plan.screen.attendance();
        let mut invocation = agent.invocation(&turn)?;
        if plan.screen != Screen::Pipes {
            invocation.link = Link::Pty(plan.room.size());
            // Programs that insist on a terminal look at their standard input.
            if matches!(invocation.stdin, Stdin::Null) {
                invocation.stdin = Stdin::Keys;
            }
        }
        // What a program draws for a person is words, whatever the agent speaks to machines.
        let transcript = if plan.screen == Screen::Users { &DRAWN } else { transcript };
        invocation.leave_running |= plan.left_behind == LeftBehind::Leave;
        let session_usage = self.memory.sessions.usage(agent, &assignment.session);
        Ok(Iteration {
            number,
            part: Part::Work,
            of: policy.max_iterations,
            invocation,
            line_cap: plan.line_cap,
            clocks: Clocks { startup: *startup, ..plan.clocks },
            time: Time { own: *timeout, run: policy.max_time, gone: self.elapsed() },
            prompt_bytes: prompt.len(),
            transcript,
            context: Context { prompts: vec![prompt, words], session_usage, errors: agent.definition.errors.clone() },
            rule: &plan.rule,
            raw: self.directory.raw(),
            workspace: &plan.workspace,
            agent: agent.id(),
            status_blocks: match agent.plugin.as_ref().map(|file| file.contract) {
                Some(Contract::Driver) => StatusBlocks::Count,
                None if agent.options.status_blocks => StatusBlocks::Count,
                _ => StatusBlocks::AreWords,
            },
            hat: assignment.hat.as_ref().map(|active| active.hat.id.clone()),
            resumes: match &assignment.session {
                Session::Resume(id) | Session::Fork(id) => Some(id.clone()),
                Session::New | Session::Given(_) => None,
            },
            remarks: role.into_iter().chain(remarks).collect(),
            display: None,
            screen: plan.screen,
            room: plan.room,
        })
    }
}

fn variable(name: &str, value: &dyn AsRef<std::ffi::OsStr>) -> (OsString, OsString) {
    (OsString::from(name), value.as_ref().to_owned())
}

impl Plan {
    /// The worker for a hat.
    fn worker_for(&self, hat: &Hat) -> usize {
        let named = |worker: &Worker| worker.hat.is_none() && Some(worker.agent.id()) == hat.choice.agent.as_deref();
        let own = self.workers.iter().position(|worker| worker.hat.as_ref() == Some(&hat.id));
        own.or_else(|| self.workers.iter().position(named)).unwrap_or(0)
    }

    /// The workers that may do the work of this one: first itself, then the substitutes.
    pub(super) fn order(&self, wanted: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        std::iter::once(wanted).chain((0..=self.substitutes).filter(move |&worker| worker != wanted))
    }
}
