//! The checks of a run before and after: as they were before the first iteration, and as they were run last.

use serde::{Deserialize, Serialize};

use super::receipt::{Asked, CheckResult};

/// The checks of a run at two moments, without their output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compared {
    /// Before the first iteration.
    pub start: Vec<CheckResult>,
    /// Those of the start, as they were run last.
    pub last: Vec<CheckResult>,
}

impl Compared {
    pub(crate) const fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    pub(crate) fn see(&mut self, asked: Asked, checks: &[CheckResult]) {
        let short = |check: &CheckResult| CheckResult { tail: String::new(), ..check.clone() };
        if asked == Asked::Start {
            self.start = checks.iter().map(short).collect();
            return;
        }
        for check in checks.iter().filter(|check| self.start.iter().any(|start| is_same(start, check))) {
            self.last.retain(|last| !is_same(last, check));
            self.last.push(short(check));
        }
    }

    /// Each check that was run at the start and again.
    pub(crate) fn pairs(&self) -> Vec<(&CheckResult, &CheckResult)> {
        let last = |start| Some((start, self.last.iter().find(|last| is_same(last, start))?));
        self.start.iter().filter_map(last).collect()
    }
}

fn is_same(one: &CheckResult, other: &CheckResult) -> bool {
    one.name == other.name && one.command == other.command
}
