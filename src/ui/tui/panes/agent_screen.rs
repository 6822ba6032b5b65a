//! The agent's own screen: what it told its terminal, played through a terminal of ours.
//!
//! Nothing of its bytes goes further than the cells of that terminal, and a cell is drawn only when it is harmless. It
//! must never hang the view: it plays for some milliseconds at a time.

use std::io;
use std::num::NonZeroU16;
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;

use super::super::index::{LineFeed, Terminal};
use super::super::tail::{Step, Tail};
use super::super::theme::Theme;
use crate::event::Stream;
use crate::journal::raw;
use crate::ui::style::Ink;
use crate::ui::text::{harmless, is_obeyed};

/// The smallest terminal that is played, and the largest: a journal may say anything, and the emulator is at a loss with a
/// wide character where there is but one column.
const SMALLEST: u16 = 2;
const LARGEST: (u16, u16) = (500, 1000);
/// So much is played between two looks at the clock. A few bytes can tell a terminal to repeat a character 65,535 times.
const PIECE: usize = 256;
/// How far one press of a key moves the window to the side.
const SIDEWAYS: i32 = 8;

/// Where someone wants the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// Where the agent's cursor is.
    Cursor,
    /// Its upper left corner is at this row and column.
    At(u16, u16),
}

/// The screen of one iteration.
pub(crate) struct AgentScreen {
    entry: usize,
    parser: vt100::Parser,
    spelling: Spelling,
    /// Where the bytes come from, or why there are none.
    tail: Result<Tail, String>,
    window: Window,
    /// The rows and columns that the window had when it was last drawn.
    sight: (u16, u16),
}

impl AgentScreen {
    /// The screen of an entry, an iteration that has a terminal. It is empty until it is played.
    pub(crate) fn open(directory: &Path, entry: usize, iteration: u32, terminal: Terminal) -> Self {
        let side = |wanted: u16, most: u16| NonZeroU16::new(wanted.clamp(SMALLEST, most)).unwrap_or(NonZeroU16::MIN);
        let tail = Tail::open(&raw::find(directory, iteration, Stream::Stdout)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "the agent's screen was deleted".to_owned(),
            _ => format!("cannot read what the agent drew: {error}"),
        });
        Self {
            entry,
            parser: vt100::Parser::new(side(terminal.rows, LARGEST.0), side(terminal.columns, LARGEST.1), 0),
            spelling: Spelling { line_feed: terminal.line_feed, before: [0; 2] },
            tail,
            window: Window::Cursor,
            sight: (0, 0),
        }
    }

    /// Of which entry it is.
    pub(crate) const fn entry(&self) -> usize {
        self.entry
    }

    /// Plays on for at most this long. Says whether anything happened; then there may be more.
    pub(crate) fn play(&mut self, patience: Duration) -> Result<bool, String> {
        let start = Instant::now();
        let tail = self.tail.as_mut().map_err(|reason| reason.clone())?;
        let mut happened = false;
        let mut piece = [0; PIECE];
        let mut spelled = Vec::with_capacity(2 * PIECE);
        while start.elapsed() < patience {
            match tail.read(&mut piece) {
                Ok(Step::Read(count)) => {
                    spelled.clear();
                    self.spelling.spell(&piece[..count], &mut spelled);
                    self.parser.process(&spelled);
                }
                Ok(Step::Passed) => {}
                Ok(Step::End) => return Ok(happened),
                Err(error) => {
                    let reason = format!("cannot read what the agent drew: {error}");
                    self.tail = Err(reason.clone());
                    return Err(reason);
                }
            }
            happened = true;
        }
        Ok(happened)
    }

    /// Why there is nothing to see, if there is nothing.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.tail.as_ref().err().map(String::as_str)
    }

    /// What is on it, as harmless text.
    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents().lines().map(harmless).collect::<Vec<_>>().join("\n")
    }

    /// Moves the window up or down; false when it is there already.
    pub(crate) fn roll(&mut self, rows: isize) -> bool {
        let rows = i32::try_from(rows).unwrap_or(if rows < 0 { i32::MIN } else { i32::MAX });
        self.shift(rows, 0)
    }

    /// Moves the window to the side; false when it is at that side already.
    pub(crate) fn slide(&mut self, by: isize) -> bool {
        self.shift(0, if by < 0 { -SIDEWAYS } else { SIDEWAYS })
    }

    /// To the first row and column.
    pub(crate) const fn first(&mut self) {
        self.window = Window::At(0, 0);
    }

    /// To where the agent's cursor is, wherever it goes.
    pub(crate) const fn follow(&mut self) {
        self.window = Window::Cursor;
    }

    /// Moves the window as far as it can go. One that cannot move stays with the cursor, if it was there.
    fn shift(&mut self, rows: i32, columns: i32) -> bool {
        let (before, (top, left)) = (self.window, self.corner());
        let moved = |from: u16, by: i32| {
            let to = i32::from(from).saturating_add(by).clamp(0, i32::from(u16::MAX));
            u16::try_from(to).unwrap_or(0)
        };
        self.window = Window::At(moved(top, rows), moved(left, columns));
        let corner = self.corner();
        let moves = corner != (top, left);
        self.window = if moves { Window::At(corner.0, corner.1) } else { before };
        moves
    }

    /// How far the window can go down and to the right.
    fn furthest(&self) -> (u16, u16) {
        let (rows, columns) = self.parser.screen().size();
        (rows.get().saturating_sub(self.sight.0), columns.get().saturating_sub(self.sight.1))
    }

    /// The row and column in the window's upper left corner.
    fn corner(&self) -> (u16, u16) {
        let furthest = self.furthest();
        let (top, left) = match self.window {
            Window::At(top, left) => (top, left),
            Window::Cursor => {
                let (row, column) = self.parser.screen().cursor_position();
                let behind = |place: u16, sight: u16| (place + 1).saturating_sub(sight);
                (behind(row, self.sight.0), behind(column, self.sight.1))
            }
        };
        (top.min(furthest.0), left.min(furthest.1))
    }

    /// Draws the part of it that fits.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme) {
        let screen = self.parser.screen();
        let (rows, columns) = screen.size();
        // The last column shows where the window is, when there is more above or below.
        let edge = u16::from(rows.get() > area.height);
        self.sight = (area.height, area.width.saturating_sub(edge));
        let (top, left) = self.corner();
        let (height, width) = (self.sight.0.min(rows.get()), self.sight.1.min(columns.get()));
        let screen = self.parser.screen();
        for line in 0..height {
            for place in 0..width {
                let Some(cell) = screen.cell(top + line, left + place) else { continue };
                let (x, y) = (area.x + place, area.y + line);
                let mut style = theme.cell(cell);
                if !screen.hide_cursor() && screen.cursor_position() == (top + line, left + place) {
                    style = if cell.inverse() {
                        style.remove_modifier(Modifier::REVERSED)
                    } else {
                        style.add_modifier(Modifier::REVERSED)
                    };
                }
                // What is only half in sight is not shown.
                let fits = !cell.is_wide() || place + 1 < width;
                if cell.is_wide_continuation() && place > 0 {
                    buffer[(x, y)].set_style(style);
                } else if cell.has_contents() && !cell.is_wide_continuation() && fits {
                    buffer.set_stringn(x, y, shown(cell.contents()), usize::from(width - place), style);
                } else {
                    buffer[(x, y)].set_symbol(" ").set_style(style);
                }
            }
        }
        if edge > 0 && area.height > 0 {
            let place = u32::from(top) * u32::from(area.height - 1) / u32::from(self.furthest().0.max(1));
            let y = area.y + u16::try_from(place).unwrap_or(0);
            buffer.set_string(area.right() - 1, y, theme.glyphs.screen.thumb, theme.style(Ink::Dim));
        }
    }
}

