//! What a program draws on its terminal, as clean lines of text.
//!
//! Output without drawing goes through byte for byte, so that a terminal is no different from a pipe to a simple tool. From
//! the first sign that something is drawn, a small terminal is played, and a line comes out when it is final: when it is
//! further above the cursor than the program has ever gone up, or has left the screen, or the program has ended.

mod grid;

use grid::Grid;

/// A sequence that is longer than this without an end is none.
const LONGEST_SEQUENCE: usize = 4096;
/// A line under way is held so far: drawing may begin in it.
const LONGEST_LINE: usize = 64 * 1024;

/// Takes a terminal's bytes, gives lines.
pub(crate) struct Screen {
    mode: Mode,
    rows: usize,
    columns: usize,
}

enum Mode {
    /// Nothing was drawn yet.
    Stream {
        held: Vec<u8>,
        /// How much of it is known to draw nothing.
        checked: usize,
    },
    Drawn(Box<(vte::Parser, Grid)>),
}

impl Screen {
    /// A terminal of this size.
    pub(crate) fn new(rows: u16, columns: u16) -> Self {
        let mode = Mode::Stream { held: Vec::new(), checked: 0 };
        Self { mode, rows: usize::from(rows).max(2), columns: usize::from(columns).max(2) }
    }

    /// The terminal has another size.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        (self.rows, self.columns) = (usize::from(rows).max(2), usize::from(columns).max(2));
        if let Mode::Drawn(drawn) = &mut self.mode {
            drawn.1.resize(self.rows, self.columns);
        }
    }

    /// Takes bytes; appends the text that is final.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Mode::Stream { held, checked } = &mut self.mode else { return self.draw(bytes, out) };
        held.extend_from_slice(bytes);
        while let Some(found) = memchr::memchr3(b'\x1b', b'\r', b'\x08', &held[*checked..]) {
            let start = *checked + found;
            *checked = match sequence(&held[start..]) {
                Sequence::Plain(length) => start + length,
                Sequence::Unfinished if held.len() - start <= LONGEST_SEQUENCE => start,
                Sequence::Unfinished => start + 1,
                Sequence::Drawing => {
                    hand_on_lines(held, start, out);
                    let held = std::mem::take(held);
                    let grid = Grid::new(self.rows, self.columns);
                    self.mode = Mode::Drawn(Box::new((vte::Parser::new(), grid)));
                    return self.draw(&held, out);
                }
            };
            if *checked == start {
                *checked -= hand_on_lines(held, start, out);
                return;
            }
        }
        let length = held.len();
        *checked = length - hand_on_lines(held, length, out);
    }

    /// The program has ended: what is on its screen is final.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        match &mut self.mode {
            Mode::Stream { held, .. } => out.append(held),
            Mode::Drawn(drawn) => {
                drawn.1.finish();
                give(&mut drawn.1, out);
            }
        }
    }

    fn draw(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if let Mode::Drawn(drawn) = &mut self.mode {
            let (parser, grid) = &mut **drawn;
            parser.advance(grid, bytes);
            give(grid, out);
        }
    }
}

/// Hands on the lines that end before this place; says how many bytes that were. A very long line does not wait.
fn hand_on_lines(held: &mut Vec<u8>, before: usize, out: &mut Vec<u8>) -> usize {
    let end = memchr::memrchr(b'\n', &held[..before]).map_or(0, |end| end + 1);
    let end = if before - end > LONGEST_LINE { before } else { end };
    out.extend(held.drain(..end));
    end
}

/// Hands on the lines that are final.
fn give(grid: &mut Grid, out: &mut Vec<u8>) {
    for line in grid.lines.drain(..) {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
}

/// What a control character in a stream means.
enum Sequence {
    /// Nothing is drawn by these bytes.
    Plain(usize),
    Drawing,
    /// The end has not come.
    Unfinished,
}

fn sequence(bytes: &[u8]) -> Sequence {
    match bytes {
        [b'\r' | b'\x1b'] | [b'\r', b'\r'] => Sequence::Unfinished,
        [b'\r', b'\n', ..] => Sequence::Plain(2),
        [b'\r', b'\r', b'\n', ..] => Sequence::Plain(3),
        [b'\x1b', b'[', rest @ ..] => match rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
            None => Sequence::Unfinished,
            Some(end) => {
                let is_screen = matches!(&rest[..end], b"?1049" | b"?47" | b"?1047") && rest[end] == b'h';
                // Up, down, to a place, erase, insert, delete, scroll.
                if is_screen || matches!(rest[end], b'A'..=b'H' | b'f' | b'd' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'r')
                {
                    Sequence::Drawing
                } else {
                    Sequence::Plain(2 + end + 1)
                }
            }
        },
        // Strings end with BEL or ST.
        [b'\x1b', b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => {
            match rest.iter().position(|byte| matches!(byte, b'\x07' | b'\x1b')) {
                None => Sequence::Unfinished,
                Some(end) => Sequence::Plain(2 + end + 1),
            }
        }
        [b'\x1b', b'M' | b'7' | b'8' | b'c', ..] | [b'\r' | b'\x08', ..] => Sequence::Drawing,
        _ => Sequence::Plain(1),
    }
}

#[cfg(test)]
#[path = "screen/tests.rs"]
mod tests;
