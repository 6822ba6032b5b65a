//! How things look: the terminal's own sixteen colours, so that light and dark backgrounds both stay readable; without
//! colours, bold, dim and reversed say the same.

use ratatui_core::style::{Color, Modifier, Style};

use crate::ui::style::{Glyphs, Ink, Palette};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    palette: Palette,
    pub glyphs: Glyphs,
}

impl Theme {
    /// With these colours and signs.
    pub(crate) const fn new(palette: Palette, glyphs: Glyphs) -> Self {
        Self { palette, glyphs }
    }

    pub(crate) fn style(&self, ink: Ink) -> Style {
        let codes = ink.sequence().split("\u{1b}[").filter_map(|code| code.strip_suffix('m'));
        let style = codes.fold(Style::new(), |style, code| match code {
            "1" => style.add_modifier(Modifier::BOLD),
            "2" => style.add_modifier(Modifier::DIM),
            "3" => style.add_modifier(Modifier::ITALIC),
            "4" => style.add_modifier(Modifier::UNDERLINED),
            "9" => style.add_modifier(Modifier::CROSSED_OUT),
            "31" => style.fg(Color::Red),
            "32" => style.fg(Color::Green),
            "33" => style.fg(Color::Yellow),
            "35" => style.fg(Color::Magenta),
            "36" => style.fg(Color::Cyan),
            _ => style,
        });
        match (self.palette, ink) {
            (Palette::Colour, _) => style,
            (Palette::Plain, Ink::Bad) => Style::new().add_modifier(Modifier::BOLD),
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
