//! A table: held until its columns are known, then shown with them. Rows that come later keep to them.

use super::inline;
use crate::ui::style::{Glyphs, Ink};
use crate::ui::styled::Styled;
use crate::ui::table::Align;

/// This many rows are held at most.
const MOST_HELD: usize = 100;
/// A column is never narrower, unless its words are.
const NARROWEST: usize = 8;
/// What is between two columns.
const BETWEEN: usize = 3;

/// A table that is being read.
#[derive(Debug)]
pub(super) struct Table {
    aligns: Vec<Align>,
    held: Vec<TableRow>,
    /// The columns, once something was shown.
    columns: Option<Columns>,
}

#[derive(Debug)]
struct TableRow {
    written: String,
    cells: Vec<Styled>,
    is_heading: bool,
}

#[derive(Clone, Debug)]
enum Columns {
    Wide(Vec<usize>),
    /// There is no room for them: rows are shown as they were written.
    AsWritten,
}

/// True for a line that can be a row.
pub(super) fn is_row(line: &str) -> bool {
    line.starts_with('|') && line[1..].contains('|')
}

/// True for the line below the heading.
pub(super) fn is_delimiter(line: &str) -> bool {
    is_row(line) && line.contains('-') && line.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' '))
}

impl Table {
    /// A table with this heading, and this line below it.
    pub(crate) fn new(heading: &str, delimiter: &str) -> Self {
        let align = |cell: &str| if cell.ends_with(':') && !cell.starts_with(':') { Align::Right } else { Align::Left };
        let aligns = cells(delimiter).map(align).collect();
        let heading = TableRow::new(heading.trim(), Ink::Strong, true);
        Self { aligns, held: vec![heading], columns: None }
    }

    pub(crate) fn row(&mut self, line: &str, columns: usize, glyphs: &Glyphs, out: &mut Vec<Styled>) {
        self.held.push(TableRow::new(line.trim(), Ink::None, false));
        if self.columns.is_some() || self.held.len() > MOST_HELD {
            self.give(columns, glyphs, out);
        }
    }

    /// Gives the rows that are held.
    pub(crate) fn give(&mut self, columns: usize, glyphs: &Glyphs, out: &mut Vec<Styled>) {
        let held = std::mem::take(&mut self.held);
        let fitted = self.columns.get_or_insert_with(|| fit(&held, columns)).clone();
        for row in held {
            match &fitted {
                Columns::AsWritten => out.push(inline::styled(&row.written, Ink::None)),
                Columns::Wide(widths) => {
                    self.lines(&row, widths, glyphs, out);
                    if row.is_heading {
                        let rules: Vec<String> = widths.iter().map(|width| glyphs.rule.repeat(*width)).collect();
                        out.push(Styled::new(rules.join(&glyphs.rule.repeat(BETWEEN)), Ink::Dim));
                    }
                }
            }
        }
    }

    /// One row, as many lines as its longest cell has.
    fn lines(&self, row: &TableRow, widths: &[usize], glyphs: &Glyphs, out: &mut Vec<Styled>) {
        let empty = Styled::default();
        let split: Vec<Vec<Styled>> =
            widths.iter().enumerate().map(|(at, width)| row.cells.get(at).unwrap_or(&empty).split(*width)).collect();
        for number in 0..split.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = Styled::default();
            for (at, width) in widths.iter().enumerate() {
                if at > 0 {
                    line.push(&format!(" {} ", glyphs.gutter), Ink::Dim);
                }
                let cell = split[at].get(number).unwrap_or(&empty);
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                let (before, behind) =
                    if self.aligns.get(at) == Some(&Align::Right) { (padding.as_str(), "") } else { ("", &*padding) };
                line.push(before, Ink::None);
                line.append(cell);
                line.push(behind, Ink::None);
            }
            out.push(line);
        }
    }
}

impl TableRow {
    fn new(line: &str, ink: Ink, is_heading: bool) -> Self {
        let cells = cells(line).map(|cell| inline::styled(&cell.replace("\\|", "|"), ink)).collect();
        Self { written: line.to_owned(), cells, is_heading }
    }
}

/// The cells of a row; a bar behind a backslash, or in code, belongs to its cell.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').unwrap_or(line);
    let (mut escaped, mut in_code) = (false, false);
    line.split(move |character| {
        let is_end = character == '|' && !escaped && !in_code;
        in_code ^= character == '`' && !escaped;
        escaped = character == '\\' && !escaped;
        is_end
    })
    .map(str::trim)
}

/// Gives each column what it needs, or as much as there is: the widest give way first.
fn fit(rows: &[TableRow], columns: usize) -> Columns {
    let count = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let widest = |at: usize| rows.iter().filter_map(|row| row.cells.get(at)).map(Styled::width).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(|at| widest(at).max(1)).collect();
    let room = columns.saturating_sub(BETWEEN * count.saturating_sub(1));
    let mut needed: usize = widths.iter().sum();
    while needed > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => return Columns::AsWritten,
        }
        needed -= 1;
    }
    Columns::Wide(widths)
}