/// What a cell says, without anything that another terminal would obey: a character that goes over its neighbours, that
/// glues the cells behind it to this one, or that makes it wider than it is here.
fn shown(contents: &str) -> String {
    let mut characters = contents.chars();
    let first = characters.next().map(|first| if is_obeyed(first) { '\u{fffd}' } else { first });
    let marks = characters.filter(|mark| !is_obeyed(*mark) && !matches!(mark, '\u{200d}' | '\u{fe00}'..='\u{fe0f}'));
    first.into_iter().chain(marks).collect()
}

/// Writes a terminal's bytes as the emulator understands them.
struct Spelling {
    line_feed: LineFeed,
    /// The last two bytes, since a sequence may be in two pieces.
    before: [u8; 2],
}

impl Spelling {
    fn spell(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for &byte in bytes {
            match (self.before, byte) {
                ([_, last], b'\n') if last != b'\r' && self.line_feed == LineFeed::NewLine => {
                    out.extend_from_slice(b"\r\n");
                }
                // Two ways to save and restore the cursor: the emulator knows the other one. Its escape character puts
                // an end to the sequence that was begun.
                ([0x1b, b'['], b's') => out.extend_from_slice(b"\x1b7"),
                ([0x1b, b'['], b'u') => out.extend_from_slice(b"\x1b8"),
                // "As a picture" (U+FE0F) makes the character before it wide after the fact, and where it is at the
                // edge, the emulator panics. "As a letter" (U+FE0E) lets it be as wide as it is.
                ([0xef, 0xb8], 0x8f) => out.push(0x8e),
                _ => out.push(byte),
            }
            self.before = [self.before[1], byte];
        }
    }
}

#[cfg(test)]
#[path = "agent_screen_tests.rs"]
mod tests;
