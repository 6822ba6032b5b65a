//! The layout as pictures, at three sizes, over real captures of every agent.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, channel};

use crossterm::event::{Event as Came, KeyCode, KeyEvent};
use jiff::Timestamp;
use ralph::control::Order;
use ralph::journal::Outcome;
use ralph::ui::tui::{Actions, IterationState, KEYS, Offscreen, Options, Owner};
use ralph::ui::{Glyphs, Palette};

use super::capture::{Capture, all};
use super::history::{History, rich};

const SIZES: [(u16, u16); 3] = [(40, 12), (80, 24), (200, 60)];

/// Somebody who does nothing.
pub struct Idle;

impl Actions for Idle {
    fn order(&mut self, _: &Order) -> Result<(), String> {
        Err("nobody listens".into())
    }

    fn is_running(&mut self) -> bool {
        false
    }

    fn interrupt(&mut self) {}

    fn suspend(&mut self, _: Owner) {}

    fn difference(&mut self, _: ralph::journal::Receipt) -> Receiver<Result<String, String>> {
        let (sender, receiver) = channel();
        let text = "diff --git a/greet.sh b/greet.sh\n--- a/greet.sh\n+++ b/greet.sh\n@@ -1 +1 @@\n-Helo\n+Hello\n";
        sender.send(Ok(text.into())).unwrap();
        receiver
    }
}

pub fn offscreen(history: &mut History, (columns, rows): (u16, u16), palette: Palette, glyphs: Glyphs) -> Offscreen {
    history.flush();
    let options = Options { directory: history.run(), palette, glyphs, owner: Owner::Another, actions: Box::new(Idle) };
    let now: Timestamp = history.now();
    Offscreen::new(options, columns, rows, now)
}

pub fn press(offscreen: &mut Offscreen, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        offscreen.event(Came::Key(KeyEvent::from(code)));
    }
}

fn pictures(history: &mut History, keys: &str) -> String {
    let mut text = String::new();
    for size in SIZES {
        let mut offscreen = offscreen(history, size, Palette::Colour, Glyphs::UNICODE);
        press(&mut offscreen, keys);
        let _ = writeln!(text, "{}x{}\n{}", size.0, size.1, offscreen.text());
    }
    text
}

/// The capture of an agent that shows most: a tool that worked, if there is one.
fn telling(captures: &[Capture], agent: &str) -> usize {
    let find = |wanted: &dyn Fn(&Capture) -> bool| {
        captures.iter().position(|capture| capture.agent == agent && wanted(capture))
    };
    find(&|capture| capture.name.starts_with("tool-ok.stream"))
        .or_else(|| find(&|capture| capture.name.starts_with("tool-ok.") && !capture.is_text()))
        .or_else(|| find(&|capture| capture.name.starts_with("tool-ok.")))
        .or_else(|| find(&|_| true))
        .unwrap()
}

#[test]
fn every_agent_reads_well_at_every_size() {
    let captures = all();
    let mut agents: Vec<&str> = captures.iter().map(|capture| capture.agent.as_str()).collect();
    agents.dedup();
    assert!(agents.len() >= 14);
    for agent in agents {
        let capture = &captures[telling(&captures, agent)];
        let mut history = History::new();
        history.iteration(1, capture.events()).over(Outcome::Complete, None);
        insta::with_settings!({snapshot_path => "screens", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(format!("agent-{agent}"), pictures(&mut history, "[]g"));
        });
    }
}

#[test]
fn every_pane_reads_well_at_every_size() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    for (name, keys) in [
        ("transcript", "1"),
        ("opened", "1oO"),
        ("plan", "2"),
        ("tools", "3"),
        ("files", "4jj\n"),
        ("events", "5"),
        ("usage", "6"),
        ("checks", "7"),
        ("raw", "8"),
        ("help", "?"),
        ("list", "\tkk"),
        ("search", "/needle\n"),
        ("input", "w"),
    ] {
        insta::with_settings!({snapshot_path => "screens", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(format!("pane-{name}"), pictures(&mut history, keys));
        });
    }
}

