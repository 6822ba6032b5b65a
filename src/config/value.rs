//! What a setting can hold. A type says once how it is read, shown, written and described; a structured value says it
//! in a file of its own.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::reading::Reading;
use crate::duration;
use crate::error::UserError;
use crate::signals::promise::Match;
use crate::yaml::{Node, Value};

/// A type that a setting can hold.
pub(crate) trait SettingValue: Sized {
    /// Reads it; a mistake points at its place. `key` is the whole key, for messages. The node is never null.
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError>;

    /// Reads it as an item of a list, where more may be allowed.
    fn read_item(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        Self::read(reading, node, key)
    }

    fn shown(&self) -> String;

    /// As it is in the file, so that reading it gives the same value; null when there is none.
    fn written(&self) -> Json;

    /// The JSON schema of what can be read.
    fn schema() -> Json;
}

impl SettingValue for bool {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match node.value {
            Value::Flag(flag) => Ok(flag),
            _ => Err(reading.expected(node, key, "true or false")),
        }
    }

    fn shown(&self) -> String {
        self.to_string()
    }

    fn written(&self) -> Json {
        json!(self)
    }

    fn schema() -> Json {
        json!({"type": "boolean"})
    }
}

/// Numbers of things: 1 or more; what is beyond the type is as much as the type can say.
macro_rules! counts {
    ($($type:ty)*) => {$(
        impl SettingValue for $type {
            fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
                match node.value {
                    Value::Whole(number) if number > 0 => Ok(Self::try_from(number).unwrap_or(Self::MAX)),
                    Value::Whole(_) => Err(reading.wrong(node, &format!("`{key}` must be 1 or more"))),
                    _ => Err(reading.expected(node, key, "a whole number")),
                }
            }

            fn shown(&self) -> String {
                self.to_string()
            }

            fn written(&self) -> Json {
                json!(self)
            }

            fn schema() -> Json {
                json!({"type": "integer", "minimum": 1})
            }
        }
    )*};
}

counts! { u32 u64 usize }

impl SettingValue for String {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match Self::read_item(reading, node, key)? {
            text if text.trim().is_empty() => Err(reading.wrong(node, &format!("`{key}` must not be empty"))),
            text => Ok(text),
        }
    }

    fn read_item(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Whole(number) => Ok(number.to_string()),
            _ => Err(reading.expected(node, key, "text")),
        }
    }

    fn shown(&self) -> String {
        self.clone()
    }

    fn written(&self) -> Json {
        json!(self)
    }

    fn schema() -> Json {
        json!({"type": "string"})
    }
}

/// A path is relative to the file that names it.
impl SettingValue for PathBuf {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        String::read(reading, node, key).map(|path| reading.beside(&path))
    }

    fn shown(&self) -> String {
        self.display().to_string()
    }

    fn written(&self) -> Json {
        json!(std::path::absolute(self).as_ref().unwrap_or(self).to_string_lossy())
    }

    fn schema() -> Json {
        String::schema()
    }
}

/// A time: `10m`, `1h30m`, or a number of seconds. 0 turns off what it bounds.
impl SettingValue for Duration {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let text = match &node.value {
            Value::Whole(seconds) => seconds.to_string(),
            Value::Text(text) => text.clone(),
            _ => return Err(reading.expected(node, key, &format!("{}, or seconds", duration::FORM))),
        };
        let wrong = || reading.wrong(node, &format!("`{key}` must be {}, or seconds, found `{text}`", duration::FORM));
        duration::parse(&text).ok_or_else(wrong)
    }

    fn shown(&self) -> String {
        if self.is_zero() { "none".to_owned() } else { duration::shown(*self) }
    }

    fn written(&self) -> Json {
        if self.subsec_nanos() == 0 { json!(self.as_secs()) } else { json!(duration::shown(*self)) }
    }

    fn schema() -> Json {
        json!({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]"}]})
    }
}

impl<T: SettingValue> SettingValue for Vec<T> {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let Value::List(nodes) = &node.value else { return Err(reading.expected(node, key, "a list")) };
        nodes.iter().enumerate().map(|(at, node)| T::read_item(reading, node, &format!("{key}[{at}]"))).collect()
    }

    fn shown(&self) -> String {
        let items: Vec<String> = self.iter().map(T::shown).collect();
        if items.is_empty() { "not set".to_owned() } else { items.join(" ") }
    }

    fn written(&self) -> Json {
        self.iter().map(T::written).collect()
    }

    fn schema() -> Json {
        json!({"type": "array", "items": T::schema()})
    }
}

/// What need not be there.
impl<T: SettingValue> SettingValue for Option<T> {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        T::read(reading, node, key).map(Some)
    }

    fn shown(&self) -> String {
        self.as_ref().map_or_else(|| "not set".to_owned(), T::shown)
    }

    fn written(&self) -> Json {
        self.as_ref().map_or(Json::Null, T::written)
    }

    fn schema() -> Json {
        T::schema()
    }
}

/// One of a few words: the enum and its words, once.
macro_rules! words {
    ($type:ty { $($word:literal => $variant:ident),* $(,)? }) => {
        impl $crate::config::value::SettingValue for $type {
            fn read(
                reading: &mut $crate::config::reading::Reading<'_>,
                node: &$crate::yaml::Node,
                key: &str,
            ) -> Result<Self, $crate::error::UserError> {
                match <String as $crate::config::value::SettingValue>::read(reading, node, key)?.as_str() {
                    $($word => Ok(Self::$variant),)*
                    other => {
                        let known = [$($word),*].join(", ");
                        Err(reading.wrong(node, &format!("`{key}` must be one of {known}, found `{other}`")))
                    }
                }
            }

            fn shown(&self) -> String {
                match self {
                    $(Self::$variant => $word.to_owned(),)*
                }
            }

            fn written(&self) -> serde_json::Value {
                serde_json::json!(self.shown())
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({"enum": [$($word),*]})
            }
        }
    };
}

pub(super) use words;

/// Who is at the keys of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    Autonomous,
    Interactive,
}

words! { RunMode { "autonomous" => Autonomous, "interactive" => Interactive } }

/// How raw files are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawBytes {
    Redacted,
    Exact,
}

words! { RawBytes { "redacted" => Redacted, "exact" => Exact } }

words! { Match { "last-line" => LastLine, "any-line" => AnyLine, "anywhere" => Anywhere } }

/// Text of one line, such as a completion marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneLine(pub String);

impl SettingValue for OneLine {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match String::read(reading, node, key)? {
            text if text.trim().contains('\n') => Err(reading.wrong(node, &format!("`{key}` must be one line"))),
            text => Ok(Self(text)),
        }
    }

    fn shown(&self) -> String {
        self.0.clone()
    }

    fn written(&self) -> Json {
        json!(self.0)
    }

    fn schema() -> Json {
        String::schema()
    }
}
