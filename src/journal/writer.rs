//! Appends to the journal and the raw files. A record is never written in two parts, so that `kill -9` at any moment
//! loses at most what is being written; records that come together are one write. What cannot be written is an error,
//! never a hole.

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
    /// Part of a record may be behind them.
    torn: bool,
    /// Records that are not written yet, and how many.
    staged: Vec<u8>,
    count: u64,
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

    /// Opens the journal of a run that continues: what is torn at its end is cut off.
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
        let staged = Vec::with_capacity(4096);
        Self { file, next, length, torn: false, staged, count: 0, looked: Instant::now() }
    }

    /// Writes one record.
    pub fn append(&mut self, body: Body) -> io::Result<Appended> {
        let appended = self.stage(body)?;
        self.commit()?;
        Ok(appended)
    }

    /// Prepares a record; it is written by the next [`Self::commit`], and nobody may see it before.
    pub(crate) fn stage(&mut self, body: Body) -> io::Result<Appended> {
        let record = Record { seq: self.next + self.count, at: Timestamp::now(), body };
        let before = self.staged.len();
        if let Err(error) = record.write_line(&mut self.staged) {
            self.staged.truncate(before);
            return Err(error);
        }
        self.count += 1;
        let (start, end) = (self.length + before as u64, self.length + self.staged.len() as u64);
        // Timestamps are kept to the millisecond, so that a record reads back as it was.
        let at = Timestamp::from_millisecond(record.at.as_millisecond()).unwrap_or(record.at);
        Ok(Appended { record: Record { at, ..record }, start, end })
    }

    /// How many bytes wait for [`Self::commit`].
    pub(crate) const fn staged(&self) -> usize {
        self.staged.len()
    }

    /// Writes what is staged, with one write: all of it or nothing.
    pub(crate) fn commit(&mut self) -> io::Result<()> {
        let written = self.write_staged();
        if written.is_ok() {
            self.length += self.staged.len() as u64;
            self.next += self.count;
        }
        self.count = 0;
        self.staged.clear();
        if self.staged.capacity() > 1024 * 1024 {
            self.staged = Vec::with_capacity(4096);
        }
        written
    }

    fn write_staged(&mut self) -> io::Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        if self.torn {
            self.file.shorten(self.length)?;
            self.torn = false;
        }
        self.file.append(&self.staged).inspect_err(|_| {
            // What was written of it must not spoil the next record.
            self.torn = self.file.shorten(self.length).is_err();
        })
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
