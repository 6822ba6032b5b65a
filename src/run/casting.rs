//! Before an iteration: who plays it, in which session, with which hat, and what it is told.

use std::ffi::OsString;

use jiff::Timestamp;

use super::coordinator::Looping;
use super::hats::Worn;
use super::iteration::{Iteration, StatusBlocks, Time};
use super::plan::Worker;
use super::prompt::{LoopContext, compose};
use super::{LeftBehind, Plan, Recorder, Screen};
use crate::agent::{Contract, Session, Turn, Way};
use crate::error::UserError;
use crate::journal::Fact;
use crate::process::{Clocks, Link};
use crate::transcript::{Context, PLAIN, Selected};

/// What reads a program that draws for a person.
static DRAWN: Selected = Selected::Dialect(&PLAIN);

/// Who plays the next iteration, and how.
pub(super) struct Cast {
    pub(super) worker: usize,
    pub(super) session: Session,
    pub(super) worn: Option<Worn>,
}

impl<'p> Looping<'p> {
    /// Reads the prompt anew. An editor may be at work on it: then the last words stand.
    pub(super) fn read_prompt(&mut self, recorder: &mut Recorder) -> Result<(), UserError> {
        match self.plan.prompt.read() {
            Ok(words) => self.words = words,
            Err(error) if self.words.is_empty() => return Err(error),
            Err(error) => {
                let message = format!("{}; going on with the prompt as it was", error.message);
                recorder.fact(Fact::Notice { message })?;
            }
        }
        Ok(())
    }

    /// Who plays next, in which session, with which hat.
    pub(super) fn cast(&mut self, recorder: &mut Recorder) -> Result<Cast, UserError> {
        let plan = self.plan;
        let worn = if plan.hats.hats.is_empty() {
            None
        } else {
            let board = &mut self.memory.board;
            board.wear(&plan.hats).or_else(|| board.again(&plan.hats))
        };
        let wanted = worn.as_ref().and_then(|worn| worn.hat.agent.as_deref());
        let wanted = wanted.and_then(|name| plan.crew.iter().position(|worker| worker.agent.id() == name)).unwrap_or(0);
        let worker = self.memory.bench.first(plan.order(wanted), Timestamp::now()).unwrap_or(wanted);
        let agent = &plan.crew[worker].agent;
        let (session, reason) = self.memory.sessions.next(plan.session, agent, Timestamp::now());
        if let Some(message) = reason {
            recorder.fact(Fact::Notice { message })?;
        }
        Ok(Cast { worker, session, worn })
    }

    /// Variables for the agent and for what the user runs about it.
    pub(super) fn environment(&self, cast: &Cast) -> Vec<(OsString, OsString)> {
        let variable =
            |name: &str, value: &dyn AsRef<std::ffi::OsStr>| (OsString::from(name), value.as_ref().to_owned());
        let mut variables = vec![
            variable("RALPH_RUN_ID", &self.directory.id),
            variable("RALPH_ITERATION", &(self.memory.state.iterations + 1).to_string()),
            variable("RALPH_AGENT", &self.plan.crew[cast.worker].agent.id()),
            variable("RALPH_WORKSPACE", &self.plan.workspace),
        ];
        variables.extend(cast.worn.as_ref().map(|worn| variable("RALPH_HAT", &worn.hat.id)));
        variables
    }

    /// The next iteration: the prompt is composed, the time that is left is known.
    pub(super) fn iteration(&mut self, cast: &Cast) -> Result<Iteration<'p>, UserError> {
        let plan = self.plan;
        let words = self.words.clone();
        let policy = self.policy();
        let number = self.memory.state.iterations + 1;
        let marker = (!plan.rule.is_mentioned_in(&words)).then(|| plan.rule.told());
        let role = cast.worn.as_ref().map(|worn| worn.told(&plan.hats));
        let remarks = [self.memory.remarks.clone(), std::mem::take(&mut self.memory.orders.words)].concat();
        let context = LoopContext {
            iteration: number,
            of: policy.max_iterations,
            last: self.memory.last.as_deref(),
            role: role.as_deref(),
            remarks: &remarks,
            marker,
        };
        let prompt = compose(&words, &context);
        let Worker { agent, transcript, timeout } = &plan.crew[cast.worker];
        let mut turn = Turn { environment: self.environment(cast), ..Turn::new(&prompt, &plan.workspace) };
        turn.session = cast.session.clone();
        if self.memory.other_way.contains(&cast.worker) {
            turn.way = Way::Large;
        }
        turn.mode = plan.screen.attendance();
        let mut invocation = agent.invocation(&turn)?;
        if plan.screen != Screen::Pipes {
            invocation.link = Link::Pty(plan.room.size());
        }
        // What a program draws for a person is words, whatever the agent speaks to machines.
        let transcript = if plan.screen == Screen::Users { &DRAWN } else { transcript };
        invocation.leave_running |= plan.left_behind == LeftBehind::Leave;
        let session_usage = self.memory.sessions.usage(agent, &cast.session);
        let startup = plan.clocks.startup.filter(|_| transcript.name() != PLAIN.name);
        Ok(Iteration {
            number,
            of: policy.max_iterations,
            invocation,
            line_cap: plan.line_cap,
            // An agent of plain text may say nothing until it is done: only its silence without work counts.
            clocks: Clocks { startup, ..plan.clocks },
            time: Time { own: *timeout, run: policy.max_time, gone: self.elapsed() },
            prompt_bytes: prompt.len(),
            transcript,
            context: Context { prompts: vec![prompt, words], session_usage },
            rule: &plan.rule,
            raw: self.directory.raw(),
            workspace: &plan.workspace,
            agent: agent.id(),
            status_blocks: match agent.foreign.as_ref().map(|foreign| foreign.contract) {
                Some(Contract::Driver) => StatusBlocks::Count,
                _ => StatusBlocks::AreWords,
            },
            hat: cast.worn.as_ref().map(|worn| worn.hat.id.clone()),
            resumes: match &cast.session {
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

impl Plan {
    /// Who may play instead of a worker: first that one, then the substitutes.
    pub(super) fn order(&self, wanted: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        std::iter::once(wanted).chain((0..=self.substitutes).filter(move |&worker| worker != wanted))
    }
}
