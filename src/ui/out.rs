//! The one way out for text: everything that ralph prints passes here, so that nothing from a file, an agent or a failing
//! command reaches the terminal as a control sequence. Nobody else may use `io::stdout()` or `io::stderr()`.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use super::style::RESET;
use super::text::{is_obeyed, rows, safe};
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
    labelled(Label::Warning, &text.to_string());
}

/// Prints an error and its hints on standard error, without secrets: it may quote a command line, or an agent. It looks
/// like those of the command line's parser.
pub(crate) fn error(error: &UserError) {
    labelled(Label::Error, &error.message);
    error.hints.iter().for_each(|hint| labelled(Label::Hint, hint));
}

/// What is before a message on standard error.
#[derive(Clone, Copy)]
enum Label {
    Error,
    Warning,
    Hint,
}

impl Label {
    const fn word(self) -> &'static str {
        match self {
            Self::Error => "error:",
            Self::Warning => "warning:",
            Self::Hint => "hint:",
        }
    }

    /// The colours that the parser of the command line has, too.
    const fn sequence(self) -> &'static str {
        match self {
            Self::Error => "\u{1b}[1m\u{1b}[31m",
            Self::Warning => "\u{1b}[1m\u{1b}[33m",
            Self::Hint => "\u{1b}[32m",
        }
    }
}

/// Prints a message behind its label: in colour on a terminal, and broken between words.
fn labelled(label: Label, text: &str) {
    let mut text = text.to_owned();
    Redactor::of_process().clean(&mut text);
    let text = clean(&text, Colours::Replaced);
    let is_terminal = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let columns = if is_terminal { terminal_columns() } else { usize::MAX };
    let message = broken(label.word(), &text, columns);
    let is_painted = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let message = match message.strip_prefix(label.word()) {
        Some(rest) if is_painted => format!("{}{}{RESET}{rest}", label.sequence(), label.word()),
        _ => message,
    };
    // The reader may be gone.
    let _ = send(io::stderr(), &message);
}

/// The columns of the terminal on standard error.
fn terminal_columns() -> usize {
    rustix::termios::tcgetwinsize(rustix::stdio::stderr())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(80)
}

/// A message behind its label. Rows after the first are moved in; what a file says stays as it is.
fn broken(label: &str, text: &str, columns: usize) -> String {
    let mut message = String::new();
    for (at, line) in text.trim_end().split('\n').enumerate() {
        let line = if at == 0 { format!("{label} {line}") } else { line.to_owned() };
        for (at, row) in rows(&line, columns, columns.saturating_sub(2)).into_iter().enumerate() {
            message.push_str(if at == 0 { "" } else { "  " });
            message.push_str(&line[row]);
            message.push('\n');
        }
    }
    message
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
    fn a_message_is_broken_between_words() {
        let text = "no run has the id `abcd`\n  quoted line";
        assert_eq!(broken("error:", text, usize::MAX), "error: no run has the id `abcd`\n  quoted line\n");
        assert_eq!(broken("error:", "one two three", 14), "error: one two\n  three\n");
    }

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
