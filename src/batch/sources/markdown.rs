//! A directory of Markdown files, one task each, in the order of their names. Front matter between `---` lines has the same keys as a task
//! in `tasks.yml`; the rest of the file is the prompt.

use std::path::{Path, PathBuf};

use super::tasks_file::{Defaults, TaskReader, first_line};
use super::{PlacedTask, Source, text_of};
use crate::error::{UserError, io_reason};
use crate::yaml::{self, Place, Value};

pub(super) struct Directory {
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Source for Directory {
    fn read(&self) -> Result<Vec<PlacedTask>, UserError> {
        let unreadable =
            |error: std::io::Error| UserError::usage(format!("cannot read `{}`: {}", self.name, io_reason(&error)));
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
        files.sort();
        files.iter().map(|path| self.task(path)).collect()
    }
}

impl Directory {
    fn task(&self, path: &Path) -> Result<PlacedTask, UserError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let place = format!("{}/{stem}.md", self.name.trim_end_matches('/'));
        let text = text_of(path, &place)?;
        let (front, body) = split(&text);
        let reader = TaskReader { name: &place, text: &text, directory: self.path.clone() };
        let start = Place { line: 1, column: 1 };
        let mut entries = Vec::new();
        if let Some(front) = front.filter(|front| !front.trim().is_empty()) {
            // Places in it are places in the file: the line with `---` counts.
            let node = yaml::parse(&place, &format!("---\n{front}"))?;
            match node.value {
                Value::Map(found) => entries = found,
                Value::Null => {}
                _ => return Err(reader.wrong(node.place, "front matter is a mapping")),
            }
        }
        let defaults = Defaults { id: stem, title: first_line(body), prompt: body.trim().to_owned() };
        Ok(PlacedTask { task: reader.task(&entries, start, Some(defaults))?, place: format!("{place}:1:1") })
    }
}

/// The front matter, and what follows it.
fn split(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) else { return (None, text) };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(&rest[..at]), &rest[at + line.len()..]);
        }
        at += line.len();
    }
    (None, text)
}
