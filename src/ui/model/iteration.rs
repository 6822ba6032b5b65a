//! What the agent of one iteration said and did, as far as it is known.

use super::calls::Calls;
use crate::event::{Event, FileChange, Known, TodoItem, Usage};
use crate::journal::{Body, Fact, Record};

/// This many files are kept.
const MOST_FILES: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct Iteration {
    /// The newest plan.
    pub plan: Vec<TodoItem>,
    pub calls: Calls,
    /// Files that the agent says it has changed.
    pub files: Vec<FileChange>,
    /// Tokens and money as they were reported; `None` when nothing was.
    pub usage: Option<Usage>,
    /// The model, when the agent names it.
    pub model: Option<String>,
    /// The agent's own display is shown instead of its events.
    pub own_display: bool,
    /// A judge speaks, not the agent of the iteration.
    pub judging: bool,
}

impl Iteration {
    /// An iteration in a workspace.
    pub(crate) fn of(workspace: String) -> Self {
        Self { calls: Calls::of(workspace), ..Self::default() }
    }

    pub(crate) fn apply(&mut self, record: &Record) {
        match &record.body {
            Body::Loop(Fact::RunStart { workspace, .. }) => self.calls.workspace.clone_from(workspace),
            Body::Loop(Fact::IterationStart { display, .. }) => {
                let workspace = std::mem::take(&mut self.calls.workspace);
                *self = Self::of(workspace);
                self.own_display = *display;
            }
            Body::Loop(Fact::IterationEnd { .. }) => self.calls.cut_off(),
            Body::Loop(Fact::JudgeStart { .. }) => self.judging = true,
            Body::Loop(Fact::Judged { .. }) => self.judging = false,
            Body::Agent { event, .. } if !self.judging => self.event(event, record),
            Body::Agent { .. } | Body::Loop(_) | Body::Unknown { .. } => {}
        }
    }

    fn event(&mut self, event: &Event, record: &Record) {
        match event {
            Event::Text { .. } => {}
            Event::ToolStart { tool, parent } => self.calls.start(tool, parent.is_some(), record),
            Event::ToolOutput { tool, text, delta, .. } => self.calls.output(&tool.id, text, *delta),
            Event::ToolEnd { tool, .. } => self.calls.end(tool, record.at),
            Event::Usage { usage } => self.usage.get_or_insert_default().add(usage),
            Event::Meta { meta } => match meta.known() {
                Some(Known::Todo { items }) => self.plan = items,
                Some(Known::Model { model }) => self.model = Some(model),
                Some(Known::Files { changes }) => {
                    for change in changes {
                        let is_known = self.files.iter().any(|known| known.path == change.path);
                        if !is_known && self.files.len() < MOST_FILES {
                            self.files.push(change);
                        }
                    }
                }
                _ => {}
            },
        }
    }
}
