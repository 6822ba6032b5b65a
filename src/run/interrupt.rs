//! Unix signals to ralph itself: the first asks, the second kills, the third leaves.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use crate::process::{self, Process, StopReason};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the user wants with a Unix signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Int,
    Term,
    /// SIGHUP: the terminal is gone.
    Hup,
    /// Any other that would end the program, by its number.
    Other(i32),
}

impl Interrupt {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Int => "SIGINT".to_owned(),
            Self::Term => "SIGTERM".to_owned(),
            Self::Hup => "SIGHUP".to_owned(),
            Self::Other(number) => process::signal_name(number),
        }
    }

    /// Its number, for a true death by it.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Int => libc::SIGINT,
            Self::Term => libc::SIGTERM,
            Self::Hup => libc::SIGHUP,
            Self::Other(number) => number,
        }
    }
}

/// What to do about a Unix signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask the agent to stop.
    Ask,
    Kill,
    Leave,
}

impl Action {
    /// What was done, in words.
    pub(crate) const fn done(self) -> &'static str {
        match self {
            Self::Ask => "asked the agent to stop",
            Self::Kill => "killed the agent",
            Self::Leave => "left at once",
        }
    }
}

/// Listens for the Unix signals of a whole run.
#[derive(Debug)]
pub(crate) struct Interrupts {
    int: Signal,
    term: Signal,
    hup: Option<Signal>,
    others: Vec<(i32, Signal)>,
    stop: Signal,
    resized: Signal,
    retry: Signal,
    count: u32,
    /// The first one; it decides how ralph dies.
    first: Option<Interrupt>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// Someone wants the run to end.
    Interrupt(Interrupt, Action),
    Suspend,
    /// The terminal has another size.
    Resized,
    /// SIGUSR1: someone wants a wait to end now.
    Retry,
}

impl Came {
    /// What it means for a process that is not an agent: the first interrupt stops it, the second one kills it.
    pub(crate) fn pass_to(self, process: &mut Process, interrupted: &mut bool) {
        match self {
            Self::Interrupt(..) if *interrupted => process.kill(),
            Self::Interrupt(..) => {
                *interrupted = true;
                process.stop(StopReason::Asked);
            }
            Self::Suspend => {
                process.pause();
                process::suspend_self();
                process.resume();
            }
            Self::Resized | Self::Retry => {}
        }
    }
}

impl Interrupts {
    pub(crate) fn listen() -> io::Result<Self> {
        process::take_signals();
        process::suspension::note_sender();
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: unless_ignored(SignalKind::hangup())?,
            others: others(),
            stop: signal(SignalKind::from_raw(libc::SIGTSTP))?,
            resized: signal(SignalKind::window_change())?,
            retry: signal(SignalKind::user_defined1())?,
            count: 0,
            first: None,
        })
    }

    /// Waits for the next one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Came {
        loop {
            let interrupt = tokio::select! {
                _ = self.int.recv() => Interrupt::Int,
                _ = self.term.recv() => Interrupt::Term,
                () = received(&mut self.hup) => Interrupt::Hup,
                number = any_of(&mut self.others) => Interrupt::Other(number),
                // An agent must not halt its own run.
                _ = self.stop.recv() => if process::suspension::is_wanted() { return Came::Suspend } else { continue },
                _ = self.resized.recv() => return Came::Resized,
                _ = self.retry.recv() => return Came::Retry,
            };
            return self.count(interrupt);
        }
    }

    /// Waits for a Unix signal that ends the run. Cancel-safe.
    pub(crate) async fn interrupt(&mut self) -> Interrupt {
        loop {
            match self.next().await {
                Came::Interrupt(interrupt, _) => return interrupt,
                Came::Suspend => process::suspend_self(),
                Came::Resized | Came::Retry => {}
            }
        }
    }

    /// Ctrl-C that came as keys, not as a Unix signal.
    pub(crate) fn pressed(&mut self) -> Came {
        self.count(Interrupt::Int)
    }

    fn count(&mut self, interrupt: Interrupt) -> Came {
        self.first.get_or_insert(interrupt);
        self.count += 1;
        let action = match self.count {
            1 => Action::Ask,
            2 => Action::Kill,
            _ => Action::Leave,
        };
        Came::Interrupt(interrupt, action)
    }

    /// The first one that came.
    pub(crate) const fn first(&self) -> Option<Interrupt> {
        self.first
    }
}

/// Listens for one that is not to be ignored: under `nohup` a run survives its terminal.
fn unless_ignored(kind: SignalKind) -> io::Result<Option<Signal>> {
    (!process::ignores(kind.as_raw_value())).then(|| signal(kind)).transpose()
}

/// Those that ralph gives no meaning of its own. One that the system does not let us hear ends ralph as it always did.
fn others() -> Vec<(i32, Signal)> {
    let listen = |number: i32| Some((number, unless_ignored(SignalKind::from_raw(number)).ok()??));
    process::ending_signals().into_iter().filter_map(listen).collect()
}

/// Waits for any of these. Cancel-safe.
async fn any_of(signals: &mut [(i32, Signal)]) -> i32 {
    poll_fn(|context| {
        let mut came = signals.iter_mut().filter_map(|(number, signal)| match signal.poll_recv(context) {
            Poll::Ready(_) => Some(*number),
            Poll::Pending => None,
        });
        came.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Waits for one; forever, when nobody listens for it. Cancel-safe.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
