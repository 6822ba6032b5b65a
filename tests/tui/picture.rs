//! The pictures in the README: a real screen of a real run, drawn from the cells of the terminal emulator.
//!
//! `RALPH_PICTURES=docs/images cargo test --test tui picture` makes them.

use std::fmt::Write as _;

use super::pty::Screen;
use super::support::Test;

/// The size of a cell in points.
const CELL: (f32, f32) = (8.4, 18.0);

#[test]
fn picture_of_the_full_screen() {
    let Some(file) = picture("tui.svg") else { return };
    let test = Test::new();
    let mut command = test.tool();
    command.args(["run", "--agent", "demo", "--tui"]);
    let mut screen = Screen::start(command, 132, 34);
    screen.until("complete", |text| text.lines().next().unwrap_or_default().contains("complete"));
    screen.keys("[gt\r");
    screen.shows("command: sh test.sh");
    std::fs::write(file, screen.seen(|seen| svg(seen.parser.screen(), 0))).unwrap();
    screen.keys("q");
    screen.ends();
}

#[test]
fn picture_of_the_lines() {
    let Some(file) = picture("run.svg") else { return };
    let test = Test::new();
    let mut command = test.tool();
    command.args(["run", "--agent", "demo"]);
    // As many rows as all three iterations need. The picture begins with the second: its test still fails.
    let screen = Screen::start(command, 100, 90);
    screen.shows("everything that happened");
    let from = screen.row_of("iteration 2 of") - 1;
    std::fs::write(file, screen.seen(|seen| svg(seen.parser.screen(), from))).unwrap();
    screen.ends();
}

/// Where a picture goes, when pictures are wanted.
fn picture(name: &str) -> Option<std::path::PathBuf> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(std::env::var_os("RALPH_PICTURES")?);
    std::fs::create_dir_all(&directory).unwrap();
    Some(directory.join(name))
}

/// The rows from one on, down to the last that has something.
fn svg(screen: &vt100::Screen, from: u16) -> String {
    let columns = screen.size().1.get();
    let rows = u16::try_from(screen.contents().trim_end().lines().count()).unwrap();
    let (width, height) = (f32::from(columns) * CELL.0, f32::from(rows - from) * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0} {1:.0}\" width=\"{0:.0}\" height=\"{1:.0}\" \
         font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1c1e26\"/>\n",
        width + 16.0,
        height + 16.0
    );
    for row in from..rows {
        let mut column = 0;
        while column < columns {
            let look = |column: u16| screen.cell(row, column).map(look_of);
            let Some(style) = look(column) else { break };
            let start = column;
            let mut text = String::new();
            while column < columns && look(column) == Some(style) {
                let cell = screen.cell(row, column).unwrap();
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
                column += if cell.is_wide() { 2 } else { 1 };
            }
            span(&mut svg, row - from, start, column - start, &text, style);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

type Style = (&'static str, Option<&'static str>, bool, bool);

/// Ink, paper, bold, dim.
fn look_of(cell: &vt100::Cell) -> Style {
    let (ink, paper) = (colour(cell.fgcolor(), "#d5d8da"), colour(cell.bgcolor(), "#1c1e26"));
    let (ink, paper) = if cell.inverse() { (paper, ink) } else { (ink, paper) };
    (ink, (paper != "#1c1e26").then_some(paper), cell.bold(), cell.dim())
}

const fn colour(colour: vt100::Color, default: &'static str) -> &'static str {
    match colour {
        vt100::Color::Idx(0) => "#16181f",
        vt100::Color::Idx(1) => "#e95678",
        vt100::Color::Idx(2) => "#29d398",
        vt100::Color::Idx(3) => "#fab795",
        vt100::Color::Idx(5) => "#ee64ac",
        vt100::Color::Idx(6) => "#59e3e3",
        _ => default,
    }
}

fn span(svg: &mut String, row: u16, column: u16, columns: u16, text: &str, (ink, paper, bold, dim): Style) {
    let (x, y) = (8.0 + f32::from(column) * CELL.0, 8.0 + f32::from(row) * CELL.1);
    let width = f32::from(columns) * CELL.0;
    if let Some(paper) = paper {
        let height = CELL.1;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{paper}\"/>"
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let bold = if bold { " font-weight=\"bold\"" } else { "" };
    let dim = if dim { " opacity=\"0.6\"" } else { "" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" xml:space=\"preserve\" fill=\"{ink}\"{bold}{dim}>{text}</text>",
        y + 13.5
    );
}
