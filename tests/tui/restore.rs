//! The terminal is given back as it was, whatever ends the view.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use ralph::control::Order;
use ralph::journal::{Outcome, Receipt};
use ralph::ui::tui::{Actions, Options, Owner, Remote, show};
use ralph::ui::{Glyphs, Palette};
use rustix::process::Signal;

use super::history::{History, rich, run_of};
use super::pty::Screen;

pub fn ralph(history: &History, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "COLUMNS"] {
        command.env_remove(name);
    }
    command.args(args).current_dir(history.workspace()).env("RALPH_STATE_DIR", history.directory.path().join("state"));
    command
}

#[test]
fn leaving_gives_the_terminal_back() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    let mut screen = Screen::start(ralph(&history, &["tui"]), 80, 24);
    screen.shows("report 3");
    screen.seen(|seen| {
        let screen = seen.parser.screen();
        assert!(screen.alternate_screen() && screen.hide_cursor() && screen.bracketed_paste());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::PressRelease);
    });
    screen.keys("q");
    let (status, text) = screen.ends();
    assert_eq!(status.code(), Some(0));
    assert_eq!(text.trim(), "", "nothing is left behind");
}

#[test]
fn unix_signals_end_it_and_the_terminal_is_as_it_was() {
    let signals = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR2, Signal::ALARM, Signal::XFSZ];
    for signal in signals {
        let mut history = rich();
        history.flush();
        let screen = Screen::start(ralph(&history, &["tui"]), 80, 24);
        screen.shows("report 3");
        screen.signal(signal);
        let (status, _) = screen.ends();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
    }
}

#[test]
fn unix_signals_of_faults_that_another_process_sends_leave_the_terminal_as_it_was() {
    for signal in [Signal::ILL, Signal::FPE, Signal::SEGV, Signal::BUS] {
        let mut history = rich();
        history.flush();
        let screen = Screen::start(ralph(&history, &["tui"]), 80, 24);
        screen.shows("report 3");
        screen.signal(signal);
        let (status, _) = screen.ends();
        assert_eq!(status.signal(), Some(15), "{signal:?}: {status:?}");
    }
}

/// An order makes it panic.
struct Clumsy;

impl Actions for Clumsy {
    fn order(&mut self, _: &Order) -> Result<(), String> {
        panic!("dropped it")
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

const WORKSPACE: &str = "RALPH_TEST_PANIC_IN";

/// Not a test: what `a_panic_gives_the_terminal_back` starts in a terminal.
#[test]
#[ignore = "started by another test"]
fn panics_in_a_terminal() {
    let Some(workspace) = std::env::var_os(WORKSPACE) else { return };
    let directory = run_of(workspace.as_ref());
    let (palette, glyphs, actions) = (Palette::Colour, Glyphs::UNICODE, Box::new(Clumsy));
    let options = Options { directory, palette, glyphs, owner: Owner::Another, actions };
    show(options, &Remote::default()).unwrap();
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let mut history = rich();
    history.flush();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "restore::panics_in_a_terminal", "--ignored", "--nocapture", "--test-threads", "1"]);
    command.env(WORKSPACE, history.workspace());
    let mut screen = Screen::start(command, 80, 24);
    screen.shows("report 3");
    screen.keys("p");
    screen.until("the panic where it can be read", |text| text.contains("test result: FAILED"));
    let told = screen.seen(|seen| String::from_utf8_lossy(&seen.bytes).into_owned());
    let (_, after) = told.rsplit_once("\u{1b}[?1049l").unwrap();
    assert!(after.contains("dropped it"), "{after}");
    assert_eq!(screen.ends().0.code(), Some(101));
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let mut history = rich();
    history.flush();
    let output = ralph(&history, &["tui"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("`ralph tui` needs a terminal"), "{words}");
}

/// Somebody closes the window, or the connection is lost.
#[test]
fn a_terminal_that_is_gone_ends_the_view() {
    let mut history = rich();
    history.over(Outcome::Complete, None);
    let screen = Screen::start(ralph(&history, &["tui"]), 80, 24);
    screen.shows("report 3");
    let status = screen.hang_up();
    assert!(!status.success(), "{status:?}");
}

#[test]
fn a_terminal_that_is_gone_ends_a_run_that_is_over() {
    let workspace = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.args(["run", "x", "--tui", "--agent-cmd", "echo LOOP_COMPLETE"]).current_dir(workspace.path());
    let screen = Screen::start(command, 80, 24);
    screen.shows("the run is over");
    screen.hang_up();
}
