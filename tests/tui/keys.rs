//! Keys and the mouse in a real terminal.

use ralph::event::{Event, Tag};
use ralph::journal::Outcome;

use super::agent_screen::cell_of;
use super::history::{History, rich};
use super::pty::Screen;
use super::restore::ralph;

fn finished() -> History {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    history
}

#[test]
fn every_pane_has_a_key() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    for (key, shown) in [
        ("2", "2 of 3 done"),
        ("3", "2 calls"),
        ("4", "1 file changed"),
        ("5", "3 events"),
        ("6", "tokens per iteration"),
        ("7", "1 passed; 1 failed"),
        ("8", "raw line of 3"),
        ("e", "complaint of 3"),
        ("9", "the agent has no terminal in this iteration"),
        ("8", "complaint of 3"),
        ("?", "search the whole run"),
        ("\u{1b}", "complaint of 3"),
        ("1", "report 3"),
        ("[", "report 2"),
        ("\u{1b}[D\u{1b}[C[", "report 1"),
    ] {
        screen.keys(key);
        screen.shows(shown);
    }
    screen.keys("q");
    assert!(screen.ends().0.success());
}

#[test]
fn any_run_of_this_machine_is_opened_from_the_list() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys("a");
    screen.shows("1 in all");
    screen.keys("\r");
    screen.shows("report 3");
    // Back to the list, and away.
    screen.keys("q");
    screen.shows("1 in all");
    screen.keys("q");
    assert!(screen.ends().0.success());
    // A directory without runs.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = ralph(&history, &["tui"]);
    command.current_dir(elsewhere.path());
    let mut screen = Screen::start(command, 100, 30);
    screen.shows("1 in all");
    screen.keys("\r");
    screen.shows("report 3");
    // Back to the list, and away.
    screen.keys("q");
    screen.shows("1 in all");
    screen.keys("q");
    assert!(screen.ends().0.success());
}

#[test]
fn the_mouse_selects_scrolls_and_opens() {
    let mut history = finished();
    let lines: Vec<Event> = (1..=200).map(|line| Event::text(Tag::Ai, format!("line number {line}"))).collect();
    history.iteration(4, lines).flush();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 120, 30);
    screen.shows("line number 200");
    screen.wheel(-20, 60, 10);
    screen.hides("line number 200");
    screen.wheel(40, 60, 10);
    screen.shows("line number 200");
    // The list is on the left: the second row of it is the first iteration.
    screen.click(3, 4);
    screen.shows("report 1");
    let row = screen.row_of("sh test.sh");
    screen.click(60, row);
    screen.click(60, row);
    screen.shows("needle here");
    let text = screen.text();
    let (before, _) = text.lines().nth(2).unwrap().split_once("6 Usage").unwrap();
    screen.click(u16::try_from(before.chars().count()).unwrap() + 2, 3);
    screen.shows("tokens per iteration");
    screen.keys("m");
    screen.shows("the mouse selects text");
    screen.keys("q");
    screen.ends();
}

#[test]
fn what_is_pointed_at_is_copied_and_a_transcript_is_written() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys("/report 3\r");
    screen.until("the place that was found", |_| cell_of(&screen, "This is report 3").2.inverse());
    screen.keys("y");
    screen.shows("copied 41 characters");
    screen.keys("w");
    screen.shows("write to: ralph-");
    screen.keys("\u{15}out.txt\r");
    screen.shows("written to out.txt");
    screen.keys("w\u{15}out.txt\r");
    screen.shows("cannot write `out.txt`");
    let copied = screen.seen(|seen| seen.parser.callbacks().copied.clone());
    // What OSC 52 carries is base64.
    assert_eq!(copied, [b"VGhpcyBpcyByZXBvcnQgMzogdGhlIHNwZWxsaW5nIGlzIG1lbmRlZC4=".to_vec()]);
    let written = std::fs::read_to_string(history.workspace().join("out.txt")).unwrap();
    assert!(written.contains("This is report 3: the spelling is mended.\n"), "{written}");
    screen.keys("q");
    screen.ends();
}

