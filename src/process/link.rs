//! Our ends of what a process reads and writes: pipes, or a terminal, behind one shape.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::Interest;

use super::invocation::Stdin;
use super::platform;
use super::pty::{Terminal, Typist};
use super::spawn::Spawned;
use super::stream::{Drained, Sink, Source, register};

/// What the supervisor reads from and writes to.
#[derive(Debug)]
pub(super) struct Ends {
    /// Standard output and standard error, each until its end.
    pub outputs: [Option<Source>; 2],
    /// Until all is written.
    pub input: Option<Input>,
    pub terminal: Option<Terminal>,
}

/// What still has to be written.
#[derive(Debug)]
pub(super) enum Input {
    Pipe(Sink),
    Terminal(Typist),
    Keys(Sink),
}

impl Ends {
    pub(crate) fn pipes(spawned: Spawned, stdin: &Stdin) -> io::Result<Self> {
        let source = |descriptor: OwnedFd| -> io::Result<_> {
            platform::deepen(&descriptor);
            Ok(Source::new(register(descriptor, Interest::READABLE)?, Drained::ShortRead))
        };
        let outputs = [spawned.stdout.map(source).transpose()?, spawned.stderr.map(source).transpose()?];
        let input = match (spawned.stdin, stdin) {
            (Some(descriptor), Stdin::Bytes(bytes)) => {
                Some(Input::Pipe(Sink::new(register(descriptor, Interest::WRITABLE)?, bytes.clone())))
            }
            _ => None,
        };
        Ok(Self { outputs, input, terminal: None })
    }

    pub(crate) fn terminal(ours: OwnedFd, stdin: &Stdin) -> io::Result<Self> {
        let ours = Arc::new(register(ours, Interest::READABLE | Interest::WRITABLE)?);
        let terminal = Terminal::new(ours.clone());
        let input = match stdin {
            Stdin::Null | Stdin::From(_) | Stdin::Keys => None,
            Stdin::Bytes(bytes) => Typist::new(terminal.clone(), bytes).map(Input::Terminal),
        };
        Ok(Self { outputs: [Some(Source::new(ours, Drained::WouldBlock)), None], input, terminal: Some(terminal) })
    }
}

impl Ends {
    /// Types keys, behind those that are not typed yet.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        let Some(terminal) = &self.terminal else { return };
        let before = match &self.input {
            Some(Input::Keys(sink)) => sink.rest(),
            // A prompt that is being typed, or none: keys come from a person, who has none beside them.
            _ => &[],
        };
        self.input = Some(Input::Keys(terminal.sink([before, keys].concat().into())));
    }
}

impl Input {
    /// Ready when nothing is left to do.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Pipe(sink) | Self::Keys(sink) => sink.poll_write(context),
            Self::Terminal(typist) => typist.poll_type(context),
        }
    }
}
