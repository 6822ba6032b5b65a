//! What shows a run under way: lines, JSON, or the full screen. It must never hold up the run.

use std::io::{self, IsTerminal as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::steering::Steering;
use crate::app::appearance::{Tense, appearance, keys_go_to, line_view};
use crate::cli::{Output, ViewArgs};
use crate::error::{UserError, io_reason};
use crate::journal::{Follow, Journal, Reader, RunDirectory, Store, Wake};
use crate::process;
use crate::run::notify::Notify;
use crate::run::{Interrupt, Screen};
use crate::ui::tui::{self, Left, Owner, Remote, Seen};
use crate::ui::{self, JsonView, View, out};

/// How long the view may stall when the run is over, before it is given up. Ctrl-C ends it sooner.
const LAST_LINES: Duration = Duration::from_secs(20);
/// How long a full screen may take to give the terminal back.
const GIVE_BACK: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    As(Output),
    Screen,
}

impl Show {
    /// What the flags say. A full screen needs a terminal on both sides.
    pub(crate) fn wanted(tui: bool, output: Output) -> Result<Self, UserError> {
        if !tui {
            return Ok(Self::As(output));
        }
        needs_terminal("--tui").map(|()| Self::Screen)
    }
}

/// An agent's own program needs the terminal, and nobody else on it.
pub(crate) fn needs_terminal_for_agent(screen: Screen, show: Show) -> Result<(), UserError> {
    match (screen, show) {
        (Screen::Users, Show::As(Output::Lines)) => needs_terminal("--interactive"),
        (Screen::Users, _) => {
            Err(UserError::usage("interactive mode cannot be combined with `--tui` or `--output json`")
                .hint("remove `--tui` and `--output json`, or `-i` and `cli.default_mode`"))
        }
        _ => Ok(()),
    }
}

/// A full screen needs keys to read and a screen to draw on.
pub(crate) fn needs_terminal(what: &str) -> Result<(), UserError> {
    if io::stdin().is_terminal() && out::is_terminal() {
        return Ok(());
    }
    Err(UserError::usage(format!("`{what}` needs a terminal"))
        .hint("the line view works without one; `ralph tui` opens the run later, in any terminal"))
}

/// How much of a run a view has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything, or as much as its reader wanted.
    InFull,
    /// Its reader stalled, or could not be written to.
    InPart,
}

/// What shows the run under way, in a thread of its own: each reads the journal.
pub(crate) enum Showing {
    Printed(PrintThread),
    Screen(ScreenThread),
    Closed,
}

impl Showing {
    /// Starts it behind what is in the journal already.
    pub(crate) fn start(
        show: Show,
        args: &ViewArgs,
        notify: &Notify,
        store: &Store,
        directory: &RunDirectory,
        journal: &Journal,
        wake: &Wake,
    ) -> Result<Self, UserError> {
        let unable = |error: io::Error| UserError::failed(format!("cannot start the view: {error}"));
        let view: Box<dyn View> = match show {
            Show::Screen => return ScreenThread::open(store, directory, args, wake).map(Self::Screen).map_err(unable),
            Show::As(Output::Lines) => {
                let view = line_view(args, Tense::Present).beside_the_agent().with_keys(keys_go_to);
                Box::new(if notify.terminal { view } else { view.silent() })
            }
            Show::As(Output::Json) => Box::new(JsonView::new(out::stdout())),
        };
        PrintThread::start(view, directory, journal.length(), wake).map(Self::Printed).map_err(unable)
    }

    /// The run is over. What is printed is printed to its end; a full screen stays, unless someone wants the run to die.
    pub(crate) fn over(&mut self, interrupt: Option<Interrupt>) -> Shown {
        match std::mem::replace(self, Self::Closed) {
            Self::Printed(printing) => {
                // Nothing is left that would need care: Ctrl-C may end a view that stalls.
                process::restore_signals();
                printing.finish(LAST_LINES)
            }
            Self::Screen(screen) => {
                screen.wake.over();
                if interrupt.is_some() {
                    screen.remote.close();
                }
                *self = Self::Screen(ScreenThread { in_a_hurry: interrupt.is_some(), ..screen });
                Shown::InFull
            }
            Self::Closed => Shown::InFull,
        }
    }

