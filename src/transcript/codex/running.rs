//! Commands of Codex' text form that run. The line that ends one does not say which.

use crate::event::Status;
use crate::transcript::turn::Turn;

/// The commands that have begun and whose end has not been reported.
#[derive(Debug, Default)]
pub(crate) struct Running {
    ids: Vec<String>,
    /// How those that are over went, in the order of their ends.
    ends: Vec<(Status, Option<u64>)>,
}

impl Running {
    pub(crate) fn begin(&mut self, id: String) {
        self.ids.push(id);
    }

    /// True while none runs.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// A command is over. The last one that began and is not over yet is taken for it; their results are given
    /// when all are over.
    pub(crate) fn over(&mut self, status: Status, duration_ms: Option<u64>) -> String {
        self.ends.push((status, duration_ms));
        let which = self.ids.len().saturating_sub(self.ends.len());
        self.ids.get(which).cloned().unwrap_or_default()
    }

    /// Nobody will say how the commands went.
    pub(crate) fn give_up(&mut self) {
        if self.ends.is_empty() {
            self.ends.extend(self.ids.iter().map(|_| (Status::Unknown, None)));
        }
    }

    /// Says how the commands went once that is known for all of them: where they differ, for none.
    pub(crate) fn settle(&mut self, turn: &mut Turn) {
        if self.ends.is_empty() || self.ends.len() < self.ids.len() {
            return;
        }
        let ends = std::mem::take(&mut self.ends);
        let alike = ends.iter().all(|(status, _)| *status == ends[0].0);
        let duration = ends[0].1.filter(|_| ends.len() == 1);
        for id in std::mem::take(&mut self.ids) {
            turn.tool_end(&id, None, if alike { ends[0].0 } else { Status::Unknown }, duration);
        }
    }
}
