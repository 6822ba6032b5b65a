//! The run as a whole, folded from ralph's own records: who works, what each iteration came to, what it cost, what the run
//! does now, how it ended. This is the only fold of these facts: the loop, `runs`, `show`, `stats`, `resume` and every view
//! use it (`ui/model.rs` adds what agents said and did).
//!
//! It is kept beside the journal with the offset up to which it is true, so that looking at a long run reads only what
//! came after. A summary that is missing or damaged is made again from the journal.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::activity::Activity;
use super::compared::Compared;
use super::judgement::{Judgement, Judges};
use super::reader::Reader;
use super::receipt::{Asked, CheckResult, Cost, IterationOutcome, Receipt};
use super::record::{Body, Fact, Outcome, Record};
use super::store::RunDirectory;
use crate::control::Order;
use crate::event::{FailureClass, Usage};
use crate::signals::Signal;

/// The version of the summary's own form. Another one is made again.
const FORM: u32 = 4;

/// A run as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    form: u32,
    /// True for a view of a run of any length: receipts, checks, decisions and notices stay on disk.
    #[serde(skip)]
    light: bool,
    /// The journal up to here is in it.
    pub covers: u64,
    /// The run's id.
    pub run: String,
    /// The journal's version.
    pub version: u32,
    /// ralph's version.
    pub ralph: String,
    /// The agent that was chosen.
    pub agent: String,
    /// Its command line, without the prompt.
    pub command: Vec<String>,
    /// What read its output.
    pub transcript: String,
    /// Where it worked.
    pub workspace: String,
    /// Where the prompt came from.
    pub prompt: String,
    /// The most iterations, as the newest record says.
    #[serde(default)]
    pub max_iterations: u32,
    /// The most time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// The most money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When the newest record was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<Timestamp>,
    /// What it does now, if it is alive.
    #[serde(default)]
    pub activity: Activity,
    /// When it was last started or resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    /// How long it took before that.
    #[serde(default)]
    before_ms: u64,
    /// Each iteration, in order. One that was tried again is here once for each try.
    pub iterations: Vec<IterationSummary>,
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// How it ended, when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// What judges spent.
    #[serde(default, skip_serializing_if = "Judges::is_empty")]
    pub judges: Judges,
    /// What a person should know.
    #[serde(default)]
    pub notices: Vec<String>,
    /// How often it was resumed.
    #[serde(default)]
    pub resumed: u32,
    /// Everything the run needs to continue, as its last decision says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<serde_json::Value>,
    /// When that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<Timestamp>,
    /// Orders that came after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    /// How it was to end, when that was decided and nothing came after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<Outcome>,
    /// How many tries of iterations it knows of.
    #[serde(default)]
    decided: usize,
}

/// One try of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationSummary {
    pub iteration: u32,
    /// Where its first record begins in the journal.
    pub from: u64,
    /// Where its last record ends.
    pub to: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hat: Option<Box<str>>,
    /// The agent, when that is not the one that was chosen for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Box<str>>,
    /// The rows and columns of the agent's terminal, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<(u16, u16)>,
    /// True when the agent's own program had the user's terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interactive: bool,
    /// What the agent said to the loop last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
    /// What it came to, once it is over.
    #[serde(skip)]
    pub ended: Option<Ended>,
    /// Where its receipt is in the journal, when it is not here.
    #[serde(skip)]
    pub receipt_at: Option<u64>,
    /// Where the results of the user's commands are in the journal, when they are not here.
    #[serde(skip)]
    pub checks_at: Option<u64>,
    /// Its receipt, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Box<Receipt>>,
    /// How the user's commands went.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// What other agents said of its claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judgements: Vec<Judgement>,
    /// Where the last of them is in the journal, when they are not here.
    #[serde(skip)]
    pub judged_at: Option<u64>,
}

/// What an iteration said to the loop, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    Complete,
    NearMiss,
    /// Something else: a replan, a question.
    Other,
}

