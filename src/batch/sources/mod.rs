//! Where tasks come from. Each kind of source is in a file of its own behind one trait; what holds for all of them is checked here.

mod github;
mod markdown;
mod plan;
mod prd;
mod tasks_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::task::{Task, TaskId};
use crate::error::{UserError, io_reason};
use crate::user_file;

/// A task, and where it is written, for messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedTask {
    pub task: Task,
    /// Such as `tasks.yml:3:5`.
    pub place: String,
}

/// Gives tasks.
pub(crate) trait Source {
    /// Reads the tasks. Nothing of them is run.
    fn read(&self) -> Result<Vec<PlacedTask>, UserError>;

    /// A task is merged: writes that back where the source keeps it. Repeating it changes nothing.
    fn merged(&self, _task: &TaskId) -> Result<(), UserError> {
        Ok(())
    }
}

/// What is looked for when no source is named.
const USUAL: [&str; 4] = ["tasks.yml", "tasks", "prd.json", "PLAN.md"];

/// The source that a person names: a file, a directory, or `gh:LABEL`.
pub(crate) fn open(named: Option<&str>, directory: &Path) -> Result<Box<dyn Source>, UserError> {
    let Some(named) = named else {
        let usual = USUAL.iter().find(|name| directory.join(name).exists());
        let usual = usual.ok_or_else(|| {
            UserError::usage("no tasks here").hint(format!("name a source, or create one of: {}", USUAL.join(", ")))
        })?;
        return open(Some(usual), directory);
    };
    if let Some(label) = named.strip_prefix("gh:") {
        return Ok(Box::new(github::Issues::new(label, directory)?));
    }
    let path = directory.join(named);
    let metadata = std::fs::metadata(&path).map_err(|error| {
        UserError::usage(format!("cannot read `{named}`: {}", io_reason(&error)))
            .hint("a source is a tasks file, a directory of Markdown files, a plan, a `prd.json`, or `gh:LABEL`")
    })?;
    let name = named.to_owned();
    if metadata.is_dir() {
        return Ok(Box::new(markdown::Directory { name, path }));
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("yml" | "yaml") => Ok(Box::new(tasks_file::TasksFile { name, path })),
        Some("json") => Ok(Box::new(prd::Stories { name, path })),
        Some("md" | "markdown") => Ok(Box::new(plan::Plan { name, path })),
        _ => Err(UserError::usage(format!("`{named}` is not a source of tasks"))
            .hint("known by their names: `.yml`, `.md`, `.json`, a directory, and `gh:LABEL`")),
    }
}

/// Checks what every list of tasks must be: ids are unique, needs exist, and no task needs itself. `known` are tasks that are there already.
pub(crate) fn check(found: &[PlacedTask], known: &[&Task]) -> Result<(), UserError> {
    let mut places: BTreeMap<&TaskId, &str> = known.iter().map(|task| (&task.id, "this batch")).collect();
    for PlacedTask { task, place } in found {
        if let Some(first) = places.insert(&task.id, place) {
            return Err(UserError::usage(format!("{place}: the id `{}` is used twice; first in {first}", task.id)));
        }
    }
    for PlacedTask { task, place } in found {
        if let Some(need) = task.needs.iter().find(|need| !places.contains_key(need)) {
            return Err(UserError::usage(format!("{place}: task `{}` needs `{need}`, which does not exist", task.id))
                .hint("`needs` names ids of tasks in the same source"));
        }
    }
    let needs: BTreeMap<&TaskId, &[TaskId]> = found
        .iter()
        .map(|found| &found.task)
        .chain(known.iter().copied())
        .map(|task| (&task.id, &*task.needs))
        .collect();
    let mut done: BTreeMap<&TaskId, bool> = BTreeMap::new();
    for PlacedTask { task, place } in found {
        if let Some(cycle) = cycle(&task.id, &needs, &mut done) {
            let names: Vec<&str> = cycle.iter().map(|id| id.as_str()).collect();
            return Err(UserError::usage(format!("{place}: tasks need each other: {}", names.join(" → "))));
        }
    }
    Ok(())
}

/// The way from a task back to itself. Without recursion: a source can be long.
fn cycle<'a>(
    from: &'a TaskId,
    needs: &BTreeMap<&'a TaskId, &'a [TaskId]>,
    done: &mut BTreeMap<&'a TaskId, bool>,
) -> Option<Vec<&'a TaskId>> {
    let mut path: Vec<(&TaskId, usize)> = vec![(from, 0)];
    while let Some((id, next)) = path.pop() {
        if next == 0 && done.get(id) == Some(&true) {
            continue;
        }
        let Some(need) = needs.get(id).and_then(|needs| needs.get(next)) else {
            done.insert(id, true);
            continue;
        };
        path.push((id, next + 1));
        if let Some(at) = path.iter().position(|(on_path, _)| *on_path == need) {
            return Some(path[at..].iter().map(|(id, _)| *id).chain([need]).collect());
        }
        path.push((need, 0));
    }
    None
}

/// Reads a file of a source.
fn text_of(path: &Path, name: &str) -> Result<String, UserError> {
    user_file::read_text(path, user_file::MOST_BYTES)
        .map_err(|error| UserError::usage(format!("cannot read `{name}`: {}", io_reason(&error))))
}

/// An id made of words.
fn id_of(words: &str, fallback: &str) -> String {
    let mut id = String::new();
    for character in words.chars().flat_map(char::to_lowercase) {
        if character.is_ascii_alphanumeric() {
            id.push(character);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
        if id.len() >= 40 {
            break;
        }
    }
    let id = id.trim_end_matches('-');
    if id.is_empty() { fallback.to_owned() } else { id.to_owned() }
}

/// The directory of a file.
fn beside(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
