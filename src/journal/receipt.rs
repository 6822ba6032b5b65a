//! What a record says at more length: the receipt of an iteration, checks, events, money.

use serde::{Deserialize, Serialize};

use crate::event::{FailureClass, Quota, Usage};
use crate::signals::test_counts::TestCounts;

/// The summary of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which iteration.
    pub iteration: u32,
    /// What it came to.
    pub outcome: IterationOutcome,
    /// How it ended, in words.
    pub ended: String,
    /// The failure's class, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<FailureClass>,
    /// How long it took.
    pub duration_ms: u64,
    /// What the agent reported; unknown where it said nothing.
    #[serde(default)]
    pub usage: Usage,
    /// How many tools it called.
    pub tools: u32,
    /// How many of them failed.
    pub tools_failed: u32,
    /// Lines the adapter did not understand.
    #[serde(default)]
    pub unparsed: u32,
    /// The session, when the agent named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How full its context was at the end, when the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Filled>,
    /// How full the usage windows of the subscription were, when the agent says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quota: Vec<Quota>,
    /// Processes the agent left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// True when they were left running, false when they were stopped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_running: bool,
    /// Processes of the agent that could not be ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub survivors: Vec<String>,
    /// Who played it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// The hat it wore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hat: Option<String>,
    /// True when it continued with an earlier session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
    /// What it cost; absent when it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Whether it moved anything; absent when that could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<bool>,
    /// Files that are different now, at most [`MOST_FILES`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u32,
    /// Lines that are new and lines that are gone; absent where there is no diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// Commits made, as `abbreviated-hash subject`, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// HEAD when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_before: Option<String>,
    /// HEAD when it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_after: Option<String>,
    /// The branch when it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Tools that were not permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// Topics it published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<String>,
    /// Whether the user's own commands agreed that it is done; absent when they were not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

/// Lines of a diff.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// New ones.
    pub added: u32,
    /// Those that are gone.
    pub removed: u32,
}

impl Lines {
    /// Those of a patch; `None` when it has none, as with binary files.
    pub(crate) fn of(patch: &str) -> Option<Self> {
        let mut changed = Changed::default();
        changed.count(patch.as_bytes());
        let Changed { added, removed, .. } = changed;
        (added + removed > 0).then_some(Self { added, removed })
    }
}

/// What a whole run changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changed {
    /// Files.
    pub files: u32,
    /// Lines that are new.
    pub added: u32,
    /// Lines that are gone.
    pub removed: u32,
    /// Commits, also those that were undone later.
    pub commits: u32,
    /// Claims that a check, the plan file or `allowed_paths` rejected.
    pub rejected: u32,
}

impl Changed {
    /// Counts the files and lines of a patch as git writes it.
    pub(crate) fn count(&mut self, patch: &[u8]) {
        let mut in_hunk = false;
        for line in patch.split(|&byte| byte == b'\n') {
            match line {
                _ if line.starts_with(b"diff --git ") => {
                    self.files += 1;
                    in_hunk = false;
                }
                _ if line.starts_with(b"@@ ") => in_hunk = true,
                [b'+', ..] if in_hunk => self.added += 1,
                [b'-', ..] if in_hunk => self.removed += 1,
                _ => {}
            }
        }
    }
}

/// What an iteration came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationOutcome {
    /// The agent's turn succeeded.
    #[default]
    Ok,
    /// The agent failed, or gave up.
    Failed,
    /// The turn succeeded, but a check, the plan file or `allowed_paths` rejected the claim to be done.
    Rejected,
    /// A person stopped it before its end.
    Interrupted,
}

impl Receipt {
    /// True when the agent's turn succeeded, whatever became of its claim.
    pub(crate) const fn success(&self) -> bool {
        matches!(self.outcome, IterationOutcome::Ok | IterationOutcome::Rejected)
    }

    /// How many files it changed.
    pub(crate) fn file_count(&self) -> u64 {
        self.files.len() as u64 + u64::from(self.more_files)
    }

    /// What it cost: counted by ralph, or as the agent reports it.
    pub(crate) fn known_cost(&self) -> Option<Cost> {
        self.cost.or_else(|| self.usage.cost_usd.map(Cost::reported))
    }
}

/// The most files that a receipt names.
pub(crate) const MOST_FILES: usize = 200;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How full a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filled {
    pub tokens: u64,
    /// How many there is room for, when the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

impl Filled {
    /// In per cent of the room; without the agent's word, of the room that the user knows of.
    pub(crate) fn percent(self, known: Option<u64>) -> Option<u64> {
        let window = self.window.or(known).filter(|window| *window > 0)?;
        Some(self.tokens.saturating_mul(100) / window)
    }
}

/// How one command of a verification went.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// What was run.
    pub command: String,
    /// True when it exited with 0.
    pub passed: bool,
    /// How it ended, in words.
    pub ended: String,
    /// How long it took.
    pub duration_ms: u64,
    /// The end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// True when it is shown, and decides nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// How many tests it counted, when it is a test runner that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
}

/// When checks were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// After a claim of the agent.
    #[default]
    Claim,
    /// After an iteration.
    Iteration,
    /// Before a run that would be complete ends.
    End,
    /// Before the first iteration, to compare with.
    Start,
}

impl Asked {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    pub(super) const fn is_claim(&self) -> bool {
        matches!(self, Self::Claim)
    }
}

/// Money, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// In US dollars.
    pub usd: f64,
    /// Who says so.
    pub source: CostSource,
}

impl Cost {
    /// What an agent says.
    pub(crate) const fn reported(usd: f64) -> Self {
        Self { usd, source: CostSource::Reported }
    }

    /// Both together.
    pub(crate) fn and(self, more: Self) -> Self {
        let source = if self.source == more.source { self.source } else { CostSource::Mixed };
        Self { usd: self.usd + more.usd, source }
    }
}

/// Who says what something cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// The agent.
    Reported,
    /// The user's own price list.
    Computed,
    /// The list prices that ralph ships.
    Estimated,
    /// Some of both.
    Mixed,
}
