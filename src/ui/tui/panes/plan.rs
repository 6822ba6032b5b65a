//! The agent's own plan: the newest, from whichever iteration.

use super::super::block_rows::todo;
use super::super::latest_plan::LatestPlan;
use super::super::rows::{Row, paragraph};
use super::super::theme::Theme;
use crate::event::TodoStatus;
use crate::ui::style::Ink;

pub(crate) fn rows(latest: &LatestPlan, theme: &Theme, columns: usize) -> Vec<Row> {
    let plan = &latest.items;
    if plan.is_empty() {
        return vec![Row::new(Ink::Dim, "no plan yet")];
    }
    let done = plan.iter().filter(|item| item.status == TodoStatus::Done).count();
    let from = format!(", from iteration {}", latest.iteration);
    let mut rows = vec![Row::new(Ink::Strong, &format!("{done} of {} done", plan.len())).and(Ink::Dim, &from)];
    let margin = Row::new(Ink::None, " ");
    for item in plan {
        let (text, ink) = todo(item, theme);
        rows.extend(paragraph(&margin, &Row::new(Ink::None, "   "), &text, ink, columns));
    }
    rows
}
