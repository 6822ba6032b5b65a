//! The shapes of Claude's lines, borrowed from the line. Fields that decide nothing may have any shape.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::transcript::shape::{Maybe, Output, Text};

/// `stream_event`, and the raw API events that wrappers print at the top level.
#[derive(Deserialize)]
pub(crate) struct Streamed<'a> {
    #[serde(borrow, default)]
    pub parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub event: RawEvent<'a>,
}

#[derive(Deserialize)]
pub(crate) struct RawEvent<'a> {
    #[serde(borrow, default)]
    pub r#type: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default)]
    pub text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub thinking: Option<Text<'a>>,
}

/// `assistant` and `user`.
#[derive(Deserialize)]
pub(crate) struct Spoken<'a> {
    #[serde(borrow)]
    pub message: Message<'a>,
    #[serde(borrow, default)]
    pub parent_tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub session_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub error: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    pub tool_use_result: Option<&'a RawValue>,
    #[serde(default, rename = "isReplay")]
    pub is_replay: Option<bool>,
}

#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub content: Content<'a>,
    #[serde(borrow, default)]
    pub stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub usage: Option<&'a RawValue>,
}

/// A list of blocks, or a plain string.
#[derive(Default)]
pub(crate) struct Content<'a>(pub Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Content<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string or a list of blocks")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content(vec![Block::text(Text(text.into()))]))
            }

            fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content(vec![Block::text(Text(text.to_owned().into()))]))
            }

            fn visit_unit<E>(self) -> Result<Content<'de>, E> {
                Ok(Content::default())
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Content<'de>, A::Error> {
                let mut blocks = Vec::with_capacity(1);
                while let Some(block) = items.next_element()? {
                    blocks.push(block);
                }
                Ok(Content(blocks))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[derive(Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow, default)]
    pub r#type: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub content: Output<'a>,
    #[serde(default)]
    pub is_error: Option<bool>,
    /// What ralph itself says beyond Claude's format.
    #[serde(borrow, default)]
    pub status: Maybe<Text<'a>>,
    #[serde(default)]
    pub duration_ms: Maybe<u64>,
}

impl<'a> Block<'a> {
    fn text(text: Text<'a>) -> Self {
        Self {
            r#type: Some(Text("text".into())),
            text: Some(text),
            thinking: None,
            id: None,
            name: None,
            input: None,
            tool_use_id: None,
            content: Output::default(),
            is_error: None,
            status: Maybe::default(),
            duration_ms: Maybe::default(),
        }
    }
}

/// `system`: few and small.
#[derive(Deserialize)]
pub(crate) struct System<'a> {
    #[serde(borrow, default)]
    pub subtype: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub session_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub model: Maybe<Text<'a>>,
    #[serde(borrow, default, alias = "qwen_code_version")]
    pub claude_code_version: Maybe<Text<'a>>,
    /// The version of the agent behind `ralph as-claude`.
    #[serde(borrow, default)]
    pub agent_version: Maybe<Text<'a>>,
    #[serde(default)]
    pub mcp_servers: Maybe<Vec<Server>>,
    #[serde(default)]
    pub attempt: Maybe<u64>,
    #[serde(default)]
    pub retry_delay_ms: Maybe<f64>,
    #[serde(default)]
    pub error_status: Maybe<u16>,
    #[serde(borrow, default)]
    pub error: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    pub content: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    pub original_model: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    pub fallback_model: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    pub compact_error: Maybe<Text<'a>>,
    #[serde(borrow, default)]
    pub output: Maybe<Text<'a>>,
    #[serde(default)]
    pub data: Maybe<Retried>,
    /// `ralph` where ralph itself wrote the stream.
    #[serde(borrow, default)]
    pub emitter: Maybe<Text<'a>>,
    /// An event that Claude's format cannot say.
    #[serde(borrow, default)]
    pub event: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(crate) struct Server {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub status: String,
}

/// What qwen says when it repeats an attempt.
#[derive(Deserialize)]
pub(crate) struct Retried {
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Limited {
    pub rate_limit_info: LimitInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LimitInfo {
    #[serde(default)]
    pub status: Option<String>,
    #[serde(default)]
    pub resets_at: Maybe<i64>,
    #[serde(default)]
    pub rate_limit_type: Maybe<String>,
    #[serde(default)]
    pub utilization: Maybe<f64>,
    #[serde(default)]
    pub overage_status: Maybe<String>,
    #[serde(default)]
    pub is_using_overage: Maybe<bool>,
}
