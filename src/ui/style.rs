//! Colours and glyphs: what a terminal can show, and what the user wants.

use crate::event::Tag;

/// Colours, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// ANSI colours of the terminal's own sixteen.
    Colour,
    /// Nothing but text.
    Plain,
}

/// What something means, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Not important.
    Dim,
    /// A heading.
    Strong,
    /// It worked.
    Good,
    /// It did not.
    Bad,
    /// Somebody should look.
    Warn,
    /// The agent's tag.
    Agent,
    /// A tool's tag.
    Tool,
    /// As it is.
    None,
}

impl Ink {
    /// The colour of a tag.
    pub const fn of(tag: Tag) -> Self {
        match tag {
            Tag::Ai => Self::Agent,
            Tag::Tool => Self::Tool,
            Tag::User => Self::Warn,
            Tag::Think | Tag::Sys | Tag::Prompt => Self::Dim,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Strong => "1",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Warn => "33",
            Self::Agent => "36",
            Self::Tool => "35",
            Self::None => "",
        }
    }
}

impl Palette {
    /// The text in the colour.
    pub fn paint(self, ink: Ink, text: &str) -> String {
        if self == Self::Plain || ink == Ink::None || text.is_empty() {
            text.to_owned()
        } else {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code())
        }
    }
}

/// The signs of a view.
#[derive(Clone, Copy, Debug)]
pub struct Glyphs {
    /// Between tag and text.
    pub gutter: &'static str,
    /// Between a callout's name and its text.
    pub callout: &'static str,
    /// A tool that worked.
    pub ok: &'static str,
    /// A tool that failed.
    pub fail: &'static str,
    /// A tool of which nobody knows.
    pub unknown: &'static str,
    /// Something begins.
    pub start: &'static str,
    /// A line across.
    pub rule: &'static str,
    /// Between facts.
    pub dot: &'static str,
}

impl Glyphs {
    /// For terminals that show Unicode.
    pub const UNICODE: Self =
        Self {
            gutter: "│", callout: "┃", ok: "✓", fail: "✗", unknown: "?", start: "▸", rule: "─", dot: "·"
        };

    /// For everything else.
    pub const ASCII: Self =
        Self { gutter: "|", callout: "#", ok: "ok", fail: "FAIL", unknown: "?", start: ">", rule: "-", dot: "-" };
}
