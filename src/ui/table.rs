//! Columns that line up, and small bars.

use super::text::width;

/// Where a column's text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows as lines, the first one being the heading. The last column is never padded.
pub(crate) fn lines(columns: &[Align], rows: &[Vec<String>]) -> Vec<String> {
    let most = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(most).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(columns).zip(&widths).map(|((cell, align), &widest)| {
            let padding = " ".repeat(widest.saturating_sub(width(cell)));
            match align {
                Align::Left => format!("{cell}{padding}"),
                Align::Right => format!("{padding}{cell}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
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
        assert_eq!([bar(1.0, 10.0, 10, "#"), bar(10.0, 10.0, 10, "#"), bar(0.0, 1.0, 5, "#")], ["#", "##########", ""]);
    }
}
