//! Keys, clicks and pasted text, read from the terminal.
//!
//! It must never wait for the rest of anything: half a sequence is a key that was pressed alone, or is forgotten. A
//! terminal that is gone is an error, and not read again and again.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// The bytes of one key come together; what does not come within this belongs to another.
const TOGETHER: Duration = Duration::from_millis(50);
/// A pasted text may come in pieces that are so far apart.
const PASTED_TOGETHER: Duration = Duration::from_secs(1);
/// More is not pasted at once.
const LONGEST_PASTE: usize = 1024 * 1024;
/// No sequence is longer.
const LONGEST: usize = 64;

const PASTE: &[u8] = b"\x1b[200~";
const PASTED: &[u8] = b"\x1b[201~";

/// The keyboard, and the mouse, of the terminal at standard input.
pub(crate) struct Keyboard {
    /// What has come and is no whole sequence yet.
    held: Vec<u8>,
    /// When the last of it came.
    came: Instant,
    ready: VecDeque<Event>,
}

/// What is at the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
enum Sequence {
    /// An event, and how many bytes it takes.
    Whole(Event, usize),
    /// This many bytes that mean nothing here.
    Nothing(usize),
    /// The beginning of something.
    Half,
}

impl Keyboard {
    /// Nothing was pressed yet.
    pub(crate) fn new() -> Self {
        Self { held: Vec::new(), came: Instant::now(), ready: VecDeque::new() }
    }

    /// The next event; `None` when none comes in this time.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<Event>> {
        if self.ready.is_empty() {
            let patience = if self.held.is_empty() { patience } else { patience.min(TOGETHER) };
            if wait(patience)? {
                let mut bytes = [0; 4096];
                match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                    Ok(0) => return Err(gone()),
                    Ok(count) => self.take(&bytes[..count]),
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(error) => return Err(error.into()),
                }
            } else {
                self.give_up_waiting(self.came.elapsed());
            }
        }
        Ok(self.ready.pop_front())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.came = Instant::now();
        self.held.extend_from_slice(bytes);
        let mut start = 0;
        loop {
            match first(&self.held[start..]) {
                Sequence::Whole(event, length) => {
                    self.ready.push_back(event);
                    start += length;
                }
                Sequence::Nothing(length) => start += length,
                Sequence::Half => break,
            }
        }
        self.held.drain(..start);
    }

    /// The rest of what is held does not come.
    fn give_up_waiting(&mut self, waited: Duration) {
        let pasting = self.held.starts_with(PASTE);
        if waited < if pasting { PASTED_TOGETHER } else { TOGETHER } {
            return;
        }
        let held = std::mem::take(&mut self.held);
        match held.as_slice() {
            [0x1b] => self.ready.push_back(key(KeyCode::Esc)),
            [0x1b, letter @ (b'[' | b'O')] => self.ready.push_back(with_alt(char::from(*letter))),
            _ if pasting => self.ready.push_back(pasted(&held[PASTE.len()..])),
            _ => {}
        }
    }
}

/// Waits until there is something to read; false when there is nothing in this time.
fn wait(patience: Duration) -> io::Result<bool> {
    let mut keyboard = [PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN)];
    let patience = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: patience.subsec_nanos().into() };
    match rustix::event::poll(&mut keyboard, Some(&patience)) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let flags = keyboard[0].revents();
    if flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(gone());
    }
    Ok(flags.contains(PollFlags::IN))
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the terminal is gone")
}

fn first(bytes: &[u8]) -> Sequence {
    match bytes {
        [] | [0x1b] | [0x1b, b'O'] => Sequence::Half,
        [0x1b, b'[', rest @ ..] => control_sequence(bytes, rest),
        [0x1b, b'O', letter, ..] => whole(named(*letter), 3),
        // Escape was pressed, and then something else came.
        [0x1b, 0x1b, ..] => Sequence::Whole(key(KeyCode::Esc), 1),
        [0x1b, rest @ ..] => match character(rest) {
            Sequence::Whole(Event::Key(KeyEvent { code: KeyCode::Char(letter), .. }), length) => {
                Sequence::Whole(with_alt(letter), length + 1)
            }
            Sequence::Half => Sequence::Half,
            _ => Sequence::Whole(key(KeyCode::Esc), 1),
        },
        _ => character(bytes),
    }
}

