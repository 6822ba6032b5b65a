//! One line of words in several inks, broken into rows without losing any of them.

use super::style::{Ink, Palette, RESET};
use super::text::{rows, width};

/// A harmless line, and the ink of each part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Styled {
    text: String,
    /// Where each ink ends; what is behind the last one has none.
    inks: Vec<(usize, Ink)>,
    /// How far rows after the first are moved in.
    hang: usize,
}

impl Styled {
    pub(crate) fn new(text: impl Into<String>, ink: Ink) -> Self {
        let mut line = Self::default();
        line.push(&text.into(), ink);
        line
    }

    /// The same with rows after the first moved in.
    #[must_use]
    pub(crate) fn hanging(mut self, hang: usize) -> Self {
        self.hang = hang;
        self
    }

    /// Appends words in an ink.
    pub(crate) fn push(&mut self, text: &str, ink: Ink) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        match self.inks.last_mut() {
            Some((end, last)) if *last == ink => *end = self.text.len(),
            _ => self.inks.push((self.text.len(), ink)),
        }
    }

    /// Appends another line.
    pub(crate) fn append(&mut self, other: &Self) {
        let mut start = 0;
        for &(end, ink) in &other.inks {
            self.push(&other.text[start..end], ink);
            start = end;
        }
    }

    /// The words without their inks.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Its parts, each in its ink.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Ink, &str)> {
        let mut start = 0;
        let inked = self.inks.iter().map(move |&(end, ink)| (ink, &self.text[std::mem::replace(&mut start, end)..end]));
        let rest = self.inks.last().map_or(0, |&(end, _)| end);
        inked.chain(std::iter::once((Ink::None, &self.text[rest..])).filter(|(_, text)| !text.is_empty()))
    }

    /// The columns it takes.
    pub(crate) fn width(&self) -> usize {
        width(&self.text)
    }

    /// The rows of the line, each at most so wide.
    pub(crate) fn split(&self, columns: usize) -> Vec<Self> {
        let hang = self.hang.min(columns / 2);
        let found = rows(&self.text, columns, columns.saturating_sub(hang));
        if found.len() == 1 {
            return vec![self.clone()];
        }
        let mut split = Vec::with_capacity(found.len());
        for (at, row) in found.into_iter().enumerate() {
            let mut line = Self::new(if at == 0 { String::new() } else { " ".repeat(hang) }, Ink::None);
            let mut start = row.start;
            // The inks that end before the row have no part in it.
            let first = self.inks.partition_point(|&(end, _)| end <= row.start);
            for &(end, ink) in &self.inks[first..] {
                let end = end.min(row.end);
                if start >= end {
                    break;
                }
                line.push(&self.text[start..end], ink);
                start = end;
            }
            split.push(line);
        }
        split
    }

    /// The line for a terminal, or without any ink.
    pub(crate) fn painted(&self, palette: Palette) -> String {
        if palette == Palette::Plain {
            return self.text.clone();
        }
        let mut painted = String::with_capacity(self.text.len() + 16 * self.inks.len());
        let mut start = 0;
        for &(end, ink) in &self.inks {
            painted.push_str(ink.sequence());
            painted.push_str(&self.text[start..end]);
            if ink != Ink::None {
                painted.push_str(RESET);
            }
            start = end;
        }
        painted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &Styled, columns: usize, palette: Palette) -> Vec<String> {
        line.split(columns).iter().map(|row| row.painted(palette)).collect()
    }

    #[test]
    fn inks_go_on_behind_a_break() {
        let mut line = Styled::new("plain ", Ink::None);
        line.push("bold words that go on", Ink::Strong);
        line.push(" end", Ink::None);
        let plain = ["plain bold", "words that go", "on end"];
        assert_eq!(shown(&line, 14, Palette::Plain), plain);
        let painted = ["plain \u{1b}[1mbold\u{1b}[0m", "\u{1b}[1mwords that go\u{1b}[0m", "\u{1b}[1mon\u{1b}[0m end"];
        assert_eq!(shown(&line, 14, Palette::Colour), painted);
    }

    #[test]
    fn rows_after_the_first_hang() {
        let line = Styled::new("- one two three", Ink::None).hanging(2);
        assert_eq!(shown(&line, 9, Palette::Plain), ["- one two", "  three"]);
    }
}