/// What an iteration came to: a receipt in a few numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ended {
    pub outcome: IterationOutcome,
    pub class: Option<FailureClass>,
    pub duration_ms: u64,
    /// Its tokens, when the agent reports them.
    pub tokens: Option<u64>,
    /// Its cost, when someone knows it.
    pub cost: Option<Cost>,
    /// Whether the user's commands agreed.
    pub verified: Option<bool>,
}

impl From<&Receipt> for Ended {
    fn from(receipt: &Receipt) -> Self {
        Self {
            outcome: receipt.outcome,
            class: receipt.class,
            duration_ms: receipt.duration_ms,
            tokens: receipt.usage.total_or_sum(),
            cost: receipt.known_cost(),
            verified: receipt.verified,
        }
    }
}

/// What was decided after an iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// After which iteration.
    pub iteration: u32,
    pub verdict: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Where its record is in the journal.
    #[serde(default)]
    pub offset: u64,
    pub outcome: Outcome,
    pub reason: String,
    /// The exit code that told it.
    pub exit_code: u8,
    /// How many iterations counted.
    pub iterations: u32,
    pub duration_ms: u64,
    /// What all iterations reported together.
    pub usage: Usage,
    /// What they cost together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What the agent wants to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The checks at the start, where they were run, and as they were run last.
    #[serde(default, skip_serializing_if = "Compared::is_empty")]
    pub compared: Compared,
}

impl Summary {
    /// One that stays small for a run of any length.
    pub(crate) fn light() -> Self {
        Self { light: true, ..Self::default() }
    }

    /// How it ended. A run that was cut off between its last decision and its last record ended as decided.
    pub fn outcome(&self) -> Option<Outcome> {
        self.end.as_ref().map(|end| end.outcome).or(self.settled)
    }

    /// True when the newest claim to be done was rejected by a check, the plan file or a judge, and none was accepted after.
    pub(crate) fn last_claim_was_rejected(&self) -> bool {
        let claim = self
            .iterations
            .iter()
            .rev()
            .filter_map(|tried| tried.ended.map(|ended| (tried.said, ended)))
            .find(|(said, ended)| *said == Some(Said::Complete) || ended.outcome == IterationOutcome::Rejected);
        let rejected = |ended: Ended| ended.outcome == IterationOutcome::Rejected || ended.verified == Some(false);
        self.outcome() != Some(Outcome::Complete) && claim.is_some_and(|(_, ended)| rejected(ended))
    }

    /// What is known of a run: the summary as it is kept, and what the journal has beyond it.
    pub fn of(directory: &RunDirectory) -> io::Result<Self> {
        let kept = fs::read(directory.summary()).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let length = fs::metadata(directory.journal())?.len();
        let mut summary = kept.filter(|kept| kept.form == FORM && kept.covers <= length).unwrap_or_default();
        summary.iterations.iter_mut().for_each(|tried| tried.ended = tried.receipt.as_deref().map(Ended::from));
        summary.read_on(&directory.journal())?;
        Ok(summary)
    }

    /// Takes in what the journal has beyond it.
    pub(crate) fn read_on(&mut self, journal: &Path) -> io::Result<()> {
        let mut reader = Reader::open(journal, self.covers)?;
        let mut start = reader.offset();
        while let Some(record) = reader.read_fact()? {
            // What agents said in between belongs to the iteration that is open.
            start = start.max(reader.offset() - reader.line().len() as u64 - 1);
            self.see(&record, start, reader.offset());
        }
        if let Some(open) = self.iterations.last_mut().filter(|tried| tried.receipt.is_none()) {
            open.to = reader.offset();
        }
        // What agents said since then need not be read again.
        self.covers = reader.offset();
        Ok(())
    }

