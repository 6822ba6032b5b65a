//! Large runs and fast agents: memory, processor time and frames have bounds.

use std::io::Write as _;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use ralph::event::{Event, Stream, Tag};
use ralph::journal::{Body, Holder, Lock, Outcome, Record};

use super::history::{History, ID, rich, store_of};
use super::pty::Screen;
use super::restore::ralph;

/// Makes the run look alive as long as it is held.
fn alive(history: &History) -> Lock {
    let lock = Lock::take(&store_of(&history.workspace())).unwrap();
    let (run, agent) = (ID.into(), "demo".into());
    lock.sign(&Holder { pid: std::process::id(), run, agent, since: Timestamp::now(), control: None }).unwrap();
    lock
}

#[test]
fn ten_thousand_iterations_are_a_list_like_any_other() {
    let mut history = History::new();
    for iteration in 1..=10_000 {
        history.iteration(iteration, vec![Event::text(Tag::Ai, format!("words of iteration {iteration}"))]);
    }
    history.over(Outcome::Limit, None);
    let start = Instant::now();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("words of iteration 10000");
    let opened = start.elapsed();
    screen.keys("\tg");
    screen.shows("start");
    screen.keys("jj");
    screen.shows("words of iteration 2");
    screen.keys("G");
    screen.shows("words of iteration 10000");
    screen.keys("6");
    screen.shows("a column is");
    let (memory, frames) = (screen.megabytes(), screen.frames());
    println!("10,000 iterations: opened in {opened:?}, {memory} MB, {frames} frames");
    assert!(memory < 80, "{memory} MB");
    screen.keys("q");
    screen.ends();
}

/// `RALPH_TUI_JOURNAL_MB=1024` makes the journal as large as one gigabyte.
#[test]
fn memory_does_not_grow_with_the_journal() {
    let megabytes: u64 = std::env::var("RALPH_TUI_JOURNAL_MB").map_or(24, |text| text.parse().unwrap());
    let mut history = History::new();
    history.start(1, None);
    let words = "The quick brown fox jumps over the lazy dog. ".repeat(20);
    let mut number = 0;
    while std::fs::metadata(history.run().journal()).unwrap().len() < megabytes * 1024 * 1024 {
        for _ in 0..1000 {
            number += 1;
            history.event(1, Event::text(Tag::Ai, format!("paragraph {number}: {words}")));
        }
    }
    history.event(1, Event::text(Tag::Ai, "the needle is here"));
    history.over(Outcome::Limit, None);
    let start = Instant::now();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("the needle is here");
    let opened = start.elapsed();
    let before = screen.megabytes();
    screen.keys("g");
    screen.shows("paragraph 1:");
    let start = Instant::now();
    screen.keys("/NEEDLE that is not\r");
    let patience = Duration::from_secs(20 + megabytes / 2);
    while !screen.text().contains("not found in this run") {
        assert!(start.elapsed() < patience, "{}", screen.text());
        std::thread::sleep(Duration::from_millis(20));
    }
    let searched = start.elapsed();
    let after = screen.megabytes();
    println!("{megabytes} MB: opened in {opened:?}, searched in {searched:?}, {before} MB, then {after} MB");
    assert!(after < 90, "{after} MB");
    screen.keys("q");
    screen.ends();
}

#[test]
fn five_thousand_events_a_second_are_followed_at_thirty_frames() {
    let mut history = rich();
    history.flush();
    let _lock = alive(&history);
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("running");
    let mut journal = std::fs::OpenOptions::new().append(true).open(history.run().journal()).unwrap();
    let (frames, used, start) = (screen.frames(), screen.processor_time(), Instant::now());
    let (mut line, mut seq) = (Vec::new(), 0);
    while start.elapsed() < Duration::from_secs(4) {
        let due = u64::try_from(start.elapsed().as_millis()).unwrap() * 5;
        while seq < due {
            seq += 1;
            let event = Event::text(Tag::Ai, format!("event number {seq} of a very fast agent"));
            let body = Body::Agent { iteration: 3, from: Stream::Stdout, event };
            line.clear();
            Record { seq: 1000 + seq, at: Timestamp::now(), body }.write_line(&mut line).unwrap();
            journal.write_all(&line).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (frames, used) = (screen.frames() - frames, screen.processor_time().saturating_sub(used));
    let took = start.elapsed();
    println!("{seq} events in {took:?}: {frames} frames, {used:?} of a processor, {} MB", screen.megabytes());
    let most = usize::try_from(took.as_millis() * 30 / 1000).unwrap() + 2;
    assert!(frames <= most, "{frames} frames in {took:?}");
    screen.shows(&format!("event number {seq} of"));
    screen.keys("q");
    screen.ends();
}

#[test]
fn an_idle_view_uses_next_to_nothing() {
    let mut history = rich();
    history.flush();
    let _lock = alive(&history);
    let mut screen = Screen::start(ralph(&history, &["tui"]), 200, 60);
    screen.shows("running");
    std::thread::sleep(Duration::from_millis(500));
    let (frames, used, start) = (screen.frames(), screen.processor_time(), Instant::now());
    std::thread::sleep(Duration::from_secs(4));
    let (frames, used, took) =
        (screen.frames() - frames, screen.processor_time().saturating_sub(used), start.elapsed());
    println!("idle for {took:?}: {frames} frames, {used:?} of a processor");
    assert!(frames <= 6, "{frames} frames in {took:?}: time is shown once a second");
    assert!(used < took / 20, "{used:?} of {took:?}");
    screen.keys("q");
    screen.ends();
}
