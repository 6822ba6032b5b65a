//! The keys: one table for what they do, for the help on the screen and for the documentation.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::panes::Pane;
use super::search::Direction;

/// What a person wants of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAction {
    Step(isize),
    Screenful(isize),
    First,
    /// To the last row, and follow.
    Last,
    /// The other side: list or pane.
    Side,
    /// The iteration before or after.
    Iteration(isize),
    Show(Pane),
    /// The pane before or after.
    NextPane(isize),
    /// Open or close what is pointed at.
    Toggle,
    /// Open or close all tools.
    Tools,
    /// Open or close all thinking.
    Thinking,
    /// The next tool, or the one before.
    Tool(Direction),
    Search,
    Again(Direction),
    Follow,
    /// Copy what is pointed at.
    Copy,
    /// Write the transcript to a file.
    Write,
    /// Standard output or standard error.
    Stream,
    Pause,
    /// Stop after this iteration.
    Stop,
    StopNow,
    Hint,
    Answer,
    Retry,
    Limit,
    /// Let the terminal have the mouse.
    Mouse,
    Help,
    /// Redraw the screen.
    Redraw,
    /// Back, or away with a message.
    Back,
    Leave,
    Interrupt,
    Suspend,
}

/// One line of the help.
pub struct Key {
    /// As it is written on the keyboard.
    pub keys: &'static str,
    /// What it does.
    pub does: &'static str,
    /// In one or two words, for the last line of the screen; empty when it is not shown there.
    pub short: &'static str,
}

/// All keys, by what they are for.
pub const KEYS: &[(&str, &[Key])] = &[
    (
        "Move",
        &[
            key("↑ ↓ j k", "one row; in the list, one iteration", ""),
            key("PgUp PgDn b space", "one screen", ""),
            key("g G Home End", "the first row; the last row, and follow what comes", ""),
            key("[ ]", "the iteration before, after", "iteration"),
            key("Tab", "list or pane", "list"),
            key("1…9 ← →", "a pane: transcript, plan, tools, files, events, usage, checks, raw, screen", "panes"),
        ],
    ),
    (
        "Read",
        &[
            key("Enter", "open or close a tool, thinking, a file; in the list and the tools: show it", "open"),
            key("o O", "open or close all tools; all thinking", ""),
            key("t T", "the next tool; the one before", ""),
            key("/ n N", "search the whole run; the next place; the one before", "search"),
            key("f", "follow what comes, or stay", "follow"),
            key("y", "copy what is pointed at (OSC 52)", ""),
            key("w", "write the iteration's transcript to a file", ""),
            key("e", "in raw: standard output or standard error", ""),
        ],
    ),
    (
        "Steer",
        &[
            key("p", "pause after this iteration, or continue", "pause"),
            key("s", "stop after this iteration", "stop"),
            key("S", "stop now, with the agent", ""),
            key("i", "a hint for the next iteration", "hint"),
            key(
                "a",
                "all runs on this machine; where the run ended with a question: answer it, and resume",
                "all runs",
            ),
            key("r", "retry now instead of waiting for a rate limit", ""),
            key("l", "another limit: 200 (iterations), $5, 2h", ""),
        ],
    ),
    (
        "View",
        &[
            key("m", "let the terminal have the mouse, for selecting text, or take it back", ""),
            key("?", "these keys", "help"),
            key("Ctrl-L", "redraw the screen", ""),
            key("q", "leave", "leave"),
            key("Ctrl-Z", "suspend, with the agent in `ralph run --tui`; `fg` continues", ""),
            key("Ctrl-C", "in `ralph run --tui`: ask the agent to stop; elsewhere: leave", ""),
        ],
    ),
];

const fn key(keys: &'static str, does: &'static str, short: &'static str) -> Key {
    Key { keys, does, short }
}

/// What a key means outside of an input line.
pub(crate) fn action(key: KeyEvent) -> Option<KeyAction> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return Some(match key.code {
            KeyCode::Char('c') => KeyAction::Interrupt,
            KeyCode::Char('z') => KeyAction::Suspend,
            KeyCode::Char('l') => KeyAction::Redraw,
            KeyCode::Char('f') => KeyAction::Screenful(1),
            KeyCode::Char('b') => KeyAction::Screenful(-1),
            _ => return None,
        });
    }
    Some(match key.code {
        KeyCode::Up | KeyCode::Char('k') => KeyAction::Step(-1),
        KeyCode::Down | KeyCode::Char('j') => KeyAction::Step(1),
        KeyCode::PageUp | KeyCode::Char('b') => KeyAction::Screenful(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => KeyAction::Screenful(1),
        KeyCode::Home | KeyCode::Char('g') => KeyAction::First,
        KeyCode::End | KeyCode::Char('G') => KeyAction::Last,
        KeyCode::Tab | KeyCode::BackTab => KeyAction::Side,
        KeyCode::Char('[') => KeyAction::Iteration(-1),
        KeyCode::Char(']') => KeyAction::Iteration(1),
        KeyCode::Left => KeyAction::NextPane(-1),
        KeyCode::Right => KeyAction::NextPane(1),
        KeyCode::Char(digit @ '1'..='9') => KeyAction::Show(Pane::ALL[usize::from(digit as u8 - b'1')]),
        KeyCode::Enter => KeyAction::Toggle,
        KeyCode::Char('o') => KeyAction::Tools,
        KeyCode::Char('O') => KeyAction::Thinking,
        KeyCode::Char('t') => KeyAction::Tool(Direction::Forward),
        KeyCode::Char('T') => KeyAction::Tool(Direction::Backward),
        KeyCode::Char('/') => KeyAction::Search,
        KeyCode::Char('n') => KeyAction::Again(Direction::Forward),
        KeyCode::Char('N') => KeyAction::Again(Direction::Backward),
        KeyCode::Char('f') => KeyAction::Follow,
        KeyCode::Char('y') => KeyAction::Copy,
        KeyCode::Char('w') => KeyAction::Write,
        KeyCode::Char('e') => KeyAction::Stream,
        KeyCode::Char('p') => KeyAction::Pause,
        KeyCode::Char('s') => KeyAction::Stop,
        KeyCode::Char('S') => KeyAction::StopNow,
        KeyCode::Char('i') => KeyAction::Hint,
        KeyCode::Char('a') => KeyAction::Answer,
        KeyCode::Char('r') => KeyAction::Retry,
        KeyCode::Char('l') => KeyAction::Limit,
        KeyCode::Char('m') => KeyAction::Mouse,
        KeyCode::Char('?') | KeyCode::F(1) => KeyAction::Help,
        KeyCode::Char('q') => KeyAction::Leave,
        KeyCode::Esc => KeyAction::Back,
        _ => return None,
    })
}
