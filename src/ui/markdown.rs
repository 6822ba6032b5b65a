//! The agent's Markdown as lines for a terminal, while it streams: each line is taken once, and never changed after it
//! was given out. Only a table is held, until it is over or someone wants to see it.
//!
//! What is not understood stays as it was written: no word of an agent may get lost here.

mod inline;
mod table;

use super::diff::{self, Diff};
use super::style::{Glyphs, Ink};
use super::styled::Styled;
use super::text::safe;
use table::{Table, is_delimiter, is_row};

/// A longer line is no prose, and is not looked at.
const LONGEST: usize = 4096;

/// What has been seen of a text so far.
#[derive(Debug)]
pub(crate) struct Markdown {
    glyphs: Glyphs,
    state: BlockState,
    diff: Diff,
}

#[derive(Debug)]
enum BlockState {
    Text,
    /// Code, until this sign comes again this many times.
    Fence {
        sign: u8,
        length: usize,
        content: Content,
    },
    /// What may be the heading of a table.
    Heading(String),
    Table(Table),
}

/// What is in a fence, by its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Code,
    Difference,
}

impl Markdown {
    /// At the beginning of a text.
    pub(crate) fn new(glyphs: Glyphs) -> Self {
        Self { glyphs, state: BlockState::Text, diff: Diff::default() }
    }

    /// True for a line that is shown as it is: nothing in it, or before it, gives it a meaning.
    pub(crate) fn is_plain(&self, line: &str) -> bool {
        if !matches!(self.state, BlockState::Text) || self.diff == Diff::Inside {
            return false;
        }
        let mut bytes = line.bytes();
        let Some(first) = bytes.find(|byte| !matches!(byte, b' ' | b'\t')) else { return true };
        !matches!(first, b'#' | b'>' | b'-' | b'+' | b'|' | b'~' | b'@' | b'0'..=b'9')
            && !line.starts_with("diff ")
            && !line.starts_with("Index: ")
            && !is_inline(first)
            && !bytes.any(is_inline)
            && first == line.as_bytes()[0]
    }

    /// Takes a line; gives the lines that are shown.
    pub(crate) fn line(&mut self, line: &str, columns: usize, out: &mut Vec<Styled>) {
        let line = safe(line);
        let trimmed = line.trim_start();
        match &mut self.state {
            BlockState::Fence { sign, length, content } => {
                let ink = match content {
                    Content::Code => Ink::Code,
                    Content::Difference => diff::ink(&line).unwrap_or(Ink::None),
                };
                if closes(trimmed, *sign, *length) {
                    self.state = BlockState::Text;
                } else {
                    out.push(code(&self.glyphs, &line, ink));
                }
                return;
            }
            BlockState::Heading(heading) => {
                if is_delimiter(trimmed) {
                    self.state = BlockState::Table(Table::new(heading, trimmed));
                    return;
                }
                self.end(columns, out);
            }
            BlockState::Table(table) => {
                if is_row(trimmed) {
                    table.row(trimmed, columns, &self.glyphs, out);
                    return;
                }
                self.end(columns, out);
            }
            BlockState::Text => {}
        }
        if is_row(trimmed) && line.len() <= LONGEST {
            self.state = BlockState::Heading(line.into_owned());
            return;
        }
        if let Some((sign, length, label)) = opens(trimmed) {
            let content = if matches!(label, "diff" | "patch") { Content::Difference } else { Content::Code };
            if !label.is_empty() {
                out.push(code(&self.glyphs, label, Ink::Dim));
            }
            self.state = BlockState::Fence { sign, length, content };
            return;
        }
        if let Some(ink) = self.diff.line(&line) {
            out.push(Styled::new(line, ink));
            return;
        }
        out.push(self.block(&line, columns));
    }

    /// Gives what is held, because someone waits; more of the same may come.
    pub(crate) fn pause(&mut self, columns: usize, out: &mut Vec<Styled>) {
        match &mut self.state {
            BlockState::Table(table) => table.give(columns, &self.glyphs, out),
            BlockState::Heading(_) => self.end(columns, out),
            BlockState::Text | BlockState::Fence { .. } => {}
        }
    }

