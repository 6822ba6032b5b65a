//! The raw bytes of a stream on their way to the raw file. Lines whose fragments may be parts of a secret wait, but never
//! more than a bound; those that are parts of one lose their text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::{memchr_iter, memmem, memrchr};

/// The beginning of a line of JSON waits for its end up to this length: lines with fragments are short.
const LONGEST_LINE: usize = 8 * 1024;

/// No more waits for a secret to be told from what only looks like one.
const MOST_WAITING: usize = 1024 * 1024;
/// The same for plain text, where a fragment has as many bytes as its text.
const MOST_PLAIN: usize = 128 * 1024;

/// What a line is replaced by when the fragment cannot be found in it.
const LINE: &[u8] = b"[redacted:line]";

/// The text of a fragment, and the line it came in, counted from the first that waits.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) line: usize,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Raw {
    most: usize,
    bytes: Vec<u8>,
    /// How many whole lines wait.
    lines: usize,
    waiting: Vec<Piece>,
}

/// Whether the fragments of the lines may still turn out to be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    No,
    Yes,
}

impl Raw {
    pub(super) const fn new(is_plain: bool) -> Self {
        let most = if is_plain { MOST_PLAIN } else { MOST_WAITING };
        Self { most, bytes: Vec::new(), lines: 0, waiting: Vec::new() }
    }

    /// How many whole lines wait.
    pub(super) const fn lines(&self) -> usize {
        self.lines
    }

    /// Takes the bytes of a burst; gives those that can be written.
    pub(super) fn pass<'a>(&mut self, clean: Cow<'a, [u8]>, verdict: super::Verdict, wait: Wait) -> Cow<'a, [u8]> {
        let is_plain = verdict.secret.is_empty() && !verdict.earlier && wait == Wait::No;
        if is_plain && self.bytes.is_empty() {
            let written = written(&clean);
            if written == clean.len() {
                return clean;
            }
            self.bytes.extend_from_slice(&clean[written..]);
            return match clean {
                Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..written]),
                Cow::Owned(mut bytes) => {
                    bytes.truncate(written);
                    Cow::Owned(bytes)
                }
            };
        }
        self.bytes.extend_from_slice(&clean);
        let mut secret = verdict.secret;
        if verdict.earlier {
            secret.append(&mut self.waiting);
        }
        self.redact(&secret);
        self.waiting.extend(verdict.waiting);
        if wait == Wait::Yes && self.bytes.len() <= self.most {
            self.lines = memchr_iter(b'\n', &self.bytes).count();
            return Cow::Owned(Vec::new());
        }
        self.waiting.clear();
        self.lines = 0;
        let rest = self.bytes.split_off(written(&self.bytes));
        Cow::Owned(std::mem::replace(&mut self.bytes, rest))
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn redact(&mut self, pieces: &[Piece]) {
        if pieces.is_empty() {
            return;
        }
        let numbers: BTreeSet<usize> = pieces.iter().map(|piece| piece.line).collect();
        let mut clean = Vec::with_capacity(self.bytes.len());
        for (number, line) in self.bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if !numbers.contains(&number) {
                clean.extend_from_slice(line);
                continue;
            }
            let mut line = line.to_vec();
            for piece in pieces.iter().filter(|piece| piece.line == number && !piece.text.is_empty()) {
                line = without(&line, &piece.text);
            }
            clean.extend_from_slice(&line);
        }
        self.bytes = clean;
    }
}

/// How much of the bytes can be written: all, but for the beginning of a line of JSON.
fn written(bytes: &[u8]) -> usize {
    let line = memrchr(b'\n', bytes).map_or(0, |end| end + 1);
    if bytes[line..].starts_with(b"{") && bytes.len() - line <= LONGEST_LINE { line } else { bytes.len() }
}

/// The line without the text of a fragment.
fn without(line: &[u8], text: &str) -> Vec<u8> {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    if let Some(at) = memmem::rfind(line, quoted.as_bytes()) {
        return [&line[..at], b"\"[redacted]\"", &line[at + quoted.len()..]].concat();
    }
    let end = if line.ends_with(b"\n") { &b"\n"[..] } else { b"" };
    [LINE, end].concat()
}
