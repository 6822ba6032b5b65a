//! A copy of what the agents say and publish, as canonical events without the journal's headers, for tools that watch one
//! file (`.agent/events.jsonl`). The journal is the truth: this copy may be missing, never wrong.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::disk::private;
use super::record::{Body, Fact, Record};
use crate::event::{Event, Meta};

/// The file, open at its end.
#[derive(Debug)]
pub(crate) struct EventsFile {
    file: File,
    line: Vec<u8>,
}

impl EventsFile {
    /// Opens it; what is there stays. Its directory is made where it is missing.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)?;
        }
        // Nobody waits at the other end of a pipe, and nothing is written through a link that someone laid.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = private().append(true).create(true).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file"));
        }
        Ok(Self { file, line: Vec::new() })
    }

    /// Adds a record, when it is one of those that are copied.
    pub(crate) fn add(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        match &record.body {
            Body::Agent { event, .. } => event.write_json(&mut self.line),
            Body::Loop(fact @ Fact::Published { .. }) => {
                if let serde_json::Value::Object(object) = serde_json::to_value(fact)? {
                    Event::Meta { meta: Meta(object) }.write_json(&mut self.line);
                }
            }
            _ => return Ok(()),
        }
        self.line.push(b'\n');
        self.file.write_all(&self.line)
    }
}
