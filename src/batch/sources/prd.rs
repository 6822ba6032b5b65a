//! `prd.json` with `userStories`, as several other loops use it. A story with `passes: true` is done; `passes` is written back when a
//! task is merged.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;

use super::{PlacedTask, Source, beside, text_of};
use crate::batch::task::{ID_FORM, Task, TaskId, TaskLimits};
use crate::error::{UserError, io_reason};
use crate::user_file;

pub(super) struct Stories {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    user_stories: Vec<Story>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Story {
    id: serde_json::Value,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    acceptance_criteria: Vec<String>,
    /// 1 comes first.
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    passes: bool,
    #[serde(default)]
    notes: String,
}

/// The id of a story, which may be a number.
fn id_text(id: &serde_json::Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

impl Source for Stories {
    fn read(&self) -> Result<Vec<PlacedTask>, UserError> {
        let text = text_of(&self.path, &self.name)?;
        let document: Document = serde_json::from_str(&text).map_err(|error| {
            UserError::usage(format!(
                "{}:{}:{}: not a list of user stories: {error}",
                self.name,
                error.line(),
                error.column()
            ))
        })?;
        let open = document.user_stories.into_iter().enumerate().filter(|(_, story)| !story.passes);
        open.map(|(number, story)| self.task(number, story)).collect()
    }

    fn merged(&self, task: &TaskId) -> Result<(), UserError> {
        let text = text_of(&self.path, &self.name)?;
        let cannot = |reason: String| UserError::failed(format!("cannot write `passes` to `{}`: {reason}", self.name));
        let mut document: serde_json::Value = serde_json::from_str(&text).map_err(|error| cannot(error.to_string()))?;
        let stories = document.get_mut("userStories").and_then(serde_json::Value::as_array_mut);
        let story =
            stories.into_iter().flatten().find(|story| story.get("id").map(id_text).as_deref() == Some(task.as_str()));
        let Some(story) = story.and_then(serde_json::Value::as_object_mut) else { return Ok(()) };
        if story.insert("passes".to_owned(), true.into()) == Some(true.into()) {
            return Ok(());
        }
        let mut text = serde_json::to_string_pretty(&document).map_err(|error| cannot(error.to_string()))?;
        text.push('\n');
        user_file::replace(&beside(&self.path), &self.path, &text).map_err(|error| cannot(io_reason(&error)))
    }
}

impl Stories {
    fn task(&self, number: usize, story: Story) -> Result<PlacedTask, UserError> {
        let place = format!("{}: story {}", self.name, number + 1);
        let id = id_text(&story.id);
        let id = TaskId::new(id.clone())
            .ok_or_else(|| UserError::usage(format!("{place}: `{id}` cannot be an id: {ID_FORM}")))?;
        let mut prompt = format!("{}\n\n{}\n", story.title, story.description);
        if !story.acceptance_criteria.is_empty() {
            prompt += "\nAcceptance criteria:\n";
            prompt.extend(story.acceptance_criteria.iter().flat_map(|line| ["- ", line, "\n"]));
        }
        if !story.notes.trim().is_empty() {
            let _ = write!(prompt, "\nNotes: {}\n", story.notes);
        }
        let priority = story.priority.saturating_neg();
        let (verify, needs, touches) = (Vec::new(), Vec::new(), Vec::new());
        let (title, limits) = (story.title, TaskLimits::default());
        let task = Task { id, title, prompt, verify, agent: None, model: None, needs, touches, priority, limits };
        Ok(PlacedTask { task, place })
    }
}
