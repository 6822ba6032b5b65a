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
    Dim,
    Strong,
    Good,
    Bad,
    /// Someone should look.
    Warn,
    Agent,
    Tool,
    /// A heading in the agent's words.
    Heading,
    Emphasis,
    /// Words stressed twice.
    StrongEmphasis,
    Struck,
    Code,
    Link,
    /// A line that a difference adds.
    Added,
    /// A line that a difference takes away.
    Removed,
    /// Where a difference is.
    Hunk,
    None,
}

impl Ink {
    pub(crate) const fn of(tag: Tag) -> Self {
        match tag {
            Tag::Ai => Self::Agent,
            Tag::Tool => Self::Tool,
            Tag::User => Self::Warn,
            Tag::Think | Tag::Sys | Tag::Prompt => Self::Dim,
        }
    }

    /// What switches it on. Each sequence sets one thing, which every terminal understands.
    pub(crate) const fn sequence(self) -> &'static str {
        match self {
            Self::Dim => "\u{1b}[2m",
            Self::Strong => "\u{1b}[1m",
            Self::Good | Self::Added => "\u{1b}[32m",
            Self::Bad | Self::Removed => "\u{1b}[31m",
            Self::Warn => "\u{1b}[33m",
            Self::Agent | Self::Code | Self::Hunk => "\u{1b}[36m",
            Self::Tool => "\u{1b}[35m",
            Self::Heading => "\u{1b}[1m\u{1b}[4m",
            Self::Emphasis => "\u{1b}[3m",
            Self::StrongEmphasis => "\u{1b}[1m\u{1b}[3m",
            Self::Struck => "\u{1b}[9m",
            Self::Link => "\u{1b}[4m",
            Self::None => "",
        }
    }
}

/// What switches every ink off.
pub(crate) const RESET: &str = "\u{1b}[0m";

impl Palette {
    /// The text in the colour.
    pub(crate) fn paint(self, ink: Ink, text: &str) -> String {
        if self == Self::Plain || ink == Ink::None || text.is_empty() {
            text.to_owned()
        } else {
            format!("{}{text}{RESET}", ink.sequence())
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
    /// A tool whose result is unknown.
    pub unknown: &'static str,
    /// Something begins.
    pub start: &'static str,
    /// A line across.
    pub rule: &'static str,
    /// Between facts.
    pub dot: &'static str,
    /// Before an item of a list.
    pub bullet: &'static str,
    /// Before a quotation.
    pub quote: &'static str,
    /// Before a line of code.
    pub code: &'static str,
    /// Something is left out.
    pub more: &'static str,
    /// From one state to another.
    pub arrow: &'static str,
    /// Signs of the full screen.
    pub screen: &'static Signs,
}

/// Signs that only the full screen has.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// Something that can be opened.
    pub folded: &'static str,
    /// Something that can be closed.
    pub open: &'static str,
    /// Between columns.
    pub column: &'static str,
    /// An agent or a tool runs.
    pub running: &'static str,
    /// Everything is done, as the agent says.
    pub complete: &'static str,
    /// It is not, as a check says.
    pub rejected: &'static str,
    /// Bars from empty to full.
    pub bars: [&'static str; 9],
    /// Where the window is, on the edge of what is scrolled.
    pub thumb: &'static str,
}

impl Signs {
    const UNICODE: Self = Self {
        folded: "▸",
        open: "▾",
        column: "│",
        running: "●",
        complete: "★",
        rejected: "!",
        bars: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
        thumb: "┃",
    };

    const ASCII: Self = Self {
        folded: "+",
        open: "-",
        column: "|",
        running: ">",
        complete: "*",
        rejected: "!",
        bars: [" ", ".", ".", ":", ":", "=", "=", "#", "#"],
        thumb: "#",
    };
}

impl Glyphs {
    /// What is between two facts.
    pub(crate) fn between(&self) -> String {
        if self.dot == "," { ", ".to_owned() } else { format!(" {} ", self.dot) }
    }

    /// For terminals that show Unicode.
    pub const UNICODE: Self = Self {
        gutter: "│",
        callout: "┃",
        ok: "✓",
        fail: "✗",
        unknown: "?",
        start: "▸",
        rule: "─",
        dot: "·",
        bullet: "•",
        quote: "▎",
        code: "▏",
        more: "…",
        arrow: "→",
        screen: &Signs::UNICODE,
    };

    /// For everything else.
    pub const ASCII: Self = Self {
        gutter: "|",
        callout: "#",
        ok: "ok",
        fail: "FAIL",
        unknown: "?",
        start: ">",
        rule: "-",
        dot: "-",
        bullet: "*",
        quote: ">",
        code: "|",
        more: "...",
        arrow: "->",
        screen: &Signs::ASCII,
    };

    /// For screen readers: words instead of signs.
    pub(crate) const WORDS: Self = Self {
        gutter: ":",
        callout: ":",
        ok: "ok",
        fail: "failed",
        unknown: "unknown",
        start: "started",
        rule: "",
        dot: ",",
        bullet: "-",
        quote: ">",
        code: "",
        more: "...",
        arrow: "->",
        screen: &Signs::ASCII,
    };
}
