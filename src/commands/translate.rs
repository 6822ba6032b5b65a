//! `ralph translate`: raw agent output in, canonical events out. A filter, for people and for tests.

use std::io::{self, Write};
use std::path::Path;

use super::looks::{Tense, line_view};
use crate::cli::{To, Translate};
use crate::emit;
use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::{Body, Record};
use crate::process::{Exit, Line, Lines};
use crate::transcript::{Adapter, Choice, Context, PLAIN, Selected, auto, names, select};
use crate::ui::{LineView, View, harmless};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

/// Reads the input to its end.
pub fn run(args: &Translate) -> Result<u8, UserError> {
    let choice = Choice::from(args.from.as_str());
    let selected = select(&[choice], None)
        .map_err(|error| UserError::usage(error.to_string()).hint(format!("known: {}", names().join(", "))))?;
    let prompts = match &args.prompt {
        Some(path) => vec![crate::run::prompt::Source::File(path.clone()).read()?],
        None => Vec::new(),
    };
    let context = Context { prompts, ..Context::default() };
    let adapter = match selected {
        Selected::Dialect(dialect) => (dialect.adapter)(&context),
        Selected::Auto(_) | Selected::Command(_) => auto(&PLAIN, &context),
    };
    let writer = Writer::new(args);
    match translate(adapter, args, writer) {
        Ok(()) => Ok(0),
        // Whoever read the output has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => {
            let input =
                args.input.as_ref().map_or_else(|| "standard input".to_owned(), |path| format!("`{}`", path.display()));
            Err(UserError::failed(format!("cannot translate {input}: {}", io_reason(&error))))
        }
    }
}

fn translate(mut adapter: Box<dyn Adapter>, args: &Translate, mut writer: Writer) -> io::Result<()> {
    let mut events = Vec::new();
    each_line(args.input.as_deref(), |step| match step {
        Step::Line(line) => {
            adapter.line(line, &mut events);
            writer.line(line, &mut events)
        }
        Step::Pause => writer.flush(),
    })?;
    if let Some(path) = &args.stderr {
        each_line(Some(path), |step| match step {
            Step::Line(line) => {
                adapter.stderr(line, &mut events);
                writer.line(line, &mut events)
            }
            Step::Pause => Ok(()),
        })?;
    }
    adapter.end(args.exit_code.map(Exit::Code), &mut events);
    writer.end(&mut events)
}

/// Where the events go.
enum Writer {
    /// One line for each event.
    Lines { out: Vec<u8>, emit: fn(&Event, &mut Vec<u8>) },
    /// As Claude would say them.
    Claude { out: Vec<u8>, emitter: Option<Box<emit::claude::Claude>> },
    /// As the line view shows them.
    Text(Box<LineView<io::Stdout>>),
    /// Each line with the events it gave: how a bug report is made.
    Explain { out: Vec<u8>, line: u64 },
}

impl Writer {
    fn new(args: &Translate) -> Self {
        let out = Vec::with_capacity(CHUNK);
        match args.to {
            _ if args.explain => Self::Explain { out, line: 0 },
            To::Json => Self::Lines { out, emit: emit::json },
            To::Rtf1 => Self::Lines { out, emit: emit::rtf1 },
            To::Claude => {
                let form = emit::claude::Form { partial: true, tools: emit::claude::Tools::Blocks };
                Self::Claude { out, emitter: Some(Box::new(emit::claude::Claude::new(form))) }
            }
            To::Text => Self::Text(Box::new(line_view(&args.looks, Tense::Past))),
        }
    }

    /// Takes the events that a line gave.
    fn line(&mut self, line: Line<'_>, events: &mut Vec<Event>) -> io::Result<()> {
        if let Self::Explain { out, line: number } = self {
            *number += 1;
            writeln!(out, "{number}: {}", harmless(&line.text()))?;
        }
        self.events(events)
    }

    /// Takes the events that the end gave.
    fn end(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        if let Self::Explain { out, .. } = self {
            writeln!(out, "end")?;
        }
        self.events(events)?;
        if let Self::Claude { out, emitter } = self
            && let Some(emitter) = emitter.take()
        {
            emitter.finish(0, None, out);
        }
        match self {
            Self::Text(view) => view.close(),
            _ => self.flush(),
        }
    }

    fn events(&mut self, events: &mut Vec<Event>) -> io::Result<()> {
        match self {
            Self::Lines { out, emit } => events.iter().for_each(|event| emit(event, out)),
            Self::Claude { out, emitter } => {
                if let Some(emitter) = emitter {
                    for event in events.iter() {
                        emitter.event(event, out);
                    }
                }
            }
            Self::Text(view) => {
                for event in events.drain(..) {
                    let body = Body::Agent { iteration: 1, from: Stream::Stdout, event };
                    view.record(&Record { seq: 0, at: jiff::Timestamp::UNIX_EPOCH, body })?;
                }
            }
            Self::Explain { out, .. } => {
                for event in &*events {
                    out.extend_from_slice(b"    ");
                    emit::json(event, out);
                }
            }
        }
        events.clear();
        match self {
            Self::Lines { out, .. } | Self::Claude { out, .. } | Self::Explain { out, .. }
                if out.len() >= CHUNK / 2 =>
            {
                self.flush()
            }
            _ => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Lines { out, .. } | Self::Claude { out, .. } | Self::Explain { out, .. } => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(out)?;
                out.clear();
                stdout.flush()
            }
            Self::Text(view) => view.flush(),
        }
    }
}

/// What comes out of reading.
enum Step<'a> {
    Line(Line<'a>),
    /// There is nothing more to read just now.
    Pause,
}

/// Splits a file, or standard input, into lines.
fn each_line(path: Option<&Path>, mut each: impl FnMut(Step<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut input: Box<dyn io::Read> = match path {
        Some(path) => Box::new(std::fs::File::open(path)?),
        None => Box::new(io::stdin().lock()),
    };
    let mut lines = Lines::default();
    let mut buffer = vec![0; CHUNK];
    let mut result = Ok(());
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        lines.push(&buffer[..count], |line| {
            if result.is_ok() {
                result = each(Step::Line(line));
            }
        });
        std::mem::replace(&mut result, Ok(()))?;
        // A short read of a pipe means that its writer is slower than we are: somebody may be watching.
        if count < 64 * 1024 {
            each(Step::Pause)?;
        }
    }
    lines.finish(|line| result = each(Step::Line(line)));
    result
}
