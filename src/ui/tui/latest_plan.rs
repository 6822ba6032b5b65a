//! The newest plan of the run, from whichever iteration: found from the end of the journal backwards, a page at a time.

use std::time::{Duration, Instant};

use super::index::Index;
use crate::event::{Event, Known, TodoItem};
use crate::journal::{Body, Record};

/// What a line of the journal with a plan has.
const MARK: &[u8] = br#""kind":"todo""#;

#[derive(Debug, Default)]
pub(crate) struct LatestPlan {
    pub items: Vec<TodoItem>,
    /// The iteration that made it.
    pub iteration: u32,
    /// The journal was looked through up to here.
    seen: u64,
    /// The page that is looked at next, and how far the journal was known then.
    next: Option<(usize, u64)>,
}

impl LatestPlan {
    /// Looks on for at most this long; true when there is more to look at.
    pub(crate) fn advance(&mut self, index: &Index, patience: Duration) -> bool {
        let start = Instant::now();
        if self.next.is_none() && index.known() > self.seen {
            self.next = Some((index.page_count().saturating_sub(1), index.known()));
        }
        while let Some((page, known)) = self.next {
            let range = index.page(page);
            let from = range.start.max(self.seen);
            let bytes = index.bytes(from..range.end.min(known).max(from)).unwrap_or_default();
            let is_found = self.look(&bytes);
            self.next = page.checked_sub(1).filter(|_| !is_found && range.start > self.seen).map(|page| (page, known));
            if self.next.is_none() {
                self.seen = known;
            } else if start.elapsed() > patience {
                return true;
            }
        }
        false
    }

    /// Takes the newest plan of some lines.
    fn look(&mut self, bytes: &[u8]) -> bool {
        let mut end = bytes.len();
        while let Some(at) = memchr::memmem::rfind(&bytes[..end], MARK) {
            let from = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
            let to = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |newline| at + newline);
            // An agent may also talk about such a line.
            if let Ok(Record { body: Body::Agent { iteration, event: Event::Meta { meta }, .. }, .. }) =
                Record::read_line(&bytes[from..to])
                && let Some(Known::Todo { items }) = meta.known()
            {
                (self.items, self.iteration) = (items, iteration);
                return true;
            }
            end = from;
        }
        false
    }
}
