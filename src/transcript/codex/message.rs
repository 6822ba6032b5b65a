//! The text of a message in Codex' text form, as lines: joining, trimming, comparing, and the plan under it.

use crate::event::{TodoItem, TodoStatus};

pub(crate) fn push_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Without the blank lines around it.
pub(crate) fn trim_lines(text: &str) -> String {
    text.trim_end().trim_start_matches('\n').to_owned()
}

/// True when both say the same, blanks aside.
pub(crate) fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// A plan is printed under the message before it: `  → now`, `  • later`, `  ✓ done`.
pub(crate) fn split_plan(message: &str) -> (&str, Vec<TodoItem>) {
    let mut start = message.len();
    let mut items = Vec::new();
    for line in message.trim_end().lines().rev() {
        let Some(item) = item(line) else { break };
        items.insert(0, item);
        start = line.as_ptr() as usize - message.as_ptr() as usize;
    }
    // Bullets alone are a list of the agent's own.
    if items.iter().all(|item| item.status == TodoStatus::Pending) {
        return (message, Vec::new());
    }
    (&message[..start], items)
}

fn item(line: &str) -> Option<TodoItem> {
    let (mark, text) = line.strip_prefix("  ")?.split_once(' ')?;
    let status = match mark {
        "✓" => TodoStatus::Done,
        "→" => TodoStatus::InProgress,
        "•" => TodoStatus::Pending,
        _ => return None,
    };
    Some(TodoItem { text: text.to_owned(), status })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_parted_from_the_message_above_it() {
        let (words, items) = split_plan("I plan.\n  ✓ Read\n  → Write\n  • Test\n");
        assert_eq!((words, items.len()), ("I plan.\n", 3));
        let bullets = "Two ways:\n  • this\n  • that";
        assert_eq!(split_plan(bullets), (bullets, Vec::new()));
    }
}
