//! Where everything stands in a journal: a few numbers for each iteration, and the offsets of its pages.
//!
//! It reads every line once, but looks only into ralph's own; what agents said is read again when somebody wants to see
//! it. It must never hold what they said: a run may be larger than the memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::{FailureClass, Usage};
use crate::journal::{Activity, Body, Fact, IterationOutcome, Outcome, Receipt, Record};
use crate::signals::Signal;

/// A page ends behind this many bytes, at the next place where nothing is torn apart.
const PAGE: u64 = 128 * 1024;
/// It ends behind this many bytes in any case.
const LONGEST_PAGE: u64 = 512 * 1024;
/// How much is read at once.
const BLOCK: usize = 1024 * 1024;
/// So many published events are kept for their list.
const MOST_EVENTS: usize = 1000;
/// More of a payload is not kept.
const LONGEST_PAYLOAD: usize = 400;

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
    /// The run's beginning, then each try of an iteration.
    pub entries: Vec<Entry>,
    pub run: Run,
    /// How it ended, if it has.
    pub end: Option<End>,
    /// The newest events that were published.
    pub events: VecDeque<Published>,
    /// How many events there were.
    pub events_count: usize,
    /// What the run does now, if it is alive.
    pub activity: Activity,
    /// When the newest record of ralph was written.
    pub newest: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The agent that was chosen.
    pub agent: String,
    pub started: Option<Timestamp>,
    /// The most iterations, as far as it is known.
    pub most: u32,
    /// The most money, as it was when the run began.
    pub most_usd: Option<f64>,
}

/// One line of the list: the beginning of the run, or a try of an iteration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// Its number; 0 for the beginning.
    pub iteration: u32,
    first_page: usize,
    pub started: Option<Timestamp>,
    pub hat: Option<Box<str>>,
    /// Who plays it, when that is not the agent that was chosen.
    pub agent: Option<Box<str>>,
    /// What it came to, once it is over.
    pub ended: Option<Ended>,
    /// What it said to the loop.
    pub said: Option<Said>,
    /// The agent's terminal, when it has one.
    pub terminal: Option<Terminal>,
    /// Where its receipt stands.
    pub receipt: Option<u64>,
    /// Where the results of the user's commands stand.
    pub checks: Option<u64>,
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
    /// It goes down, and to the first column: nothing stands between the agent and us that would tell the difference.
    NewLine,
    /// It only goes down: a person's terminal has added the rest where it was meant.
    Down,
}

/// What an iteration came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Whether the agent's turn succeeded.
    pub success: bool,
    pub interrupted: bool,
    pub class: Option<FailureClass>,
    pub duration_ms: u64,
    /// Its tokens, when the agent tells them.
    pub tokens: Option<u64>,
    /// Its cost, when somebody tells it.
    pub cost: Option<f64>,
    /// Whether the user's commands agreed.
    pub verified: Option<bool>,
}

/// What an iteration said to the loop, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Complete,
    NearMiss,
    /// Something else: a replan, a question.
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Where its record stands.
    pub at: u64,
    pub outcome: Outcome,
    pub reason: String,
    pub duration_ms: u64,
    /// What the agent wants to know.
    pub question: Option<String>,
}

