//! What an agent says to a person when it cannot go on: the reason before a marker, the question in a block.

use std::fmt::Write as _;

use serde_json::Value;

use super::promise::ending;

/// Needs a person; the reason is before it.
pub(crate) const BLOCKED: &str = "<promise>BLOCKED</promise>";
/// Gives up; the reason is before it.
pub(crate) const FAILED: [&str; 2] = ["<<<RALPHEX:FAILED>>>", "<<<RALPHEX:TASK_FAILED>>>"];
/// Ends a block that one of [`BLOCKS`] begins.
pub(crate) const END: &str = "<<<RALPHEX:END>>>";
/// Begin a question, and the draft of a plan that a person shall look at.
pub(crate) const BLOCKS: [&str; 2] = ["<<<RALPHEX:QUESTION>>>", "<<<RALPHEX:PLAN_DRAFT>>>"];

/// The longest reason that is reported.
const LONGEST_REASON: usize = 1000;

/// The reason: the last paragraph before the marker.
pub(crate) fn reason(message: &str, marker: &str) -> String {
    let before = message.rfind(marker).map_or(message, |at| &message[..at]);
    let before = before.trim_end_matches(|character: char| character.is_whitespace() || "*_`".contains(character));
    let paragraph = before.rsplit("\n\n").next().unwrap_or_default().trim();
    if paragraph.is_empty() { "no reason given".to_owned() } else { ending(paragraph, LONGEST_REASON).to_owned() }
}

/// What is in the last block of the message; `None` when nothing begins one.
pub(crate) fn block(message: &str) -> Option<String> {
    let end = message.rfind(END)?;
    let (start, mark) = BLOCKS.iter().filter_map(|mark| Some((message[..end].rfind(mark)?, mark))).max()?;
    let inner = message[start + mark.len()..end].trim();
    Some(question(inner).unwrap_or_else(|| inner.to_owned()))
}

/// `{"question": …, "options": […]}` as a person reads it.
fn question(inner: &str) -> Option<String> {
    let inner = inner.trim_start_matches("```json").trim_matches('`').trim();
    let value: Value = serde_json::from_str(inner).ok()?;
    let mut text = value.get("question")?.as_str()?.to_owned();
    for (number, option) in value.get("options").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let option = option.as_str().map_or_else(|| option.to_string(), str::to_owned);
        let _ = write!(text, "\n  {}. {option}", number + 1);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_paragraph() {
        let marker = FAILED[0];
        assert_eq!(reason(&format!("I tried.\n\nThe key is missing.\n**{marker}**"), marker), "The key is missing.");
        assert_eq!(reason(marker, marker), "no reason given");
    }

    #[test]
    fn a_question_is_read_from_its_block() {
        let json = format!("Hm.\n{}\n{{\"question\":\"Which?\",\"options\":[\"a\",\"b\"]}}\n{END}", BLOCKS[0]);
        assert_eq!(block(&json).unwrap(), "Which?\n  1. a\n  2. b");
        let draft = format!("{}\n# Plan\n- [ ] one\n{END}", BLOCKS[1]);
        assert_eq!(block(&draft).unwrap(), "# Plan\n- [ ] one");
        assert_eq!(block(&format!("no beginning {END}")), None);
    }
}
