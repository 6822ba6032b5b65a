//! Where everything is in a journal: the run as a whole, and the offsets of its pages.
//!
//! It reads every line once, but looks only into ralph's own; what agents said is read again when someone wants to see
//! it. It must never hold what they said: a run may be larger than the memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::journal::summary::IterationSummary;
use crate::journal::{Asked, Body, CheckResult, Fact, Judgement, Lines, Receipt, Record, Summary};
use crate::ui::model::Model;

/// A page ends behind this many bytes, at the next place where nothing is torn apart.
const PAGE: u64 = 128 * 1024;
/// It ends behind this many bytes in any case.
const LONGEST_PAGE: u64 = 512 * 1024;
/// How much is read at once.
const BLOCK: usize = 1024 * 1024;
/// More of a commit's subject is not kept.
const LONGEST_SUBJECT: usize = 80;

/// What is known of a run without reading what agents said.
#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    file: Option<File>,
    block: Vec<u8>,
    /// The journal is known up to here.
    known: u64,
    /// The journal's length when it was last asked for.
    length: u64,
    /// Where each page begins.
    pages: Vec<u64>,
    /// The first page of each entry: the run's beginning, then each try of an iteration.
    first_pages: Vec<usize>,
    pub model: Model,
    /// What came of each try of an iteration.
    results: Vec<IterationResult>,
    /// The branch, as the newest receipt says.
    pub branch: Option<String>,
    /// The agent's model, as the newest receipt says.
    pub model_name: Option<String>,
}

/// What came of an iteration, in a few words.
#[derive(Clone, Debug, Default)]
pub(crate) struct IterationResult {
    /// The subject of the newest commit.
    pub commit: Option<Box<str>>,
    pub commits: usize,
    pub files: u64,
    pub lines: Option<Lines>,
}

impl From<&Receipt> for IterationResult {
    fn from(receipt: &Receipt) -> Self {
        let subject = receipt.commits.first().map(|commit| commit.split_once(' ').map_or(&**commit, |(_, rest)| rest));
        let commit = subject.map(|subject| subject.chars().take(LONGEST_SUBJECT).collect::<String>().into());
        Self { commit, commits: receipt.commits.len(), files: receipt.file_count(), lines: receipt.lines }
    }
}

/// A terminal that an agent draws on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// How high it was when the iteration began.
    pub rows: u16,
    pub columns: u16,
    /// What a line feed does on it.
    pub line_feed: LineFeed,
}

/// What a line feed does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFeed {
    /// It goes down, and to the first column: nothing is between the agent and us that would tell the difference.
    NewLine,
    /// It only goes down: a person's terminal has added the rest where it was meant.
    Down,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everything was known already.
    Same,
    /// There was more, and now it is known.
    Grown,
    More,
}

