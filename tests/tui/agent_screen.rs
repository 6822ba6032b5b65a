//! The agent's own screen in its pane: an agent that draws, and terminals that it must not reach.

use ralph::journal::Outcome;

use super::history::{History, rich};
use super::pty::Screen;
use super::restore::ralph;
use super::support::{Test, run_directory};

/// Draws a screen, waits until it is told to go on, and draws another one.
const DRAWS: &str = r"#!/bin/sh
printf 'before the screen\r\n\033[?1049h\033[2J\033[?25l'
printf '\033[2;5H\033[1;31mred title\033[0m \033[38;5;208morange\033[0m'
printf '\033[4;3H\033[48;2;10;20;30;97mwhite on blue\033[0m'
printf '\033[6;1H\033[7mreversed\033[0m \345\244\247 wide'
printf '\033[8;1Hmy terminal has %s' $(stty size | tr ' ' x)
while [ ! -e go ]; do sleep 0.05; done
printf '\033[2J\033[3;3Hthe last screen'
";

/// The cell that begins a text, with its place.
pub fn cell_of(screen: &Screen, text: &str) -> (u16, u16, vt100::Cell) {
    screen.seen(|seen| {
        let (rows, columns) = seen.parser.screen().size();
        for row in 0..rows.get() {
            let line: Vec<_> = (0..columns.get()).filter_map(|column| seen.parser.screen().cell(row, column)).collect();
            for column in 0..line.len() {
                let rest: String =
                    line[column..].iter().map(|cell| if cell.has_contents() { cell.contents() } else { " " }).collect();
                if rest.starts_with(text) {
                    return (row, u16::try_from(column).unwrap(), line[column].clone());
                }
            }
        }
        panic!("no {text:?} in\n{}", seen.parser.screen().contents());
    })
}

#[test]
fn an_agent_that_draws_is_seen_as_it_draws_and_afterwards() {
    let test =
        Test::new().file("draws.sh", DRAWS).command("sh draws.sh").args(&["--pty", "--tui", "--max-iterations", "1"]);
    let mut screen = Screen::start(test.ralph(), 104, 30);
    screen.shows("before the screen");
    screen.keys("9");
    screen.shows("red title");
    // The list has 30 columns and an edge, above are the header and the tabs: the pane is the rest.
    let (left, top) = (31, 3);
    screen.shows("my terminal has 26x73");
    let place = |text: &str| {
        let (row, column, cell) = cell_of(&screen, text);
        ((row - top, column - left), cell)
    };
    let (at, cell) = place("red title");
    assert_eq!((at, cell.fgcolor(), cell.bold()), ((1, 4), vt100::Color::Idx(1), true));
    let (at, cell) = place("orange");
    assert_eq!((at, cell.fgcolor(), cell.bold()), ((1, 14), vt100::Color::Idx(208), false));
    let (at, cell) = place("white on blue");
    assert_eq!((at, cell.fgcolor(), cell.bgcolor()), ((3, 2), vt100::Color::Idx(15), vt100::Color::Rgb(10, 20, 30)));
    let (at, cell) = place("reversed");
    assert_eq!((at, cell.inverse()), ((5, 0), true));
    assert!(screen.text().contains("大 wide"), "{}", screen.text());
    std::fs::write(test.workspace().join("go"), "").unwrap();
    screen.shows("the last screen");
    screen.hides("red title");
    screen.until("the end", |text| text.lines().next().unwrap_or_default().contains("limit"));
    screen.shows("the last screen");
    // The transcript goes on to show clean text.
    screen.keys("1");
    screen.shows("before the screen");
    screen.keys("q");
    assert_eq!(screen.ends().0.code(), Some(5));

    // Any time later, on a smaller screen: what does not fit is behind the window's edge.
    let id = run_directory(&test.workspace()).unwrap().file_name().unwrap().to_owned();
    let mut command = test.tool();
    command.arg("tui").arg(id);
    let mut screen = Screen::start(command, 60, 12);
    screen.shows("limit");
    screen.keys("9");
    screen.shows("9 Screen");
    screen.shows("the last screen");
    assert_eq!(cell_of(&screen, "the last screen").0, 2 + 2);
    screen.keys("q");
    screen.ends();
}

