//! A terminal for agents that insist on one.
//!
//! It starts raw: a terminal in its usual mode cuts a line at 4,096 bytes and echoes the prompt. It must never be
//! switched back while the agent has taken the keyboard for itself.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::process::Pid;
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, Sleep};

use super::invocation::{Size, Stdin};
use super::platform;
use super::stream::Sink;

/// How often it is looked whether the agent has read all that was typed.
const LOOK: Duration = Duration::from_millis(20);

/// Our end of a terminal.
#[derive(Debug, Clone)]
pub(super) struct Terminal(Arc<AsyncFd<OwnedFd>>);

/// Makes a terminal, our end and the agent's end: raw where a prompt is typed into it, as usual where a person types.
pub(super) fn open(size: Size, stdin: &Stdin) -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = rustix::pty::openpt(platform::pty_flags())?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let theirs = platform::pty_peer(&ours)?;
    if !matches!(stdin, Stdin::Keys) {
        let mut modes = termios::tcgetattr(&theirs)?;
        modes.make_raw();
        // Without meaning on such a terminal, and cleared by every program that goes into raw mode by itself: so it
        // says whether the mode is still ours.
        modes.input_modes |= InputModes::IGNBRK;
        termios::tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    }
    termios::tcsetwinsize(&theirs, winsize(size))?;
    Ok((ours, theirs))
}

impl Terminal {
    pub(crate) fn new(ours: Arc<AsyncFd<OwnedFd>>) -> Self {
        Self(ours)
    }

    pub(crate) fn sink(&self, bytes: Arc<[u8]>) -> Sink {
        Sink::new(Arc::clone(&self.0), bytes)
    }

    /// The system tells the agent by SIGWINCH.
    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        Ok(termios::tcsetwinsize(self.0.get_ref(), winsize(size))?)
    }

    /// The group that has the terminal: with job control not that of the agent itself.
    pub(crate) fn foreground(&self) -> Option<Pid> {
        termios::tcgetpgrp(self.0.get_ref()).ok()
    }
}

/// Types bytes into a terminal, and the end of file after them.
///
/// In raw mode there is no end of file. In the ordinary mode a control character says it, but a `read` that began in
/// raw mode does not understand that, and there always is one when the agent has read everything. So the last byte is
/// held back: when all others are read, the mode is changed, the last byte ends that `read`, and the next one sees the end.
#[derive(Debug)]
pub(super) struct Typist {
    sink: Sink,
    last: u8,
    terminal: Terminal,
    sleep: Pin<Box<Sleep>>,
    /// How often in a row nothing was waiting to be read.
    empty: u8,
}

impl Typist {
    /// None when there is nothing to type.
    pub(crate) fn new(terminal: Terminal, bytes: &[u8]) -> Option<Self> {
        let (last, rest) = bytes.split_last()?;
        let sleep = Box::pin(tokio::time::sleep_until(Instant::now()));
        Some(Self { sink: Sink::new(terminal.0.clone(), rest.into()), last: *last, terminal, sleep, empty: 0 })
    }

    /// Ready when all is typed and read, and the end of file is sent if the agent can understand it.
    pub(crate) fn poll_type(&mut self, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.sink.poll_write(context));
        loop {
            ready!(self.sleep.as_mut().poll(context));
            match self.look() {
                Ok(Typed::Unread) => self.sleep.as_mut().reset(Instant::now() + LOOK),
                Ok(Typed::Read) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Twice empty is wanted, because bytes on their way are counted nowhere for a moment.
    fn look(&mut self) -> io::Result<Typed> {
        let ours = self.terminal.0.get_ref();
        let theirs = platform::pty_peer(ours)?;
        let mut modes = termios::tcgetattr(&theirs)?;
        if !is_untouched(&modes) {
            rustix::io::write(ours, &[self.last])?;
            return Ok(Typed::Read);
        }
        self.empty = if rustix::io::ioctl_fionread(&theirs)? == 0 { self.empty + 1 } else { 0 };
        if self.empty < 2 {
            return Ok(Typed::Unread);
        }
        let end = if self.last == 4 { 5 } else { 4 };
        modes.local_modes |= LocalModes::ICANON;
        for code in [SpecialCodeIndex::VERASE, SpecialCodeIndex::VKILL, SpecialCodeIndex::VEOL] {
            modes.special_codes[code] = platform::NO_CODE;
        }
        modes.special_codes[SpecialCodeIndex::VEOF] = end;
        termios::tcsetattr(&theirs, OptionalActions::Now, &modes)?;
        // After an unfinished line the first one only ends the line.
        rustix::io::write(ours, &[self.last, end, end])?;
        Ok(Typed::Read)
    }
}

enum Typed {
    Unread,
    Read,
}

fn is_untouched(modes: &Termios) -> bool {
    modes.input_modes.contains(InputModes::IGNBRK) && !modes.local_modes.contains(LocalModes::ICANON)
}

fn winsize(size: Size) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}
