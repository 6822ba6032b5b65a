//! Another agent judges a claim that the checks accept: in a fresh session, read-only, and without a voice in the loop. Without a valid
//! answer there is no verdict, and the run stops for a person.

use std::fmt::Write as _;

use super::assignment::Assignment;
use super::budget::Spent;
use super::coordinator::Looping;
use super::iteration::{Halt, Inputs, Iteration, Part, StatusBlocks, Time};
use super::iteration_result::IterationResult;
use super::judge::STOPPED;
use super::judge_prompt::{Case, compose};
use super::plan::Worker;
use super::report::{Judged, Verification};
use super::{CONTROL, Interrupts, Recorder, Screen, start_error};
use crate::agent::Turn;
use crate::error::UserError;
use crate::event::Usage;
use crate::git::{By, Effort, Guarded};
use crate::journal::{CheckResult, Fact, Judgement, Ruling};
use crate::process::{self, Clocks};
use crate::signals::acceptance;
use crate::signals::verdict::{self, Answer, Rejection};
use crate::transcript::Context;
use crate::user_file;

/// A judge as the user names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judge {
    pub agent: String,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// What it is to look at in particular.
    pub prompt: Option<String>,
}

/// A judge that can be asked.
pub(crate) struct Seat {
    /// Its place among the judges.
    pub place: usize,
    pub worker: Worker,
    pub prompt: Option<String>,
}

/// An answer that does not help is asked for once more.
const TRIES: u32 = 2;

/// What one judge is asked about one iteration.
struct Hearing<'a, 'p> {
    seat: &'p Seat,
    prompt: String,
    criteria: Vec<String>,
    iteration: u32,
    assignment: &'a Assignment,
}

/// What became of one try.
struct Tried {
    judgement: Judgement,
    interrupted: bool,
    out_of_time: bool,
    /// What it changed is still there: nobody may judge that.
    spoiled: bool,
}

