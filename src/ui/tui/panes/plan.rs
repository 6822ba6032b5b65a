//! The agent's own plan, as it last told it.

use super::super::blocks::todo;
use super::super::detail::Detail;
use super::super::rows::{Row, paragraph};
use super::super::theme::Theme;
use crate::event::TodoStatus;
use crate::ui::style::Ink;

pub(crate) fn rows(detail: &Detail, theme: &Theme, columns: usize) -> Vec<Row> {
    if detail.todo.is_empty() {
        return vec![Row::new(Ink::Dim, "the agent has told no plan")];
    }
    let done = detail.todo.iter().filter(|item| item.status == TodoStatus::Done).count();
    let mut rows = vec![Row::new(Ink::Strong, &format!("{done} of {} done", detail.todo.len()))];
    let margin = Row::new(Ink::None, " ");
    for item in &detail.todo {
        let (text, ink) = todo(item, theme);
        rows.extend(paragraph(&margin, &Row::new(Ink::None, "   "), &text, ink, columns));
    }
    rows
}
