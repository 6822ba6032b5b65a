use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::event::{Status as How, Usage};
use crate::journal::{Fact, Receipt};
use crate::ui::appearance::{Alert, Columns, Detail, Letters, Volume};
use crate::ui::style::{Glyphs, Palette};

/// What was written, for others to read.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A view, and the terminal it is on.
struct Shown {
    view: LineView<Written>,
    written: Written,
    terminal: vt100::Parser,
    read: usize,
}

fn fixed(columns: usize) -> Appearance {
    Appearance { columns: Columns::Fixed(columns), ..Appearance::plain() }
}

fn on_terminal(columns: usize) -> Appearance {
    Appearance { palette: Palette::Colour, motion: Motion::Redraw, ..fixed(columns) }
}

impl Shown {
    fn new(appearance: Appearance) -> Self {
        let columns = match appearance.columns {
            Columns::Fixed(columns) => u16::try_from(columns).unwrap(),
            _ => 500,
        };
        let size = |number| std::num::NonZeroU16::new(number).unwrap();
        let written = Written::default();
        let terminal = vt100::Parser::new(size(40), size(columns), 0);
        Self { view: LineView::new(written.clone(), appearance), written, terminal, read: 0 }
    }

    fn event(&mut self, event: Event) -> &mut Self {
        self.body(Body::Agent { iteration: 1, from: Stream::Stdout, event })
    }

    fn fact(&mut self, fact: Fact) -> &mut Self {
        self.body(Body::Loop(fact))
    }

    fn body(&mut self, body: Body) -> &mut Self {
        self.view.record(&Record { seq: 0, at: Timestamp::UNIX_EPOCH, body }).unwrap();
        self.view.flush().unwrap();
        self
    }

    fn begin(&mut self) -> &mut Self {
        let (agent, hat) = (Some("codex".to_owned()), None);
        self.fact(Fact::IterationStart {
            iteration: 3,
            of: 9,
            pid: None,
            prompt_bytes: 0,
            agent,
            hat,
            resumes: None,
            terminal: None,
            interactive: false,
            display: false,
        })
    }

    fn end(&mut self) -> &mut Self {
        let receipt = Receipt { iteration: 3, duration_ms: 1500, ..Receipt::default() };
        self.fact(Fact::IterationEnd { receipt: Box::new(receipt) })
    }

    /// Everything that was written, byte by byte.
    fn bytes(&mut self) -> String {
        self.view.flush().unwrap();
        String::from_utf8(self.written.0.lock().unwrap().clone()).unwrap()
    }

