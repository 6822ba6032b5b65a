//! What tools of Claude-like agents change beside their output: files and the plan. A change is reported when
//! the tool has succeeded.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::{FileChange, Known, Object, Status, TodoItem, TodoStatus};
use crate::transcript::todo;

/// Calls under way whose success means something, and the plan so far.
#[derive(Default)]
pub(crate) struct SideEffects {
    pending: HashMap<String, Effect>,
    tasks: Vec<(String, TodoItem)>,
}

enum Effect {
    File {
        path: String,
        change: &'static str,
    },
    Todo(Vec<TodoItem>),
    TaskCreated(String),
    TaskChanged {
        id: String,
        status: Option<TodoStatus>,
        subject: Option<String>,
        deleted: bool,
    },
    TasksListed,
    /// A sub-agent, which reports how long it took.
    Agent,
}

impl SideEffects {
    pub(crate) fn called(&mut self, id: &str, name: &str, input: Option<&Object>) {
        let text = |key: &str| input.and_then(|input| input.get(key)).and_then(Value::as_str).map(str::to_owned);
        let path =
            || ["file_path", "notebook_path", "path", "absolute_path", "filePath"].iter().find_map(|key| text(key));
        let effect = match name {
            "Write" | "write_file" | "create_file" | "write" | "create" | "Create" => {
                path().map(|path| Effect::File { path, change: "write" })
            }
            "Edit" | "MultiEdit" | "NotebookEdit" | "edit" | "edit_file" | "replace" | "notebook_edit" | "editor"
            | "str_replace" | "multiedit" => path().map(|path| Effect::File { path, change: "update" }),
            "TodoWrite" | "todo_write" | "todowrite" => {
                input.and_then(|input| input.get("todos")).map(|list| Effect::Todo(todo::items(list)))
            }
            "TaskCreate" => text("subject").map(Effect::TaskCreated),
            "TaskUpdate" => text("taskId").map(|id| Effect::TaskChanged {
                id,
                status: text("status").as_deref().map(todo::status),
                subject: text("subject"),
                deleted: text("status").as_deref() == Some("deleted"),
            }),
            "TaskList" => Some(Effect::TasksListed),
            "Agent" | "Task" => Some(Effect::Agent),
            _ => None,
        };
        if let Some(effect) = effect {
            self.pending.insert(id.to_owned(), effect);
        }
    }

    /// How long a sub-agent took, by its own account.
    pub(crate) fn duration(&self, id: &str, rich: Option<&RawValue>) -> Option<u64> {
        let effect = self.pending.get(id)?;
        if !matches!(effect, Effect::Agent) {
            return None;
        }
        read(rich)?.get("totalDurationMs")?.as_u64()
    }

    /// A tool is over: what it has changed.
    pub(crate) fn ended(&mut self, id: &str, status: Status, rich: Option<&RawValue>) -> Option<Known> {
        let effect = self.pending.remove(id)?;
        if status != Status::Ok {
            return None;
        }
        match effect {
            Effect::File { path, change } => {
                let told = read(rich).and_then(|rich| Some(rich.get("type")?.as_str()?.to_owned()));
                let change =
                    told.filter(|word| matches!(word.as_str(), "create" | "update")).unwrap_or(change.to_owned());
                Some(Known::Files { changes: vec![FileChange { path, change: Some(change) }] })
            }
            Effect::Todo(items) => Some(Known::Todo { items }),
            Effect::TaskCreated(text) => {
                let rich = read(rich);
                let id = rich.as_ref().and_then(|rich| rich.get("task")?.get("id")?.as_str());
                let id = id.map_or_else(|| (self.tasks.len() + 1).to_string(), str::to_owned);
                self.tasks.push((id, TodoItem { text, status: TodoStatus::Pending }));
                Some(self.plan())
            }
            Effect::TaskChanged { id, status, subject, deleted } => {
                if deleted {
                    self.tasks.retain(|(known, _)| *known != id);
                } else {
                    let (_, item) = self.tasks.iter_mut().find(|(known, _)| *known == id)?;
                    item.status = status.unwrap_or(item.status);
                    item.text = subject.unwrap_or_else(|| std::mem::take(&mut item.text));
                }
                Some(self.plan())
            }
            Effect::TasksListed => {
                let rich = read(rich)?;
                let tasks = rich.get("tasks")?.as_array()?;
                let listed =
                    tasks.iter().filter_map(|task| Some((task.get("id")?.as_str()?.to_owned(), todo::item(task)?)));
                self.tasks = listed.collect();
                Some(self.plan())
            }
            Effect::Agent => None,
        }
    }

    fn plan(&self) -> Known {
        Known::Todo { items: self.tasks.iter().map(|(_, item)| item.clone()).collect() }
    }
}

fn read(rich: Option<&RawValue>) -> Option<Value> {
    serde_json::from_str(rich?.get()).ok()
}
