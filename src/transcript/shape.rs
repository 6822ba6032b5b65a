//! Borrowed pieces of JSON that the dialects share, so that a line is read in one pass and text is copied
//! once. Nothing here may build a tree of values on a path that every line takes.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::Object;

/// A string that borrows from the line unless it has escapes. `Option<Cow<str>>` would always copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Text<'_> {
    /// The text as a string of its own.
    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

/// A field that may have any shape: one that does not fit is as good as absent.
#[derive(Clone, Debug)]
pub(crate) struct Maybe<T>(pub Option<T>);

// Not derived: a missing field must not ask `T` for a default.
impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de: 'a, 'a, T: Deserialize<'a>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: &'a RawValue = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}

/// The value of `type`, without reading the rest where it is first, as it does in every dialect.
pub(crate) fn kind(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, default)]
        r#type: Maybe<Text<'a>>,
    }
    if let Some(rest) = json.strip_prefix("{\"type\":\"")
        && let Some(end) = memchr::memchr2(b'"', b'\\', rest.as_bytes())
        && rest.as_bytes()[end] == b'"'
    {
        return Some(Cow::Borrowed(&rest[..end]));
    }
    serde_json::from_str::<Typed<'_>>(json).ok()?.r#type.0.map(|text| text.0)
}

/// A tool's input as the object that events carry. What is no object is kept under `input`.
pub(crate) fn input(raw: Option<&RawValue>) -> Option<Object> {
    match serde_json::from_str(raw?.get()) {
        Ok(Value::Object(object)) => Some(object),
        Ok(Value::Null) | Err(_) => None,
        Ok(other) => Some(Object::from_iter([("input".to_owned(), other)])),
    }
}

/// What a tool printed, read in one pass where it is a string.
#[derive(Debug)]
pub(crate) enum Output<'a> {
    Text(Cow<'a, str>),
    /// Blocks, objects, numbers.
    Other(Value),
}

impl Default for Output<'_> {
    fn default() -> Self {
        Self::Text(Cow::Borrowed(""))
    }
}

impl Output<'_> {
    pub(crate) fn into_string(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            Self::Other(value) => flatten_value(&value),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Output<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Output<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("any output")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Output<'de>, E> {
                Ok(Output::Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Output<'de>, E> {
                Ok(Output::Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E>(self) -> Result<Output<'de>, E> {
                Ok(Output::default())
            }

            fn visit_bool<E>(self, value: bool) -> Result<Output<'de>, E> {
                Ok(Output::Other(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Output<'de>, E> {
                Ok(Output::Other(value.into()))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Output<'de>, E> {
                Ok(Output::Other(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Output<'de>, E> {
                Ok(Output::Other(value.into()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, items: A) -> Result<Output<'de>, A::Error> {
                Value::deserialize(serde::de::value::SeqAccessDeserializer::new(items)).map(Output::Other)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, fields: A) -> Result<Output<'de>, A::Error> {
                Value::deserialize(serde::de::value::MapAccessDeserializer::new(fields)).map(Output::Other)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Text out of what a dialect calls content: a string, a list of blocks, an object with `text`; anything
/// else as the JSON it is.
pub(crate) fn flatten(raw: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str::<Text<'_>>(raw.get()) {
        return text.into_string();
    }
    serde_json::from_str::<Value>(raw.get()).map(|value| flatten_value(&value)).unwrap_or_default()
}

/// As [`flatten`], for a value that is already read.
pub(crate) fn flatten_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(flatten_value).filter(|part| !part.is_empty()).collect();
            parts.join("\n")
        }
        Value::Object(object) => match (object.get("text"), object.get("content")) {
            (Some(Value::String(text)), _) => text.clone(),
            (_, Some(content)) => flatten_value(content),
            _ => match object.get("type").and_then(Value::as_str) {
                // An image's bytes are of no use as words.
                Some(kind) if object.contains_key("source") || object.contains_key("data") => format!("[{kind}]"),
                _ => value.to_string(),
            },
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_found_wherever_it_stands() {
        for (json, expected) in [
            (r#"{"type":"a","x":1}"#, Some("a")),
            (r#"{ "x": [{"type":"b"}], "type" : "a" }"#, Some("a")),
            (r#"{"type":"a\u0062"}"#, Some("ab")),
            (r#"{"type":5}"#, None),
            (r#"{"x":1}"#, None),
            (r#"{"x":1,"#, None),
        ] {
            assert_eq!(kind(json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn content_of_any_shape_is_text() {
        for (json, expected) in [
            (r#""plain\n""#, "plain\n"),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "a\nb"),
            (r#"[{"type":"image","source":{"data":"…"}}]"#, "[image]"),
            (r#"{"content":[{"text":"x"}]}"#, "x"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("null", ""),
            ("5", "5"),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(flatten(&raw), expected, "{json}");
            let output: Output<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(output.into_string(), expected, "{json}");
        }
    }

    #[test]
    fn a_field_of_the_wrong_shape_is_absent() {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow, default)]
            text: Maybe<Text<'a>>,
        }
        let text = |json: &str| serde_json::from_str::<Line<'_>>(json).unwrap().text.0.map(Text::into_string);
        assert_eq!(text(r#"{"text":"a"}"#).as_deref(), Some("a"));
        assert_eq!(text(r#"{"text":{}}"#), None);
        assert_eq!(text(r#"{"text":null}"#), None);
        assert_eq!(text("{}"), None);
    }
}
