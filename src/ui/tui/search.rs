//! Searching through the whole run, one page after the other, in small steps; it continues where it began when it comes
//! to the end.

use std::time::{Duration, Instant};

use super::index::Index;
use super::scroll::Place;
use super::theme::Theme;
use super::transcript::Transcript;

/// What is looked for. A word in small letters finds capitals, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    words: String,
    exact: bool,
}

impl Query {
    pub(crate) fn new(words: &str) -> Self {
        Self { words: words.to_owned(), exact: words.chars().any(char::is_uppercase) }
    }

    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// True when there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Where a text has it first, from an offset on.
    pub(crate) fn find(&self, text: &str, from: usize) -> Option<(usize, usize)> {
        if self.words.is_empty() {
            return None;
        }
        let rest = text.get(from..)?;
        if self.exact {
            return rest.find(&self.words).map(|at| (from + at, from + at + self.words.len()));
        }
        let here = |at: usize| Some((from + at, from + at + begins_with(&rest[at..], &self.words)?));
        match self.words.as_bytes()[0] {
            // Most words are plain ASCII: only where their first letter is is looked closer.
            first if self.words.is_ascii() => {
                memchr::memchr2_iter(first, first.to_ascii_uppercase(), rest.as_bytes()).find_map(here)
            }
            _ => rest.char_indices().find_map(|(at, _)| here(at)),
        }
    }

    /// True when a text has it.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.find(text, 0).is_some()
    }
}

/// How long the beginning of a text is that equals the words, capitals or not.
fn begins_with(text: &str, words: &str) -> Option<usize> {
    if words.is_ascii() {
        let beginning = text.as_bytes().get(..words.len())?;
        return beginning.eq_ignore_ascii_case(words.as_bytes()).then_some(words.len());
    }
    let mut letters = text.char_indices();
    for wanted in words.chars() {
        let (_, found) = letters.next()?;
        if !found.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    Some(letters.next().map_or(text.len(), |(at, _)| at))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    /// Towards the beginning.
    Backward,
}

#[derive(Debug)]
pub(crate) struct Search {
    pub direction: Direction,
    /// The page that is looked at next.
    page: usize,
    /// How many pages are left.
    left: usize,
    all: usize,
    /// Where it began, until that page was looked at.
    from: Option<Place>,
    /// Where it began.
    pub origin: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchStep {
    /// On this entry, at this place.
    At(usize, Place),
    /// This many percent were looked at.
    NotYet(usize),
    Nowhere,
}

impl Search {
    /// Begins behind, or before, a place.
    pub(crate) fn new(direction: Direction, from: Place, index: &Index) -> Self {
        let all = index.page_count() + 1;
        Self { direction, page: from.page, left: all, all, from: Some(from), origin: from }
    }

    /// Looks on for at most this long.
    pub(crate) fn advance(
        &mut self,
        query: &Query,
        transcript: &mut Transcript,
        index: &Index,
        theme: &Theme,
        patience: Duration,
    ) -> SearchStep {
        let start = Instant::now();
        loop {
            if self.left == 0 || query.is_empty() {
                return SearchStep::Nowhere;
            }
            if let Some(place) = self.look(query, transcript, index, theme) {
                return SearchStep::At(index.entry_of(place.page), place);
            }
            let count = index.page_count();
            self.left -= 1;
            self.page = match self.direction {
                Direction::Forward => (self.page + 1) % count,
                Direction::Backward => (self.page + count - 1) % count,
            };
            if start.elapsed() > patience {
                return SearchStep::NotYet((self.all - self.left) * 100 / self.all);
            }
        }
    }

    fn look(&mut self, query: &Query, transcript: &mut Transcript, index: &Index, theme: &Theme) -> Option<Place> {
        let mut entry = transcript.of(index, theme, index.entry_of(self.page));
        let mut blocks = entry.blocks_with(self.page, |text| query.is_in(text));
        let from = self.from.take();
        if self.direction == Direction::Backward {
            blocks.reverse();
        }
        for block in blocks {
            let (place, rows) = entry.rows_of(self.page, block);
            let hits = |rows: &[super::rows::Row]| -> Vec<usize> {
                rows.iter().enumerate().filter(|(_, row)| query.is_in(&row.text())).map(|(at, _)| at).collect()
            };
            let mut found = hits(&rows);
            if found.is_empty() {
                // It is folded away, or broken between two rows.
                entry.open(self.page, block);
                let (_, rows) = entry.rows_of(self.page, block);
                found = hits(&rows);
            }
            if found.is_empty() {
                found.push(0);
            }
            if self.direction == Direction::Backward {
                found.reverse();
            }
            let place = |row: usize| Place { row: place.row + row, ..place };
            let found = found.into_iter().map(place).find(|place| match (from, self.direction) {
                (None, _) => true,
                (Some(from), Direction::Forward) => *place > from,
                (Some(from), Direction::Backward) => *place < from,
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// Which of how many places the one in sight is: `3/17`. Counted page by page, in small steps.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The place that was found.
    at: Place,
    /// How many there are up to that place.
    number: usize,
    total: usize,
    /// The page that is counted next.
    page: usize,
    is_complete: bool,
}

impl Tally {
    pub(crate) const fn new(at: Place) -> Self {
        Self { at, number: 0, total: 0, page: 0, is_complete: false }
    }

    /// The next place, or the one before, when it was searched for from the last one.
    pub(crate) fn moved(self, from: Place, at: Place, direction: Direction) -> Self {
        if !self.is_complete || self.at != from || self.total == 0 {
            return Self::new(at);
        }
        let number = match direction {
            Direction::Forward => self.number % self.total + 1,
            Direction::Backward => (self.number + self.total - 2) % self.total + 1,
        };
        Self { at, number, ..self }
    }

    /// Counts on for at most this long; true when there is more to count.
    pub(crate) fn advance(
        &mut self,
        query: &Query,
        transcript: &mut Transcript,
        index: &Index,
        theme: &Theme,
        patience: Duration,
    ) -> bool {
        let start = Instant::now();
        while !self.is_complete {
            let mut entry = transcript.of(index, theme, index.entry_of(self.page));
            let hits = entry.hits(self.page, query);
            self.total += hits.len();
            if self.page < self.at.page {
                self.number += hits.len();
            } else if self.page == self.at.page {
                let here = entry.row_at(self.at);
                self.number += hits.iter().filter(|hit| **hit <= here).count();
            }
            self.page += 1;
            self.is_complete = self.page >= index.page_count();
            if start.elapsed() > patience {
                break;
            }
        }
        !self.is_complete
    }

    pub(crate) fn words(&self) -> String {
        if !self.is_complete {
            return format!("found, counting: {} so far", self.total);
        }
        format!("{}/{}", self.number.max(1), self.total.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_letters_find_capitals_and_capitals_only_themselves() {
        assert_eq!(Query::new("straße").find("Die STRASSE, die Straße", 0), Some((17, 24)));
        assert_eq!(Query::new("todo").find("tö a TODO", 0), Some((6, 10)));
        assert_eq!(Query::new("todo").find("a todO", 3), None);
        assert_eq!(Query::new("Todo").find("a TODO", 0), None);
        assert_eq!(Query::new("").find("a", 0), None);
        assert_eq!(Query::new("a").find("bab", 2), None);
    }
}