    /// Takes in one record, which is between these offsets.
    pub(crate) fn see(&mut self, record: &Record, start: u64, end: u64) {
        self.form = FORM;
        self.covers = end;
        let Body::Loop(fact) = &record.body else { return };
        self.newest = Some(record.at);
        self.activity.see(fact, record.at);
        match fact {
            Fact::RunStart { .. } => self.begin(fact, record.at),
            Fact::IterationStart { iteration, of, agent, hat, terminal, interactive, .. } => {
                self.settled = None;
                self.max_iterations = *of;
                self.iterations.push(IterationSummary {
                    iteration: *iteration,
                    from: start,
                    to: end,
                    started: Some(record.at),
                    hat: hat.as_deref().map(Box::from),
                    agent: agent.as_deref().filter(|agent| *agent != self.agent).map(Box::from),
                    terminal: *terminal,
                    interactive: *interactive,
                    ..IterationSummary::default()
                });
            }
            Fact::Signal { signal, .. } => {
                if let Some(last) = self.iterations.last_mut() {
                    last.said = Some(match signal {
                        Signal::Complete { .. } => Said::Complete,
                        Signal::NearMiss { .. } => Said::NearMiss,
                        _ => Said::Other,
                    });
                }
            }
            Fact::Judged { judgement } => {
                self.judges.add(judgement);
                self.see_gates(fact, start);
            }
            Fact::Verification { .. } => self.see_gates(fact, start),
            Fact::IterationEnd { receipt } => {
                if let Some(last) = self.iterations.last_mut() {
                    last.to = end;
                    last.ended = Some(Ended::from(&**receipt));
                    if self.light {
                        last.receipt_at = Some(start);
                    } else {
                        last.receipt = Some(receipt.clone());
                    }
                }
            }
            Fact::RunEnd {
                outcome,
                reason,
                exit_code,
                iterations,
                duration_ms,
                usage,
                cost,
                question,
                compared,
                ..
            } => {
                self.end = Some(End {
                    offset: start,
                    outcome: *outcome,
                    reason: reason.clone(),
                    exit_code: *exit_code,
                    iterations: *iterations,
                    duration_ms: *duration_ms,
                    usage: usage.clone(),
                    cost: *cost,
                    question: question.clone(),
                    compared: compared.clone(),
                });
            }
            Fact::Control { order: Order::Limit { max_iterations, max_cost_usd, max_seconds } } => {
                self.max_iterations = max_iterations.unwrap_or(self.max_iterations);
                self.max_cost_usd = max_cost_usd.or(self.max_cost_usd);
                self.max_seconds = max_seconds.or(self.max_seconds);
                self.remember(fact);
            }
            Fact::Decision { outcome, .. } if self.light => self.settled = *outcome,
            _ if self.light => {}
            Fact::Control { .. } => self.remember(fact),
            Fact::Decision { verdict, reason, memory, outcome, .. } => {
                self.settled = *outcome;
                let iteration = self.iterations.last().map_or(0, |tried| tried.iteration);
                self.decisions.push(Decision { iteration, verdict: verdict.clone(), reason: reason.clone() });
                if memory.is_some() {
                    self.memory.clone_from(memory);
                    self.remembered = Some(record.at);
                    self.orders.clear();
                    self.decided = self.iterations.len();
                }
            }
            Fact::Notice { message } => self.notices.push(message.clone()),
            _ => {}
        }
    }

    /// Keeps an order for a run that is resumed.
    fn remember(&mut self, fact: &Fact) {
        if let (Fact::Control { order }, false) = (fact, self.light) {
            self.orders.push(order.clone());
        }
    }

    /// What checks and judges said of the newest iteration.
    fn see_gates(&mut self, fact: &Fact, start: u64) {
        let Some(last) = self.iterations.last_mut() else { return };
        match fact {
            Fact::Verification { .. } if self.light => last.checks_at = Some(start),
            Fact::Verification { checks, asked: Asked::End, .. } => last.checks.extend_from_slice(checks),
            Fact::Verification { checks, .. } => last.checks.clone_from(checks),
            Fact::Judged { .. } if self.light => last.judged_at = Some(start),
            Fact::Judged { judgement } => last.judgements.push((**judgement).clone()),
            _ => {}
        }
    }

