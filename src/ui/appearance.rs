//! What the user wants to see, and what the place can show: everything about appearance that a view needs to know.

use super::style::{Glyphs, Palette};

/// How a view looks.
#[derive(Clone, Debug)]
pub struct Appearance {
    /// Colours, or none.
    pub palette: Palette,
    /// Signs.
    pub glyphs: Glyphs,
    /// How wide the output is.
    pub columns: Columns,
    /// Whether something may be drawn twice.
    pub motion: Motion,
    /// Which characters arrive.
    pub letters: Letters,
    /// How much is shown.
    pub detail: Detail,
    /// How the terminal alerts a person who is doing something else.
    pub alert: Alert,
    /// Whether the terminal is this program's now; it may change at any moment.
    pub place: fn() -> Place,
}

impl Appearance {
    /// Text and nothing else, as wide as it comes: for a pipe.
    pub fn plain() -> Self {
        Self {
            palette: Palette::Plain,
            glyphs: Glyphs::UNICODE,
            columns: Columns::Unlimited,
            motion: Motion::Append,
            letters: Letters::Any,
            detail: Detail::default(),
            alert: Alert::Off,
            place: || Place::Foreground,
        }
    }
}

/// Where this program is on its terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The terminal is this program's.
    Foreground,
    /// It is the shell's, or another program's: lines may be added, but none may be drawn over.
    Background,
}

/// Whether a key that is pressed now comes to the run that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeysGoTo {
    Run,
    /// It goes elsewhere, or there is none.
    Elsewhere,
}

/// How wide the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Lines are never broken.
    Unlimited,
    /// Always this many.
    Fixed(usize),
    /// As many as the terminal has.
    Terminal,
}

impl Columns {
    /// How many there are now.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Unlimited => usize::MAX,
            Self::Fixed(columns) => columns,
            Self::Terminal => usize::from(crate::terminal::size().columns).max(20),
        }
    }
}

/// Whether something may be drawn twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Lines are appended, and nothing else: in a pipe, in a log, for a screen reader.
    Append,
    /// The last rows of the terminal show what is under way, and change with it.
    Redraw,
}

/// Which characters arrive where the view is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    Any,
    /// ASCII: in another encoding the bytes of other letters would be anything, even orders to the terminal.
    Ascii,
}

/// How a terminal calls someone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    Off,
    Bell,
    /// By its bell and a notice, as iTerm2 and most others take it.
    Osc9,
    /// By its bell and a notice, as rxvt, foot and Ghostty take it.
    Osc777,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    pub volume: Volume,
    /// What is shown in full.
    pub channels: Vec<Channel>,
}

/// How much is shown in general.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Volume {
    /// How iterations end, and what someone should know.
    Quiet,
    /// What the agent says and does; what is long is folded.
    #[default]
    Usual,
    Full,
}

/// Something that is folded unless it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Think,
    /// What tools print, and what they change.
    Tools,
    /// The prompt where it is repeated.
    Prompt,
    /// Everything around the agent.
    Sys,
}

impl Detail {
    /// True when nothing of this is folded.
    pub(crate) fn shows(&self, channel: Channel) -> bool {
        match self.volume {
            Volume::Quiet => false,
            Volume::Usual => self.channels.contains(&channel),
            Volume::Full => true,
        }
    }

    /// True when only the outcome counts.
    pub(crate) fn is_quiet(&self) -> bool {
        self.volume == Volume::Quiet
    }
}
