//! What the agent of one iteration said and did, as far as it is known.

use super::calls::Calls;
use crate::event::{Event, FileChange, Known, Tag, TodoItem, Usage};
use crate::journal::{Body, Fact, Record};

/// This many files are kept.
const MOST_FILES: usize = 500;
/// More of the thinking is not kept.
const MOST_THINKING: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Iteration {
    /// The newest plan.
    pub plan: Vec<TodoItem>,
    /// The first thinking, for an agent without a plan.
    pub thinking: String,
    pub calls: Calls,
    /// Files that the agent says it has changed.
    pub files: Vec<FileChange>,
    /// Tokens and money as they were reported; `None` when nothing was.
    pub usage: Option<Usage>,
    /// The agent's own display is shown instead of its events.
    pub own_display: bool,
    /// A judge speaks, not the agent of the iteration.
    pub judging: bool,
}

impl Iteration {
    pub(crate) fn apply(&mut self, record: &Record) {
        match &record.body {
            Body::Loop(Fact::IterationStart { display, .. }) => {
                *self = Self { own_display: *display, ..Self::default() };
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
            Event::Text { tag: Tag::Think, text, delta, parent: None } if self.thinking.len() < MOST_THINKING => {
                if !delta && !self.thinking.is_empty() {
                    self.thinking.push('\n');
                }
                self.thinking.push_str(&text[..text.floor_char_boundary(MOST_THINKING)]);
            }
            Event::Text { .. } => {}
            Event::ToolStart { tool, parent } => self.calls.start(tool, parent.is_some(), record),
            Event::ToolOutput { tool, text, delta, .. } => self.calls.output(&tool.id, text, *delta),
            Event::ToolEnd { tool, .. } => self.calls.end(tool, record.at),
            Event::Usage { usage } => self.usage.get_or_insert_default().add(usage),
            Event::Meta { meta } => match meta.known() {
                Some(Known::Todo { items }) => self.plan = items,
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
