//! Where the line view writes: lines that stay, and below them, on a terminal, a few that change.
//!
//! A line that stays is written once. Whatever is to stay goes through here, so that the changing lines are always taken
//! away before it.

use std::io::{self, Write};

use crate::ui::appearance::{Appearance, Letters, Motion, Place};
use crate::ui::style::{Ink, Palette, RESET};
use crate::ui::styled::Styled;
use crate::ui::text::{cut, rows, safe, width};

/// The width of the longest tag or callout.
const TAG_WIDTH: usize = 7;
const BLANKS: &str = "       ";
/// Room for what the terminal itself writes behind the last row, such as `^C`.
const MARGIN: usize = 3;

/// What is before a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub tag: &'static str,
    pub ink: Ink,
    pub gutter: &'static str,
}

pub(super) struct Output<W: Write> {
    out: io::BufWriter<W>,
    pub appearance: Appearance,
    /// The columns there are.
    width: usize,
    /// The changing lines that are on the terminal now.
    drawn: Vec<String>,
    /// The line being put together; kept for its memory.
    line: String,
    /// The tag of the newest line that has one; none after a line without a head.
    last_tag: &'static str,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(out: W, appearance: Appearance) -> Self {
        let out = io::BufWriter::with_capacity(64 * 1024, out);
        let mut output = Self { out, appearance, width: 80, drawn: Vec::new(), line: String::new(), last_tag: "" };
        output.measure();
        output
    }

    /// Looks how wide the terminal is now.
    pub(crate) fn measure(&mut self) {
        self.width = self.appearance.columns.count();
    }

    /// The columns behind a head.
    pub(crate) fn room(&self) -> usize {
        self.width.saturating_sub(TAG_WIDTH + 3)
    }

    /// The same for a line that changes.
    pub(crate) fn live_room(&self) -> usize {
        self.room().saturating_sub(MARGIN)
    }

    /// True when the newest line belongs to this tag.
    pub(crate) fn continues(&self, tag: &str) -> bool {
        self.last_tag == tag
    }

    /// One line behind a head, broken where it must be.
    pub(crate) fn row(&mut self, head: Head, text: &str, ink: Ink) -> io::Result<()> {
        let text = text.trim_end();
        if text.len() <= self.room() {
            return self.head_and(head, |line, palette| paint(line, palette, ink, text));
        }
        let room = self.room();
        for (at, row) in rows(text, room, room).into_iter().enumerate() {
            let head = if at == 0 { head } else { Head { tag: "", ..head } };
            self.head_and(head, |line, palette| paint(line, palette, ink, &text[row]))?;
        }
        Ok(())
    }

    /// The same with words in several inks.
    pub(crate) fn styled(&mut self, head: Head, text: &Styled) -> io::Result<()> {
        for (at, row) in text.split(self.room()).iter().enumerate() {
            let head = if at == 0 { head } else { Head { tag: "", ..head } };
            self.head_and(head, |line, palette| line.push_str(row.painted(palette).trim_end()))?;
        }
        Ok(())
    }

    pub(crate) fn line(&mut self, text: &str, ink: Ink) -> io::Result<()> {
        self.last_tag = "";
        for row in rows(text, self.width, self.width) {
            self.line.clear();
            paint(&mut self.line, self.appearance.palette, ink, &text[row]);
            self.commit()?;
        }
        Ok(())
    }

    /// A line across, with a title, and perhaps something at its end.
    pub(crate) fn rule(&mut self, title: &str, end: &str, ink: Ink) -> io::Result<()> {
        let sign = self.appearance.glyphs.rule;
        if sign.is_empty() {
            let comma = if end.is_empty() { "" } else { ", " };
            return self.line(&format!("{title}{comma}{end}"), ink);
        }
        let columns = if self.width == usize::MAX { 80 } else { self.width };
        let end = if end.is_empty() { String::new() } else { format!(" {end} {}", sign.repeat(2)) };
        let title = cut(&format!("{} {title} ", sign.repeat(2)), columns.saturating_sub(width(&end)));
        let rest = columns.saturating_sub(width(&title) + width(&end));
        self.line(&format!("{title}{}{end}", sign.repeat(rest)), ink)
    }

    /// Shows lines that may change, below all others; none take away what was there.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        if self.appearance.motion == Motion::Append || self.is_in_background() {
            return Ok(());
        }
        let room = self.width.saturating_sub(MARGIN);
        let lines: Vec<String> = lines.iter().map(|line| self.legible(cut(&safe(line), room))).collect();
        if lines == self.drawn {
            return Ok(());
        }
        self.erase()?;
        for (at, line) in lines.iter().enumerate() {
            let end = if at + 1 < lines.len() { "\n" } else { "" };
            write!(self.out, "{}{end}", self.appearance.palette.paint(Ink::Dim, line))?;
        }
        self.drawn = lines;
        Ok(())
    }

    /// Sends something that the terminal obeys; only where there is one.
    pub(crate) fn control(&mut self, sequence: &str) -> io::Result<()> {
        if self.appearance.motion == Motion::Redraw { self.out.write_all(sequence.as_bytes()) } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// True while the terminal is of someone else: what was drawn is above what the shell has written since, and stays.
    fn is_in_background(&mut self) -> bool {
        let is_so = self.appearance.motion == Motion::Redraw && (self.appearance.place)() == Place::Background;
        if is_so {
            self.drawn.clear();
        }
        is_so
    }

    /// Takes the changing lines away. A terminal that has become narrower meanwhile shows each of them in several rows.
    fn erase(&mut self) -> io::Result<()> {
        if self.drawn.is_empty() || self.is_in_background() {
            return Ok(());
        }
        let rows: usize = self.drawn.drain(..).map(|line| width(&line).div_ceil(self.width.max(1)).max(1)).sum();
        self.out.write_all(b"\r")?;
        for _ in 1..rows {
            self.out.write_all(b"\x1b[A")?;
        }
        self.out.write_all(b"\x1b[J")
    }

    fn head_and(&mut self, head: Head, put: impl FnOnce(&mut String, Palette)) -> io::Result<()> {
        let Appearance { palette, glyphs, .. } = self.appearance;
        self.line.clear();
        if !head.tag.is_empty() {
            self.last_tag = head.tag;
        }
        if glyphs.are_words() {
            // Words only: no columns that would be read out as blanks.
            self.line.push_str(head.tag);
            self.line.push_str(if head.tag.is_empty() { "  " } else { ": " });
        } else {
            self.line.push_str(&BLANKS[head.tag.len().min(TAG_WIDTH)..]);
            paint(&mut self.line, palette, head.ink, head.tag);
            self.line.push(' ');
            paint(&mut self.line, palette, Ink::Dim, head.gutter);
            self.line.push(' ');
        }
        let start = self.line.len();
        put(&mut self.line, palette);
        // A tag and nothing else would be read out as punctuation.
        if glyphs.are_words() && self.line[start..].trim().is_empty() {
            self.line.clear();
        }
        self.line.truncate(self.line.trim_end().len());
        self.commit()
    }

    fn commit(&mut self) -> io::Result<()> {
        self.erase()?;
        let line = std::mem::take(&mut self.line);
        self.line = self.legible(line);
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())
    }

    /// A letter that does not arrive is a question mark.
    fn legible(&self, text: String) -> String {
        if self.appearance.letters == Letters::Any || text.is_ascii() {
            return text;
        }
        text.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).collect()
    }
}

fn paint(line: &mut String, palette: Palette, ink: Ink, text: &str) {
    if palette == Palette::Plain || ink == Ink::None || text.is_empty() {
        line.push_str(text);
    } else {
        line.push_str(ink.sequence());
        line.push_str(text);
        line.push_str(RESET);
    }
}
