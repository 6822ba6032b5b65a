//! Reading events: RTF1's JSON object in, an [`Event`] or the named violation out.
//!
//! A well-formed object takes one typed pass. Only an object that fails it is read a second time, as a
//! tree, to say which rule it breaks.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Event, Meta, Object, Status, Tag, ToolEnd, ToolRef, ToolStart, Usage};

/// Why a text is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("not JSON: {0}")]
    Json(String),
    /// It is JSON, but no event.
    #[error("{0}")]
    Schema(String),
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Type {
    Text,
    ToolStart,
    ToolOutput,
    ToolEnd,
    Usage,
    Meta,
}

/// Every field of every type, so that one pass reads any event.
#[derive(Deserialize)]
struct Wire {
    r#type: Type,
    tag: Option<Tag>,
    text: Option<String>,
    delta: Option<bool>,
    parent: Option<String>,
    tool: Option<WireTool>,
    usage: Option<Usage>,
    meta: Option<Object>,
}

#[derive(Deserialize)]
struct WireTool {
    id: Option<String>,
    name: Option<String>,
    input: Option<Object>,
    status: Option<Status>,
    duration_ms: Option<u64>,
}

impl Event {
    /// Reads one RTF1 object.
    pub fn from_json(json: &[u8]) -> Result<Self, SchemaError> {
        // Checking UTF-8 once for the whole object is cheaper than once for each string in it.
        let wire = match std::str::from_utf8(json) {
            Ok(text) => serde_json::from_str::<Wire>(text),
            Err(_) => serde_json::from_slice::<Wire>(json),
        };
        match wire {
            Ok(wire) => wire.into_event().map_err(|rule| SchemaError::Schema(rule.to_owned())),
            Err(error) => Err(diagnose(json, &error)),
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Wire::deserialize(deserializer)?.into_event().map_err(D::Error::custom)
    }
}

impl Wire {
    fn into_event(self) -> Result<Event, &'static str> {
        let Self { r#type, tag, text, delta, parent, tool, usage, meta } = self;
        let delta = delta.unwrap_or(false);
        let text = text.ok_or("`text` is missing");
        let tool = tool.ok_or("`tool` is missing");
        let id = |id: Option<String>| id.ok_or("`tool.id` is missing");
        Ok(match r#type {
            Type::Text => Event::Text { tag: tag.ok_or("`tag` is missing")?, text: text?, delta, parent },
            Type::ToolStart => {
                let tool = tool?;
                let name = tool.name.ok_or("`tool.name` is missing")?;
                Event::ToolStart { tool: ToolStart { id: id(tool.id)?, name, input: tool.input }, parent }
            }
            Type::ToolOutput => Event::ToolOutput { tool: ToolRef { id: id(tool?.id)? }, text: text?, delta, parent },
            Type::ToolEnd => {
                let tool = tool?;
                let status = tool.status.ok_or("`tool.status` is missing")?;
                Event::ToolEnd { tool: ToolEnd { id: id(tool.id)?, status, duration_ms: tool.duration_ms }, parent }
            }
            Type::Usage => Event::Usage { usage: usage.ok_or("`usage` is missing")? },
            Type::Meta => Event::Meta { meta: Meta(meta.ok_or("`meta` is missing")?) },
        })
    }
}

/// Says which rule an object breaks, by its field.
fn diagnose(json: &[u8], error: &serde_json::Error) -> SchemaError {
    let object = match serde_json::from_slice::<Value>(json) {
        Ok(Value::Object(object)) => object,
        Ok(other) => return SchemaError::Schema(format!("expected an object, found {}", kind_of(&other))),
        Err(syntax) => return SchemaError::Json(place(&syntax)),
    };
    let tool = object.get("tool").and_then(Value::as_object);
    let usage = object.get("usage").and_then(Value::as_object);
    let rules: [(&str, Option<&Value>, Expected); 19] = [
        (
            "type",
            object.get("type"),
            Expected::OneOf(&["text", "tool_start", "tool_output", "tool_end", "usage", "meta"]),
        ),
        ("tag", object.get("tag"), Expected::OneOf(&["AI", "THINK", "SYS", "TOOL", "PROMPT", "USER"])),
        ("text", object.get("text"), Expected::Text),
        ("delta", object.get("delta"), Expected::Flag),
        ("parent", object.get("parent"), Expected::Text),
        ("tool", object.get("tool"), Expected::Object),
        ("tool.id", tool.and_then(|tool| tool.get("id")), Expected::Text),
        ("tool.name", tool.and_then(|tool| tool.get("name")), Expected::Text),
        ("tool.input", tool.and_then(|tool| tool.get("input")), Expected::Object),
        ("tool.status", tool.and_then(|tool| tool.get("status")), Expected::OneOf(&["ok", "fail", "unknown"])),
        ("tool.duration_ms", tool.and_then(|tool| tool.get("duration_ms")), Expected::Count),
        ("usage", object.get("usage"), Expected::Object),
        ("usage.prompt_tokens", usage.and_then(|usage| usage.get("prompt_tokens")), Expected::Count),
        ("usage.completion_tokens", usage.and_then(|usage| usage.get("completion_tokens")), Expected::Count),
        ("usage.total_tokens", usage.and_then(|usage| usage.get("total_tokens")), Expected::Count),
        ("usage.model", usage.and_then(|usage| usage.get("model")), Expected::Text),
        ("usage.cached_tokens", usage.and_then(|usage| usage.get("cached_tokens")), Expected::Count),
        ("usage.reasoning_tokens", usage.and_then(|usage| usage.get("reasoning_tokens")), Expected::Count),
        ("meta", object.get("meta"), Expected::Object),
    ];
    if !object.contains_key("type") {
        return SchemaError::Schema("`type` is missing".to_owned());
    }
    for (name, value, expected) in rules {
        if let Some(value) = value
            && !expected.fits(value)
        {
            return SchemaError::Schema(format!("`{name}` must be {expected}, found {}", shown(value)));
        }
    }
    // A duplicate field, or a rule that has no line above.
    SchemaError::Schema(place(error))
}

enum Expected {
    Text,
    Flag,
    Count,
    Object,
    OneOf(&'static [&'static str]),
}

impl Expected {
    fn fits(&self, value: &Value) -> bool {
        match self {
            // `null` means an absent field, except where the field decides what the object is.
            Self::OneOf(names) => value.as_str().is_some_and(|value| names.contains(&value)),
            _ if value.is_null() => true,
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Count => value.is_u64(),
            Self::Object => value.is_object(),
        }
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text => formatter.write_str("a string"),
            Self::Flag => formatter.write_str("true or false"),
            Self::Count => formatter.write_str("a whole number of 0 or more"),
            Self::Object => formatter.write_str("an object"),
            Self::OneOf(names) => write!(formatter, "one of {}", names.join(", ")),
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A short value as it is, a long one by its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => kind_of(value).to_owned(),
        _ => {
            let text = value.to_string();
            if text.len() <= 40 { format!("`{text}`") } else { kind_of(value).to_owned() }
        }
    }
}

/// serde's sentence with the column alone: an RTF1 object has one line.
fn place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    if error.column() == 0 { text.to_owned() } else { format!("{text} at column {}", error.column()) }
}
