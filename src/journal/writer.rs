//! Appends to the journal and the raw files. A record is one write, so that `kill -9` at any moment
//! loses at most the record being written. What cannot be written is an error, never a hole.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::disk::{Disk, Growing, Look, Make, RealDisk, Tampering};
use super::reader;
use super::record::{Body, Fact, Record};
use crate::event::Stream;
use crate::redact::Clean;

/// How often is looked whether another process has changed the journal.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The open journal of the run under way.
#[derive(Debug)]
pub struct Journal {
    file: Box<dyn Growing>,
    next: u64,
    /// How many bytes are on disk.
    length: u64,
    /// Part of a record may stand behind them.
    torn: bool,
    line: Vec<u8>,
    looked: Instant,
}

/// A record on disk, and where the journal ends behind it.
#[derive(Clone, Debug)]
pub struct Appended {
    pub record: Record,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset behind its newline.
    pub end: u64,
}

impl Journal {
    /// Creates the journal of a new run.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_on(&RealDisk, path)
    }

    /// Creates the journal of a new run on a disk.
    pub(crate) fn create_on(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        let mut file = disk.grow(path, Make::New)?;
        file.guard()?;
        if let Some(directory) = path.parent() {
            disk.sync_directory(directory)?;
        }
        Ok(Self::at(file, 0, 0))
    }

    /// Opens the journal of a run that goes on: what is torn at its end is cut off.
    pub fn reopen(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        let end = reader::last(path)?;
        let mut file = disk.grow(path, Make::OpenOrNew)?;
        if end.torn > 0 {
            file.shorten(end.length)?;
            file.sync()?;
        }
        file.guard()?;
        Ok(Self::at(file, end.next, end.length))
    }

    fn at(file: Box<dyn Growing>, next: u64, length: u64) -> Self {
        Self { file, next, length, torn: false, line: Vec::with_capacity(4096), looked: Instant::now() }
    }

    /// Writes one record.
    pub fn append(&mut self, body: Body) -> io::Result<Appended> {
        if self.torn {
            self.file.shorten(self.length)?;
            self.torn = false;
        }
        let record = Record { seq: self.next, at: Timestamp::now(), body };
        self.line.clear();
        record.write_line(&mut self.line)?;
        if let Err(error) = self.file.append(&self.line) {
            // What was written of it must not spoil the next record.
            self.torn = self.file.shorten(self.length).is_err();
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
        Ok(Appended { record: Record { at, ..record }, start, end: self.length })
    }

    /// How many bytes of records there are.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Makes sure that a power cut loses nothing written so far.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    /// Looks whether another process has changed the journal, when a record like this is to be written. If so, the journal is
    /// restored.
    pub(crate) fn look_before(&mut self, body: &Body) -> io::Result<Option<Tampering>> {
        match body {
            Body::Loop(Fact::Decision { .. } | Fact::RunEnd { .. }) => self.look(),
            Body::Agent { .. } if self.looked.elapsed() < LOOK_EVERY => Ok(None),
            _ => {
                self.looked = Instant::now();
                self.file.watch(Look::Quick)
            }
        }
    }

    /// The same, at once and closely.
    pub(super) fn look(&mut self) -> io::Result<Option<Tampering>> {
        self.file.watch(Look::Full)
    }
}

/// The raw bytes of one iteration. Only clean ones can be written.
#[derive(Debug)]
pub struct Raw {
    stdout: Box<dyn Growing>,
    stderr: Box<dyn Growing>,
}

impl Raw {
    /// Creates both files of an iteration. One that is tried again appends to them.
    pub fn create(disk: &dyn Disk, directory: &Path, iteration: u32) -> io::Result<Self> {
        let [stdout, stderr] = Self::paths(directory, iteration);
        Ok(Self { stdout: disk.grow(&stdout, Make::OpenOrNew)?, stderr: disk.grow(&stderr, Make::OpenOrNew)? })
    }

    /// Where both files of an iteration are.
    pub(crate) fn paths(directory: &Path, iteration: u32) -> [PathBuf; 2] {
        [Self::stdout(directory, iteration), directory.join(format!("{iteration}.stderr"))]
    }

    /// Where the standard output of an iteration is.
    pub(crate) fn stdout(directory: &Path, iteration: u32) -> PathBuf {
        directory.join(format!("{iteration}.stdout"))
    }

    /// Appends bytes. Says how many.
    pub fn write(&mut self, from: Stream, bytes: &Clean<impl AsRef<[u8]>>) -> io::Result<usize> {
        let bytes = (**bytes).as_ref();
        let file = match from {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        if !bytes.is_empty() {
            file.append(bytes)?;
        }
        Ok(bytes.len())
    }
}
