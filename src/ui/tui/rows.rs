//! Rows of text as every pane shows them: harmless, in inks, as wide as there is room.

use crate::ui::diff;
use crate::ui::markdown::Markdown;
use crate::ui::style::{Glyphs, Ink};
use crate::ui::styled::Styled;
use crate::ui::text::{harmless, width, wrap};

/// One row. Its text is harmless.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub spans: Vec<(Ink, String)>,
}

impl Row {
    pub(crate) fn new(ink: Ink, text: &str) -> Self {
        Self { spans: vec![(ink, harmless(text))] }
    }

    /// The row with one more part.
    #[must_use]
    pub(crate) fn and(mut self, ink: Ink, text: &str) -> Self {
        self.spans.push((ink, harmless(text)));
        self
    }

    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// A text of several lines behind a margin, wrapped. The first row has `first` as its margin, all others `rest`.
pub(crate) fn paragraph(first: &Row, rest: &Row, text: &str, ink: Ink, columns: usize) -> Vec<Row> {
    let room = columns.saturating_sub(width(&first.text())).max(8);
    let mut rows = Vec::new();
    // A text that ends in a newline has no empty last line.
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        for part in wrap(&harmless(line), room) {
            let mut row = if rows.is_empty() { first.clone() } else { rest.clone() };
            row.spans.push((ink, part));
            rows.push(row);
        }
    }
    rows
}

/// The same for an agent's Markdown.
pub(crate) fn markdown(first: &Row, rest: &Row, text: &str, glyphs: Glyphs, columns: usize) -> Vec<Row> {
    let room = columns.saturating_sub(width(&first.text())).max(8);
    let mut markdown = Markdown::new(glyphs);
    let mut lines = Vec::new();
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        markdown.line(line.strip_suffix('\r').unwrap_or(line), room, &mut lines);
    }
    markdown.end(room, &mut lines);
    styled(first, rest, &lines, columns)
}

/// The same for lines in several inks.
pub(crate) fn styled(first: &Row, rest: &Row, lines: &[Styled], columns: usize) -> Vec<Row> {
    let room = columns.saturating_sub(width(&first.text())).max(8);
    let parts = lines.iter().flat_map(|line| line.split(room));
    let rows = parts.enumerate().map(|(at, line)| {
        let mut row = if at == 0 { first.clone() } else { rest.clone() };
        row.spans.extend(line.parts().map(|(ink, text)| (ink, text.to_owned())));
        row
    });
    rows.collect()
}

/// Lines of a difference, each in its ink.
pub(crate) fn difference(text: &str, margin: &str) -> Vec<Row> {
    let ink = |line: &str| diff::ink(line).unwrap_or(Ink::None);
    text.lines().map(|line| Row::new(Ink::Dim, margin).and(ink(line), line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_keeps_its_margin_and_is_harmless() {
        let rows = paragraph(
            &Row::new(Ink::Agent, "AI "),
            &Row::new(Ink::None, "   "),
            "one two three\n\u{1b}[2J",
            Ink::None,
            14,
        );
        let texts: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(texts, ["AI one two", "   three", "   ␛[2J"]);
    }
}