    /// The text is over: gives what is held.
    pub(crate) fn end(&mut self, columns: usize, out: &mut Vec<Styled>) {
        match std::mem::replace(&mut self.state, BlockState::Text) {
            BlockState::Heading(line) => out.push(inline::styled(&line, Ink::None)),
            BlockState::Table(mut table) => table.give(columns, &self.glyphs, out),
            BlockState::Text | BlockState::Fence { .. } => {}
        }
    }

    /// Everything but fences and tables: a block is one line.
    fn block(&self, line: &str, columns: usize) -> Styled {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if line.len() > LONGEST {
            return Styled::new(line, Ink::None);
        }
        let glyphs = &self.glyphs;
        if let Some((level, words)) = heading(trimmed) {
            return inline::styled(words, if level == 1 { Ink::Heading } else { Ink::Strong });
        }
        if is_rule(trimmed) {
            return Styled::new(glyphs.rule.repeat(columns.min(40)), Ink::Dim);
        }
        if let Some(words) = trimmed.strip_prefix('>') {
            let mut quote = Styled::new(format!("{} ", glyphs.quote), Ink::Dim);
            quote.append(&inline::styled(words.trim_start(), Ink::Dim));
            return quote.hanging(2);
        }
        let (mark, words) = match item(trimmed) {
            Some((mark, words)) if mark.len() == 1 => (glyphs.bullet, words),
            Some((mark, words)) => (mark, words),
            None => ("", trimmed),
        };
        let mut styled = Styled::new(&line[..indent], Ink::None);
        if !mark.is_empty() {
            styled.push(&format!("{mark} "), Ink::Dim);
        }
        let hang = styled.width();
        styled.append(&inline::styled(words, Ink::None));
        styled.hanging(hang)
    }
}

/// Bytes that can begin something inside a line.
const fn is_inline(byte: u8) -> bool {
    matches!(byte, b'*' | b'_' | b'`' | b'~' | b'[' | b'\\') || !matches!(byte, 0x20..=0x7e)
}

fn code(glyphs: &Glyphs, line: &str, ink: Ink) -> Styled {
    let mut styled = Styled::new(format!("{} ", glyphs.code).trim_start(), Ink::Dim);
    let hang = styled.width();
    styled.push(line, ink);
    styled.hanging(hang)
}

/// The sign, length and label of a fence that begins.
fn opens(line: &str) -> Option<(u8, usize, &str)> {
    let sign = line.bytes().next().filter(|sign| matches!(sign, b'`' | b'~'))?;
    let length = line.bytes().take_while(|byte| *byte == sign).count();
    let label = line[length..].trim();
    (length >= 3 && !(sign == b'`' && label.contains('`'))).then_some((sign, length, label))
}

fn closes(line: &str, sign: u8, length: usize) -> bool {
    let line = line.trim_end();
    line.len() >= length && line.bytes().all(|byte| byte == sign)
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let words = line[level..].strip_prefix(' ')?.trim();
    ((1..=6).contains(&level) && !words.is_empty()).then(|| (level, words.trim_end_matches('#').trim_end()))
}

fn is_rule(line: &str) -> bool {
    let Some(sign) = line.bytes().next().filter(|sign| matches!(sign, b'-' | b'*' | b'_')) else { return false };
    let signs = line.bytes().filter(|byte| *byte == sign).count();
    signs >= 3 && line.bytes().all(|byte| byte == sign || byte == b' ')
}

/// The mark of an item of a list, and its words.
fn item(line: &str) -> Option<(&str, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match (digits, line.as_bytes().get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=9, b'.' | b')') => digits + 1,
        _ => return None,
    };
    Some((&line[..mark], line[mark..].strip_prefix(' ')?.trim_start()))
}

#[cfg(test)]
#[path = "markdown/tests.rs"]
mod tests;