    /// The rows of the terminal now.
    fn rows(&mut self) -> Vec<String> {
        let bytes = self.bytes();
        self.terminal.process(bytes[self.read..].replace('\n', "\r\n").as_bytes());
        self.read = bytes.len();
        let text = self.terminal.screen().contents();
        text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}

fn shell(id: &str, command: &str) -> Event {
    Event::tool_start(id, "shell", json!({ "command": command }).as_object().cloned())
}

#[test]
fn a_tool_is_one_line_that_changes_on_a_terminal() {
    let mut shown = Shown::new(on_terminal(60));
    shown.begin();
    shown.event(shell("1", "cargo test"));
    let running = ["   TOOL │ ▸ shell  cargo test", "iteration 3/9 · codex · 0s"];
    assert_eq!(shown.rows()[1..], running);
    shown.event(Event::text(Tag::Ai, "Meanwhile."));
    assert_eq!(shown.rows()[1..], ["     AI │ Meanwhile.", running[0], running[1]], "words go above it");
    shown.event(Event::tool_end("1", How::Ok, Some(2300)));
    let done = ["     AI │ Meanwhile.", "   TOOL │ ✓ shell  cargo test  (2.3 s)", running[1]];
    assert_eq!(shown.rows()[1..], done);
    shown.end();
    assert!(!shown.rows().iter().any(|row| row.contains("3/9")), "nothing is under way");
}

#[test]
fn several_tools_run_below_each_other_and_end_in_any_order() {
    let mut shown = Shown::new(on_terminal(60));
    shown.begin().event(shell("1", "one")).event(shell("2", "two"));
    assert_eq!(shown.rows()[1..3], ["   TOOL │ ▸ shell  one", "   TOOL │ ▸ shell  two"]);
    shown.event(Event::tool_end("2", How::Fail, None));
    assert_eq!(shown.rows()[1..3], ["   TOOL │ ✗ shell  two", "   TOOL │ ▸ shell  one"]);
}

#[test]
fn a_terminal_that_becomes_narrower_keeps_no_rest_of_the_changing_lines() {
    let mut shown = Shown::new(on_terminal(60));
    shown.begin().event(shell("1", &"long words ".repeat(9)));
    assert_eq!(shown.rows().len(), 3);
    shown.view.output.appearance.columns = Columns::Fixed(30);
    shown.event(Event::tool_end("1", How::Ok, None)).end();
    // What a terminal makes of long rows when it shrinks differs; ours must not take away a line that stays.
    assert!(shown.rows()[0].contains("iteration 3 of 9"), "{:?}", shown.rows());
}

#[test]
fn elsewhere_lines_are_appended_and_nothing_is_drawn_twice() {
    let mut shown = Shown::new(fixed(60));
    shown.event(shell("1", "one")).event(Event::tool_end("1", How::Ok, Some(5)));
    shown.event(shell("2", "two")).event(Event::text(Tag::Ai, "Meanwhile.")).event(Event::tool_end("2", How::Ok, None));
    let lines =
        "   TOOL │ ✓ shell  one  (5 ms)\n   TOOL │ ▸ shell  two\n     AI │ Meanwhile.\n   TOOL │ ✓ shell  two\n";
    assert_eq!(shown.bytes(), lines);
}

#[test]
fn markdown_is_read_in_colour_and_left_alone_without() {
    let text = "# Title\n\n- **bold**\n- `code`";
    let mut shown = Shown::new(fixed(60));
    shown.event(Event::text(Tag::Ai, text));
    assert_eq!(shown.bytes(), "     AI │ # Title\n     AI │\n     AI │ - **bold**\n     AI │ - `code`\n");
    let mut shown = Shown::new(on_terminal(60));
    shown.event(Event::text(Tag::Ai, text));
    let rows = ["     AI │ Title", "     AI │", "     AI │ • bold", "     AI │ • code"];
    assert_eq!(shown.rows(), rows);
    assert!(shown.bytes().contains("\u{1b}[1mbold\u{1b}[0m"));
}

#[test]
fn words_that_stream_are_written_once_and_only_in_whole_lines() {
    let mut shown = Shown::new(on_terminal(60));
    for piece in ["Some **bo", "ld** wor", "ds\nand ", "more"] {
        shown.event(Event::delta(Tag::Ai, piece));
    }
    assert_eq!(shown.rows(), ["     AI │ Some bold words"]);
    shown.view.close().unwrap();
    assert_eq!(shown.rows(), ["     AI │ Some bold words", "     AI │ and more"]);
    assert!(!shown.bytes().contains("\u{1b}[J"), "nothing was taken back");
}

#[test]
fn a_fence_goes_on_over_the_lines_of_a_plain_agent() {
    let mut shown = Shown::new(on_terminal(60));
    for line in ["```sh", "ls **", "```", "done **now**"] {
        shown.event(Event::text(Tag::Ai, line));
    }
    assert_eq!(shown.rows(), ["     AI │ ▏ sh", "     AI │ ▏ ls **", "     AI │ done now"]);
}

#[test]
fn what_is_long_is_folded_and_counted() {
    let lines = |count: usize| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
    let mut shown = Shown::new(fixed(60));
    shown.event(Event::text(Tag::Think, lines(9))).event(Event::text(Tag::Ai, "x"));
    shown.event(Event::text(Tag::Prompt, lines(7))).event(Event::text(Tag::Sys, lines(20)));
    shown.view.close().unwrap();
    let rows = shown.rows();
    assert_eq!(rows[3..5], ["  THINK │ 4", "  THINK │ … 5 lines more"]);
    assert!(rows.contains(&" PROMPT │ (7 lines of the prompt repeated)".to_owned()));
    assert_eq!(
        rows[rows.len() - 5..],
        ["    SYS │ 10", "    SYS │ … 7 lines more", "    SYS │ 18", "    SYS │ 19", "    SYS │ 20"]
    );
    for (channel, tag) in [(Channel::Think, Tag::Think), (Channel::Prompt, Tag::Prompt), (Channel::Sys, Tag::Sys)] {
        let detail = Detail { channels: vec![channel], ..Detail::default() };
        let mut shown = Shown::new(Appearance { detail, ..fixed(60) });
        shown.event(Event::text(tag, lines(30)));
        assert_eq!(shown.rows().len(), 30, "{channel:?}");
    }
}

#[test]
fn tools_show_their_output_when_they_fail_or_somebody_asks() {
    let output = (1..=30).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n");
    let play = |shown: &mut Shown, how| {
        shown.event(shell("1", "make")).event(Event::tool_output("1", output.as_str()));
        shown.event(Event::tool_end("1", how, None)).rows()
    };
    assert_eq!(play(&mut Shown::new(fixed(60)), How::Ok), ["   TOOL │ ✓ shell  make  (30 lines)"]);
    let failed = play(&mut Shown::new(fixed(60)), How::Fail);
    assert_eq!(failed[1..3], ["        │   … 25 lines more", "        │   line 26"]);
    assert_eq!(failed.len(), 7);
    let detail = Detail { channels: vec![Channel::Tools], ..Detail::default() };
    let asked = play(&mut Shown::new(Appearance { detail, ..fixed(60) }), How::Ok);
    assert_eq!(
        (asked.len(), asked[11].as_str(), asked[21].as_str()),
        (22, "        │   … 10 lines more", "        │   line 30")
    );
}

#[test]
fn an_edit_tells_its_size_and_shows_its_lines_when_asked() {
    let input = json!({"file_path": "a.rs", "old_string": "one", "new_string": "two\nthree"});
    let edit = || Event::tool_start("1", "Edit", input.as_object().cloned());
    let mut shown = Shown::new(fixed(60));
    shown.event(edit()).event(Event::tool_end("1", How::Ok, None));
    assert_eq!(shown.rows(), ["   TOOL │ ✓ Edit  a.rs  (+2 -1)"]);
    let detail = Detail { volume: Volume::Full, ..Detail::default() };
    let mut shown = Shown::new(Appearance { detail, ..on_terminal(60) });
    shown.event(edit()).event(Event::tool_end("1", How::Ok, None));
    assert_eq!(shown.rows()[1..], ["        │   -one", "        │   +two", "        │   +three"]);
    assert!(shown.bytes().contains("\u{1b}[31m-one") && shown.bytes().contains("\u{1b}[32m+two"));
}

#[test]
fn quiet_is_one_line_an_iteration() {
    let detail = Detail { volume: Volume::Quiet, ..Detail::default() };
    let mut shown = Shown::new(Appearance { detail, ..fixed(60) });
    shown.begin().event(Event::text(Tag::Ai, "words")).event(shell("1", "x")).event(Event::tool_end(
        "1",
        How::Fail,
        None,
    ));
    shown.event(Event::usage(Usage { total_tokens: Some(5), ..Usage::default() }));
    shown.end();
    assert_eq!(shown.rows(), ["iteration 3 of 9: ok · 1.5 s"]);
}

#[test]
fn for_ears_there_are_words_and_no_signs() {
    let mut shown = Shown::new(Appearance { glyphs: Glyphs::WORDS, ..Appearance::plain() });
    shown.begin().event(Event::text(Tag::Ai, "Hello.")).event(shell("1", "ls")).event(Event::tool_end(
        "1",
        How::Fail,
        None,
    ));
    shown.end();
    let rows = shown.rows();
    assert!(rows[0].starts_with("iteration 3 of 9, "), "{rows:?}");
    assert_eq!(rows[1..3], ["AI: Hello.", "TOOL: failed shell  ls"]);
    assert!(shown.bytes().is_ascii() && !shown.bytes().contains('\u{1b}'), "{:?}", shown.bytes());
}

#[test]
fn where_only_ascii_arrives_only_ascii_is_sent() {
    let mut shown = Shown::new(Appearance { glyphs: Glyphs::ASCII, letters: Letters::Ascii, ..fixed(60) });
    // U+201B: its last byte in UTF-8 is an escape in an eight-bit terminal.
    shown.begin().event(Event::text(Tag::Ai, "caf\u{e9} \u{201b}31m")).event(shell("\u{e9}", "\u{201b}"));
    assert!(shown.bytes().is_ascii());
    assert_eq!(shown.rows()[1], "     AI | caf? ?31m");
}

#[test]
fn a_log_hears_of_a_silent_agent_and_a_held_table_is_not_forgotten() {
    let mut shown = Shown::new(on_terminal(60));
    shown.event(Event::text(Tag::Ai, "| a | b |\n|---|---|\n| 1 | 2 |"));
    assert_eq!(shown.rows(), [""; 0], "held for its columns");
    shown.view.tick().unwrap();
    assert_eq!(shown.rows(), ["     AI │ a │ b", "     AI │ ─────", "     AI │ 1 │ 2"]);
}

#[derive(Default)]
struct Told(Vec<String>);

impl vt100::Callbacks for Told {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".into());
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(String::from_utf8_lossy(title).into_owned());
    }
}

