//! What shows a run under way: lines, JSON, or the full screen. It must never hold up the run.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::looks::{Tense, keyboard, line_view, looks};
use super::tui::Steering;
use crate::cli::{Output, ViewLooks};
use crate::error::{UserError, io_reason};
use crate::journal::{Journal, Reader, RunDirectory, Store};
use crate::process;
use crate::run::notify::Notify;
use crate::run::{Interrupt, Observer, Screen};
use crate::ui::tui::{self, Left, Owner, Remote, Seen};
use crate::ui::{self, Feed, JsonView, Shown, View};

/// How long the view may stand still when the run is over, before it is given up. Ctrl-C ends it sooner.
const LAST_LINES: Duration = Duration::from_secs(60);
/// How long a full screen may take to give the terminal back.
const GIVE_BACK: Duration = Duration::from_secs(5);
/// How long a view may take to show what it has, before an agent gets the terminal.
const SETTLES_WITHIN: Duration = Duration::from_millis(500);
/// How often is looked for more lines.
const EVERY: Duration = Duration::from_millis(100);

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Printed.
    As(Output),
    /// On the whole screen.
    Screen,
}

impl Show {
    /// What the flags say. A full screen needs a terminal on both sides.
    pub fn wanted(tui: bool, output: Output) -> Result<Self, UserError> {
        if !tui {
            return Ok(Self::As(output));
        }
        needs_terminal("--tui").map(|()| Self::Screen)
    }
}

/// An agent's own program needs the terminal, and nobody else on it.
pub fn needs_terminal_for_agent(screen: Screen, show: Show) -> Result<(), UserError> {
    match (screen, show) {
        (Screen::Users, Show::As(Output::Lines)) => needs_terminal("--interactive"),
        (Screen::Users, _) => Err(UserError::usage("interactive mode shares the terminal with nothing but lines")
            .hint("leave out `--tui` and `--output json`, or `-i` and `cli.default_mode`")),
        _ => Ok(()),
    }
}

/// A full screen needs keys to read and a screen to draw on.
pub fn needs_terminal(what: &str) -> Result<(), UserError> {
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok(());
    }
    Err(UserError::usage(format!("`{what}` needs a terminal for its keys and its screen"))
        .hint("leave it out: lines are shown everywhere; `ralph tui` opens the run later, from any terminal"))
}

/// What shows the run under way.
pub enum Showing {
    /// Records come as they are written.
    Printed(Rc<RefCell<Feed>>),
    /// It reads the journal.
    Screen(FullScreen),
    /// It is over.
    Closed,
}

impl Showing {
    /// Starts it; and who is to be told about records.
    pub fn start(
        show: Show,
        looks: &ViewLooks,
        notify: &Notify,
        store: &Store,
        directory: &RunDirectory,
        journal: &Journal,
    ) -> Result<(Self, Observer), UserError> {
        let unable = |error: io::Error| UserError::failed(format!("cannot start the view: {error}"));
        let view: Box<dyn View> = match show {
            Show::Screen => {
                let screen = FullScreen::open(store, directory, looks).map_err(unable)?;
                return Ok((Self::Screen(screen), Box::new(|_| {})));
            }
            Show::As(Output::Lines) => {
                let view = line_view(looks, Tense::Present).beside_the_agent().with_keys(keyboard);
                Box::new(if notify.terminal { view } else { view.silent() })
            }
            Show::As(Output::Json) => Box::new(JsonView::new(io::stdout())),
        };
        let feed = Feed::start_at(view, directory.journal(), journal.length()).map_err(unable)?;
        let feed = Rc::new(RefCell::new(feed));
        let told = Rc::clone(&feed);
        Ok((Self::Printed(feed), Box::new(move |appended| told.borrow_mut().send(appended))))
    }

    /// What waits until everything is shown, before somebody else has the terminal.
    pub fn settler(&self) -> Box<dyn Fn()> {
        match self {
            Self::Printed(feed) => {
                let feed = Rc::clone(feed);
                Box::new(move || feed.borrow().settle(SETTLES_WITHIN))
            }
            Self::Screen(_) | Self::Closed => Box::new(|| {}),
        }
    }

    /// The run is over. What is printed is printed to its end; a full screen stays, unless somebody wants the run to die.
    pub fn over(&mut self, interrupt: Option<Interrupt>) -> Shown {
        match std::mem::replace(self, Self::Closed) {
            Self::Printed(feed) => {
                // Nothing is left that would need care: Ctrl-C may end a view that stands still.
                process::restore_signals();
                Rc::into_inner(feed).map_or(Shown::InFull, |feed| feed.into_inner().finish(LAST_LINES))
            }
            Self::Screen(screen) => {
                screen.over.store(true, Ordering::SeqCst);
                if interrupt.is_some() {
                    screen.remote.close();
                }
                *self = Self::Screen(FullScreen { in_a_hurry: interrupt.is_some(), ..screen });
                Shown::InFull
            }
            Self::Closed => Shown::InFull,
        }
    }

