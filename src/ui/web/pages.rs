//! Pages of a journal by offset: a page is read when someone wants to see it, and never more than that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::{Value, json};

use super::rows::{self, Limits};
use crate::event::{Event, Known, Tag};
use crate::journal::{Body, Fact, Reader, Record};
use crate::ui::model::Call;
use crate::ui::text::cut;

/// A page ends behind this many bytes of the journal,
const PAGE: u64 = 256 * 1024;
/// or behind this many rows.
const MOST_ROWS: usize = 400;
/// How far back a page may look for its first line.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;
/// What is read of a journal's end for its newest words.
const TAIL: u64 = 64 * 1024;

/// The rows from an offset to another: at most one page.
pub(super) fn after(journal: &Path, from: u64, to: u64, limits: Limits) -> io::Result<Value> {
    let mut reader = Reader::open(journal, from)?;
    let (mut rows, mut next) = (Vec::new(), from);
    while next < to && next - from < PAGE && rows.len() < MOST_ROWS {
        let Some(record) = reader.read()? else { break };
        if let Ok(record) = record {
            rows.extend(rows::row(&record, next, limits));
        }
        next = reader.offset();
    }
    Ok(json!({ "from": from, "to": next, "rows": rows }))
}

/// The last page before an offset, not further back than another.
pub(super) fn before(journal: &Path, floor: u64, end: u64, limits: Limits) -> io::Result<Value> {
    let end = end.min(std::fs::metadata(journal)?.len());
    let mut from = line_start(journal, floor, end, PAGE)?;
    let mut page = after(journal, from, end, limits)?;
    // Many short rows: take the last ones.
    while page["to"].as_u64().is_some_and(|to| from < to && to < end) {
        from = page["to"].as_u64().unwrap_or(end);
        page = after(journal, from, end, limits)?;
    }
    Ok(page)
}

/// Where the first line begins in the last so many bytes before an offset.
fn line_start(journal: &Path, floor: u64, end: u64, size: u64) -> io::Result<u64> {
    let file = File::open(journal)?;
    let end = end.min(file.metadata()?.len());
    let mut size = size;
    loop {
        let start = end.saturating_sub(size).max(floor);
        if start <= floor || size > LONGEST_LINE {
            return Ok(floor.min(end));
        }
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(&mut bytes, start)?;
        // The newline that ends the last line begins no other.
        let inner = &bytes[..bytes.len().saturating_sub(1)];
        if let Some(newline) = memchr::memchr(b'\n', inner) {
            return Ok(start + newline as u64 + 1);
        }
        size *= 4;
    }
}

/// One record in full.
pub(super) fn one(journal: &Path, at: u64) -> io::Result<Option<Value>> {
    let record = Reader::open(journal, at)?.read()?;
    Ok(record.and_then(Result::ok).and_then(|record| rows::row(&record, at, Limits::FULL)))
}

/// What the end of a journal tells: what the agent said or did last, and its newest plan.
#[derive(Default)]
pub(super) struct Newest {
    pub line: String,
    pub plan: Option<Vec<Value>>,
}

impl Newest {
    pub(super) fn of(journal: &Path) -> io::Result<Self> {
        let mut reader = Reader::open(journal, line_start(journal, 0, u64::MAX, TAIL)?)?;
        let mut newest = Self::default();
        while let Some(record) = reader.read()? {
            if let Ok(record) = record {
                newest.see(&record);
            }
        }
        Ok(newest)
    }

    fn see(&mut self, record: &Record) {
        match &record.body {
            Body::Agent { event: Event::Text { tag: Tag::Ai, text, delta, .. }, .. } => {
                if *delta && self.line.len() < 400 {
                    self.line.push_str(text);
                } else {
                    self.line.clone_from(text);
                }
            }
            Body::Agent { event: Event::ToolStart { tool, parent }, .. } => {
                let call = Call::new(tool, parent.is_some(), record.seq, record.at);
                self.line = format!("{} {}", call.name, call.argument);
            }
            Body::Agent { event: Event::Meta { meta }, .. } => {
                if let Some(Known::Todo { items }) = meta.known() {
                    self.plan = Some(rows::plan(&items));
                }
            }
            Body::Loop(Fact::Decision { reason, .. }) if !reason.is_empty() => self.line.clone_from(reason),
            _ => {}
        }
    }

    /// The last line of it that says something, short enough for a list.
    pub(super) fn short(&self) -> String {
        let line = self.line.lines().rev().map(str::trim).find(|line| !line.is_empty());
        rows::plain(&cut(line.unwrap_or_default(), 200))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;

    #[test]
    fn pages_forwards_and_backwards_have_every_row_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let mut end = 0;
        for number in 0..1000 {
            let long = if number == 500 { "x".repeat(600_000) } else { String::new() };
            end = journal.append(Body::Loop(Fact::Notice { message: format!("{number} {long}") })).unwrap().end;
        }
        let texts = |page: &Value| -> Vec<String> {
            let rows = page["rows"].as_array().unwrap().iter();
            rows.map(|row| row["text"].as_str().unwrap().split(' ').next().unwrap().to_owned()).collect()
        };
        let all: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        let (mut forwards, mut from) = (Vec::new(), 0);
        while from < end {
            let page = after(&path, from, end, Limits::PAGE).unwrap();
            forwards.extend(texts(&page));
            from = page["to"].as_u64().unwrap();
        }
        assert_eq!(forwards, all);
        let (mut backwards, mut to) = (Vec::new(), end);
        while to > 0 {
            let page = before(&path, 0, to, Limits::PAGE).unwrap();
            let mut rows = texts(&page);
            rows.append(&mut backwards);
            backwards = rows;
            to = page["from"].as_u64().unwrap();
        }
        assert_eq!(backwards, all);
    }
}
