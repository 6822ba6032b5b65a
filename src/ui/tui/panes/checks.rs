//! What the user's own commands said when the agent claimed to be done.

use super::super::index::Index;
use super::super::rows::{Row, paragraph};
use super::super::theme::Theme;
use crate::ui::figures;
use crate::ui::judged;
use crate::ui::style::Ink;
use crate::ui::words;

/// The checks of an entry as rows.
pub(crate) fn rows(index: &Index, entry: usize, theme: &Theme, columns: usize) -> Vec<Row> {
    let mut judged = Vec::new();
    for (line, ink) in index.judgement(entry).iter().flat_map(|judgement| judged::lines(judgement, ", ")) {
        judged.extend(paragraph(&Row::default(), &Row::default(), &line, ink, columns));
    }
    let Some((asked, passed, checks)) = index.checks(entry) else {
        if !judged.is_empty() {
            return judged;
        }
        let asked = index.run().iterations.iter().rev().find(|tried| tried.checks_at.is_some());
        let hint =
            asked.map_or_else(String::new, |tried| format!("; the last ones ran after iteration {}", tried.iteration));
        return vec![Row::new(Ink::Dim, &format!("no check ran after this iteration{hint}"))];
    };
    let (verdict, ink) = words::verification(asked, passed, &checks);
    let mut rows = vec![Row::new(ink, &verdict)];
    let margin = Row::new(Ink::Dim, &format!("  {} ", theme.glyphs.gutter));
    for check in &checks {
        let (mark, ink) = words::check_mark(check.passed, &theme.glyphs);
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
    rows.extend(judged);
    rows
}
