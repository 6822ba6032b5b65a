//! Keeps the books of open tool calls, so that each one that starts also ends.

use crate::event::{Event, Status};

/// The calls that have started and not ended, in order, and the ids of those that have.
#[derive(Debug, Default)]
pub struct Tools {
    open: Vec<(String, Option<String>)>,
    ended: std::collections::HashSet<String>,
}

impl Tools {
    /// Takes note of a tool event; says what is odd about it.
    pub fn see(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ToolStart { tool, parent } => {
                let again = self.is_open(&tool.id);
                if !again {
                    self.ended.remove(&tool.id);
                    self.open.push((tool.id.clone(), parent.clone()));
                }
                again.then(|| format!("tool `{}` started twice", tool.id))
            }
            Event::ToolOutput { tool, .. } => {
                (!self.is_open(&tool.id)).then(|| format!("output of tool `{}`, which is not running", tool.id))
            }
            Event::ToolEnd { tool, .. } => {
                if let Some(at) = self.open.iter().position(|(id, _)| *id == tool.id) {
                    self.open.remove(at);
                    self.ended.insert(tool.id.clone());
                    None
                } else if self.ended.contains(&tool.id) {
                    Some(format!("tool `{}` ended twice", tool.id))
                } else {
                    Some(format!("tool `{}` ended without a start", tool.id))
                }
            }
            _ => None,
        }
    }

    /// True while a call with this id runs.
    pub fn is_open(&self, id: &str) -> bool {
        self.open.iter().any(|(open, _)| open == id)
    }

    /// The stream is over: nobody will say how the open calls went.
    pub fn close(&mut self, out: &mut Vec<Event>) {
        for (id, parent) in self.open.drain(..) {
            let end = Event::tool_end(id, Status::Unknown, None);
            out.push(match parent {
                Some(parent) => end.within(&parent),
                None => end,
            });
        }
    }
}