    /// The run begins, or it is resumed.
    fn begin(&mut self, fact: &Fact, at: Timestamp) {
        let Fact::RunStart {
            version,
            ralph,
            run,
            agent,
            command,
            transcript,
            workspace,
            prompt,
            max_iterations,
            max_seconds,
            max_cost_usd,
            ..
        } = fact
        else {
            return;
        };
        (self.max_iterations, self.max_seconds, self.max_cost_usd) = (*max_iterations, *max_seconds, *max_cost_usd);
        self.before_ms = self.duration_ms();
        self.since = Some(at);
        if self.started.is_some() {
            self.resumed += 1;
            self.end = None;
            return;
        }
        self.started = Some(at);
        self.version = *version;
        self.ralph.clone_from(ralph);
        self.run.clone_from(run);
        self.agent.clone_from(agent);
        self.command.clone_from(command);
        self.transcript.clone_from(transcript);
        self.workspace.clone_from(workspace);
        self.prompt.clone_from(prompt);
    }

    /// Receipts of all iterations that are over.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = &Receipt> {
        self.iterations.iter().filter_map(|tried| tried.receipt.as_deref())
    }

    /// Receipts of iterations that were over when the run was cut off, before anything was decided about them.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = &Receipt> {
        self.iterations.iter().skip(self.decided).filter_map(|tried| tried.receipt.as_deref())
    }

    /// What judges said of them.
    pub(crate) fn undecided_judgements(&self) -> impl Iterator<Item = &Judgement> {
        self.iterations.iter().skip(self.decided).flat_map(|tried| &tried.judgements)
    }

    /// When the iterations started that the last decision does not know of.
    pub(crate) fn undecided_starts(&self) -> impl Iterator<Item = Timestamp> {
        self.iterations.iter().skip(self.decided).filter_map(|iteration| iteration.started)
    }

    /// What all iterations reported together.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.receipts().for_each(|receipt| usage.add(&receipt.usage));
        usage.add(&self.judges.usage);
        usage
    }

    /// The agent of the newest iteration, or the one that was chosen.
    pub(crate) fn newest_agent(&self) -> &str {
        self.iterations.last().and_then(|tried| tried.agent.as_deref()).unwrap_or(&self.agent)
    }

    /// The results of all iterations that are over.
    pub(crate) fn ended(&self) -> impl Iterator<Item = &Ended> {
        self.iterations.iter().filter_map(|tried| tried.ended.as_ref())
    }

    /// Tokens of all iterations, as far as agents report them; `None` when none does.
    pub(crate) fn tokens(&self) -> Option<u64> {
        let judges = self.judges.usage.total_or_sum();
        self.ended().filter_map(|ended| ended.tokens).chain(judges).reduce(u64::saturating_add)
    }

    /// What all iterations cost, as far as someone knows it; `None` when nobody does.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.ended().filter_map(|ended| ended.cost).chain(self.judges.cost).reduce(Cost::and)
    }

    /// How long its iterations took, or the whole run when that is known.
    pub(crate) fn duration_ms(&self) -> u64 {
        let iterations = self.ended().map(|ended| ended.duration_ms).sum();
        self.end.as_ref().map_or(iterations, |end| end.duration_ms)
    }

    /// How long a run took that is alive at this time.
    pub(crate) fn elapsed_ms(&self, now: Timestamp) -> u64 {
        let passed = self.since.map_or(0, |since| now.as_millisecond() - since.as_millisecond());
        self.before_ms + u64::try_from(passed).unwrap_or(0)
    }

    /// How many iterations began, or, when the run is over, how many it says it had. One that was tried again counts once.
    pub(crate) fn count(&self) -> usize {
        match &self.end {
            Some(end) => usize::try_from(end.iterations).unwrap_or(usize::MAX),
            None => self.iterations.iter().map(|tried| tried.iteration).collect::<BTreeSet<_>>().len(),
        }
    }

    /// All tries of an iteration.
    pub(crate) fn tries(&self, iteration: u32) -> impl Iterator<Item = &IterationSummary> {
        self.iterations.iter().filter(move |tried| tried.iteration == iteration)
    }

    /// As it is kept.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
