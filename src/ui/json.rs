//! Records as JSON lines, the very lines of the journal: for other programs. Someone may still look at them on a
//! terminal, so that what a terminal obeys is written as JSON's own escapes.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::View;
use super::text::is_obeyed;
use crate::journal::Record;

/// Writes each record as a line.
pub(crate) struct JsonView<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write + Send> JsonView<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }
}

impl<W: Write + Send> View for JsonView<W> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        record.write_line(&mut self.line)?;
        match escaped(&self.line) {
            Some(safe) => self.out.write_all(safe.as_bytes()),
            None => self.out.write_all(&self.line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// JSON over several lines, for people and programs.
pub(crate) fn pretty(value: &serde_json::Value) -> String {
    let text = format!("{value:#}\n");
    escaped(text.as_bytes()).unwrap_or(text)
}

/// The same JSON without characters that a terminal obeys; `None` when there are none. They occur only in strings.
pub(crate) fn escaped(json: &[u8]) -> Option<String> {
    // DEL, and how all others begin in UTF-8.
    memchr::memchr3(0x7f, 0xc2, 0xe2, json)?;
    let text = String::from_utf8_lossy(json);
    if !text.chars().any(is_special) {
        return None;
    }
    let mut safe = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        if is_special(character) {
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    Some(safe)
}

/// Line breaks of pretty JSON stay.
fn is_special(character: char) -> bool {
    character != '\n' && is_obeyed(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reads_the_same_and_is_harmless() {
        let value = serde_json::json!({"text": "a\u{9b}2J\u{7f}\u{202e}é日"});
        let text = pretty(&value);
        assert!(!text.contains(['\u{9b}', '\u{7f}', '\u{202e}']) && text.contains("é日"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert_eq!(escaped("plain é".as_bytes()), None);
    }
}
