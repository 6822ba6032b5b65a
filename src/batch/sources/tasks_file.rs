//! `tasks.yml`: `tasks: [{id, title, prompt | prompt_file, verify, agent, model, needs, touches, priority, limits}]`.

use std::path::{Path, PathBuf};

use super::{PlacedTask, Source, beside, text_of};
use crate::batch::task::{ID_FORM, Task, TaskId, TaskLimits};
use crate::duration;
use crate::error::UserError;
use crate::nearest::nearest;
use crate::yaml::{self, Entry, Node, Place, Value};

pub(super) struct TasksFile {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Source for TasksFile {
    fn read(&self) -> Result<Vec<PlacedTask>, UserError> {
        let text = text_of(&self.path, &self.name)?;
        let file = TaskReader { name: &self.name, text: &text, directory: beside(&self.path) };
        let node = yaml::parse(&self.name, &text)?;
        let form = "expected `tasks:` with a list";
        let Value::Map(entries) = &node.value else { return Err(file.wrong(node.place, form)) };
        let mut found = Vec::new();
        for entry in entries {
            let (true, Value::List(tasks)) = (entry.key == "tasks", &entry.node.value) else {
                return Err(file.wrong(entry.place, form));
            };
            for node in tasks {
                let place = format!("{}:{}:{}", self.name, node.place.line, node.place.column);
                let Value::Map(entries) = &node.value else {
                    return Err(file.wrong(node.place, "a task is a mapping"));
                };
                found.push(PlacedTask { task: file.task(entries, node.place, None)?, place });
            }
        }
        Ok(found)
    }
}

/// Reads the keys of a task, in a tasks file or in the front matter of a Markdown file.
pub(super) struct TaskReader<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// Where files are relative to.
    pub(super) directory: PathBuf,
}

/// What a Markdown file says besides its front matter.
pub(super) struct Defaults {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) prompt: String,
}

const KEYS: [&str; 11] =
    ["id", "title", "prompt", "prompt_file", "verify", "agent", "model", "needs", "touches", "priority", "limits"];