    /// Waits until a full screen was left, and says how.
    pub(crate) fn close(self) -> Option<Left> {
        let Self::Screen(screen) = self else { return None };
        let left = screen.wait();
        process::restore_signals();
        left.or(Some(Left::Closed))
    }
}

/// Lines or JSON, printed in a thread of its own.
pub(crate) struct PrintThread {
    wake: Wake,
    thread: JoinHandle<Shown>,
}

impl PrintThread {
    fn start(mut view: Box<dyn View>, directory: &RunDirectory, offset: u64, wake: &Wake) -> io::Result<Self> {
        let mut follow = Follow::own(&directory.journal(), offset, wake.clone())?;
        let thread = std::thread::Builder::new().name("view".into()).spawn(move || {
            match ui::show(&mut follow, &mut *view, |_| true) {
                // The reader is gone, `head` for example: that ends the view, not the run.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Shown::InFull,
                Err(_) => Shown::InPart,
                Ok(()) => Shown::InFull,
            }
        })?;
        Ok(Self { wake: wake.clone(), thread })
    }

    /// Waits until everything is shown, unless the reader stalls for this long.
    fn finish(self, patience: Duration) -> Shown {
        self.wake.over();
        let mut progress = (self.wake.shown(), Instant::now());
        while !self.thread.is_finished() {
            let shown = self.wake.shown();
            if shown != progress.0 {
                progress = (shown, Instant::now());
            } else if progress.1.elapsed() > patience {
                return Shown::InPart;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.thread.join().unwrap_or(Shown::InPart)
    }
}

/// The full screen in a thread of its own.
pub(crate) struct ScreenThread {
    remote: Remote,
    wake: Wake,
    thread: JoinHandle<io::Result<Left>>,
    /// The screen is given back; lines are printed instead.
    left: Arc<AtomicBool>,
    in_a_hurry: bool,
}

impl ScreenThread {
    fn open(store: &Store, directory: &RunDirectory, args: &ViewArgs, wake: &Wake) -> io::Result<Self> {
        let ui::Appearance { palette, glyphs, .. } = appearance(args.appearance);
        let options = tui::Options {
            directory: directory.clone(),
            palette,
            glyphs,
            owner: Owner::This,
            actions: Box::new(Steering::new(store, directory)),
        };
        let remote = Remote::default();
        let (journal, mut view) = (directory.journal(), line_view(args, Tense::Present));
        let (told, woken) = (remote.clone(), wake.clone());
        let left = Arc::new(AtomicBool::new(false));
        let given_back = Arc::clone(&left);
        let thread = std::thread::Builder::new().name("screen".into()).spawn(move || {
            let seen = guarded(|| tui::show(options, &told));
            given_back.store(true, Ordering::SeqCst);
            lines_after(&journal, seen.from, &mut view, woken)?;
            Ok(seen.left)
        })?;
        Ok(Self { remote, wake: wake.clone(), thread, left, in_a_hurry: false })
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
        Err(_) => "internal error".to_owned(),
    };
    out::warn(format_args!("the full screen stopped: {why}"));
    Seen { left: Left::Closed, from: 0 }
}

/// What is printed when the full screen is closed: how the run ended, or, while it continues, what happens.
fn lines_after(journal: &Path, from: u64, view: &mut dyn View, wake: Wake) -> io::Result<()> {
    // How the run began is said first, also where the rest was seen already.
    if from > 0
        && let Some(Ok(first)) = Reader::open(journal, 0)?.read()?
    {
        view.record(&first)?;
    }
    ui::show(&mut Follow::own(journal, from, wake)?, view, |_| true)
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
