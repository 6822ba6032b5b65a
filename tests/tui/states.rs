//! Eight states of a run at three sizes, in the full screen and in the line view: as text that is compared, and as
//! pictures in `target/tui-states` for whoever wants to look.

use std::fmt::Write as _;
use std::io::Write;
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use ralph::control::Order;
use ralph::event::{Event, FailureClass, Known, Status, Tag, TodoItem, TodoStatus, Usage};
use ralph::journal::{Asked, CheckResult, Compared, Fact, IterationOutcome, Outcome, Receipt, Record};
use ralph::ui::tui::{Actions, Offscreen, Options, Owner};
use ralph::ui::{Appearance, Columns, Glyphs, LineView, Motion, Palette, View as _};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use serde_json::json;

use super::history::{History, receipt};
use super::picture::svg;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// A run that is active as long as it has no end.
struct Active;

impl Actions for Active {
    fn order(&mut self, _: &Order) -> Result<(), String> {
        Ok(())
    }

    fn is_running(&mut self) -> bool {
        true
    }

    fn interrupt(&mut self) {}

    fn suspend(&mut self, _: Owner) {}

    fn difference(&mut self, _: Receipt) -> Receiver<Result<String, String>> {
        channel().1
    }
}

fn tool(history: &mut History, iteration: u32, id: &str, name: &str, input: &serde_json::Value) {
    history.event(iteration, Event::tool_start(id, name, input.as_object().cloned()));
}

fn check(passed: bool) -> CheckResult {
    CheckResult {
        name: "cargo test".into(),
        command: "cargo test".into(),
        passed,
        ended: if passed { "exit code 0" } else { "exit code 101" }.into(),
        duration_ms: 4_200,
        tail: if passed { "" } else { "test pay::refund ... FAILED\nassertion failed: left == right" }.into(),
        ..CheckResult::default()
    }
}

