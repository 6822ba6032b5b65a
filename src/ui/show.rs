//! Shows a journal in a view, to its end and as it grows: the one loop of the line view, of `--output json` and of
//! `ralph logs`.

use std::io;
use std::time::{Duration, Instant};

use super::View;
use crate::journal::{Follow, Record};

/// How often a view hears that nothing happened.
const TICK: Duration = Duration::from_secs(1);

/// Shows the records that are wanted until no more will come.
pub(crate) fn show(
    follow: &mut Follow,
    view: &mut dyn View,
    mut wanted: impl FnMut(&Record) -> bool,
) -> io::Result<()> {
    let mut told = Instant::now();
    loop {
        let mut any = false;
        while let Some(record) = follow.read()? {
            if wanted(&record) {
                view.record(&record)?;
                any = true;
            }
            follow.shown();
        }
        view.flush()?;
        if any {
            told = Instant::now();
        }
        if !follow.wait(TICK.saturating_sub(told.elapsed())) {
            return view.close();
        }
        if told.elapsed() >= TICK {
            view.tick()?;
            told = Instant::now();
        }
    }
}