#[test]
fn it_follows_the_size_of_the_terminal() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 80, 24);
    screen.shows("report 3");
    for (columns, rows) in [(40, 12), (300, 80), (41, 10), (130, 40), (72, 24)] {
        screen.resize(columns, rows);
        screen.until("the whole width", |text| {
            text.lines().count() == usize::from(rows) && text.lines().next().unwrap().contains("complete")
        });
        screen.shows("exit code");
    }
    screen.keys("q");
    screen.ends();
}

#[test]
fn nothing_of_an_agent_is_obeyed() {
    let hostile =
        "\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}[2J\u{1b}[?1049l\u{1b}c\u{9b}2J\u{7}\r\u{202e}x\u{200f}";
    let mut history = History::new();
    let input = serde_json::json!({"command": hostile, hostile: hostile}).as_object().cloned();
    let events = vec![
        Event::text(Tag::Ai, format!("begin {hostile} middle")),
        Event::text(Tag::Think, hostile),
        Event::tool_start("t", hostile, input),
        Event::tool_output("t", hostile),
        Event::text(Tag::Ai, "the end"),
    ];
    history.iteration(1, events).over(Outcome::Complete, None);
    history.raw("1.stdout", format!("{hostile}\nraw\n").as_bytes());
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 40);
    screen.shows("the end");
    for keys in ["o", "2", "3", "4", "5", "6", "7", "8", "1g", "/begin\r"] {
        screen.keys(keys);
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    screen.shows("begin ");
    screen.keys("q");
    screen.seen(|seen| {
        let obeyed = seen.parser.callbacks();
        assert_eq!((obeyed.others.as_slice(), obeyed.copied.len()), (&[][..], 0));
        let text = String::from_utf8(seen.bytes.clone()).unwrap();
        let bad = |letter: char| "\u{7}\u{8}\u{9b}\u{202e}\u{200f}\u{c}".contains(letter);
        assert_eq!(text.find(bad), None);
    });
    screen.ends();
}

#[test]
fn search_says_which_of_how_many_places_it_is() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys("[");
    screen.shows("report 2");
    screen.keys("[");
    screen.shows("report 1");
    screen.keys("g/mended\r");
    screen.shows("`mended` 1/3");
    screen.keys("n");
    screen.shows("`mended` 2/3");
    screen.keys("n");
    screen.shows("`mended` 3/3");
    screen.keys("n");
    screen.shows("`mended` 1/3");
    screen.keys("N");
    screen.shows("`mended` 3/3");
    screen.keys("\u{1b}");
    screen.hides("`mended`");
    screen.keys("q");
    screen.ends();
}

#[test]
fn all_runs_are_listed_where_there_is_none_and_any_can_be_opened() {
    let history = finished();
    let elsewhere = history.directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = ralph(&history, &["tui"]);
    command.current_dir(&elsewhere);
    let mut screen = Screen::start(command, 100, 30);
    screen.shows("runs on this machine  0 running, 1 in all");
    screen.shows("complete");
    screen.keys("\r");
    screen.shows("report 3");
    // Back to the list, and from there out.
    screen.keys("q");
    screen.shows("runs on this machine");
    screen.keys("q");
    assert!(screen.ends().0.success());
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys("a");
    screen.shows("runs on this machine");
    screen.keys("q");
    assert!(screen.ends().0.success());
}

/// Alt-[ is the beginning of what other keys send.
#[test]
fn half_a_sequence_holds_nothing_up() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys("\u{1b}[");
    screen.shows("report 2");
    screen.keys("\u{1b}[1;");
    screen.signal(rustix::process::Signal::TERM);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&screen.ends().0), Some(libc::SIGTERM));
}

/// More than is read at once: all of it is obeyed, and then there is silence.
#[test]
fn a_burst_of_input_is_read_to_its_end() {
    let history = finished();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys(&"\u{1b}[<65;60;10M".repeat(1000));
    screen.keys("2");
    screen.shows("2 of 3 done");
    let before = screen.processor_time();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let used = screen.processor_time().saturating_sub(before);
    assert!(used < std::time::Duration::from_millis(300), "it used {used:?} of a second in which nothing happened");
    screen.keys("q");
    assert!(screen.ends().0.success());
}
