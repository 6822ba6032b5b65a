//! The pictures in the README: a real run of the demo agent, as it is shown, drawn from the cells of the terminal emulator.
//!
//! Only what differs from run to run is set to fixed values: its id, its times, the commits' hashes.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::pty::Screen;
use super::support::{Test, run_directory};

/// The size of a cell in points.
const CELL: (f32, f32) = (8.4, 18.0);

const ID: &str = "20261115-201500-demo";

#[test]
fn picture_of_the_full_screen() {
    let test = demo();
    let mut screen = Screen::start(shown(&test, &["tui"]), 132, 34);
    screen.shows("the run is over");
    screen.keys("[gt\r");
    screen.shows("command: sh test.sh");
    is_committed("tui.svg", &settled(&screen, || 0));
    screen.keys("q");
    screen.ends();
}

#[test]
fn picture_of_the_lines() {
    let test = demo();
    // As many rows as all three iterations need. The picture begins with the second: its test still fails.
    let screen = Screen::start(shown(&test, &["logs"]), 100, 90);
    screen.shows("ralph diff");
    is_committed("run.svg", &settled(&screen, || screen.row_of("iteration 2 of") - 1));
    screen.ends();
}

/// Looks at the run in a terminal whose colours and clock are the same everywhere.
fn shown(test: &Test, args: &[&str]) -> std::process::Command {
    let mut command = test.tool();
    command.args(args).envs([("TERM", "xterm-256color"), ("TZ", "UTC"), ("LANG", "C.UTF-8")]);
    command
}

/// A run of the demo agent, with times and an id that never change.
fn demo() -> Test {
    let test = Test::new();
    let dates = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].map(|name| (name, "2026-11-15T20:15:00Z"));
    let ran =
        test.tool().args(["run", "--agent", "demo"]).env("RALPH_DEMO_PAUSE_MS", "0").envs(dates).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let run = run_directory(&test.workspace()).unwrap();
    let start: jiff::Timestamp = "2026-11-15T20:15:00Z".parse().unwrap();
    let mut journal = String::new();
    for line in std::fs::read_to_string(run.join("journal.jsonl")).unwrap().lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let seq = record["seq"].as_u64().unwrap();
        let at = start + Duration::from_millis(150 * seq);
        record["at"] = format!("{at:.3}").into();
        let milliseconds = match record["meta"]["kind"].as_str() {
            Some("run_end") => 150 * seq,
            Some("iteration_end") => 2100 + 170 * (seq % 9),
            _ => 340 + 70 * (seq % 9),
        };
        fix(&mut record, milliseconds);
        let _ = writeln!(journal, "{record}");
    }
    std::fs::write(run.join("journal.jsonl"), journal).unwrap();
    let _ = std::fs::remove_file(run.join("summary.json"));
    std::fs::rename(&run, run.with_file_name(ID)).unwrap();
    test
}

/// Gives the run its fixed id, and every duration of a record the same value.
fn fix(value: &mut Value, milliseconds: u64) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "duration_ms" => *value = milliseconds.into(),
                    "run" => *value = ID.into(),
                    _ => fix(value, milliseconds),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| fix(value, milliseconds)),
        _ => {}
    }
}

/// The screen, once it does not change any more.
fn settled(screen: &Screen, from: impl Fn() -> u16) -> String {
    let draw = || screen.seen(|seen| seen.parser.screen().clone());
    let mut last = draw();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(200));
        let now = draw();
        if now.contents_formatted() == last.contents_formatted() {
            return svg(&now, from());
        }
        last = now;
    }
    panic!("the screen changes all the time:\n{}", screen.text());
}

#[track_caller]
fn is_committed(name: &str, picture: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images").join(name);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        return std::fs::write(path, picture).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = picture.lines().zip(committed.lines()).find(|(now, before)| now != before);
    assert!(
        picture == committed,
        "docs/images/{name} has changed: UPDATE_GENERATED=1 cargo test --test tui picture\n{differs:?}"
    );
}

/// The rows from one on, down to the last that has something.
pub fn svg(screen: &vt100::Screen, from: u16) -> String {
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
