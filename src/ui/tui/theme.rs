//! How things look: the terminal's own sixteen colours, so that light and dark backgrounds both stay readable; without
//! colours, bold, dim and reversed say the same.

use ratatui_core::style::{Color, Modifier, Style};

use crate::ui::style::{Glyphs, Ink, Palette};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    palette: Palette,
    pub glyphs: Glyphs,
    /// Signs that only this view has.
    pub signs: Signs,
}

/// Signs that only this view has.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// Something that can be opened.
    pub folded: &'static str,
    /// Something that can be closed.
    pub open: &'static str,
    /// Between columns.
    pub column: &'static str,
    /// Under way.
    pub running: &'static str,
    /// Everything is done, as the agent says.
    pub complete: &'static str,
    /// It is not, as the user's commands say.
    pub unverified: &'static str,
    /// Bars from empty to full.
    pub bars: [&'static str; 9],
    /// Where the window is, on the edge of what is scrolled.
    pub thumb: &'static str,
}

impl Signs {
    /// The signs that go with others.
    pub fn beside(glyphs: Glyphs) -> Self {
        if glyphs.gutter == Glyphs::UNICODE.gutter { UNICODE } else { ASCII }
    }
}

impl Theme {
    /// With these colours and signs.
    pub(crate) fn new(palette: Palette, glyphs: Glyphs) -> Self {
        Self { palette, glyphs, signs: Signs::beside(glyphs) }
    }

    pub(crate) fn style(&self, ink: Ink) -> Style {
        let plain = Style::new();
        let style = match ink {
            Ink::Dim => plain.add_modifier(Modifier::DIM),
            Ink::Strong => plain.add_modifier(Modifier::BOLD),
            Ink::Good | Ink::Added => plain.fg(Color::Green),
            Ink::Bad | Ink::Removed => plain.fg(Color::Red),
            Ink::Warn => plain.fg(Color::Yellow),
            Ink::Agent | Ink::Code | Ink::Hunk => plain.fg(Color::Cyan),
            Ink::Tool => plain.fg(Color::Magenta),
            Ink::Heading => plain.add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED)),
            Ink::Emphasis => plain.add_modifier(Modifier::ITALIC),
            Ink::StrongEmphasis => plain.add_modifier(Modifier::BOLD.union(Modifier::ITALIC)),
            Ink::Struck => plain.add_modifier(Modifier::CROSSED_OUT),
            Ink::Link => plain.add_modifier(Modifier::UNDERLINED),
            Ink::None => plain,
        };
        match (self.palette, ink) {
            (Palette::Colour, _) => style,
            (Palette::Plain, Ink::Bad) => plain.add_modifier(Modifier::BOLD),
            (Palette::Plain, _) => Style { fg: None, ..style },
        }
    }

    /// The style of a cell of the agent's own screen, which has its own colours where there are colours.
    pub(crate) fn cell(&self, cell: &vt100::Cell) -> Style {
        let modifiers = [
            (cell.bold(), Modifier::BOLD),
            (cell.dim(), Modifier::DIM),
            (cell.italic(), Modifier::ITALIC),
            (cell.underline(), Modifier::UNDERLINED),
            (cell.inverse(), Modifier::REVERSED),
        ];
        let modifiers = modifiers.into_iter().filter(|(is_set, _)| *is_set).map(|(_, modifier)| modifier);
        let style = Style::new().add_modifier(modifiers.collect());
        match self.palette {
            Palette::Colour => style.fg(colour(cell.fgcolor())).bg(colour(cell.bgcolor())),
            Palette::Plain => style,
        }
    }

    /// What was searched for.
    pub(crate) fn found(&self, style: Style) -> Style {
        match self.palette {
            Palette::Colour => style.fg(Color::Black).bg(Color::Yellow),
            Palette::Plain => style.add_modifier(Modifier::REVERSED.union(Modifier::BOLD)),
        }
    }
}

/// A colour of a terminal: its own sixteen stay its own.
const fn colour(colour: vt100::Color) -> Color {
    match colour {
        vt100::Color::Default => Color::Reset,
        vt100::Color::Idx(number) => Color::Indexed(number),
        vt100::Color::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

const UNICODE: Signs = Signs {
    folded: "▸",
    open: "▾",
    column: "│",
    running: "●",
    complete: "★",
    unverified: "!",
    bars: [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
    thumb: "┃",
};

const ASCII: Signs = Signs {
    folded: "+",
    open: "-",
    column: "|",
    running: ">",
    complete: "*",
    unverified: "!",
    bars: [" ", ".", ".", ":", ":", "=", "=", "#", "#"],
    thumb: "#",
};
