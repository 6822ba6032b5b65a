//! Takes secrets out of everything before it leaves the program: values of secret-looking environment variables, and the
//! well-known shapes of tokens. What stands in their place, `[redacted:github-token]`, breaks neither JSON nor RTF1.
//!
//! It must never hold back more than a token, and never touch what is not one.

mod environment;
mod key;
mod record;
mod search;
mod shape;

use std::io;
use std::sync::Arc;

pub use record::Records;

use environment::{Secret, secrets};
use search::Literals;
use shape::{End, Fit, Shape, shapes};

/// What every private key begins with.
const KEY: &str = "private-key";

/// Knows all secrets. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redactor(Option<Arc<Known>>);

#[derive(Debug)]
struct Known {
    /// In this order: forms of known values, the beginning of a private key, shapes.
    literals: Literals,
    secrets: Vec<Secret>,
    shapes: Vec<Shape>,
}

/// A secret in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found<'a> {
    start: usize,
    end: usize,
    name: &'a str,
    /// A private key may go on behind it.
    key: bool,
}

impl Redactor {
    /// Hides the secrets among these variables, and everything that looks like a token.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let (secrets, shapes) = (secrets(variables), shapes());
        let literals = secrets.iter().map(|secret| secret.bytes.clone());
        let literals = literals.chain([key::BEGIN.to_vec()]).chain(shapes.iter().map(|shape| shape.literal.clone()));
        Self(Some(Arc::new(Known { literals: Literals::new(literals.collect()), secrets, shapes })))
    }

    /// Hides what is secret in ralph's own environment.
    pub fn of_environment() -> Self {
        let text = |text: std::ffi::OsString| text.into_string().ok();
        Self::new(std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// Hides nothing.
    pub const fn off() -> Self {
        Self(None)
    }

    /// The text without secrets; `None` when there are none in it.
    pub fn text(&self, text: &str) -> Option<String> {
        Streaming::new(self).part(text.as_bytes(), End::Final).map(into_text)
    }

    /// Takes the secrets out of a text.
    pub fn clean(&self, text: &mut String) {
        if let Some(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// Takes the secrets out of all strings of a JSON value, keys included.
    pub fn clean_value(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.clean(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            serde_json::Value::Object(object) => self.clean_object(object),
            _ => {}
        }
    }

    /// The same for an object.
    pub fn clean_object(&self, object: &mut crate::event::Object) {
        if object.keys().any(|key| self.text(key).is_some()) {
            *object = std::mem::take(object)
                .into_iter()
                .map(|(key, value)| (self.text(&key).unwrap_or(key), value))
                .collect();
        }
        object.values_mut().for_each(|value| self.clean_value(value));
    }

    /// Puts the values of variables back where they were taken out. The rest stays as it is.
    pub fn restore(&self, text: &str, variable: impl Fn(&str) -> Option<String>) -> String {
        let mut restored = text.to_owned();
        for name in self.0.iter().flat_map(|known| known.secrets.iter().map(|secret| &secret.name)) {
            let word = word(name);
            if restored.contains(&word)
                && let Some(value) = variable(name)
            {
                restored = restored.replace(&word, &value);
            }
        }
        restored
    }
}

/// What stands in place of a secret.
fn word(name: &str) -> String {
    format!("[redacted:{name}]")
}

/// Replacements begin and end between characters; whatever else the bytes are, they stay readable.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Known {
    /// The secrets of the input, and how far it is decided.
    fn scan(&self, input: &[u8], before: &[u8], end: End) -> (Vec<Found<'_>>, usize) {
        let mut decided = match end {
            End::Final => input.len(),
            End::Open => self.literals.begun(input).unwrap_or(input.len()),
        };
        let mut found: Vec<Found<'_>> = Vec::new();
        for hit in self.literals.find(input) {
            if hit.start >= decided || found.last().is_some_and(|last| hit.start < last.end) {
                continue;
            }
            let (name, fit) = match hit.literal.checked_sub(self.secrets.len()) {
                None => {
                    let secret = &self.secrets[hit.literal];
                    (secret.name.as_str(), Fit::To(hit.start + secret.bytes.len()))
                }
                Some(0) => (KEY, key::header(input, hit.start, end)),
                Some(shape) => {
                    let shape = &self.shapes[shape - 1];
                    (shape.name, shape.fit(input, hit.start, before, end))
                }
            };
            match fit {
                Fit::No => {}
                Fit::Unknown => decided = hit.start,
                Fit::To(end) => found.push(Found { start: hit.start, end, name, key: name == KEY }),
            }
        }
        found.retain(|found| found.start < decided);
        (found.clone(), found.last().map_or(decided, |last| decided.max(last.end)))
    }
}

/// Takes secrets out of a stream that comes in parts. What may be the beginning of a secret is held back.
#[derive(Debug)]
pub struct Streaming {
    known: Option<Arc<Known>>,
    held: Vec<u8>,
    /// The last bytes that are no longer held: whether a word goes on depends on them.
    before: Vec<u8>,
    /// Inside a private key.
    key: Option<key::Body>,
}

impl Streaming {
    /// A stream of its own.
    pub fn new(redactor: &Redactor) -> Self {
        Self { known: redactor.0.clone(), held: Vec::new(), before: Vec::new(), key: None }
    }

    /// Takes the next bytes and writes what is decided. Says how much was written.
    pub fn write(&mut self, bytes: &[u8], out: &mut impl io::Write) -> io::Result<usize> {
        self.pass(bytes, End::Open, out)
    }

    /// The stream is over: writes the rest.
    pub fn finish(&mut self, out: &mut impl io::Write) -> io::Result<usize> {
        let written = self.pass(b"", End::Final, out);
        self.key = None;
        written
    }

    /// True while something is held back.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    fn pass(&mut self, bytes: &[u8], end: End, out: &mut impl io::Write) -> io::Result<usize> {
        let joined;
        let input = if self.held.is_empty() {
            bytes
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            joined = held;
            &joined
        };
        match self.part(input, end) {
            Some(clean) => out.write_all(&clean).map(|()| clean.len()),
            None => out.write_all(input).map(|()| input.len()),
        }
    }

    /// The decided part of the input without secrets; the rest is held. `None`: all of it, unchanged.
    fn part(&mut self, input: &[u8], end: End) -> Option<Vec<u8>> {
        let known = Arc::clone(self.known.as_ref()?);
        let mut out = Vec::new();
        let mut at = 0;
        if self.key.is_some() {
            at = self.skip_key(input, 0, end);
            if self.key.is_some() && at < input.len() {
                return self.hold(input, at, out);
            }
        }
        let untouched = at == 0;
        loop {
            let before = if at == 0 { self.before.clone() } else { input[at.saturating_sub(2)..at].to_vec() };
            let (found, decided) = known.scan(&input[at..], &before, end);
            if untouched && at == 0 && found.is_empty() && decided == input.len() {
                self.remember(input);
                return None;
            }
            let (base, mut copied) = (at, at);
            let mut after_key = None;
            for found in found {
                out.extend_from_slice(&input[copied..base + found.start]);
                out.extend_from_slice(word(found.name).as_bytes());
                copied = base + found.end;
                if found.key {
                    self.key = Some(key::Body::default());
                    after_key = Some(self.skip_key(input, copied, end));
                    break;
                }
            }
            let Some(next) = after_key else {
                out.extend_from_slice(&input[copied..base + decided]);
                return self.hold(input, base + decided, out);
            };
            at = next;
            if self.key.is_some() || at == input.len() {
                return self.hold(input, at, out);
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

    #[expect(clippy::unnecessary_wraps, reason = "the answer of its caller")]
    fn hold(&mut self, input: &[u8], from: usize, out: Vec<u8>) -> Option<Vec<u8>> {
        self.held = input[from..].to_vec();
        self.remember(&input[..from]);
        Some(out)
    }

    fn remember(&mut self, gone: &[u8]) {
        if gone.len() >= 2 {
            self.before.clear();
        }
        self.before.extend_from_slice(&gone[gone.len().saturating_sub(2)..]);
        let extra = self.before.len().saturating_sub(2);
        self.before.drain(..extra);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
