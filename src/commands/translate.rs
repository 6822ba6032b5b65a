//! `ralph translate`: raw agent output in, canonical events out. A filter, for people and for tests.

use std::io::{self, BufWriter, Write};

use super::looks::line_view;
use crate::cli::{To, Translate};
use crate::emit;
use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::{Body, Record};
use crate::process::{Exit, Line, Lines};
use crate::transcript::{Adapter, Context, named, names};
use crate::ui::View;

/// Reads standard input to its end.
pub fn run(args: &Translate) -> Result<u8, UserError> {
    let dialect = named(&args.from)
        .map_err(|error| UserError::usage(error.to_string()).hint(format!("known: {}", known_names().join(", "))))?;
    let prompts = match &args.prompt {
        Some(path) => vec![crate::run::prompt::Source::File(path.clone()).read()?],
        None => Vec::new(),
    };
    let adapter = (dialect.adapter)(&Context { prompts, ..Context::default() });
    let mut writer: Box<dyn FnMut(&Event) -> io::Result<()>> = match args.to {
        To::Json => events_to(|event, out| emit::json(event, out)),
        To::Rtf1 => events_to(|event, out| emit::rtf1(event, out)),
        To::Text => {
            let mut view = line_view(&args.looks);
            Box::new(move |event| {
                let body = Body::Agent { iteration: 1, from: Stream::Stdout, event: event.clone() };
                view.record(&Record { seq: 0, at: jiff::Timestamp::UNIX_EPOCH, body })?;
                view.flush()
            })
        }
    };
    let result = if args.explain {
        explain(adapter, args)
    } else {
        translate(adapter, args, &mut |events| events.iter().try_for_each(&mut writer))
    };
    match result {
        Ok(()) => Ok(0),
        // Whoever read the output has enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => {
            let name = args.input.as_ref().map_or_else(|| "standard input".to_owned(), |path| format!("`{}`", path.display()));
            Err(UserError::failed(format!("cannot translate {name}: {}", io_reason(&error))))
        }
    }
}

fn known_names() -> Vec<&'static str> {
    names().into_iter().filter(|name| *name != "auto").collect()
}

fn events_to(
    emit: fn(&Event, &mut BufWriter<io::Stdout>) -> io::Result<()>,
) -> Box<dyn FnMut(&Event) -> io::Result<()>> {
    let mut out = BufWriter::with_capacity(256 * 1024, io::stdout());
    Box::new(move |event| emit(event, &mut out))
}

/// Feeds the adapter and hands on its events, in batches as they come.
fn translate(
    mut adapter: Box<dyn Adapter>,
    args: &Translate,
    each: &mut dyn FnMut(&[Event]) -> io::Result<()>,
) -> io::Result<()> {
    let mut events = Vec::new();
    let mut hand_on = |events: &mut Vec<Event>| {
        let result = each(events);
        events.clear();
        result
    };
    let mut failed = Ok(());
    read_lines(input(args)?, |line| {
        adapter.line(line, &mut events);
        if failed.is_ok() && events.len() >= 64 {
            failed = hand_on(&mut events);
        }
        failed.is_ok()
    })?;
    failed?;
    if let Some(path) = &args.stderr {
        read_lines(std::fs::File::open(path)?, |line| {
            adapter.stderr(line, &mut events);
            true
        })?;
    }
    adapter.end(args.exit_code.map(Exit::Code), &mut events);
    hand_on(&mut events)
}

/// Shows each line with the events it gave: how a bug report is made.
fn explain(mut adapter: Box<dyn Adapter>, args: &Translate) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout());
    let mut events = Vec::new();
    let mut number = 0;
    let mut failed = Ok(());
    let mut show = |head: String, events: &mut Vec<Event>| -> io::Result<()> {
        writeln!(out, "{head}")?;
        for event in events.drain(..) {
            out.write_all(b"    ")?;
            emit::json(&event, &mut out)?;
        }
        out.flush()
    };
    read_lines(input(args)?, |line| {
        adapter.line(line, &mut events);
        number += 1;
        failed = show(format!("{number}: {}", line.text()), &mut events);
        failed.is_ok()
    })?;
    failed?;
    adapter.end(args.exit_code.map(Exit::Code), &mut events);
    show("end".to_owned(), &mut events)
}

fn input(args: &Translate) -> io::Result<Box<dyn io::Read>> {
    Ok(match &args.input {
        Some(path) => Box::new(std::fs::File::open(path)?),
        None => Box::new(io::stdin().lock()),
    })
}

/// Splits a stream into lines until it ends or nobody wants more.
fn read_lines(mut input: impl io::Read, mut each: impl FnMut(Line<'_>) -> bool) -> io::Result<()> {
    let mut lines = Lines::default();
    let mut buffer = vec![0; 256 * 1024];
    let mut wanted = true;
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        lines.push(&buffer[..count], |line| wanted = wanted && each(line));
        if !wanted {
            return Ok(());
        }
    }
    lines.finish(|line| {
        each(line);
    });
    Ok(())
}
