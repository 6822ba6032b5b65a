//! Keeps the books of open tool calls, so that each one that starts also ends.

use std::collections::VecDeque;

use crate::event::{Event, Status};

/// So many ended calls are remembered, to tell an end that comes twice from one without a start.
const ENDED: usize = 1000;

/// The calls that have started and not ended, in order, and the ids of the last that have.
#[derive(Debug, Default)]
pub struct Tools {
    open: Vec<OpenTool>,
    ended: VecDeque<String>,
}

#[derive(Debug)]
struct OpenTool {
    id: String,
    name: String,
    parent: Option<String>,
}

impl Tools {
    /// Takes note of a tool event; says what is odd about it.
    pub fn see(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ToolStart { tool, parent } => {
                let again = self.is_open(&tool.id);
                if !again {
                    let (id, name, parent) = (tool.id.clone(), tool.name.clone(), parent.clone());
                    self.open.push(OpenTool { id, name, parent });
                }
                again.then(|| format!("tool `{}` started twice", tool.id))
            }
            Event::ToolOutput { tool, .. } => {
                (!self.is_open(&tool.id)).then(|| format!("output of tool `{}`, which is not running", tool.id))
            }
            Event::ToolEnd { tool, .. } => {
                if let Some(at) = self.open.iter().position(|open| open.id == tool.id) {
                    let OpenTool { id, .. } = self.open.remove(at);
                    if self.ended.len() == ENDED {
                        self.ended.pop_front();
                    }
                    self.ended.push_back(id);
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
        self.open.iter().any(|open| open.id == id)
    }

    /// The name of a call that runs.
    pub fn name(&self, id: &str) -> Option<&str> {
        self.open.iter().find(|open| open.id == id).map(|open| open.name.as_str())
    }

    /// The call that started last and still runs, for dialects whose ends carry no id.
    pub fn last_open(&self) -> Option<&str> {
        self.open.last().map(|open| open.id.as_str())
    }

    /// The stream is over: nobody will say how the open calls went.
    pub fn close(&mut self, out: &mut Vec<Event>) {
        for OpenTool { id, parent, .. } in self.open.drain(..) {
            let end = Event::tool_end(id, Status::Unknown, None);
            out.push(match parent {
                Some(parent) => end.within(&parent),
                None => end,
            });
        }
    }
}