impl<'p> Looping<'p> {
    /// Asks the judges, where nothing else keeps the run from being complete.
    pub(super) async fn ask_judges(
        &mut self,
        result: &mut IterationResult,
        checks: &[CheckResult],
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(), Halt> {
        let (policy, state) = (self.policy(), self.memory.state);
        let report = &result.report;
        let holds = match report.verification {
            Verification::Passed => true,
            Verification::None => report.is_claim(),
            Verification::NotAsked | Verification::Failed { .. } => false,
        };
        let is_last = state.iterations + 1 >= policy.min_iterations && state.claims + 1 >= policy.confirmations;
        if !(report.may_complete(policy.until) && report.veto.is_none() && holds && is_last) || report.interrupted {
            return Ok(());
        }
        for seat in &self.plan.judges {
            let judged = Box::pin(self.ask_judge(seat, result, checks, assignment, recorder, interrupts)).await?;
            let accepted = matches!(judged, Judged::Accepted { .. });
            result.report.interrupted |= judged == Judged::Interrupted;
            result.report.judged = judged;
            if !accepted {
                break;
            }
        }
        Ok(())
    }

    async fn ask_judge(
        &mut self,
        seat: &'p Seat,
        result: &mut IterationResult,
        checks: &[CheckResult],
        assignment: &Assignment,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Judged, Halt> {
        let by = seat.worker.agent.id().to_owned();
        let (prompt, criteria) = self.case(seat, checks, recorder).await;
        let hearing = Hearing { seat, prompt, criteria, iteration: result.receipt.iteration, assignment };
        let mut reason = String::new();
        for attempt in 1..=TRIES {
            let Tried { judgement, interrupted, out_of_time, spoiled } =
                Box::pin(self.try_judge(&hearing, attempt, recorder, interrupts)).await?;
            result.judges = result.judges.and(self.spend_on(&judgement, recorder)?);
            recorder.fact(Fact::Judged { judgement: Box::new(judgement.clone()) })?;
            if interrupted {
                return Ok(Judged::Interrupted);
            }
            if out_of_time {
                return Ok(Judged::OutOfTime);
            }
            match judgement.verdict {
                Ruling::Accept => {
                    self.memory.rejection.take_if(|(place, ..)| *place == seat.place);
                    return Ok(Judged::Accepted { by });
                }
                Ruling::Reject => return Ok(self.rejected(seat.place, by, &judgement)),
                Ruling::None => reason = judgement.reason,
            }
            if spoiled {
                break;
            }
        }
        Ok(Judged::NoVerdict { by, reason })
    }

    /// Tells the agent, and counts how often the same was rejected.
    fn rejected(&mut self, place: usize, by: String, judgement: &Judgement) -> Judged {
        let rejection = Rejection::of(&judgement.findings, &judgement.criteria);
        let before = self.memory.rejection.take();
        let same = before.filter(|(judge, known, _)| *judge == place && known.is_same(&rejection));
        let times = same.map_or(0, |(.., times)| times) + 1;
        let mut remark = format!("completion rejected by the judge `{by}`. Fix this:\n");
        for finding in &rejection.findings {
            let _ = writeln!(remark, "- {finding}");
        }
        for criterion in &rejection.unmet {
            let _ = writeln!(remark, "- not met: {criterion}");
        }
        self.memory.remarks.push(remark);
        let finding = rejection.first().to_owned();
        self.memory.rejection = Some((place, rejection, times));
        Judged::Rejected { by, finding, times }
    }

    /// What there is to judge, and the criteria.
    async fn case(&self, seat: &Seat, checks: &[CheckResult], recorder: &Recorder) -> (String, Vec<String>) {
        let plan = self.plan.plan_file.as_ref().and_then(|path| {
            let text = user_file::read_text(&self.plan.workspace.join(path), user_file::MOST_BYTES).ok()?;
            Some((path.display().to_string(), text))
        });
        let mut criteria = acceptance::criteria(&self.words);
        let of_plan = plan.as_ref().map(|(_, text)| acceptance::criteria(text)).unwrap_or_default();
        criteria.extend(of_plan.into_iter().filter(|criterion| !acceptance::criteria(&self.words).contains(criterion)));
        let diff = if self.snapshots.has_repository() { self.snapshots.whole_patch().await } else { None };
        let changed = self.snapshots.since_start().await.unwrap_or_default();
        let files: Vec<String> = changed.into_keys().take(200).collect();
        let prompt = compose(&Case {
            goal: &self.words,
            plan,
            checks,
            before: &self.memory.compared.start,
            diff: diff.as_deref(),
            files: &files,
            criteria: &criteria,
            asked: seat.prompt.as_deref(),
        });
        // It may go to another vendor.
        (recorder.redactor().text(&prompt).unwrap_or(prompt), criteria)
    }

    async fn try_judge(
        &mut self,
        hearing: &Hearing<'_, 'p>,
        attempt: u32,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Tried, Halt> {
        let (seat, iteration) = (hearing.seat, hearing.iteration);
        let agent = seat.worker.agent.id().to_owned();
        let mut judgement = Judgement { iteration, agent, ..Judgement::default() };
        let process = match self.process_of(hearing, attempt) {
            Ok(process) => process,
            Err(error) => {
                judgement.reason = error.message;
                return Ok(Tried { judgement, interrupted: false, out_of_time: false, spoiled: false });
            }
        };
        self.snapshots.take(By::Checks, false, Effort::Full).await;
        let fingerprint = self.snapshots.fingerprint();
        let guarded = match Guarded::begin(&self.plan.workspace).await {
            Ok(guarded) => guarded,
            Err(error) => {
                let message = format!("what the judge changes could not be undone: {error}");
                recorder.fact(Fact::Notice { message })?;
                None
            }
        };
        let deadline = self.deadline();
        self.memory.calls.add(jiff::Timestamp::now());
        let (inbox, orders) = (&mut self.inbox, &mut self.memory.orders);
        let ran = process.run(recorder, Inputs { interrupts, inbox, orders, deadline }).await?;
        self.suspended += ran.suspended;
        judgement.duration_ms = ran.receipt.duration_ms;
        judgement.usage = ran.receipt.usage.clone();
        judgement.cost = self.plan.prices.cost(&judgement.usage, seat.worker.agent.options.model.as_deref());
        let spoiled = self.take_back(guarded, fingerprint, &mut judgement, recorder).await?;
        let (interrupted, out_of_time) = (ran.report.interrupted, ran.report.out_of_time);
        match (&ran.report.failure, verdict::read(&ran.heard.last_words, &hearing.criteria)) {
            _ if !judgement.reason.is_empty() => {}
            _ if interrupted => STOPPED.clone_into(&mut judgement.reason),
            (Some(failure), _) => judgement.reason.clone_from(&failure.message),
            (None, Err(reason)) => judgement.reason = reason,
            (None, Ok(verdict)) => {
                judgement.verdict = if verdict.verdict == Answer::Accept { Ruling::Accept } else { Ruling::Reject };
                (judgement.findings, judgement.criteria) = (verdict.findings, verdict.criteria);
            }
        }
        Ok(Tried { judgement, interrupted, out_of_time, spoiled })
    }

    /// Takes back what the judge changed, and names it. True when something of it is left.
    async fn take_back(
        &mut self,
        guarded: Option<Guarded>,
        fingerprint: u64,
        judgement: &mut Judgement,
        recorder: &mut Recorder,
    ) -> Result<bool, UserError> {
        let change = self.snapshots.take(By::Checks, false, Effort::Full).await;
        let now = match &guarded {
            Some(guarded) => guarded.changed().await.map_err(|error| error.to_string()),
            None => Ok(None),
        };
        if self.snapshots.fingerprint() == fingerprint && matches!(now, Ok(None)) {
            return Ok(false);
        }
        judgement.changed = change.files.into_iter().chain(change.commits).take(200).collect();
        if judgement.changed.is_empty() {
            judgement.changed.push("the index".to_owned());
        }
        let moment = jiff::Timestamp::now().as_millisecond();
        let name = format!("{}-judge-{}-{moment}", self.directory.id, judgement.iteration);
        let undone = match (&guarded, now) {
            (Some(guarded), Ok(Some(now))) => guarded.put_back(&now, &name).await.map_err(|error| error.to_string()),
            (Some(_), Ok(None)) => Err("it is in another repository".to_owned()),
            (Some(_), Err(error)) => Err(error),
            (None, _) => Err("there is no git repository".to_owned()),
        };
        self.snapshots.take(By::Checks, false, Effort::Full).await;
        self.tell_what_is_not_watched(recorder)?;
        let is_back = self.snapshots.fingerprint() == fingerprint;
        let undone = undone
            .and_then(|saved| if is_back { Ok(saved) } else { Err("not everything could be put back".to_owned()) });
        let names = judgement.changed.iter().take(5).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match undone {
            Ok(saved) => {
                judgement.reason = format!("it changed {names}, which was undone");
                judgement.saved = Some(saved);
                Ok(false)
            }
            Err(error) => {
                judgement.reason = format!("it changed {names}, which was not undone: {error}");
                Ok(true)
            }
        }
    }

    /// The process of a judge: a fresh session on pipes, without the address where the run takes orders.
    fn process_of(&self, hearing: &Hearing<'_, 'p>, attempt: u32) -> Result<Iteration<'p>, UserError> {
        let &Hearing { seat, ref prompt, iteration, assignment, .. } = hearing;
        let plan = self.plan;
        let Worker { agent, transcript, timeout, startup, .. } = &seat.worker;
        let mut environment = self.environment(assignment);
        environment.retain(|(name, _)| ![CONTROL, "RALPH_AGENT", "RALPH_HAT"].iter().any(|dropped| name == dropped));
        environment.push(("RALPH_AGENT".into(), agent.id().into()));
        let invocation = agent.invocation(&Turn { environment, ..Turn::new(prompt, &plan.workspace) })?;
        process::check(&invocation).map_err(|error| start_error(&error))?;
        let policy = self.policy();
        // The clocks of a person at the keys are not a judge's.
        let clocks = if plan.screen == Screen::Users { Clocks::default() } else { plan.clocks };
        Ok(Iteration {
            number: iteration,
            of: policy.max_iterations,
            part: Part::Judge { attempt, model: agent.options.model.clone() },
            invocation,
            line_cap: plan.line_cap,
            clocks: Clocks { startup: *startup, ..clocks },
            time: Time { own: *timeout, run: policy.max_time, gone: self.elapsed() },
            prompt_bytes: prompt.len(),
            transcript,
            context: Context {
                prompts: vec![prompt.clone(), self.words.clone()],
                session_usage: Usage::default(),
                errors: agent.definition.errors.clone(),
            },
            rule: &plan.rule,
            raw: self.directory.judge_raw(),
            workspace: &plan.workspace,
            agent: agent.id(),
            status_blocks: StatusBlocks::AreWords,
            hat: None,
            resumes: None,
            remarks: Vec::new(),
            display: None,
            screen: Screen::Pipes,
            room: plan.room,
        })
    }

    /// Counts what a judge spent, and says so where a limit cannot see it.
    fn spend_on(&mut self, judgement: &Judgement, recorder: &mut Recorder) -> Result<Spent, UserError> {
        let Judgement { agent, usage, cost, .. } = judgement;
        self.memory.usage.add(usage);
        let limited = self.plan.policy.max_cost_usd.is_some() && cost.is_none() && judgement.verdict != Ruling::None;
        if limited && !std::mem::replace(&mut self.memory.noticed_unpriced_judge, true) {
            let message =
                format!("the judge `{agent}` reports no cost, and no price is known: the cost limit does not see it");
            recorder.fact(Fact::Notice { message })?;
        }
        Ok(Spent::of_judge(usage, *cost))
    }
}