impl TaskReader<'_> {
    pub(super) fn wrong(&self, place: Place, message: &str) -> UserError {
        yaml::pointing(self.name, self.text, place, message)
    }

    pub(super) fn task(&self, entries: &[Entry], place: Place, defaults: Option<Defaults>) -> Result<Task, UserError> {
        let (mut id, mut title, mut prompt) = (None, None, None);
        let is_file = defaults.is_some();
        if let Some(defaults) = defaults {
            (id, title, prompt) = (Some((defaults.id, place)), Some(defaults.title), Some(defaults.prompt));
        }
        let mut task = Task {
            id: TaskId::new("x").ok_or_else(|| self.wrong(place, ID_FORM))?,
            title: String::new(),
            prompt: String::new(),
            verify: Vec::new(),
            agent: None,
            model: None,
            needs: Vec::new(),
            touches: Vec::new(),
            priority: 0,
            limits: TaskLimits::default(),
        };
        for entry in entries {
            let node = &entry.node;
            match entry.key.as_str() {
                "id" => id = Some((self.text(entry)?, node.place)),
                "title" => title = Some(self.text(entry)?),
                "prompt" | "prompt_file" if is_file => {
                    return Err(self.wrong(entry.place, "the prompt is the text of the file"));
                }
                "prompt" => prompt = Some(self.text(entry)?),
                "prompt_file" => prompt = Some(self.file(&self.text(entry)?, node.place)?),
                "verify" => task.verify = self.texts(entry)?,
                "agent" => task.agent = Some(self.text(entry)?),
                "model" => task.model = Some(self.text(entry)?),
                "needs" => {
                    let ids = self.texts(entry)?.into_iter().map(TaskId::new);
                    task.needs = ids.collect::<Option<_>>().ok_or_else(|| self.wrong(node.place, ID_FORM))?;
                }
                "touches" => task.touches = self.texts(entry)?,
                "priority" => match node.value {
                    Value::Whole(number) => task.priority = number,
                    _ => return Err(self.wrong(node.place, "`priority` must be a whole number")),
                },
                "limits" => task.limits = self.limits(entry)?,
                other => return Err(self.wrong(entry.place, &unknown(other, &KEYS))),
            }
        }
        let (id, at) = id.ok_or_else(|| self.wrong(place, "the key `id` is missing"))?;
        task.id =
            TaskId::new(id.clone()).ok_or_else(|| self.wrong(at, &format!("`{id}` cannot be an id: {ID_FORM}")))?;
        task.prompt = prompt.ok_or_else(|| self.wrong(place, "the task has neither `prompt` nor `prompt_file`"))?;
        if task.prompt.trim().is_empty() {
            return Err(self.wrong(place, "the prompt of the task is empty"));
        }
        task.title = title.unwrap_or_else(|| first_line(&task.prompt));
        if let Some(glob) = task.touches.iter().find(|glob| glob.trim().is_empty()) {
            return Err(self.wrong(place, &format!("`touches` has an empty pattern: `{glob}`")));
        }
        Ok(task)
    }

    fn limits(&self, entry: &Entry) -> Result<TaskLimits, UserError> {
        let Value::Map(entries) = &entry.node.value else {
            return Err(self.wrong(entry.node.place, "`limits` must be a mapping"));
        };
        let mut limits = TaskLimits::default();
        for entry in entries {
            let Node { value, place } = &entry.node;
            match (entry.key.as_str(), value) {
                ("max_iterations", Value::Whole(number)) if *number > 0 => {
                    limits.max_iterations = u32::try_from(*number).ok();
                }
                ("max_iterations", _) => return Err(self.wrong(*place, "`max_iterations` must be a number from 1")),
                ("max_time", value) => {
                    let time = match value {
                        Value::Whole(seconds) => duration::parse(&seconds.to_string()),
                        Value::Text(text) => duration::parse(text),
                        _ => None,
                    };
                    let time = time.filter(|time| !time.is_zero());
                    limits.max_time =
                        Some(time.ok_or_else(|| self.wrong(*place, &format!("expected {}", duration::FORM)))?);
                }
                ("max_cost", value) => {
                    #[expect(clippy::cast_precision_loss, reason = "nobody has so many dollars")]
                    let usd = match value {
                        Value::Whole(usd) => *usd as f64,
                        Value::Fraction(usd) => *usd,
                        _ => 0.0,
                    };
                    if !usd.is_finite() || usd <= 0.0 {
                        return Err(self.wrong(*place, "`max_cost` must be an amount of dollars above 0"));
                    }
                    limits.max_cost = Some(usd);
                }
                (other, _) => {
                    return Err(self.wrong(entry.place, &unknown(other, &["max_iterations", "max_time", "max_cost"])));
                }
            }
        }
        Ok(limits)
    }

    /// Text. A number is text too: an id can be `12`.
    fn text(&self, entry: &Entry) -> Result<String, UserError> {
        match &entry.node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Whole(number) => Ok(number.to_string()),
            other => Err(self.wrong(entry.node.place, &format!("`{}` must be text, not {}", entry.key, other.kind()))),
        }
    }

    /// One text or a list of them.
    fn texts(&self, entry: &Entry) -> Result<Vec<String>, UserError> {
        let Value::List(nodes) = &entry.node.value else { return Ok(vec![self.text(entry)?]) };
        let one = |node: &Node| self.text(&Entry { key: entry.key.clone(), place: entry.place, node: node.clone() });
        nodes.iter().map(one).collect()
    }

    fn file(&self, name: &str, place: Place) -> Result<String, UserError> {
        text_of(&self.directory.join(Path::new(name)), name).map_err(|error| self.wrong(place, &error.message))
    }
}

fn unknown(key: &str, known: &[&str]) -> String {
    match nearest(key, known.iter().copied()) {
        Some(meant) => format!("unknown key `{key}`, did you mean `{meant}`?"),
        None => format!("unknown key `{key}`, known here: {}", known.join(", ")),
    }
}

/// The first line that says something.
pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.trim_start_matches('#').trim().chars().take(100).collect()
}