/// A key that is one character.
fn character(bytes: &[u8]) -> Sequence {
    let control = |letter: u8| {
        let event = KeyEvent::new(KeyCode::Char(char::from(letter)), KeyModifiers::CONTROL);
        Sequence::Whole(Event::Key(event), 1)
    };
    match bytes[0] {
        b'\r' | b'\n' => whole(Some(KeyCode::Enter), 1),
        b'\t' => whole(Some(KeyCode::Tab), 1),
        0x7f | 0x08 => whole(Some(KeyCode::Backspace), 1),
        0 => control(b' '),
        letter @ 0x01..=0x1a => control(letter - 1 + b'a'),
        0x1b..=0x1f => Sequence::Nothing(1),
        _ => {
            let end = bytes.len().min(4);
            let valid = match std::str::from_utf8(&bytes[..end]) {
                Ok(text) => text,
                Err(error) if error.valid_up_to() > 0 => {
                    std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
                }
                Err(error) if error.error_len().is_none() => return Sequence::Half,
                Err(_) => return Sequence::Nothing(1),
            };
            let letter = valid.chars().next().unwrap_or_default();
            whole(Some(KeyCode::Char(letter)), letter.len_utf8())
        }
    }
}

/// `ESC [`, numbers, and a letter that says what they mean.
fn control_sequence(bytes: &[u8], rest: &[u8]) -> Sequence {
    if bytes.starts_with(PASTE) {
        let text = &bytes[PASTE.len()..];
        return match memchr::memmem::find(text, PASTED) {
            Some(end) => Sequence::Whole(pasted(&text[..end]), PASTE.len() + end + PASTED.len()),
            None if text.len() > LONGEST_PASTE => Sequence::Whole(pasted(text), bytes.len()),
            None => Sequence::Half,
        };
    }
    // The console of Linux has one letter more.
    if let [b'[', letter, ..] = rest {
        return whole((*letter == b'A').then_some(KeyCode::F(1)), 4);
    }
    let Some(end) = rest.iter().position(|byte| !matches!(byte, 0x20..=0x3f)) else {
        return if rest.len() > LONGEST { Sequence::Nothing(bytes.len()) } else { Sequence::Half };
    };
    if rest == b"[" {
        return Sequence::Half;
    }
    let (numbers, letter, length) = (&rest[..end], rest[end], 2 + end + 1);
    if !matches!(letter, 0x40..=0x7e) {
        return Sequence::Nothing(length - 1);
    }
    if let [b'<', numbers @ ..] = numbers {
        return mouse(numbers, letter).map_or(Sequence::Nothing(length), |event| Sequence::Whole(event, length));
    }
    if letter != b'~' {
        return whole(named(letter), length);
    }
    let number = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    let code = match number {
        b"1" | b"7" => Some(KeyCode::Home),
        b"4" | b"8" => Some(KeyCode::End),
        b"3" => Some(KeyCode::Delete),
        b"5" => Some(KeyCode::PageUp),
        b"6" => Some(KeyCode::PageDown),
        b"11" => Some(KeyCode::F(1)),
        _ => None,
    };
    whole(code, length)
}

/// A key by the letter that ends its sequence.
const fn named(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'Z' => KeyCode::BackTab,
        b'P' => KeyCode::F(1),
        b'M' => KeyCode::Enter,
        _ => return None,
    })
}

/// `button;column;row`, counted from 1; a capital letter for a press.
fn mouse(numbers: &[u8], letter: u8) -> Option<Event> {
    let mut numbers = std::str::from_utf8(numbers).ok()?.split(';').map(str::parse::<u16>);
    let mut number = || numbers.next()?.ok();
    let (button, column, row) = (number()?, number()?, number()?);
    let kind = match (button & !0b1_1100, letter) {
        (0, b'M') => MouseEventKind::Down(MouseButton::Left),
        (64, b'M') => MouseEventKind::ScrollUp,
        (65, b'M') => MouseEventKind::ScrollDown,
        _ => return None,
    };
    let place = |number: u16| number.saturating_sub(1);
    Some(Event::Mouse(MouseEvent { kind, column: place(column), row: place(row), modifiers: KeyModifiers::NONE }))
}

fn pasted(text: &[u8]) -> Event {
    Event::Paste(String::from_utf8_lossy(text).into_owned())
}

fn key(code: KeyCode) -> Event {
    Event::Key(code.into())
}

fn with_alt(letter: char) -> Event {
    Event::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT))
}

fn whole(code: Option<KeyCode>, length: usize) -> Sequence {
    code.map_or(Sequence::Nothing(length), |code| Sequence::Whole(key(code), length))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
