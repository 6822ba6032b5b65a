//! The modes of the terminal, changed for a while: the one place that saves and restores them.

use std::io;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::ThreadId;

use rustix::stdio::stdin;
use rustix::termios::{self, OptionalActions, Termios};

/// What is to be restored.
struct Saved {
    modes: Termios,
    /// What is written to undo what a program has switched on; only after a panic, else whoever took the terminal does.
    leave: String,
    taker: ThreadId,
}

static SAVED: Mutex<Option<Saved>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The terminal with other modes, until this is dropped.
#[derive(Debug)]
pub(super) struct Modes(());

impl Modes {
    /// Changes the modes. `leave` is written when a panic ends whoever has the terminal.
    pub(crate) fn take(leave: &str, change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                usual(panic);
            }));
        });
        let modes = termios::tcgetattr(stdin())?;
        let mut changed = modes.clone();
        change(&mut changed);
        *saved() = Some(Saved { modes, leave: leave.to_owned(), taker: std::thread::current().id() });
        let taken = Self(());
        termios::tcsetattr(stdin(), OptionalActions::Now, &changed)?;
        Ok(taken)
    }

    /// Changes what is written after a panic.
    pub(crate) fn leave_by(leave: &str) {
        if let Some(saved) = saved().as_mut() {
            leave.clone_into(&mut saved.leave);
        }
    }

    /// False when a panic has given the terminal back already.
    pub(crate) fn are_ours() -> bool {
        saved().is_some()
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        restore();
    }
}

fn saved() -> MutexGuard<'static, Option<Saved>> {
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the modes, once. In the background that would halt the whole program.
fn restore() {
    let in_background = termios::tcgetpgrp(stdin()).is_ok_and(|group| group != rustix::process::getpgrp());
    if let Some(saved) = saved().take()
        && !in_background
    {
        let _ = termios::tcsetattr(stdin(), OptionalActions::Now, &saved.modes);
    }
}

/// After a panic. Another thread may break and whoever has the terminal go on; the main thread ends the program.
fn give_back() {
    let thread = std::thread::current();
    let leave = saved()
        .as_ref()
        .and_then(|saved| (saved.taker == thread.id() || thread.name() == Some("main")).then(|| saved.leave.clone()));
    if let Some(leave) = leave {
        // What cannot be written is of no use to anybody any more.
        let _ = super::write(&leave);
        restore();
    }
}
