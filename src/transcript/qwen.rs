//! Qwen Code speaks like Claude: its input tokens count the cached ones too, and it reports errors as
//! `[API Error: …]` in the model's words.

use super::claude::{CAPABILITIES, Cached, Claude, Flavour, OwnErrors, UsageFrom};
use super::jsonl::{JsonLines, Reader};
use super::{Dialect, Messages};
use crate::event::Tag;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "qwen",
    capabilities: CAPABILITIES,
    messages: Messages::Whole,
    speaks: |json| Claude::speaks(json) && (json.contains("\"qwen_code_version\":") || json.contains("\"goal_state\"")),
    adapter: |context| Box::new(JsonLines::new(context, Claude::new(&QWEN))),
};

const QWEN: Flavour = Flavour {
    user_text: Tag::Prompt,
    usage: UsageFrom::Result,
    cached: Cached::Included,
    own_errors: OwnErrors::Bracketed,
};
