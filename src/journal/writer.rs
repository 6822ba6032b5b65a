//! Appends to the journal and the raw files. A record is one write, so that `kill -9` at any moment
//! loses at most the record being written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::record::{Body, Record};
use crate::event::Stream;

/// The open journal of the run under way.
#[derive(Debug)]
pub struct Journal {
    file: File,
    next: u64,
    /// How many bytes are on disk.
    length: u64,
    line: Vec<u8>,
}

/// A record on disk, and where the journal ends behind it.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The record.
    pub record: Arc<Record>,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset behind its newline.
    pub end: u64,
}

impl Journal {
    /// Creates the journal of a new run.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = private().append(true).create_new(true).open(path)?;
        Ok(Self { file, next: 0, length: 0, line: Vec::with_capacity(4096) })
    }

    /// Writes one record.
    pub fn append(&mut self, body: Body) -> io::Result<Appended> {
        let record = Record { seq: self.next, at: Timestamp::now(), body };
        self.line.clear();
        record.write_line(&mut self.line)?;
        if let Err(error) = self.file.write_all(&self.line) {
            // What was written of it must not spoil the next record.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        let start = self.length;
        self.length += self.line.len() as u64;
        self.next += 1;
        if self.line.capacity() > 1024 * 1024 {
            self.line = Vec::with_capacity(4096);
        }
        // Timestamps are kept to the millisecond, so that a record reads back as it was.
        let at = Timestamp::from_millisecond(record.at.as_millisecond()).unwrap_or(record.at);
        Ok(Appended { record: Arc::new(Record { at, ..record }), start, end: self.length })
    }

    /// Makes sure that a power cut loses nothing written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The raw bytes of one iteration.
#[derive(Debug)]
pub struct Raw {
    stdout: File,
    stderr: File,
}

impl Raw {
    /// Creates both files of an iteration.
    pub fn create(directory: &Path, iteration: u32) -> io::Result<Self> {
        let open = |name: &str| private().append(true).create(true).open(directory.join(format!("{iteration}.{name}")));
        Ok(Self { stdout: open("stdout")?, stderr: open("stderr")? })
    }

    /// Where the standard output of an iteration is.
    pub fn stdout(directory: &Path, iteration: u32) -> std::path::PathBuf {
        directory.join(format!("{iteration}.stdout"))
    }

    /// Writes bytes as they came.
    pub fn write(&mut self, from: Stream, bytes: &[u8]) -> io::Result<()> {
        match from {
            Stream::Stdout => self.stdout.write_all(bytes),
            Stream::Stderr => self.stderr.write_all(bytes),
        }
    }
}

/// Files that only their owner reads.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}
