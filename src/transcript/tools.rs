//! Keeps the books of open tool calls, so that each one that starts also ends.

use std::collections::{HashMap, VecDeque};

use crate::event::{Event, Status};

/// This many ended calls are remembered, to distinguish an end that comes twice from one without a start.
const ENDED: usize = 1000;

/// The calls that have started and not ended, by id, and the ids of the last that have. An agent that never
/// ends its calls must not make each further one slower.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    open: HashMap<String, OpenTool>,
    started: u64,
    ended: VecDeque<String>,
}

#[derive(Debug)]
struct OpenTool {
    number: u64,
    name: String,
    parent: Option<String>,
}

impl Tools {
    /// Takes note of a tool event; says what is odd about it.
    pub(crate) fn see(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ToolStart { tool, parent } => {
                let again = self.is_open(&tool.id);
                if !again {
                    self.started += 1;
                    let open = OpenTool { number: self.started, name: tool.name.clone(), parent: parent.clone() };
                    self.open.insert(tool.id.clone(), open);
                }
                again.then(|| format!("tool `{}` started twice", tool.id))
            }
            Event::ToolOutput { tool, .. } => {
                (!self.is_open(&tool.id)).then(|| format!("output of tool `{}`, which is not running", tool.id))
            }
            Event::ToolEnd { tool, .. } => {
                if let Some((id, _)) = self.open.remove_entry(&tool.id) {
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
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.open.contains_key(id)
    }

    /// The name of a call that runs.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        self.open.get(id).map(|open| open.name.as_str())
    }

    /// The call that started last and still runs, for dialects whose ends carry no id.
    pub(crate) fn last_open(&self) -> Option<&str> {
        self.open.iter().max_by_key(|(_, open)| open.number).map(|(id, _)| id.as_str())
    }

    /// The stream is over: nobody will say how the open calls went.
    pub(crate) fn close(&mut self, out: &mut Vec<Event>) {
        let mut open: Vec<(String, OpenTool)> = self.open.drain().collect();
        open.sort_by_key(|(_, open)| open.number);
        for (id, OpenTool { parent, .. }) in open {
            let end = Event::tool_end(id, Status::Unknown, None);
            out.push(match parent {
                Some(parent) => end.within(&parent),
                None => end,
            });
        }
    }
}