/// Two iterations that went well, and a third that has begun.
fn begun() -> History {
    let mut history = History::new();
    let prompts = history.run().path.join("prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("1.md"), "# Refund payments within 14 days, and test it\n\nSee docs/refunds.md.\n")
        .unwrap();
    history.fact(Fact::Notice { message: "completion check: `cargo test` (from ralph.yml)".into() });
    for iteration in 1..=3 {
        history.start(iteration, None);
        history.event(iteration, Known::Model { model: "claude-opus-4-8".into() }.into());
        let items = ["read the code", "write the refund", "test it"].iter().enumerate();
        let status = |at: usize| if at + 1 < iteration as usize { TodoStatus::Done } else { TodoStatus::Pending };
        let items = items.map(|(at, text)| TodoItem { text: (*text).into(), status: status(at) }).collect();
        history.event(iteration, Known::Todo { items }.into());
        history.event(iteration, Event::text(Tag::Ai, "I look at `src/pay.rs` first.\nThen I write the refund."));
        tool(&mut history, iteration, "r", "Read", &json!({"file_path": "/home/user/project/src/pay.rs"}));
        history.event(iteration, Event::tool_output("r", "fn pay() {}\nfn refund() {}"));
        history.event(iteration, Event::tool_end("r", Status::Ok, None));
        let usage = Usage {
            prompt_tokens: Some(2_100),
            completion_tokens: Some(180),
            cost_usd: Some(0.03),
            ..Usage::default()
        };
        history.event(iteration, Event::Usage { usage });
        if iteration < 3 {
            let commits = vec![format!("abc123{iteration} Refund part {iteration}")];
            let done = Receipt {
                files: vec!["src/pay.rs".into(), "tests/pay.rs".into()],
                commits: if iteration == 1 { commits } else { Vec::new() },
                branch: Some("refunds".into()),
                tools: 1,
                ..receipt(iteration)
            };
            history.end(iteration, done);
        }
    }
    history
}

fn ended(history: &mut History, how: Receipt, outcome: Outcome, reason: &str) {
    history.fact(Fact::IterationEnd { receipt: Box::new(Receipt { iteration: 3, tools: 1, ..how }) });
    history.fact(Fact::RunEnd {
        compared: Compared::default(),
        outcome,
        reason: reason.into(),
        exit_code: u8::from(outcome != Outcome::Complete),
        iterations: 3,
        duration_ms: 252_000,
        usage: Usage::default(),
        cost: None,
        unpriced: 0,
        question: None,
        changed: None,
    });
}

fn claim(history: &mut History) {
    history.event(3, Event::text(Tag::Ai, "All done.\n<promise>COMPLETE</promise>"));
    let signal =
        serde_json::from_value(json!({"signal": "complete", "marker": "<promise>COMPLETE</promise>"})).unwrap();
    history.fact(Fact::Signal { iteration: 3, signal });
}

/// A run in a state, and how long nothing has happened in it.
fn state(name: &str) -> (History, u64) {
    let mut history = begun();
    let mut silent = 1;
    match name {
        "running" => {
            history.event(3, Event::text(Tag::Ai, "The refund is written. Now the **tests**."));
        }
        "tool" => {
            let input = json!({"command": "/bin/bash -lc 'cargo test --lib pay'", "description": "Run the tests"});
            tool(&mut history, 3, "t", "Bash", &input);
            silent = 8;
        }
        "waiting" => {
            let class = FailureClass::RateLimit;
            let full = "usage limit reached, resets at 21:00";
            let failed =
                Receipt { outcome: IterationOutcome::Failed, class: Some(class), ended: full.into(), ..receipt(3) };
            history.fact(Fact::IterationEnd { receipt: Box::new(Receipt { iteration: 3, ..failed }) });
            let (verdict, reason) = ("wait".into(), format!("rate limit: {full}"));
            history.fact(Fact::Decision { verdict, reason, wait_ms: Some(2_640_000), outcome: None, memory: None });
        }
        "paused" => {
            history.fact(Fact::Control { order: Order::Pause });
            history.end(3, receipt(3));
            history.fact(Fact::Paused);
        }
        "rejected" => {
            claim(&mut history);
            history.fact(Fact::Verification {
                asked: Asked::Claim,
                iteration: 3,
                passed: false,
                checks: vec![check(false)],
            });
            let how = Receipt { outcome: IterationOutcome::Rejected, verified: Some(false), ..receipt(3) };
            ended(&mut history, how, Outcome::Limit, "limit reached: 3 iterations");
        }
        "failed" => {
            tool(&mut history, 3, "t", "Bash", &json!({"command": "cargo build"}));
            history.event(3, Event::tool_output("t", "error[E0425]: cannot find value `amount`\n --> src/pay.rs:12:9"));
            history.event(3, Event::tool_end("t", Status::Fail, Some(3_400)));
            let class = Some(FailureClass::Agent);
            let how = Receipt { outcome: IterationOutcome::Failed, class, ended: "exit code 1".into(), ..receipt(3) };
            ended(&mut history, how, Outcome::Failed, "the agent failed 5 times in a row: exit code 1");
        }
        "interrupted" => {
            let unix_signal = "SIGINT".into();
            history.fact(Fact::Interrupt { unix_signal, action: "the agent is asked to stop".into() });
            let how =
                Receipt { outcome: IterationOutcome::Interrupted, ended: "stopped by the user".into(), ..receipt(3) };
            ended(&mut history, how, Outcome::Interrupted, "interrupted by SIGINT");
        }
        _ => {
            claim(&mut history);
            history.fact(Fact::Verification {
                asked: Asked::Claim,
                iteration: 3,
                passed: true,
                checks: vec![check(true)],
            });
            let commits = vec!["abc1239 Test refunds after 14 days".into()];
            let how = Receipt { verified: Some(true), commits, branch: Some("refunds".into()), ..receipt(3) };
            ended(
                &mut history,
                how,
                Outcome::Complete,
                "the agent said `<promise>COMPLETE</promise>`, and every check passed",
            );
        }
    }
    history.flush();
    (history, silent)
}

const STATES: [&str; 8] = ["running", "tool", "waiting", "paused", "rejected", "failed", "interrupted", "completed"];

fn full_screen(history: &History, silent: u64, (columns, rows): (u16, u16), palette: Palette) -> Offscreen {
    let glyphs = Glyphs::UNICODE;
    let options =
        Options { directory: history.run(), palette, glyphs, owner: Owner::Another, actions: Box::new(Active) };
    let now: Timestamp = history.now() + Duration::from_secs(silent);
    Offscreen::new(options, columns, rows, now)
}

/// The cells as a terminal would get them.
fn on_terminal(buffer: &Buffer) -> vt100::Screen {
    let mut bytes = String::new();
    for y in 0..buffer.area.height {
        let _ = write!(bytes, "\u{1b}[{};1H", y + 1);
        let mut hidden = 0;
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            hidden = unicode_width::UnicodeWidthStr::width(cell.symbol()).max(1) - 1;
            let colour = |colour: Color, first: u8| match colour {
                Color::Red => format!(";{}", first + 1),
                Color::Green => format!(";{}", first + 2),
                Color::Yellow => format!(";{}", first + 3),
                Color::Magenta => format!(";{}", first + 5),
                Color::Cyan => format!(";{}", first + 6),
                Color::Black => format!(";{first}"),
                _ => String::new(),
            };
            let set = |modifier, code: &'static str| if cell.modifier.contains(modifier) { code } else { "" };
            let _ = write!(
                bytes,
                "\u{1b}[0{}{}{}{}{}m{}",
                set(Modifier::BOLD, ";1"),
                set(Modifier::DIM, ";2"),
                set(Modifier::REVERSED, ";7"),
                colour(cell.fg, 30),
                colour(cell.bg, 40),
                cell.symbol()
            );
        }
    }
    let size = |number| NonZeroU16::new(number).unwrap();
    let mut parser = vt100::Parser::new(size(buffer.area.height), size(buffer.area.width), 0);
    parser.process(bytes.as_bytes());
    parser.screen().clone()
}

