//! Takes secrets out of everything before it leaves the program: known values in every form, and the shapes of well-known
//! tokens. What is in their place, `[redacted:github-token]`, breaks neither JSON nor RTF1.
//!
//! It must never hold back more than a token, and never touch what is not one.

mod anchors;
mod flat;
mod forms;
mod key;
mod known;
mod streaming;
mod tokens;
mod values;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use known::Known;
use tokens::End;

pub use streaming::Streaming;

/// Output without secrets. Only the redaction makes it, and nothing else can be written or shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clean<T>(T);

impl<T> Clean<T> {
    /// What is inside.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// As the user has asked for: `journal.raw: exact`.
    pub(crate) const fn exact(exact: T) -> Self {
        Self(exact)
    }

    /// For the parts of the redaction: `stream` takes secrets out of events.
    pub(crate) const fn made(clean: T) -> Self {
        Self(clean)
    }
}

impl<T> std::ops::Deref for Clean<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Knows all secrets. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redactor(Option<Arc<Known>>);

/// What this process has read in its configuration and hands to others. It is kept in one place for the whole process, so
/// that no warning, error or view can be made without it.
static LEARNED: Mutex<Learned> = Mutex::new(Learned { values: Vec::new(), redactor: None });

struct Learned {
    values: Vec<(String, String)>,
    /// Made of them and the environment, once someone has asked for it.
    redactor: Option<Redactor>,
}

fn learned() -> MutexGuard<'static, Learned> {
    LEARNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values that the configuration hands to a child: from now on they are secret, but for plain words.
pub(crate) fn learn(values: impl IntoIterator<Item = (String, String)>) {
    let mut learned = learned();
    for value in values {
        if !learned.values.contains(&value) {
            learned.values.push(value);
            learned.redactor = None;
        }
    }
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Variables of ralph's own environment: most of them are public.
    Environment,
    /// The user's configuration: nobody writes what is public there, but for plain words.
    Configuration,
}

impl Redactor {
    /// Hides the secrets among these variables, and everything that looks like a token.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self::with(variables.into_iter().map(|(name, value)| (Source::Environment, name, value)))
    }

    /// Hides the secrets among these values, and everything that looks like a token.
    pub(crate) fn with(values: impl IntoIterator<Item = (Source, String, String)>) -> Self {
        Self(Some(Arc::new(Known::new(values))))
    }

    /// Hides what is secret in ralph's own environment, and in what it has read in its configuration.
    pub(crate) fn of_process() -> Self {
        let mut learned = learned();
        if let Some(made) = &learned.redactor {
            return made.clone();
        }
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let variables = variables.map(|(name, value)| (Source::Environment, name, value));
        let configured = learned.values.iter().cloned().map(|(name, value)| (Source::Configuration, name, value));
        let made = Self::with(variables.chain(configured));
        learned.redactor = Some(made.clone());
        made
    }

    /// Hides nothing.
    pub const fn off() -> Self {
        Self(None)
    }

    /// The text without secrets; `None` when there are none in it.
    pub fn text(&self, text: &str) -> Option<String> {
        // Nearly every text has nothing that even looks like one.
        if self.0.as_ref().is_none_or(|known| known.is_clear(text.as_bytes())) {
            return None;
        }
        match Streaming::new(self).pass(text.as_bytes(), End::Final) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(into_text(clean)),
        }
    }

    /// Takes the secrets out of a text.
    pub(crate) fn clean(&self, text: &mut String) {
        if let Some(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// Takes the secrets out of all strings of a JSON value, keys included.
    pub(crate) fn clean_value(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.clean(text),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            serde_json::Value::Object(object) => self.clean_object(object),
            _ => {}
        }
    }

    /// The same for an object.
    pub(crate) fn clean_object(&self, object: &mut crate::event::Object) {
        if object.keys().any(|key| self.text(key).is_some()) {
            *object = std::mem::take(object)
                .into_iter()
                .map(|(key, value)| (self.text(&key).unwrap_or(key), value))
                .collect();
        }
        object.values_mut().for_each(|value| self.clean_value(value));
    }
}

/// What replaces a secret.
pub(crate) fn word(name: &str) -> String {
    format!("[redacted:{name}]")
}

/// Replacements begin and end between characters; whatever else the bytes are, they stay readable.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
