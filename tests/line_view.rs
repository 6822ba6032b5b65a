//! What people see of captured runs of the real agents, in the line view, on terminals of three widths.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "transcripts/capture.rs"]
mod capture;

use std::fmt::Write as _;
use std::io::Write;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};

use capture::Capture;
use jiff::Timestamp;
use ralph::event::{Event, Stream, Tag};
use ralph::journal::{Body, Record};
use ralph::ui::{Appearance, Columns, LineView, Motion, Palette, View as _};
use unicode_width::UnicodeWidthStr as _;

const WIDTHS: [u16; 3] = [40, 80, 200];

/// What captures show best, in the order in which they are taken; of each agent so many.
const TELLING: [&str; 8] =
    ["tool-ok", "file-edit", "thinking", "unicode", "hello", "rate-429", "auth-401", "tool-fail"];
const OF_EACH: usize = 4;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Everything the view writes about a capture; `flush` after each event, as when they come one by one.
fn written(events: &[Event], appearance: Appearance) -> String {
    let out = Written::default();
    let mut view = LineView::new(out.clone(), appearance);
    for event in events {
        let body = Body::Agent { iteration: 1, from: Stream::Stdout, event: event.clone() };
        view.record(&Record { seq: 0, at: Timestamp::UNIX_EPOCH, body }).unwrap();
        view.flush().unwrap();
    }
    view.close().unwrap();
    let bytes = out.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn terminal(width: u16) -> Appearance {
    let columns = Columns::Fixed(usize::from(width));
    Appearance { palette: Palette::Colour, motion: Motion::Redraw, columns, ..Appearance::plain() }
}

/// What is on a terminal when all is over.
fn on_screen(bytes: &str, width: u16) -> String {
    let size = |number| NonZeroU16::new(number).unwrap();
    let rows = u16::try_from(bytes.matches('\n').count() + 20).unwrap();
    let mut screen = vt100::Parser::new(size(rows), size(width), 0);
    screen.process(bytes.replace('\n', "\r\n").as_bytes());
    let rows = screen.screen().rows(0, width).map(|row| row.trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn telling(captures: &[Capture]) -> Vec<&Capture> {
    let mut chosen: Vec<&Capture> = Vec::new();
    for name in TELLING {
        // Of several formats the one that tells most.
        let named = captures.iter().filter(|capture| capture.name.starts_with(name));
        chosen.extend(named.max_by_key(|capture| capture.events().len()));
    }
    chosen.extend(captures.iter().filter(|capture| !TELLING.iter().any(|name| capture.name.starts_with(name))));
    chosen.truncate(OF_EACH);
    chosen
}

#[test]
fn every_dialect_reads_well_at_three_widths() {
    let captures = capture::all();
    for agent in captures.chunk_by(|one, other| one.agent == other.agent) {
        for width in WIDTHS {
            let mut shown = String::new();
            for capture in telling(agent) {
                let screen = on_screen(&written(&capture.events(), terminal(width)), width);
                writeln!(shown, "{}\n\n{screen}\n", capture.name).unwrap();
            }
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path("snapshots/line_view");
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(format!("{}-{width}", agent[0].agent), shown));
        }
    }
}

#[test]
fn no_row_of_any_capture_is_wider_than_the_place() {
    for capture in capture::all() {
        let events = capture.events();
        for width in WIDTHS {
            let appearance = Appearance { columns: Columns::Fixed(usize::from(width)), ..Appearance::plain() };
            let wide =
                written(&events, appearance).lines().find(|row| row.width() > usize::from(width)).map(str::to_owned);
            assert_eq!(wide, None, "{}/{} at {width}", capture.agent, capture.name);
        }
    }
}

#[test]
fn in_a_pipe_the_agents_words_are_as_they_were_written() {
    for capture in capture::all() {
        let events = capture.events();
        let shown = written(&events, Appearance::plain());
        assert!(!shown.contains('\u{1b}'), "{}/{}", capture.agent, capture.name);
        for event in &events {
            let Event::Text { tag: Tag::Ai, text, delta: false, .. } = event else { continue };
            for line in text.lines().map(str::trim_end).filter(|line| line.is_ascii() && !line.contains('\t')) {
                assert!(shown.contains(line), "{}/{}: {line:?}", capture.agent, capture.name);
            }
        }
    }
}

#[test]
fn a_terminal_ends_with_the_lines_that_were_written_for_good() {
    for capture in capture::all() {
        let events = capture.events();
        let drawn = on_screen(&written(&events, terminal(80)), 80);
        let still = written(&events, Appearance { motion: Motion::Append, ..terminal(80) });
        let still = on_screen(&still, 80);
        // A tool that had not ended is a line in a log, and only a changing one on a terminal.
        let settled = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.contains("│ ▸ ")).map(str::to_owned).collect()
        };
        assert_eq!(settled(&drawn), settled(&still), "{}/{}", capture.agent, capture.name);
    }
}
