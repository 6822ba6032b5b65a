//! The open checkboxes of a plan file: each `- [ ]` that is not below another one is a task, with everything that is indented below it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{PlacedTask, Source, id_of, text_of};
use crate::batch::task::{ID_FORM, Task, TaskId, TaskLimits};
use crate::error::UserError;

pub(super) struct Plan {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// An item of the list.
struct Item {
    indent: usize,
    line: usize,
    open: bool,
    words: String,
    body: String,
}

impl Source for Plan {
    fn read(&self) -> Result<Vec<PlacedTask>, UserError> {
        let text = text_of(&self.path, &self.name)?;
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        items(&text).into_iter().filter(|item| item.open).map(|item| self.task(&item, &mut used)).collect()
    }
}

impl Plan {
    fn task(&self, item: &Item, used: &mut BTreeMap<String, u32>) -> Result<PlacedTask, UserError> {
        let place = format!("{}:{}:1", self.name, item.line);
        let id = id_of(&item.words, &format!("line-{}", item.line));
        let count = used.entry(id.clone()).or_default();
        *count += 1;
        let id = if *count == 1 { id } else { format!("{id}-{count}") };
        let id = TaskId::new(id).ok_or_else(|| UserError::usage(format!("{place}: {ID_FORM}")))?;
        let body = if item.body.trim().is_empty() { String::new() } else { format!("\n\n{}", item.body.trim_end()) };
        let prompt = format!("{}{body}\n\nThis is one item of `{}`. Do this item only.", item.words, self.name);
        let title = item.words.chars().take(100).collect();
        let (verify, needs, touches) = (Vec::new(), Vec::new(), Vec::new());
        let limits = TaskLimits::default();
        let task = Task { id, title, prompt, verify, agent: None, model: None, needs, touches, priority: 0, limits };
        Ok(PlacedTask { task, place })
    }
}

/// Items that are not below another one. Code fences are text.
fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut fenced = false;
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        if words.starts_with("```") || words.starts_with("~~~") {
            fenced = !fenced;
        }
        if let (false, Some((open, words))) = (fenced, checkbox(words))
            && !(inside && items.last().is_some_and(|item| indent > item.indent))
        {
            inside = true;
            items.push(Item { indent, line: number + 1, open, words: words.to_owned(), body: String::new() });
        } else if let Some(item) = items.last_mut().filter(|_| inside) {
            if words.is_empty() || indent > item.indent || fenced {
                item.body += line.get(item.indent..).unwrap_or(words).trim_end();
                item.body.push('\n');
            } else {
                inside = false;
            }
        }
    }
    items
}

/// `- [ ] words`: whether it is open, and the words.
fn checkbox(line: &str) -> Option<(bool, &str)> {
    let rest = line.strip_prefix(['-', '*', '+'])?.trim_start().strip_prefix('[')?;
    let (mark, words) = rest.split_once(']')?;
    let words = words.trim();
    match mark {
        " " | "" if !words.is_empty() => Some((true, words)),
        "x" | "X" => Some((false, words)),
        _ => None,
    }
}
