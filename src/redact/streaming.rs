//! A stream without secrets: what may be the beginning of one is held back, but never more than a bound.

use std::borrow::Cow;
use std::sync::Arc;

use super::known::{KEY, Known, Scan};
use super::tokens::{End, Rest};
use super::{Redactor, key, word};

/// More is never held back: nothing that is longer is a token.
pub(super) const LONGEST_HELD: usize = 256 * 1024;

/// Something held back that is longer is looked at again only when something comes that ends a token.
const LONG: usize = 4096;

/// How much of what is gone is remembered: whether a word or a line continues depends on it.
const REMEMBERED: usize = 64;

/// Takes secrets out of a stream that comes in parts. What may be the beginning of a secret is held back.
#[derive(Clone, Debug)]
pub struct Streaming {
    known: Option<Arc<Known>>,
    pub(super) held: Vec<u8>,
    /// The last bytes that are no longer held.
    before: Vec<u8>,
    /// Inside a private key.
    key: Option<key::Body>,
    /// Inside a token that was already replaced.
    token: Option<(usize, Rest)>,
    /// How often something was taken out.
    taken: u64,
    /// Nothing in the last bytes even looked like a secret.
    clear: bool,
}

impl Streaming {
    /// A stream of its own.
    pub fn new(redactor: &Redactor) -> Self {
        let (held, before) = (Vec::new(), Vec::new());
        Self { known: redactor.0.clone(), held, before, key: None, token: None, taken: 0, clear: true }
    }

    /// Takes the next bytes and gives what is decided.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.pass(bytes, End::Open)
    }

    /// The stream is over: gives the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        let rest = self.pass(b"", End::Final).into_owned();
        (self.key, self.token) = (None, None);
        rest
    }

    /// True while something is held back, or left out.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty() || self.key.is_some() || self.token.is_some()
    }

    /// How often something was taken out so far.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// True when nothing in the last bytes even looked like a secret.
    pub(crate) const fn is_clear(&self) -> bool {
        self.clear
    }

    pub(super) fn pass<'a>(&mut self, bytes: &'a [u8], end: End) -> Cow<'a, [u8]> {
        let Some(known) = self.known.clone() else { return Cow::Borrowed(bytes) };
        let mut out = Vec::new();
        if self.held.is_empty() {
            if self.part(&known, bytes, end, &mut out) {
                return Cow::Borrowed(bytes);
            }
        } else {
            let in_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_+/=.~".contains(byte);
            let mut held = std::mem::take(&mut self.held);
            let is_long = held.len() > LONG && held.len() < LONGEST_HELD;
            held.extend_from_slice(bytes);
            if is_long && end == End::Open && bytes.iter().all(in_token) {
                self.held = held;
            } else if self.part(&known, &held, end, &mut out) {
                out = held;
            }
        }
        Cow::Owned(out)
    }

    /// Appends the decided part of the input without secrets; the rest is held. True: all of it, unchanged.
    fn part(&mut self, known: &Known, input: &[u8], end: End, out: &mut Vec<u8>) -> bool {
        let mut at = 0;
        self.clear = false;
        if let Some((owner, rest)) = self.token.take()
            && let Some(token) = known.token(owner)
        {
            let (length, rest) = token.go_on(rest, input, end);
            (at, self.token) = (length, rest.map(|rest| (owner, rest)));
        }
        if self.key.is_some() {
            at = self.skip_key(input, 0, end);
        }
        self.taken += u64::from(at > 0);
        if self.token.is_some() || self.key.is_some() {
            self.hold(input, at);
            return false;
        }
        let untouched = at == 0;
        loop {
            let first = at.saturating_sub(REMEMBERED);
            let before = if at == 0 { std::mem::take(&mut self.before) } else { input[first..at].to_vec() };
            let Scan { found, mut decided, clear } = known.scan(&input[at..], &before, end);
            self.clear = clear && at == 0;
            self.taken += found.len() as u64;
            if at == 0 {
                self.before = before;
            }
            if input.len() - at - decided > LONGEST_HELD {
                decided = input.len() - at;
            }
            if untouched && at == 0 && found.is_empty() && decided == input.len() {
                self.remember(input);
                return true;
            }
            let (base, mut copied, mut after_key) = (at, at, None);
            for found in found {
                out.extend_from_slice(&input[copied..base + found.start]);
                copied = base + found.end;
                put(known.name(found.owner), input, base + found.start, copied, out);
                self.token = found.rest.map(|rest| (found.owner, rest));
                if known.name(found.owner) == KEY {
                    self.key = Some(key::Body::default());
                    after_key = Some(self.skip_key(input, copied, end));
                    break;
                }
            }
            let Some(next) = after_key else {
                out.extend_from_slice(&input[copied..base + decided]);
                self.hold(input, base + decided);
                return false;
            };
            at = next;
            if self.key.is_some() || at == input.len() {
                self.hold(input, at);
                return false;
            }
        }
    }

    /// Skips the body of a private key, as far as it is here.
    fn skip_key(&mut self, input: &[u8], at: usize, end: End) -> usize {
        let Some(body) = &mut self.key else { return at };
        let (skipped, over) = body.skip(&input[at..], end);
        if over {
            self.key = None;
        }
        at + skipped
    }

    fn hold(&mut self, input: &[u8], from: usize) {
        self.held = input[from..].to_vec();
        self.remember(&input[..from]);
    }

    fn remember(&mut self, gone: &[u8]) {
        self.before.extend_from_slice(&gone[gone.len().saturating_sub(REMEMBERED)..]);
        let extra = self.before.len().saturating_sub(REMEMBERED);
        self.before.drain(..extra);
    }
}

/// Writes what replaces a secret. Where JSON has a number, a word needs quotes.
fn put(name: &str, input: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    let blank = |byte: &&u8| !byte.is_ascii_whitespace();
    let is_number = input[start..end].iter().all(u8::is_ascii_digit)
        && matches!(input[..start].iter().rev().find(blank), Some(b':' | b',' | b'['))
        && matches!(input[end..].iter().find(blank), Some(b'}' | b',' | b']'));
    let word = if is_number { format!("\"{}\"", word(name)) } else { word(name) };
    out.extend_from_slice(word.as_bytes());
}
