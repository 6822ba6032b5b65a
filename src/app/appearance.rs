//! How lines look here: colours, glyphs and width, from flags, environment and terminal.

use crate::cli::{AppearanceArgs, Colour, Shown, ViewArgs};
use crate::terminal;
use crate::ui::{
    Alert, Appearance, Channel, Columns, Detail, Glyphs, KeysGoTo, Letters, LineView, Motion, Palette, Place, Volume,
    out,
};

/// Whether what is shown happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tense {
    /// It does: a terminal also shows what is under way.
    Present,
    Past,
}

/// The line view on standard output.
pub(crate) fn line_view(args: &ViewArgs, tense: Tense) -> LineView<std::io::Stdout> {
    let mut appearance = appearance(args.appearance);
    if args.plain {
        appearance = Appearance { glyphs: Glyphs::WORDS, letters: appearance.letters, ..Appearance::plain() };
    }
    if tense == Tense::Past {
        appearance.motion = Motion::Append;
    }
    let volume = match (args.quiet, args.verbose) {
        (true, _) => Volume::Quiet,
        (false, true) => Volume::Full,
        (false, false) => Volume::Usual,
    };
    let channel = |shown: &Shown| match shown {
        Shown::Think => Channel::Think,
        Shown::Tools => Channel::Tools,
        Shown::Prompt => Channel::Prompt,
        Shown::Sys => Channel::Sys,
    };
    appearance.detail = Detail { volume, channels: args.show.iter().map(channel).collect() };
    LineView::new(out::stdout(), appearance)
}

/// How standard output looks.
pub(crate) fn appearance(args: AppearanceArgs) -> Appearance {
    let terminal = is_capable();
    let quiet = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let palette = match args.color {
        Colour::Always => Palette::Colour,
        Colour::Auto if terminal && !quiet => Palette::Colour,
        Colour::Auto | Colour::Never => Palette::Plain,
    };
    let columns = columns();
    let letters = if utf8_locale() { Letters::Any } else { Letters::Ascii };
    let glyphs = if args.ascii || letters == Letters::Ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
    let motion = if columns == Columns::Terminal { Motion::Redraw } else { Motion::Append };
    let alert = if motion == Motion::Redraw { alert() } else { Alert::Off };
    Appearance { palette, glyphs, columns, motion, letters, detail: Detail::default(), alert, place }
}

/// The colours of commands that have no flag for them.
pub(crate) fn palette() -> Palette {
    appearance(AppearanceArgs { color: Colour::Auto, ascii: false }).palette
}

/// How wide standard output is.
pub(crate) fn columns() -> Columns {
    match std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()) {
        _ if is_capable() => Columns::Terminal,
        Some(columns) => Columns::Fixed(columns),
        None => Columns::Unlimited,
    }
}

/// True when standard output is a terminal that obeys control sequences.
fn is_capable() -> bool {
    out::is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn place() -> Place {
    if terminal::is_in_background() { Place::Background } else { Place::Foreground }
}

/// Whether keys come to a run of this process.
pub(crate) fn keys_go_to() -> KeysGoTo {
    if terminal::has_keyboard() { KeysGoTo::Run } else { KeysGoTo::Elsewhere }
}

/// Which notice the terminal takes, by its own word; one that is not known ignores the common one.
fn alert() -> Alert {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let (term, program) = (variable("TERM"), variable("TERM_PROGRAM"));
    match program.as_str() {
        // They show what is not for them, or hand nothing on.
        _ if ["linux", "screen", "tmux", "vt"].iter().any(|name| term.starts_with(name)) => Alert::Bell,
        "ghostty" | "WezTerm" => Alert::Osc777,
        _ if ["rxvt", "foot"].iter().any(|name| term.starts_with(name)) => Alert::Osc777,
        _ => Alert::Osc9,
    }
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