impl Index {
    /// The index of a journal, which may not be there yet.
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            block: Vec::new(),
            known: 0,
            length: 0,
            pages: vec![0],
            first_pages: vec![0],
            model: Model::new(),
            results: Vec::new(),
            branch: None,
            model_name: None,
        }
    }

    /// Reads on for at most this long.
    pub(crate) fn advance(&mut self, patience: Duration) -> io::Result<Reach> {
        let start = Instant::now();
        let Some(length) = self.measure()? else { return Ok(Reach::Same) };
        self.length = length;
        let before = self.known;
        while self.known < self.length {
            if !self.read_block()? {
                break;
            }
            if start.elapsed() > patience && self.known < self.length {
                return Ok(Reach::More);
            }
        }
        Ok(if self.known > before { Reach::Grown } else { Reach::Same })
    }

    /// The journal's length; `None` as long as there is none.
    fn measure(&mut self) -> io::Result<Option<u64>> {
        if self.file.is_none() {
            self.file = match File::open(&self.path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
        }
        self.file.as_ref().map(|file| file.metadata().map(|metadata| metadata.len())).transpose()
    }

    /// Takes in the next whole lines; false when there are none.
    fn read_block(&mut self) -> io::Result<bool> {
        let mut block = std::mem::take(&mut self.block);
        let mut size = BLOCK;
        let whole = loop {
            let left = usize::try_from(self.length - self.known).unwrap_or(usize::MAX);
            block.resize(size.min(left), 0);
            let Some(file) = &self.file else { return Ok(false) };
            file.read_exact_at(&mut block, self.known)?;
            match memchr::memrchr(b'\n', &block) {
                Some(end) => break end + 1,
                None if size >= left => break 0,
                None => size *= 2,
            }
        };
        let mut start = 0;
        while start < whole {
            let Some(length) = memchr::memchr(b'\n', &block[start..whole]) else { break };
            let from = self.known;
            self.known += length as u64 + 1;
            self.see(&block[start..start + length], from);
            start += length + 1;
        }
        block.truncate(0);
        block.shrink_to(BLOCK);
        self.block = block;
        Ok(whole > 0)
    }

    /// Takes in the line that begins at an offset.
    fn see(&mut self, line: &[u8], from: u64) {
        if is_of_the_loop(line)
            && let Ok(record @ Record { body: Body::Loop(_), .. }) = Record::read_line(line)
        {
            match &record.body {
                Body::Loop(Fact::IterationStart { .. }) => {
                    self.first_pages.push(self.pages.len());
                    self.pages.push(from);
                    self.results.push(IterationResult::default());
                }
                Body::Loop(Fact::IterationEnd { receipt }) => {
                    if let Some(result) = self.results.last_mut() {
                        *result = IterationResult::from(&**receipt);
                    }
                    self.branch = receipt.branch.clone().or(self.branch.take());
                    self.model_name = receipt.usage.model.clone().or(self.model_name.take());
                }
                _ => {}
            }
            self.model.apply_at(&record, from, self.known);
            return;
        }
        let size = from - self.pages.last().copied().unwrap_or(0);
        if size > LONGEST_PAGE || (size > PAGE && begins_something(line)) {
            self.pages.push(from);
        }
    }

    pub(crate) const fn run(&self) -> &Summary {
        &self.model.run
    }

    /// How many entries there are, the run's beginning included.
    pub(crate) const fn entry_count(&self) -> usize {
        self.first_pages.len()
    }

    /// The iteration of an entry; `None` for the run's beginning.
    pub(crate) fn iteration(&self, entry: usize) -> Option<&IterationSummary> {
        self.run().iterations.get(entry.checked_sub(1)?)
    }

    /// What came of an entry.
    pub(crate) fn result(&self, entry: usize) -> Option<&IterationResult> {
        self.results.get(entry.checked_sub(1)?)
    }

    /// The number of an entry's iteration; 0 for the run's beginning.
    pub(crate) fn number(&self, entry: usize) -> u32 {
        self.iteration(entry).map_or(0, |tried| tried.iteration)
    }

    /// The terminal of an entry's agent, when it has one.
    pub(crate) fn terminal(&self, entry: usize) -> Option<Terminal> {
        let tried = self.iteration(entry)?;
        let (rows, columns) = tried.terminal?;
        let line_feed = if tried.interactive { LineFeed::Down } else { LineFeed::NewLine };
        Some(Terminal { rows, columns, line_feed })
    }

    /// The pages of an entry.
    pub(crate) fn pages_of(&self, entry: usize) -> Range<usize> {
        let first = self.first_pages.get(entry).copied().unwrap_or(0);
        let end = self.first_pages.get(entry + 1).copied().unwrap_or(self.pages.len());
        first..end.max(first)
    }

    /// The offsets of a page.
    pub(crate) fn page(&self, page: usize) -> Range<u64> {
        let from = self.pages.get(page).copied().unwrap_or(self.known);
        from..self.pages.get(page + 1).copied().unwrap_or(self.known)
    }

    /// The page on which an offset is.
    pub(crate) fn page_at(&self, offset: u64) -> usize {
        self.pages.partition_point(|from| *from <= offset).saturating_sub(1)
    }

    /// The entry to which a page belongs.
    pub(crate) fn entry_of(&self, page: usize) -> usize {
        self.first_pages.partition_point(|first| *first <= page).saturating_sub(1)
    }

    /// How many pages there are.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// The offsets of an entry.
    pub(crate) fn range(&self, entry: usize) -> Range<u64> {
        let pages = self.pages_of(entry);
        self.page(pages.start).start..self.page(pages.end.saturating_sub(1)).end
    }

    /// The journal is known up to here.
    pub(crate) const fn known(&self) -> u64 {
        self.known
    }

    /// How much of the journal is known, in percent.
    pub(crate) fn percent(&self) -> u64 {
        self.known.saturating_mul(100).checked_div(self.length).unwrap_or(100)
    }

    /// The bytes of the journal between two offsets.
    pub(crate) fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0)];
        file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }

    /// The record that begins at an offset.
    pub(crate) fn record(&self, at: u64) -> Option<Record> {
        let mut size = 16 * 1024;
        loop {
            let end = self.known.min(at + size);
            let bytes = self.bytes(at..end).ok()?;
            match memchr::memchr(b'\n', &bytes) {
                Some(length) => return Record::read_line(&bytes[..length]).ok(),
                None if end == self.known => return None,
                None => size *= 8,
            }
        }
    }

    /// The receipt of an entry.
    pub(crate) fn receipt(&self, entry: usize) -> Option<Receipt> {
        match self.record(self.iteration(entry)?.receipt_at?)?.body {
            Body::Loop(Fact::IterationEnd { receipt }) => Some(*receipt),
            _ => None,
        }
    }

    /// How the user's commands judged an entry.
    pub(crate) fn checks(&self, entry: usize) -> Option<(Asked, bool, Vec<CheckResult>)> {
        match self.record(self.iteration(entry)?.checks_at?)?.body {
            Body::Loop(Fact::Verification { asked, passed, checks, .. }) => Some((asked, passed, checks)),
            _ => None,
        }
    }
}

impl Index {
    /// What the last judge of an entry said.
    pub(crate) fn judgement(&self, entry: usize) -> Option<Judgement> {
        match self.record(self.iteration(entry)?.judged_at?)?.body {
            Body::Loop(Fact::Judged { judgement }) => Some(*judgement),
            _ => None,
        }
    }
}

/// The header tells it, and only ralph writes headers.
fn is_of_the_loop(line: &[u8]) -> bool {
    let header = &line[..line.len().min(80)];
    memchr::memmem::find(header, br#""by":"ralph""#).is_some()
}

/// True where a page may begin: neither within a message nor within a tool call.
fn begins_something(line: &[u8]) -> bool {
    let head = &line[..line.len().min(140)];
    let Some(at) = memchr::memmem::find(head, br#""type":""#) else { return true };
    let kind = &head[at + br#""type":""#.len()..];
    if kind.starts_with(b"text") {
        let tail = &line[line.len().saturating_sub(80)..];
        return memchr::memmem::find(tail, br#""delta":true"#).is_none();
    }
    kind.starts_with(b"tool_start") || kind.starts_with(b"meta")
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
