//! The agent's plan: lists of things to do, however an agent's tool words them.

use serde_json::Value;

use crate::event::{TodoItem, TodoStatus};

/// The items of a list. What has no words is left out.
pub(crate) fn items(list: &Value) -> Vec<TodoItem> {
    list.as_array().into_iter().flatten().filter_map(item).collect()
}

pub(crate) fn item(value: &Value) -> Option<TodoItem> {
    const WORDS: [&str; 7] = ["content", "text", "description", "subject", "title", "step", "task"];
    if let Some(text) = value.as_str() {
        return Some(TodoItem { text: text.to_owned(), status: TodoStatus::Pending });
    }
    let text = WORDS.iter().find_map(|key| value.get(key)?.as_str())?;
    let done = value.get("completed").or_else(|| value.get("done")).and_then(Value::as_bool);
    let status = match value.get("status").and_then(Value::as_str) {
        Some(word) => status(word),
        None if done == Some(true) => TodoStatus::Done,
        None => TodoStatus::Pending,
    };
    Some(TodoItem { text: text.to_owned(), status })
}

/// How far an item is, in any agent's word.
pub(crate) fn status(word: &str) -> TodoStatus {
    match word.to_ascii_lowercase().trim_start_matches("todo_status_") {
        "completed" | "complete" | "done" => TodoStatus::Done,
        "in_progress" | "in-progress" | "inprogress" | "active" | "started" | "running" => TodoStatus::InProgress,
        "cancelled" | "canceled" | "deleted" | "blocked" => TodoStatus::Cancelled,
        _ => TodoStatus::Pending,
    }
}
