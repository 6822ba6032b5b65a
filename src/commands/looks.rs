//! How lines look here: colours, glyphs and width, from flags, environment and terminal.

use std::io::IsTerminal as _;

use crate::cli::{Colour, Looks};
use crate::ui::{Columns, Glyphs, LineView, Palette};

/// Colours, glyphs and width.
pub struct Chosen {
    /// Colours.
    pub palette: Palette,
    /// Signs.
    pub glyphs: Glyphs,
    columns: Columns,
}

/// The line view on standard output.
pub fn line_view(looks: &Looks) -> LineView<std::io::Stdout> {
    let Chosen { palette, glyphs, columns } = self::looks(looks);
    LineView::new(std::io::stdout(), palette, glyphs, columns)
}

/// How standard output looks.
pub fn looks(looks: &Looks) -> Chosen {
    let terminal = std::io::stdout().is_terminal();
    let capable = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let quiet = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let palette = match looks.color {
        Colour::Always => Palette::Colour,
        Colour::Auto if terminal && capable && !quiet => Palette::Colour,
        Colour::Auto | Colour::Never => Palette::Plain,
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let columns = match columns {
        _ if terminal && capable => Columns::Terminal,
        Some(columns) => Columns::Fixed(columns),
        None => Columns::Unlimited,
    };
    let glyphs = if looks.ascii || !utf8_locale() { Glyphs::ASCII } else { Glyphs::UNICODE };
    Chosen { palette, glyphs, columns }
}

/// False only where the locale plainly says something else.
fn utf8_locale() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        !locale.contains('.') || locale.contains("utf-8") || locale.contains("utf8")
    })
}