fn keep_picture(name: &str, picture: &str) {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tui-states");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(format!("{name}.svg")), picture).unwrap();
}

#[test]
fn every_state_reads_well_at_every_size() {
    for name in STATES {
        let (history, silent) = state(name);
        let mut text = String::new();
        for size in SIZES {
            let mut screen = full_screen(&history, silent, size, Palette::Colour);
            keep_picture(&format!("{name}-{}", size.0), &svg(&on_terminal(screen.draw()), 0));
            let _ = writeln!(text, "{}x{}\n{}", size.0, size.1, screen.text());
        }
        insta::with_settings!({snapshot_path => "screens", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(format!("state-{name}"), text);
        });
    }
}

/// The colour of the first cell of the screen, and what the first line says.
fn badge(name: &str) -> (Color, String) {
    let (history, silent) = state(name);
    let mut screen = full_screen(&history, silent, (120, 40), Palette::Colour);
    let colour = screen.draw()[(1, 0)].fg;
    (colour, screen.text().lines().next().unwrap().to_owned())
}

#[test]
fn every_state_has_its_colour_and_its_word() {
    for (name, colour, words) in [
        ("running", Color::Cyan, " running "),
        ("tool", Color::Cyan, " running "),
        ("waiting", Color::Yellow, " waiting 43m59s "),
        ("paused", Color::Yellow, " paused "),
        ("rejected", Color::Yellow, " limit reached, rejected "),
        ("failed", Color::Red, " failed "),
        ("interrupted", Color::Yellow, " interrupted "),
        ("completed", Color::Green, " complete "),
    ] {
        let (seen, line) = badge(name);
        assert!(line.starts_with(words), "{line}");
        assert!(line.contains("Refund payments within 14 days"), "the goal: {line}");
        assert_eq!(seen, colour, "{name}");
    }
}

#[test]
fn the_footer_follows_the_state_and_a_running_tool_has_a_timer() {
    let last = |name: &str, columns: u16| {
        let (history, silent) = state(name);
        let text = full_screen(&history, silent, (columns, 24), Palette::Colour).text();
        (text.lines().last().unwrap().to_owned(), text)
    };
    for columns in [40, 80, 120] {
        assert!(last("running", columns).0.starts_with(" p pause  s stop  i hint"), "{}", last("running", columns).0);
        assert!(last("paused", columns).0.starts_with(" p continue  s stop  i hint"));
        assert!(last("waiting", columns).0.contains("r retry now"));
    }
    let text = last("tool", 120).1;
    assert!(text.contains("Run the tests: cargo test --lib pay") && text.contains("(8.0 s)"), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("$0.13 of $5"), "the open iteration counts: {text}");
    assert!(last("failed", 120).1.contains("cannot find value `amount`"), "a failed tool says why");
    assert!(last("rejected", 120).1.contains("assertion failed: left == right"), "a rejected check says why");
}

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

#[test]
fn the_line_view_of_every_state_reads_well() {
    for name in STATES {
        let (history, _) = state(name);
        let mut text = String::new();
        for (columns, _) in SIZES {
            let out = Written::default();
            let columns_of = Columns::Fixed(usize::from(columns));
            let appearance = Appearance {
                palette: Palette::Colour,
                motion: Motion::Append,
                columns: columns_of,
                ..Appearance::plain()
            };
            let mut view = LineView::new(out.clone(), appearance);
            for line in std::fs::read(history.run().journal()).unwrap().split(|byte| *byte == b'\n') {
                if let Ok(record) = Record::read_line(line) {
                    view.record(&record).unwrap();
                }
            }
            view.close().unwrap();
            let bytes = String::from_utf8(out.0.lock().unwrap().clone()).unwrap().replace('\n', "\r\n");
            let size = |number| NonZeroU16::new(number).unwrap();
            let mut parser = vt100::Parser::new(size(100), size(columns), 0);
            parser.process(bytes.as_bytes());
            keep_picture(&format!("line-{name}-{columns}"), &svg(parser.screen(), 0));
            let rows = parser.screen().rows(0, columns).map(|row| row.trim_end().to_owned());
            let _ = writeln!(text, "{columns}\n{}\n", rows.collect::<Vec<_>>().join("\n").trim_end());
        }
        insta::with_settings!({snapshot_path => "screens", prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(format!("line-{name}"), text);
        });
    }
}
