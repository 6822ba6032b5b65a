//! Amp speaks like Claude: it repeats the prompt, and only its messages say what they cost.

use super::claude::{CAPABILITIES, Cached, Claude, Flavour, OwnErrors, UsageFrom};
use super::jsonl::{JsonLines, Reader};
use super::{Dialect, Messages, shape};
use crate::event::Tag;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "amp",
    capabilities: CAPABILITIES,
    messages: Messages::Whole,
    // Its session ids are thread ids; all else looks like Claude.
    speaks: |json| Claude::speaks(json) && json.contains("\"session_id\":\"T-") && shape::kind(json).is_some(),
    adapter: |context| Box::new(JsonLines::new(context, Claude::new(&AMP))),
};

const AMP: Flavour = Flavour {
    user_text: Tag::Prompt,
    usage: UsageFrom::Messages,
    cached: Cached::Apart,
    own_errors: OwnErrors::Synthetic,
};