#[test]
fn a_small_pane_shows_where_the_cursor_is_and_its_window_moves() {
    let rows = (1..=40).map(|row| format!("\u{1b}[{row};1Hrow {row}.\u{1b}[{row};120Hend {row}."));
    let rows = rows.collect::<Vec<_>>().concat();
    let mut history = History::new();
    history.drawn(1, (40, 130), format!("{rows}\u{1b}[38;1H").as_bytes()).over(Outcome::Complete, None);
    let mut screen = Screen::start(ralph(&history, &["tui"]), 80, 24);
    screen.keys("9");
    screen.shows("row 38.");
    screen.hides("row 40.");
    for (keys, shown) in [
        ("\u{1b}[A", "row 18."),
        ("\u{1b}[5~", "row 1."),
        ("\u{1b}[6~\u{1b}[6~", "row 40."),
        ("g", "row 1."),
        ("\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C", "end 1."),
        ("G", "row 38."),
    ] {
        screen.keys(keys);
        screen.shows(shown);
    }
    screen.wheel(-30, 60, 10);
    screen.shows("row 1.");
    screen.keys("q");
    screen.ends();
}

#[test]
fn a_key_that_moves_nothing_does_not_stop_following() {
    let mut history = History::new();
    history.drawn(1, (10, 40), b"the first screen").flush();
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.keys("9");
    screen.shows("the first screen");
    screen.keys("jk");
    screen.wheel(3, 60, 10);
    history.drawn(2, (10, 40), b"the second screen").flush();
    screen.shows("the second screen");
    screen.keys("q");
    screen.ends();
}

#[test]
fn nothing_that_an_agent_draws_reaches_another_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}[c\u{1b}[6n\u{1b}[5n\u{1b}[18t\u{1b}]11;?\u{7}\u{1b}P+q544e\u{1b}\\\
                   \u{1b}[?1003h\u{1b}[8;5;5t\u{1b}[!p\u{7}\u{9b}2J\u{1b}[5;5Ha\u{202e}b\u{200f}c\u{feff}d\u{2066}e the end";
    let mut history = History::new();
    history.drawn(1, (20, 60), hostile.as_bytes()).over(Outcome::Complete, None);
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("complete");
    screen.keys("9");
    screen.shows("abcde the end");
    screen.keys("y");
    screen.shows("copied");
    screen.seen(|seen| {
        let obeyed = seen.parser.callbacks();
        assert_eq!((obeyed.others.as_slice(), obeyed.copied.len()), (&[][..], 1), "only what was copied on purpose");
        let text = String::from_utf8(seen.bytes.clone()).unwrap();
        let bad = |letter: char| "\u{8}\u{9b}\u{202e}\u{200f}\u{feff}\u{2066}\u{c}".contains(letter);
        assert_eq!(text.find(bad), None);
        for asked in ["\u{1b}[c", "\u{1b}[5n", "\u{1b}[18t", "\u{1b}]11", "\u{1b}P", "\u{1b}[?1003h", "owned"] {
            assert!(!text.contains(asked), "{asked:?}");
        }
    });
    screen.keys("q");
    screen.ends();
}

#[test]
fn an_agent_without_a_terminal_has_no_screen_and_that_is_told() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
    screen.shows("report 3");
    screen.keys("9");
    screen.shows("`--pty` gives it one");
    screen.keys("q");
    screen.ends();
}

#[test]
fn a_long_raw_file_is_played_from_near_its_end_packed_or_not() {
    let frame = format!("\u{1b}[H{}", "all the same words again and again\r\n".repeat(20));
    let mut long = frame.repeat(40_000);
    long.push_str("\u{1b}[2J\u{1b}[3;3Hthe very end");
    let mut history = History::new();
    history.drawn(1, (24, 60), long.as_bytes()).drawn(2, (24, 60), b"short").over(Outcome::Complete, None);
    for packed in [false, true] {
        if packed {
            ralph::journal::raw::pack(&history.run().raw()).unwrap();
            assert!(history.run().raw().join("1.stdout.zst").exists());
        }
        let mut screen = Screen::start(ralph(&history, &["tui"]), 100, 30);
        screen.shows("complete");
        screen.keys("9[");
        screen.shows("the very end");
        #[cfg(target_os = "linux")]
        assert!(screen.megabytes() < 60, "{} MB", screen.megabytes());
        screen.keys("?");
        screen.shows("search the whole run");
        screen.keys("q");
        screen.keys("q");
        screen.ends();
    }
}
