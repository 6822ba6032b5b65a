//! What a terminal does for a person who is doing something else: its title tells the state, its bell and a notice of the desktop
//! say that someone is wanted.

use std::io::{self, Write};

use super::LineView;
use crate::journal::Outcome;
use crate::ui::appearance::Alert;
use crate::ui::figures;
use crate::ui::text::{cut, harmless};
use crate::ui::words;

/// Whoever started a shorter run is still watching it.
const LOOKS_AWAY_AFTER_MS: u64 = 10_000;
/// A title, and a notice, are no longer.
const LONGEST: usize = 120;

/// The title as it was goes onto the terminal's own stack, and comes back from there.
const KEEP_TITLE: &str = "\u{1b}[22;2t";
const RESTORE_TITLE: &str = "\u{1b}[23;2t";

impl<W: Write> LineView<W> {
    /// The state in the title.
    pub(super) fn title(&mut self, state: &str) -> io::Result<()> {
        let keep = if std::mem::replace(&mut self.titled, true) { "" } else { KEEP_TITLE };
        let title = plain(&format!("ralph: {state}"));
        self.output.control(&format!("{keep}\u{1b}]2;{title}\u{7}"))
    }

    pub(super) fn restore_title(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.titled) { self.output.control(RESTORE_TITLE) } else { Ok(()) }
    }

    pub(super) fn announce_end(&mut self, outcome: Outcome, reason: &str, duration_ms: u64) -> io::Result<()> {
        let state = words::outcome(outcome).0;
        self.title(state)?;
        // Who has just stopped it, knows.
        if duration_ms < LOOKS_AWAY_AFTER_MS || outcome == Outcome::Interrupted {
            return Ok(());
        }
        self.alert(&format!("{state} after {}: {reason}", figures::duration(duration_ms)))
    }

    /// Alerts a person who is doing something else.
    pub(super) fn alert(&mut self, message: &str) -> io::Result<()> {
        let message = plain(message);
        let desktop = match self.output.appearance.alert {
            Alert::Off => return Ok(()),
            Alert::Bell => String::new(),
            Alert::Osc9 => format!("\u{1b}]9;ralph: {message}\u{7}"),
            // Its fields are apart by semicolons.
            Alert::Osc777 => format!("\u{1b}]777;notify;ralph;{}\u{7}", message.replace(';', ",")),
        };
        self.output.control(&format!("\u{7}{desktop}"))
    }
}

/// Nothing in it ends the sequence it is in.
fn plain(text: &str) -> String {
    cut(&harmless(text), LONGEST)
}
