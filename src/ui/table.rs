//! Columns that line up, and small bars.

use super::style::{Ink, Palette};
use super::text::width;

/// Where a column's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows as lines, the first one being the heading. The last column is never padded.
pub(crate) fn lines(columns: &[Align], rows: &[Vec<String>]) -> Vec<String> {
    let inked: Vec<Vec<Cell>> = rows.iter().map(|row| row.iter().cloned().map(Cell::from).collect()).collect();
    painted(columns, &inked, Palette::Plain)
}

/// A cell in its colour.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub text: String,
    pub ink: Ink,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ink: Ink::None }
    }
}

/// The same with colours.
pub(crate) fn painted(columns: &[Align], rows: &[Vec<Cell>], palette: Palette) -> Vec<String> {
    let widths = widths(columns.len(), rows);
    let line = |row: &Vec<Cell>| {
        let mut line = String::new();
        for (at, ((cell, align), &widest)) in row.iter().zip(columns).zip(&widths).enumerate() {
            let padding = " ".repeat(widest.saturating_sub(width(&cell.text)));
            let text = palette.paint(cell.ink, &cell.text);
            let gap = if at == 0 { "" } else { "  " };
            let (before, behind) = match align {
                Align::Left if at + 1 == row.len() => ("", ""),
                Align::Left => ("", padding.as_str()),
                Align::Right => (padding.as_str(), ""),
            };
            line.extend([gap, before, &text, behind]);
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// The columns that each column takes.
fn widths(columns: usize, rows: &[Vec<Cell>]) -> Vec<usize> {
    let most =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(&cell.text)).max().unwrap_or(0);
    (0..columns).map(most).collect()
}

/// Leaves columns out, in this order, until the rows fit; says whether any is missing.
pub(crate) fn fit(rows: &mut [Vec<Cell>], least: &[&str], columns: usize) -> bool {
    let mut missing = false;
    for name in least {
        let count = rows.first().map_or(0, Vec::len);
        let used: usize = widths(count, rows).iter().map(|width| width + 2).sum();
        if used <= columns.saturating_add(2) {
            break;
        }
        if let Some(at) = rows.first().and_then(|head| head.iter().position(|cell| cell.text == *name)) {
            for row in &mut *rows {
                row.remove(at);
            }
            missing = true;
        }
    }
    missing
}

/// A bar for a part of the largest value.
pub(crate) fn bar(value: f64, largest: f64, columns: u32, block: &str) -> String {
    if largest <= 0.0 || value <= 0.0 {
        return String::new();
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and the columns")]
    let blocks = (value / largest * f64::from(columns)).round().clamp(1.0, f64::from(columns)) as usize;
    block.repeat(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_what_is_seen() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name", "n", "x"]), row(["日本", "12", "y"]), row(["a", "3", ""])];
        assert_eq!(lines(&[Align::Left, Align::Right, Align::Left], &rows), ["name   n  x", "日本  12  y", "a      3"]);
        let cell = |text: &str, ink| Cell { text: text.to_owned(), ink };
        let mut rows = vec![
            vec![cell("A", Ink::None), cell("PATH", Ink::None), cell("B", Ink::None)],
            vec![cell("ok", Ink::Good), cell("/a/long/path", Ink::None), cell("x", Ink::None)],
        ];
        assert!(fit(&mut rows, &["PATH", "B"], 10));
        let painted = painted(&[Align::Left; 3], &rows, Palette::Colour);
        assert_eq!(painted, ["A   B", "\u{1b}[32mok\u{1b}[0m  x"]);
        assert_eq!([bar(1.0, 10.0, 10, "#"), bar(10.0, 10.0, 10, "#"), bar(0.0, 1.0, 5, "#")], ["#", "##########", ""]);
    }
}
