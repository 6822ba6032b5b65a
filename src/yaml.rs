//! YAML as a tree in which every key and value knows its place, so that each message can point at it.
//!
//! The only file that knows the YAML library. Its sentences never reach a user unchanged.

pub(crate) mod write;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::error::UserError;
use crate::nearest::nearest;

/// A value and where it is.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it begins.
    pub place: Place,
}

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Fraction(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in order.
    Map(Vec<Entry>),
}

/// One key of a mapping with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is.
    pub place: Place,
    /// The value.
    pub node: Node,
}

impl Value {
    /// What it is, in words.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Flag(_) => "true or false",
            Self::Whole(_) => "a whole number",
            Self::Fraction(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// Reads a document as a tree. `name` is the file as the user knows it.
pub fn parse(name: &str, text: &str) -> Result<Node, UserError> {
    read(name, text)
}

/// Reads a document that has a fixed form.
pub(crate) fn read<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, UserError> {
    serde_saphyr::from_str::<T>(text).map_err(|error| {
        let place = error.location().map_or_else(Place::default, |location| Place::from(&location));
        // What is a tree of values is YAML; then it is the form that is wrong.
        let fault = if serde_saphyr::from_str::<Node>(text).is_ok() { Fault::Form } else { Fault::Yaml };
        pointing(name, text, place, &sentence(&error.to_string(), fault))
    })
}

/// The text of a top key, whatever else is wrong with the form of a document.
pub(crate) fn text_at(text: &str, key: &str) -> Option<String> {
    let Value::Map(entries) = serde_saphyr::from_str::<Node>(text).ok()?.value else { return None };
    entries.into_iter().find(|entry| entry.key == key).and_then(|entry| match entry.node.value {
        Value::Text(text) => Some(text),
        _ => None,
    })
}

/// What is wrong with a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It cannot be read at all.
    Yaml,
    /// It says something else than it must.
    Form,
}

/// An error that shows the line with a caret under the place.
pub(crate) fn pointing(name: &str, text: &str, place: Place, message: &str) -> UserError {
    UserError::usage(format!("{message}\n{}", excerpt(name, text, place)))
}

/// The line with a caret under the place.
pub(crate) fn excerpt(name: &str, text: &str, place: Place) -> String {
    let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or("").replace('\t', " ");
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let caret = " ".repeat(place.column.saturating_sub(1));
    format!("{margin}--> {name}:{}:{}\n{margin} |\n{number} | {line}\n{margin} | {caret}^", place.line, place.column)
}

/// The library's own sentence without its drawing, its place and its programmer's advice.
fn sentence(text: &str, fault: Fault) -> String {
    let first = text.lines().next().unwrap_or(text);
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let first = match first.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest,
        _ => first,
    };
    let first = first.split(", set ").next().unwrap_or(first);
    if let Some((name, known)) = first.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        let known = known.trim_start_matches(", expected one of ").trim_start_matches(", expected ").replace('`', "");
        return match nearest(name, known.split(", ")) {
            Some(meant) => format!("unknown key `{name}`, did you mean `{meant}`?"),
            None => format!("unknown key `{name}`, known here: {known}"),
        };
    }
    match first.strip_prefix("missing field ") {
        Some(name) => format!("the key {name} is missing"),
        None if fault == Fault::Form => {
            // The library's words for what is in a file, in a person's words.
            let words =
                [("sequence start", "a list"), ("mapping start", "a mapping"), ("unknown variant", "unknown word")];
            let said = words.iter().fold(first.to_owned(), |said, (theirs, ours)| said.replace(theirs, ours));
            format!("wrong form: {said}")
        }
        None => format!("not valid YAML: {first}"),
    }
}

impl From<&serde_saphyr::Location> for Place {
    fn from(location: &serde_saphyr::Location) -> Self {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Self { line: number(location.line()), column: number(location.column()) }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { place: Place::from(&spanned.referenced), value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::Whole).map_err(|_| E::custom("the number is too large"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Fraction(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let place = Place::from(&key.referenced);
            if entries.iter().any(|entry| entry.key == key.value) {
                return Err(A::Error::custom(format!("duplicate key `{}`", key.value)));
            }
            entries.push(Entry { key: key.value, place, node: map.next_value()? });
        }
        Ok(Value::Map(entries))
    }
}