#[test]
fn the_title_tells_the_state_and_comes_back_and_the_bell_rings_at_the_end() {
    for alert in [Alert::Bell, Alert::Osc9, Alert::Osc777] {
        let mut shown = Shown::new(Appearance { alert, ..on_terminal(60) });
        shown.begin();
        shown.fact(Fact::RunEnd {
            outcome: crate::journal::Outcome::Complete,
            reason: "done; \u{1b}]0;owned\u{7}".into(),
            exit_code: 0,
            iterations: 3,
            duration_ms: 61_000,
            usage: Usage::default(),
            cost: None,
            unpriced: 0,
            question: None,
            changed: None,
            compared: crate::journal::Compared::default(),
        });
        shown.view.close().unwrap();
        let size = |number| std::num::NonZeroU16::new(number).unwrap();
        let mut terminal = vt100::Parser::new_with_callbacks(size(40), size(60), 0, Told::default());
        let bytes = shown.bytes();
        terminal.process(bytes.as_bytes());
        assert_eq!(terminal.callbacks().0, ["ralph: iteration 3/9", "ralph: complete", "bell"]);
        let (kept, restored) = (bytes.find("\u{1b}[22;2t").unwrap(), bytes.find("\u{1b}[23;2t").unwrap());
        assert!(kept < bytes.find("\u{1b}]2;").unwrap() && restored > bytes.rfind("\u{1b}]2;").unwrap());
        let notice = match alert {
            Alert::Osc9 => "\u{1b}]9;ralph: complete after 1m01s: done; ",
            Alert::Osc777 => "\u{1b}]777;notify;ralph;complete after 1m01s: done, ",
            _ => "",
        };
        assert!(bytes.contains(notice) && !bytes.contains("\u{1b}]0;"), "{bytes:?}");
    }
}
