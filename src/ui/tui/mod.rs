//! The full-screen view: a window on a journal, live or finished.
//!
//! It reads the journal from disk like anybody else, so that it opens any run from any terminal, and memory does not grow
//! with the run. It decides nothing: orders go through [`Actions`] to the loop. It draws at most thirty frames a second, and
//! none while nothing changes.

mod act;
mod actions;
mod block;
mod block_rows;
pub(crate) mod board;
mod detail;
mod footer;
mod header;
mod index;
mod input;
mod keys;
mod latest_plan;
mod offscreen;
mod panes;
mod rows;
pub(crate) mod runs;
mod screen;
mod scroll;
mod search;
mod state;
mod tail;
mod theme;
mod transcript;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use actions::Actions;
pub use keys::KEYS;
pub use keys::Key;
pub use offscreen::Offscreen;
pub use screen::pane_size;

pub use super::model::IterationState;
use super::style::{Glyphs, Palette};
use crate::journal::RunDirectory;
use crate::terminal::{self, FullScreen, Keyboard};
use act::Effect;
use state::{ViewState, Work};
use theme::Theme;

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(34);
/// How often is looked for more while nothing happens.
const LOOK: Duration = Duration::from_millis(100);
/// How often time that passes is shown.
const CLOCK: Duration = Duration::from_secs(1);
/// How long it may take until this process is halted by Ctrl-Z.
const HALT: Duration = Duration::from_secs(5);
/// This many events of the terminal are taken at once, before anything is drawn.
const MOST_EVENTS: usize = 256;

/// Whose run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process plays it.
    This,
    /// Another process plays it, or nobody any more.
    Another,
}

/// What is to be shown, and how.
pub struct Options {
    /// The run.
    pub directory: RunDirectory,
    /// Colours.
    pub palette: Palette,
    /// Signs.
    pub glyphs: Glyphs,
    /// Whose run it is.
    pub owner: Owner,
    /// What the view cannot do itself.
    pub actions: Box<dyn Actions>,
}

/// How the view was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// Someone had seen enough.
    Closed,
    /// Someone wants to see all runs.
    Runs,
    /// Someone answered the question that the run ended with.
    Answered(String),
    /// A Unix signal ended it.
    Signal(i32),
}

/// What is told to a view from outside.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    closed: Arc<AtomicBool>,
}

impl Remote {
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// A view that was left, and the place up to which it has shown the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How it was left.
    pub left: Left,
    /// From here on lines can continue: the end of the run, or what is not written yet.
    pub from: u64,
}

/// Shows a run until someone leaves.
pub fn show(options: Options, remote: &Remote) -> io::Result<Seen> {
    let caught = Signals::catch(options.actions.ending_signals())?;
    let Options { directory, palette, glyphs, owner, actions } = options;
    let mut state = ViewState::new(directory, &Theme::new(palette, glyphs), actions, owner);
    let mut taken = FullScreen::take()?;
    let mut drawn: Option<Instant> = None;
    let mut size = taken.screen.size()?;
    let mut work = Work::Done;
    let mut keyboard = Keyboard::new();
    loop {
        let (known, before) = (state.index.known(), work);
        work = state.work();
        // Output comes in bursts, so look again soon.
        let look = if before == Work::Left || state.index.known() > known { FRAME } else { LOOK };
        let now_size = taken.screen.size()?;
        state.changed |= now_size != size;
        size = now_size;
        if state.running && drawn.is_none_or(|drawn| drawn.elapsed() >= CLOCK) {
            state.changed = true;
        }
        if state.changed && drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME) {
            state.now = jiff::Timestamp::now();
            state.changed = false;
            taken.draw(|frame| {
                let area = frame.area();
                if let Some(position) = screen::draw(&mut state, area, frame.buffer_mut()) {
                    frame.set_cursor_position(position);
                }
            })?;
            drawn = Some(Instant::now());
        }
        let patience = match (work, state.changed) {
            (Work::Left, _) => Duration::ZERO,
            (Work::Done, true) => FRAME.saturating_sub(drawn.map_or(FRAME, |drawn| drawn.elapsed())),
            (Work::Done, false) => look,
        };
        let mut patience = patience;
        for _ in 0..MOST_EVENTS {
            let event = match keyboard.next(patience) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                // A terminal that is gone tells it by a Unix signal, too.
                Err(error) => match caught.take() {
                    Some(number) => return Ok(Seen { left: Left::Signal(number), from: lines_from(&state) }),
                    None => return Err(error),
                },
            };
            patience = Duration::ZERO;
            let left = match state.event(event) {
                Effect::None => None,
                Effect::Copy(text) => terminal::copy(&text).map(|()| None)?,
                Effect::Mouse => {
                    let words = if taken.turn_mouse()? { "the mouse works here" } else { "the mouse selects text" };
                    state.set_message(words);
                    None
                }
                Effect::Redraw => taken.screen.clear().map(|()| None)?,
                Effect::Interrupt => {
                    state.actions.interrupt();
                    state.set_message("asked the agent to stop; Ctrl-C once more kills it");
                    None
                }
                Effect::Suspend => {
                    drop(taken);
                    state.actions.suspend(state.runner());
                    caught.wait_until_continued();
                    taken = FullScreen::take()?;
                    state.changed = true;
                    None
                }
                Effect::Leave(left) => Some(left),
            };
            if let Some(left) = left {
                return Ok(Seen { left, from: lines_from(&state) });
            }
        }
        // A run of this process takes Unix signals itself, and closes the view when it is over.
        let signal = caught.take().filter(|_| owner == Owner::Another || state.index.run().end.is_some());
        let left = match signal {
            Some(number) => Some(Left::Signal(number)),
            None if remote.closed.load(Ordering::SeqCst) => Some(Left::Closed),
            None => None,
        };
        if let Some(left) = left {
            return Ok(Seen { left, from: lines_from(&state) });
        }
    }
}

fn lines_from(state: &ViewState) -> u64 {
    state.index.run().end.as_ref().map_or(state.index.known(), |end| end.offset)
}

/// Unix signals that end a program, noted until the view looks.
struct Signals {
    number: Arc<AtomicUsize>,
    continued: Arc<AtomicBool>,
    ids: Vec<signal_hook::SigId>,
}

impl Signals {
    fn catch(ending: Vec<i32>) -> io::Result<Self> {
        let mut caught = Self { number: Arc::default(), continued: Arc::default(), ids: Vec::new() };
        caught.ids.push(signal_hook::flag::register(libc::SIGCONT, Arc::clone(&caught.continued))?);
        for signal in ending {
            let value = usize::try_from(signal).unwrap_or(0);
            caught.ids.push(signal_hook::flag::register_usize(signal, Arc::clone(&caught.number), value)?);
        }
        Ok(caught)
    }

    /// Waits until the shell lets this process continue; not forever, since it may never have been halted.
    fn wait_until_continued(&self) {
        let start = Instant::now();
        while !self.continued.swap(false, Ordering::SeqCst) && start.elapsed() < HALT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn take(&self) -> Option<i32> {
        i32::try_from(self.number.swap(0, Ordering::SeqCst)).ok().filter(|number| *number > 0)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| {
            signal_hook::low_level::unregister(id);
        });
    }
}
