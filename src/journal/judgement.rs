//! What a judge, another agent, said of a claim.

use serde::{Deserialize, Serialize};

use super::receipt::Cost;
use crate::event::Usage;
use crate::signals::verdict::Criterion;

/// What a judge said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// After which iteration.
    pub iteration: u32,
    /// Who judged.
    pub agent: String,
    /// What it said.
    pub verdict: Ruling,
    /// Why there is no verdict.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What is wrong with the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Each acceptance criterion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<Criterion>,
    /// Files that it changed although it must not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Where its changes were saved before they were undone; absent when they were not undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// What it reported.
    #[serde(default)]
    pub usage: Usage,
    /// What it cost; absent when it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The verdict of a judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ruling {
    /// The claim holds.
    Accept,
    /// It does not.
    Reject,
    /// There is none.
    #[default]
    None,
}

/// What all judges of a run spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Judges {
    /// Tokens.
    pub usage: Usage,
    /// Money, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Judges {
    pub(super) fn add(&mut self, judgement: &Judgement) {
        self.usage.add(&judgement.usage);
        self.cost = [self.cost, judgement.cost].into_iter().flatten().reduce(Cost::and);
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