    /// Waits until a full screen was left, and says how.
    pub fn close(self) -> Option<Left> {
        let Self::Screen(screen) = self else { return None };
        let left = screen.wait();
        process::restore_signals();
        left.or(Some(Left::Closed))
    }
}

/// The full screen in a thread of its own.
pub struct FullScreen {
    remote: Remote,
    over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Left>>,
    /// The screen is given back; lines are printed instead.
    left: Arc<AtomicBool>,
    in_a_hurry: bool,
}

impl FullScreen {
    fn open(store: &Store, directory: &RunDirectory, looks: &ViewLooks) -> io::Result<Self> {
        let ui::Looks { palette, glyphs, .. } = self::looks(looks.looks);
        let options = tui::Options {
            directory: directory.clone(),
            palette,
            glyphs,
            owner: Owner::This,
            hands: Box::new(Steering::new(store, directory)),
        };
        let (remote, over) = (Remote::default(), Arc::new(AtomicBool::new(false)));
        let lines = Lines {
            journal: directory.journal(),
            view: Box::new(line_view(looks, Tense::Present)),
            over: Arc::clone(&over),
        };
        let told = remote.clone();
        let left = Arc::new(AtomicBool::new(false));
        let given_back = Arc::clone(&left);
        let thread = std::thread::Builder::new().name("screen".into()).spawn(move || {
            let seen = guarded(|| tui::show(options, &told));
            given_back.store(true, Ordering::SeqCst);
            lines.show(seen.from)?;
            Ok(seen.left)
        })?;
        Ok(Self { remote, over, thread, left, in_a_hurry: false })
    }

    fn wait(self) -> Option<Left> {
        let start = Instant::now();
        let mut printing = None;
        while !self.thread.is_finished() {
            if self.in_a_hurry && start.elapsed() > GIVE_BACK {
                return None;
            }
            // The screen cares about Unix signals as long as it has the terminal; whoever prints lines may be ended by them.
            if self.left.load(Ordering::SeqCst) {
                let since = *printing.get_or_insert_with(|| {
                    process::restore_signals();
                    Instant::now()
                });
                if since.elapsed() > LAST_LINES {
                    return None;
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.thread.join().ok()?.ok()
    }
}

/// A screen that cannot be drawn does not leave the run without a view, and one that breaks does not end it: lines follow.
fn guarded(show: impl FnOnce() -> io::Result<Seen>) -> Seen {
    let why = match catch_unwind(AssertUnwindSafe(show)) {
        Ok(Ok(seen)) => return seen,
        Ok(Err(error)) => io_reason(&error),
        Err(_) => "it broke".to_owned(),
    };
    // Whoever cannot be told has no terminal any more.
    let _ = writeln!(io::stderr(), "warning: the full screen cannot go on: {why}");
    Seen { left: Left::Closed, from: 0 }
}

/// What is printed when the full screen is closed: how the run ended, or, while it goes on, what happens.
struct Lines {
    journal: PathBuf,
    view: Box<dyn View>,
    over: Arc<AtomicBool>,
}

impl Lines {
    fn show(mut self, from: u64) -> io::Result<()> {
        // How the run began is said first, also where the rest was seen already.
        if from > 0
            && let Some(Ok(first)) = Reader::open(&self.journal, 0)?.read()?
        {
            self.view.record(&first)?;
        }
        let mut reader = Reader::open(&self.journal, from)?;
        let mut told = Instant::now();
        loop {
            // Asked before reading: what was written last is read then, too.
            let over = self.over.load(Ordering::SeqCst);
            while let Some(record) = reader.read()? {
                if let Ok(record) = record {
                    self.view.record(&record)?;
                    told = Instant::now();
                }
            }
            self.view.flush()?;
            if over {
                return self.view.close();
            }
            if told.elapsed() >= Duration::from_secs(1) {
                self.view.tick()?;
                told = Instant::now();
            }
            std::thread::sleep(EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_that_breaks_is_followed_by_lines() {
        let lines = Seen { left: Left::Closed, from: 0 };
        assert_eq!(guarded(|| panic!("dropped it")), lines);
        assert_eq!(guarded(|| Err(io::Error::other("no screen"))), lines);
        assert!(
            !include_str!("../../Cargo.toml").contains("panic = \"abort\""),
            "a program that aborts takes the run along"
        );
    }
}
