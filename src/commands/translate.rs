//! `ralph translate`: raw agent output in, canonical events out. A filter, for people and for tests.

use std::io::{self, Write as _};
use std::path::Path;

use crate::app::appearance::{Tense, line_view};
use crate::cli::{To, Translate};
use crate::emit;
use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::{Body, Record};
use crate::process::Exit;
use crate::redact::{Clean, Redactor};
use crate::stream::OutputStream;
use crate::transcript::{Choice, Context, PLAIN, Selected, names, select};
use crate::ui::out::Data;
use crate::ui::{LineView, View, harmless};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;

/// Reads the input to its end.
pub(crate) fn run(args: &Translate) -> Result<u8, UserError> {
    let choice = Choice::from(args.from.as_str());
    let selected = select(&[choice], None)
        .map_err(|error| UserError::usage(error.to_string()).hint(format!("known: {}", names().join(", "))))?;
    let prompts = match &args.prompt {
        Some(path) => vec![crate::run::prompt::Source::File(path.clone()).read()?],
        None => Vec::new(),
    };
    let context = Context { prompts, ..Context::default() };
    let selected = if matches!(selected, Selected::Command(_)) { Selected::Auto(&PLAIN) } else { selected };
    let mut stream = OutputStream::new(&selected, &context, &Redactor::of_process());
    let writer = Writer::new(args);
    match translate(&mut stream, args, writer) {
        Ok(()) => Ok(0),
        // Whoever read the output has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => {
            let input = args.input.as_ref().map_or_else(|| "stdin".to_owned(), |path| format!("`{}`", path.display()));
            Err(UserError::failed(format!("cannot translate {input}: {}", io_reason(&error))))
        }
    }
}

fn translate(stream: &mut OutputStream, args: &Translate, mut writer: Writer) -> io::Result<()> {
    let mut events = Vec::new();
    let read = |from, path: Option<&Path>, stream: &mut OutputStream, writer: &mut Writer, events: &mut Vec<_>| {
        each_chunk(path, |step| match step {
            // What explains lines takes one at a time.
            Step::Bytes(bytes) if matches!(writer, Writer::Explain { .. }) => {
                bytes.split_inclusive(|&byte| byte == b'\n').try_for_each(|line| {
                    let raw = stream.push(from, line, events);
                    writer.take(&raw, events)
                })
            }
            Step::Bytes(bytes) => {
                stream.push(from, bytes, events);
                writer.take(b"", events)
            }
            Step::Pause => writer.flush(),
        })
    };
    read(Stream::Stdout, args.input.as_deref(), stream, &mut writer, &mut events)?;
    if let Some(path) = &args.stderr {
        read(Stream::Stderr, Some(path), stream, &mut writer, &mut events)?;
    }
    let mut stderr = Vec::new();
    let rest = stream.end_bytes(&mut events, &mut stderr);
    events.append(&mut stderr);
    writer.take(&rest.stdout, &mut events)?;
    writer.take(&rest.stderr, &mut events)?;
    stream.finish(args.exit_code.map(Exit::Code), &mut events);
    writer.end(&mut events)
}

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
            To::Text => Self::Text(Box::new(line_view(&args.view, Tense::Past))),
        }
    }

    /// Takes the events that some lines gave.
    fn take(&mut self, lines: &[u8], events: &mut Vec<Clean<Event>>) -> io::Result<()> {
        if let Self::Explain { out, line: number } = self {
            for line in lines.split_inclusive(|&byte| byte == b'\n') {
                *number += 1;
                writeln!(out, "{number}: {}", harmless(String::from_utf8_lossy(line).trim_end_matches(['\r', '\n'])))?;
            }
        }
        self.events(events)
    }

    /// Takes the events that the end gave.
    fn end(&mut self, events: &mut Vec<Clean<Event>>) -> io::Result<()> {
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

    fn events(&mut self, events: &mut Vec<Clean<Event>>) -> io::Result<()> {
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
                    let body = Body::Agent { iteration: 1, from: Stream::Stdout, event: event.into_inner() };
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
                let mut stdout = Data::on_stdout();
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
    Bytes(&'a [u8]),
    /// There is nothing more to read just now.
    Pause,
}

/// Reads a file, or standard input.
fn each_chunk(path: Option<&Path>, mut each: impl FnMut(Step<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut input: Box<dyn io::Read> = match path {
        Some(path) => Box::new(std::fs::File::open(path)?),
        None => Box::new(io::stdin().lock()),
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        each(Step::Bytes(&buffer[..count]))?;
        // A short read of a pipe means that its writer is slower than we are: someone may be watching.
        if count < 64 * 1024 {
            each(Step::Pause)?;
        }
    }
}
