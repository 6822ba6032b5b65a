//! The one way out for text: everything that ralph prints passes here, so that nothing from a file, an agent or a failing
//! command reaches the terminal as a control sequence. Nobody else may use `io::stdout()` or `io::stderr()`.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use super::text::{is_obeyed, safe};
use crate::error::UserError;
use crate::redact::Redactor;

/// Prints text for people on standard output. Line breaks and tabs stay.
pub(crate) fn print(text: &str) -> io::Result<()> {
    send(io::stdout(), &clean(text, Colours::Replaced))
}

/// Prints text that ralph has painted: colours stay, too.
pub(crate) fn print_painted(text: &str) -> io::Result<()> {
    send(io::stdout(), &clean(text, Colours::Kept))
}

/// Prints lines on standard error, without secrets.
pub(crate) fn tell(text: impl Display) {
    let mut text = format!("{text}\n");
    Redactor::of_process().clean(&mut text);
    // The reader may be gone.
    let _ = send(io::stderr(), &clean(&text, Colours::Replaced));
}

/// Prints a warning on standard error, without secrets.
pub(crate) fn warn(text: impl Display) {
    tell(format_args!("warning: {text}"));
}

/// Prints an error and its hints on standard error, without secrets: it may quote a command line, or an agent.
pub(crate) fn error(error: &UserError) {
    tell(error);
}

/// Asks on standard error; the answer is typed behind the question.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    send(io::stderr(), &clean(question, Colours::Replaced))
}

/// True when a person can be asked on standard error.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// True when standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Standard output for a view, which writes styled spans of harmless text, and for programs that only other programs
/// read. Text from anywhere else goes through [`print()`] or [`Data`].
pub(crate) fn stdout() -> io::Stdout {
    io::stdout()
}

/// Standard error for programs that only other programs read.
pub(crate) fn stderr() -> io::Stderr {
    io::stderr()
}

/// Standard output for what another program may need byte for byte: raw output, exports, dialects. Made harmless only
/// on a terminal.
#[derive(Debug)]
pub(crate) struct Data {
    out: io::Stdout,
    /// The line under way, where the output is a terminal.
    line: Option<Vec<u8>>,
}

impl Data {
    /// Writes to standard output.
    pub(crate) fn on_stdout() -> Self {
        Self { out: io::stdout(), line: is_terminal().then(Vec::new) }
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(line) = &mut self.line else { return self.out.write(bytes) };
        line.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', line) {
            let whole: Vec<u8> = line.drain(..=end).collect();
            self.out.write_all(clean(&String::from_utf8_lossy(&whole), Colours::Replaced).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(line) = &mut self.line {
            let rest = std::mem::take(line);
            self.out.write_all(clean(&String::from_utf8_lossy(&rest), Colours::Replaced).as_bytes())?;
        }
        self.out.flush()
    }
}

/// What happens to sequences that only set colours.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Colours {
    Kept,
    Replaced,
}

fn send(mut out: impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// True when a terminal only shows the text.
pub(crate) fn is_clean(text: &str) -> bool {
    !text.chars().any(|character| !matches!(character, '\n' | '\t') && is_obeyed(character))
}

fn clean(text: &str, colours: Colours) -> Cow<'_, str> {
    if is_clean(text) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let mut line = line.strip_suffix('\r').filter(|_| !end.is_empty()).unwrap_or(line);
        while let Some(escape) = line.find('\u{1b}').filter(|_| colours == Colours::Kept) {
            let length = colour_sequence(&line[escape..]).unwrap_or(0);
            push(&mut cleaned, &line[..escape]);
            cleaned.push_str(&line[escape..escape + length]);
            if length == 0 {
                cleaned.push('\u{241b}');
            }
            line = &line[escape + length.max(1)..];
        }
        push(&mut cleaned, line);
        cleaned.push_str(end);
    }
    Cow::Owned(cleaned)
}

fn push(cleaned: &mut String, text: &str) {
    for (at, part) in text.split('\t').enumerate() {
        if at > 0 {
            cleaned.push('\t');
        }
        cleaned.push_str(&safe(part));
    }
}

/// The length of `ESC [ 1 ; 31 m` at the start of the text.
fn colour_sequence(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|character: char| !character.is_ascii_digit() && character != ';')?;
    parameters[end..].starts_with('m').then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_line_breaks_tabs_and_own_colours_stay() {
        let hostile = "a\tb\r\n\u{1b}[31mred\u{1b}[0m\u{1b}[2J\u{9b}1m\u{1b}]0;x\u{7}\u{1b}";
        let plain = clean(hostile, Colours::Replaced);
        assert!(is_clean(&plain) && plain.starts_with("a\tb\n\u{241b}[31mred"), "{plain:?}");
        let painted = clean(hostile, Colours::Kept);
        assert!(painted.starts_with("a\tb\n\u{1b}[31mred\u{1b}[0m\u{241b}[2J"), "{painted:?}");
        assert_eq!(painted.matches('\u{1b}').count(), 2, "{painted:?}");
        assert_eq!(clean("plain é\n", Colours::Kept), "plain é\n");
    }
}
