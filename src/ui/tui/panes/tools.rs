//! The tools of the selected iteration and how long they took, the newest last.

use jiff::Timestamp;

use super::super::block_rows::status;
use super::super::detail::Detail;
use super::super::rows::Row;
use super::super::theme::Theme;
use crate::ui::figures;
use crate::ui::model::Call;
use crate::ui::style::Ink;
use crate::ui::table::bar;
use crate::ui::text::cut;

/// The rows above the first call.
pub(crate) const HEADING: usize = 1;

pub(crate) fn rows(detail: &Detail, theme: &Theme, columns: usize, percent: u64, now: Option<Timestamp>) -> Vec<Row> {
    let calls = &detail.iteration.calls;
    if calls.count() == 0 && percent >= 100 {
        return vec![Row::new(Ink::Dim, "no tool was called")];
    }
    let reading = if percent < 100 { format!(", read {percent} %") } else { String::new() };
    let forgotten = calls.count() - calls.kept().len();
    let earlier = if forgotten > 0 { format!(", {forgotten} are not listed") } else { String::new() };
    let count = figures::plural(calls.count() as u64, "call");
    let mut rows = vec![Row::new(Ink::Strong, &format!("{count}{earlier}{reading}"))];
    let longest = calls.kept().iter().filter_map(Call::took_ms).max().unwrap_or(0);
    let names = calls.kept().iter().map(|call| call.name.chars().count()).max().unwrap_or(0).min(16);
    let bars = if columns >= 70 { 10 } else { 0 };
    for call in calls.kept() {
        let (mark, ink) = status(call.status, theme, now);
        let time = call.took_ms().or_else(|| call.runs_for_ms(now?)).map_or_else(String::new, figures::duration);
        let name = cut(&call.name, names.max(4));
        let mut row = Row::new(ink, &format!("{mark:<2}")).and(Ink::None, &format!("{time:>7} "));
        if bars > 0 {
            #[expect(clippy::cast_precision_loss, reason = "a bar of ten columns")]
            let drawn = bar(call.took_ms().unwrap_or(0) as f64, longest as f64, bars, theme.glyphs.screen.bars[8]);
            row = row.and(Ink::Tool, &format!("{drawn:<width$} ", width = bars as usize));
        }
        row = row.and(Ink::Strong, &format!("{name:<names$}  ")).and(Ink::None, &call.argument);
        rows.push(row);
    }
    rows
}
