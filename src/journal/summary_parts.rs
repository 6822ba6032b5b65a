//! What a summary of a run is made of: its iterations, its decisions, its end.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::compared::Compared;
use super::judgement::Judgement;
use super::receipt::{CheckResult, Cost, IterationOutcome, Receipt};
use super::record::Outcome;
use crate::event::{FailureClass, Usage};

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
