//! Bytes into bounded lines.
//!
//! A line that fits in one chunk is handed on without a copy. Memory never grows past the cap: a longer
//! line is handed on in small parts, marked as such, and the line after it is whole again.

use std::borrow::Cow;

use memchr::memchr;

/// Longest line that is handed on in one part, unless configured otherwise.
pub(crate) const DEFAULT_LINE_CAP: usize = 16 * 1024 * 1024;

/// The longest part of a line that is longer than the cap. Whoever takes the parts copies each of them several times.
const LONGEST_PART: usize = 256 * 1024;

/// How many of them are handed on at once.
const PARTS_AT_ONCE: usize = 2;

/// Where a handed-on piece is in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The line in full.
    Whole,
    /// The beginning of a line longer than the cap.
    First,
    /// More of it.
    Middle,
    /// Its end.
    Last,
}

/// One line of output, without its line ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The bytes; any bytes.
    pub bytes: &'a [u8],
    /// Which part of the line this is.
    pub part: Part,
    /// False for the last line of a stream that ends without a newline.
    pub terminated: bool,
}

impl<'a> Line<'a> {
    /// A whole line.
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, part: Part::Whole, terminated: true }
    }

    /// The text, with the replacement character for what is no UTF-8.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        // Nearly all text is whole, and that can be checked many times faster than it can be repaired.
        std::str::from_utf8(self.bytes).map_or_else(|_| String::from_utf8_lossy(self.bytes), Cow::Borrowed)
    }
}

/// Splits one stream. Feed it chunks with [`Lines::push`], then call [`Lines::finish`] once.
#[derive(Debug)]
pub struct Lines {
    held: Vec<u8>,
    /// How much of `held` was handed on.
    taken: usize,
    cap: usize,
    /// The line under way has already been handed on in part.
    cutting: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(DEFAULT_LINE_CAP)
    }
}

impl Lines {
    /// A splitter that hands on at most `cap` bytes at once.
    pub fn new(cap: usize) -> Self {
        Self { held: Vec::new(), taken: 0, cap: cap.max(1), cutting: false }
    }

    /// Hands on at most `cap` bytes at once from now on.
    pub(crate) fn set_cap(&mut self, cap: usize) {
        self.cap = cap.max(self.waiting()).max(1);
    }

    /// Takes the next bytes of the stream and hands on each line that they finish.
    pub fn push(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            chunk = rest;
            if self.held.is_empty() && line.len() <= self.limit() {
                let part = self.closing_part();
                each(Line { bytes: without_return(line), part, terminated: true });
            } else {
                self.hold(line, &mut each);
                if self.cutting {
                    self.hand_on(usize::MAX, &mut each);
                }
                let part = self.closing_part();
                each(Line { bytes: without_return(&self.held[self.taken..]), part, terminated: true });
                self.release();
            }
        }
        self.hold(chunk, &mut each);
    }

    /// The stream is over: hands on what is left.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        if !self.held.is_empty() || self.cutting {
            if self.cutting {
                self.hand_on(usize::MAX, &mut each);
            }
            let part = self.closing_part();
            each(Line { bytes: &self.held[self.taken..], part, terminated: false });
            self.release();
        }
    }

    fn closing_part(&mut self) -> Part {
        if std::mem::take(&mut self.cutting) { Part::Last } else { Part::Whole }
    }

    /// How much may be held: a line that may still be whole waits for its end.
    fn limit(&self) -> usize {
        if self.cutting { self.cap.min(LONGEST_PART) } else { self.cap }
    }

    fn waiting(&self) -> usize {
        self.held.len() - self.taken
    }

    /// Keeps bytes of an unfinished line. When there are too many, they are handed on, but only a few parts at a time: whoever takes
    /// them keeps what comes of one call.
    fn hold(&mut self, bytes: &[u8], each: &mut impl FnMut(Line<'_>)) {
        for bytes in bytes.chunks(LONGEST_PART.min(self.cap)) {
            self.held.extend_from_slice(bytes);
            if self.waiting() > self.limit() {
                self.hand_on(PARTS_AT_ONCE, each);
            }
        }
    }

    /// Hands on whole parts of a line that is longer than the cap; at least one byte of it stays.
    fn hand_on(&mut self, most: usize, each: &mut impl FnMut(Line<'_>)) {
        let length = LONGEST_PART.min(self.cap);
        for _ in 0..most {
            if self.waiting() <= length {
                break;
            }
            let which = if std::mem::replace(&mut self.cutting, true) { Part::Middle } else { Part::First };
            let bytes = &self.held[self.taken..self.taken + length];
            each(Line { bytes, part: which, terminated: false });
            self.taken += length;
        }
        if self.waiting() <= length {
            self.held.drain(..self.taken);
            self.taken = 0;
            self.shrink(4 * LONGEST_PART);
        }
    }

    /// One long line must not hold its memory for the rest of the run.
    fn release(&mut self) {
        self.held.clear();
        self.taken = 0;
        self.shrink(LONGEST_PART);
    }

    fn shrink(&mut self, most: usize) {
        if self.held.capacity() > most {
            self.held.shrink_to(64 * 1024);
        }
    }
}

/// A line that ended in CR LF has neither.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
