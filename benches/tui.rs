//! What the full screen costs: reading a journal, drawing a frame, searching. `cargo bench --bench tui`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/tui/history.rs"]
#[allow(dead_code)]
mod history;

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crossterm::event::{Event as Came, KeyCode, KeyEvent};
use history::History;
use ralph::control::Order;
use ralph::event::{Event, Status, Tag};
use ralph::journal::{Outcome, Receipt};
use ralph::ui::tui::{Actions, Offscreen, Options, Owner};
use ralph::ui::{Glyphs, Palette};

struct Idle;

impl Actions for Idle {
    fn order(&mut self, _: &Order) -> Result<(), String> {
        Ok(())
    }

    fn is_running(&mut self) -> bool {
        false
    }

    fn interrupt(&mut self) {}

    fn suspend(&mut self, _: Owner) {}

    fn difference(&mut self, _: Receipt) -> Receiver<Result<String, String>> {
        channel().1
    }
}

fn view(history: &History, columns: u16, rows: u16) -> Offscreen {
    let (directory, palette, glyphs) = (history.run(), Palette::Colour, Glyphs::UNICODE);
    let options = Options { directory, palette, glyphs, owner: Owner::Another, actions: Box::new(Idle) };
    Offscreen::new(options, columns, rows, history.now())
}

fn press(view: &mut Offscreen, keys: &str) {
    for key in keys.chars() {
        let code = if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        view.event(Came::Key(KeyEvent::from(code)));
    }
}

/// The time of one call, of many.
fn each(count: u32, mut act: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..count).for_each(|_| act());
    start.elapsed() / count
}

fn main() {
    let mut history = History::new();
    for iteration in 1..=2_000 {
        let mut events = Vec::new();
        for call in 0..20 {
            let input = serde_json::json!({"command": format!("cargo test part_{call}")}).as_object().cloned();
            events.push(Event::text(Tag::Ai, format!("Now **part {call}**: run its tests, then `mend` what fails.")));
            events.push(Event::tool_start(format!("t{call}"), "shell", input));
            events.push(Event::tool_output(format!("t{call}"), "test result: ok. 12 passed; 0 failed\n".repeat(20)));
            events.push(Event::tool_end(format!("t{call}"), Status::Ok, Some(1_200)));
        }
        history.iteration(iteration, events);
    }
    history.over(Outcome::Complete, None);
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let megabytes = std::fs::metadata(history.run().journal()).unwrap().len() as f64 / 1e6;

    let start = Instant::now();
    let mut small = view(&history, 80, 24);
    let opened = start.elapsed();
    println!("open 2,000 iterations, {megabytes:.0} MB: {opened:?} ({:.0} MB/s)", megabytes / opened.as_secs_f64());

    println!("frame 80x24, transcript: {:?}", each(1000, || _ = small.draw()));
    let mut large = view(&history, 200, 60);
    println!("frame 200x60, transcript, plan, tools: {:?}", each(1000, || _ = large.draw()));
    for (key, name) in [("o", "all tools open"), ("6", "usage"), ("3", "tools"), ("8", "raw")] {
        press(&mut large, key);
        println!("frame 200x60, {name}: {:?}", each(500, || _ = large.draw()));
    }
    let mut scrolled = view(&history, 200, 60);
    press(&mut scrolled, "g");
    println!("one row further, key to frame: {:?}", each(500, || press(&mut scrolled, "j")));

    let start = Instant::now();
    press(&mut small, "/nowhere to be found\n");
    let searched = start.elapsed();
    println!("search all of it: {searched:?} ({:.0} MB/s)", megabytes / searched.as_secs_f64());
}
