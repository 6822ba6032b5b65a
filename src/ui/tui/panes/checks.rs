//! What the user's own commands said when the agent claimed to be done.

use super::super::index::Index;
use super::super::rows::{Row, paragraph};
use super::super::theme::Theme;
use crate::journal::{Body, Fact, Record};
use crate::ui::figures;
use crate::ui::style::Ink;
use crate::ui::words;

/// The checks of an entry as rows.
pub(crate) fn rows(index: &Index, entry: usize, theme: &Theme, columns: usize) -> Vec<Row> {
    let record = index.entries.get(entry).and_then(|entry| entry.checks).and_then(|at| index.record(at));
    let Some(Record { body: Body::Loop(Fact::Verification { passed, checks, .. }), .. }) = record else {
        let asked = index.entries.iter().rev().find(|entry| entry.checks.is_some());
        let hint =
            asked.map_or_else(String::new, |entry| format!("; the last ones ran after iteration {}", entry.iteration));
        return vec![Row::new(Ink::Dim, &format!("no check ran after this iteration{hint}"))];
    };
    let (verdict, ink) = words::verification(passed, &checks);
    let mut rows = vec![Row::new(ink, &verdict)];
    let margin = Row::new(Ink::Dim, &format!("  {} ", theme.glyphs.gutter));
    for check in &checks {
        let (mark, ink) = if check.passed { (theme.glyphs.ok, Ink::Good) } else { (theme.glyphs.fail, Ink::Bad) };
        rows.push(
            Row::new(ink, &format!("{mark} "))
                .and(Ink::Strong, &check.name)
                .and(Ink::Dim, &format!("  {}, {}", check.ended, figures::duration(check.duration_ms))),
        );
        if check.command != check.name {
            rows.extend(paragraph(&margin, &margin, &check.command, Ink::Dim, columns));
        }
        if !check.tail.is_empty() {
            rows.extend(paragraph(&margin, &margin, &check.tail, Ink::None, columns));
        }
    }
    rows
}