/// An event that was published.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub iteration: u32,
    pub at: Timestamp,
    pub topic: String,
    /// What is said about it, shortened.
    pub payload: String,
    pub by: String,
    pub heard_by: Vec<String>,
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
            entries: vec![Entry::default()],
            run: Run::default(),
            end: None,
            events: VecDeque::new(),
            events_count: 0,
            activity: Activity::default(),
            newest: None,
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
            && let Ok(Record { at, body: Body::Loop(fact), .. }) = Record::read_line(line)
        {
            self.newest = Some(at);
            self.fact(fact, at, from);
            return;
        }
        let size = from - self.pages.last().copied().unwrap_or(0);
        if size > LONGEST_PAGE || (size > PAGE && begins_something(line)) {
            self.pages.push(from);
        }
    }

    fn fact(&mut self, fact: Fact, at: Timestamp, from: u64) {
        self.activity.see(&fact, at);
        match fact {
            Fact::RunStart { agent, max_iterations, max_cost_usd, .. } => {
                let started = self.run.started.or(Some(at));
                self.run = Run { agent, started, most: max_iterations, most_usd: max_cost_usd };
                self.end = None;
            }
            Fact::IterationStart { iteration, of, agent, hat, terminal, interactive, .. } => {
                self.pages.push(from);
                self.run.most = of;
                let agent = agent.filter(|agent| *agent != self.run.agent).map(String::into_boxed_str);
                self.entries.push(Entry {
                    iteration,
                    first_page: self.pages.len() - 1,
                    started: Some(at),
                    hat: hat.map(String::into_boxed_str),
                    agent,
                    terminal: terminal.map(|(rows, columns)| Terminal {
                        rows,
                        columns,
                        line_feed: if interactive { LineFeed::Down } else { LineFeed::NewLine },
                    }),
                    ..Entry::default()
                });
            }
            Fact::Signal { signal, .. } => {
                if let Some(entry) = self.entries.last_mut() {
                    entry.said = Some(match signal {
                        Signal::Complete { .. } => Said::Complete,
                        Signal::NearMiss { .. } => Said::NearMiss,
                        _ => Said::Other,
                    });
                }
            }
            Fact::Verification { .. } => {
                if let Some(entry) = self.entries.last_mut() {
                    entry.checks = Some(from);
                }
            }
            Fact::IterationEnd { receipt } => {
                if let Some(entry) = self.entries.last_mut() {
                    entry.receipt = Some(from);
                    entry.ended = Some(Ended::from(&*receipt));
                }
            }
            Fact::Published { iteration, event, by, heard_by } => {
                self.events_count += 1;
                if self.events.len() == MOST_EVENTS {
                    self.events.pop_front();
                }
                let payload: String = event.payload.chars().take(LONGEST_PAYLOAD).collect();
                self.events.push_back(Published { iteration, at, topic: event.topic, payload, by, heard_by });
            }
            Fact::RunEnd { outcome, reason, duration_ms, question, .. } => {
                self.end = Some(End { at: from, outcome, reason, duration_ms, question });
            }
            Fact::Decision { .. }
            | Fact::Control { .. }
            | Fact::Paused
            | Fact::Display { .. }
            | Fact::Interrupt { .. }
            | Fact::Notice { .. } => {}
        }
    }

    /// The pages of an entry.
    pub(crate) fn pages_of(&self, entry: usize) -> Range<usize> {
        let first = self.entries.get(entry).map_or(0, |entry| entry.first_page);
        let end = self.entries.get(entry + 1).map_or(self.pages.len(), |next| next.first_page);
        first..end.max(first)
    }

    /// The offsets of a page.
    pub(crate) fn page(&self, page: usize) -> Range<u64> {
        let from = self.pages.get(page).copied().unwrap_or(self.known);
        from..self.pages.get(page + 1).copied().unwrap_or(self.known)
    }

    /// The page on which an offset stands.
    pub(crate) fn page_at(&self, offset: u64) -> usize {
        self.pages.partition_point(|from| *from <= offset).saturating_sub(1)
    }

    /// The entry to which a page belongs.
    pub(crate) fn entry_of(&self, page: usize) -> usize {
        self.entries.partition_point(|entry| entry.first_page <= page).saturating_sub(1)
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
        match self.record(self.entries.get(entry)?.receipt?)?.body {
            Body::Loop(Fact::IterationEnd { receipt }) => Some(*receipt),
            _ => None,
        }
    }

    /// Tokens and money of all iterations that are over.
    pub(crate) fn spent(&self) -> (Option<u64>, Option<f64>) {
        let ended = || self.entries.iter().filter_map(|entry| entry.ended);
        let tokens = ended().filter_map(|ended| ended.tokens).fold(None, |sum, more| Some(sum.unwrap_or(0) + more));
        let cost =
            ended().filter_map(|ended| ended.cost).fold(None, |sum: Option<f64>, more| Some(sum.unwrap_or(0.0) + more));
        (tokens, cost)
    }
}

impl From<&Receipt> for Ended {
    fn from(receipt: &Receipt) -> Self {
        let Usage { cost_usd, .. } = receipt.usage;
        Self {
            success: receipt.success(),
            interrupted: receipt.outcome == IterationOutcome::Interrupted,
            class: receipt.class,
            duration_ms: receipt.duration_ms,
            tokens: receipt.usage.total_or_sum(),
            cost: receipt.cost.map(|cost| cost.usd).or(cost_usd),
            verified: receipt.verified,
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