#[test]
fn ascii_stays_ascii_and_no_colour_is_none() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    for keys in ["1o", "2", "3", "4", "5", "6", "7", "8", "?", "\t"] {
        let mut offscreen = offscreen(&mut history, (120, 40), Palette::Plain, Glyphs::ASCII);
        press(&mut offscreen, keys);
        let text = offscreen.text();
        assert!(text.is_ascii(), "{keys}: {text}");
        let coloured = offscreen.draw().content.iter().find(|cell| {
            use ratatui_core::style::Color::Reset;
            (cell.fg, cell.bg) != (Reset, Reset)
        });
        assert_eq!(coloured, None, "{keys}");
    }
}

#[test]
fn any_size_can_be_drawn() {
    let mut history = rich();
    history.over(Outcome::Human, Some("Which colour?"));
    let mut offscreen = offscreen(&mut history, (80, 24), Palette::Colour, Glyphs::UNICODE);
    for columns in (1..=40).chain([71, 72, 73, 80, 129, 130, 131, 200, 300]) {
        for rows in [1, 2, 3, 5, 12, 24, 100] {
            offscreen.resize(columns, rows);
            for keys in ["1", "3", "4", "6", "8", "?", "\u{1b}\t", "\t/x", "\u{1b}"] {
                press(&mut offscreen, keys);
            }
        }
    }
    offscreen.resize(80, 24);
    assert!(offscreen.text().contains("needs a human"), "{}", offscreen.text());
    assert!(offscreen.text().contains("question: Which colour?"), "{}", offscreen.text());
}

#[test]
fn search_goes_through_the_whole_run_and_comes_back() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    let mut offscreen = offscreen(&mut history, (100, 30), Palette::Colour, Glyphs::UNICODE);
    press(&mut offscreen, "[[[[g/report\n");
    let seen = |offscreen: &Offscreen, report: u32| {
        let text = offscreen.text();
        assert!(text.contains(&format!("This is report {report}:")), "{report}: {text}");
    };
    seen(&offscreen, 1);
    press(&mut offscreen, "n");
    seen(&offscreen, 2);
    press(&mut offscreen, "n");
    seen(&offscreen, 3);
    press(&mut offscreen, "n");
    seen(&offscreen, 1);
    press(&mut offscreen, "N");
    seen(&offscreen, 3);
    press(&mut offscreen, "/nowhere at all\n");
    assert!(offscreen.text().contains("`nowhere at all` not found in this run"), "{}", offscreen.text());
}

#[test]
fn a_tool_is_found_opened_and_closed() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    let mut offscreen = offscreen(&mut history, (100, 40), Palette::Colour, Glyphs::UNICODE);
    press(&mut offscreen, "gt");
    // One that failed says why, without its input.
    assert!(offscreen.text().contains("FAILED: punctuation, needle here"), "{}", offscreen.text());
    assert!(!offscreen.text().contains("command: sh test.sh"), "{}", offscreen.text());
    press(&mut offscreen, "\n");
    assert!(offscreen.text().contains("command: sh test.sh"), "{}", offscreen.text());
    press(&mut offscreen, "\n");
    assert!(!offscreen.text().contains("needle here"), "{}", offscreen.text());
    press(&mut offscreen, "t\n");
    assert!(offscreen.text().contains("-Helo") && offscreen.text().contains("+Hello"), "{}", offscreen.text());
    press(&mut offscreen, "3jj\n");
    assert!(offscreen.text().contains("1 Transcript"), "the tools lead to the transcript: {}", offscreen.text());
}

/// A part of the documentation that is written from the program; `UPDATE_GENERATED=1` writes it.
#[track_caller]
fn documents(part: &str, table: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/views.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {part}: written by a test -->\n"), format!("<!-- /{part} -->"));
    let (before, rest) = text.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    let wanted = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(text == wanted, "UPDATE_GENERATED=1 cargo test --test tui");
    }
}

#[test]
fn the_documentation_lists_every_key_and_sign() {
    let mut table = String::from("| keys | what they do |\n|---|---|\n");
    for key in KEYS.iter().flat_map(|(_, keys)| *keys) {
        let _ = writeln!(table, "| `{}` | {} |", key.keys, key.does);
    }
    documents("keys", &table);
    let mut table = String::from("| sign | with `--ascii` | what it means |\n|---|---|---|\n");
    for mark in IterationState::ALL {
        let sign = |glyphs: Glyphs| mark.sign(&glyphs).0;
        let _ = writeln!(table, "| {} | `{}` | {} |", sign(Glyphs::UNICODE), sign(Glyphs::ASCII), mark.means());
    }
    documents("signs", &table);
}
