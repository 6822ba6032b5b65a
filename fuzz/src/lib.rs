//! What must hold for any bytes, as plain functions: a mutation runner and `cargo-fuzz` both call them.
//!
//! A broken promise is a panic, as fuzzers want it.

use ralph::event::Event;
use ralph::journal::Record;
use ralph::process::{Exit, Lines};
use ralph::redact::{Redactor, Streaming};
use ralph::transcript::{Adapter, Context, Dialect, auto};

/// Feeds a dialect with bytes: in one piece, in small pieces, and through the switch of dialects.
///
/// # Panics
/// When an adapter breaks a promise.
pub fn check_adapter(dialect: &'static Dialect, bytes: &[u8]) {
    let context = Context { prompts: vec!["do the task".to_owned()], ..Context::default() };
    let whole = read(&mut *(dialect.adapter)(&context), bytes, bytes.len().max(1));
    let pieces = read(&mut *(dialect.adapter)(&context), bytes, 3);
    assert_eq!(whole, pieces, "{}: the same bytes gave other events when they came in pieces", dialect.name);
    check_events(dialect.name, &whole);
    check_events(dialect.name, &read(&mut *auto(dialect, &context), bytes, bytes.len().max(1)));
}

fn read(adapter: &mut dyn Adapter, bytes: &[u8], piece: usize) -> Vec<Event> {
    let mut out = Vec::new();
    let mut lines = Lines::default();
    for chunk in bytes.chunks(piece) {
        lines.push(chunk, |line| adapter.line(line, &mut out));
    }
    lines.finish(|line| adapter.line(line, &mut out));
    adapter.end(Some(Exit::Code(0)), &mut out);
    out
}

/// One terminal fact, no tool left open, every event readable again.
fn check_events(name: &str, events: &[Event]) {
    let ends = events.iter().filter(|event| matches!(event, Event::Meta { meta } if meta.kind() == Some("turn_end")));
    assert_eq!(ends.count(), 1, "{name}: terminal facts");
    let mut open: Vec<&str> = Vec::new();
    for event in events {
        match event {
            Event::ToolStart { tool, .. } => open.push(&tool.id),
            Event::ToolEnd { tool, .. } => open.retain(|id| *id != tool.id),
            _ => {}
        }
        let json = serde_json::to_vec(event).unwrap_or_default();
        if let Err(error) = Event::from_json(&json) {
            panic!("{name}: an event breaks the schema: {error}: {}", String::from_utf8_lossy(&json));
        }
    }
    assert!(open.is_empty(), "{name}: tools left open: {open:?}");
}

/// Reads bytes as a journal: every line is a record or is refused, and a record that was read is written so that it reads
/// the same again.
///
/// # Panics
/// When the reader breaks a promise.
pub fn check_journal(bytes: &[u8]) {
    for line in bytes.split(|&byte| byte == b'\n') {
        let Ok(record) = Record::read_line(line) else { continue };
        let mut written = Vec::new();
        if let Err(error) = record.write_line(&mut written) {
            panic!("a record cannot be written: {error}");
        }
        assert_eq!(written.iter().filter(|&&byte| byte == b'\n').count(), 1, "one record, one line");
        match Record::read_line(&written) {
            Ok(again) => {
                // Larger integers become fractions, which are read with an error in the last digit. ralph writes none.
                let is_huge =
                    |digits: &[u8]| str::from_utf8(digits).is_ok_and(|it| it.len() > 19 && it.parse::<u64>().is_err());
                let huge = line.split(|byte| !byte.is_ascii_digit()).any(is_huge);
                assert!(
                    again == record || written == line || huge,
                    "a record reads differently when it is written again: {}",
                    String::from_utf8_lossy(line)
                );
            }
            Err(error) => panic!("a record that was written cannot be read: {error}"),
        }
    }
}

/// Takes secrets out of bytes: in one piece, and in small ones.
///
/// # Panics
/// When pieces give something else than the whole.
pub fn check_redaction(bytes: &[u8]) {
    let redactor = Redactor::new([("A_TOKEN".to_owned(), "s3cr3t-Value/1".to_owned())]);
    let stream = |piece: usize| {
        let mut stream = Streaming::new(&redactor);
        let mut out = Vec::new();
        for chunk in bytes.chunks(piece) {
            out.extend_from_slice(&stream.push(chunk));
        }
        out.extend(stream.finish());
        out
    };
    assert_eq!(stream(bytes.len().max(1)), stream(3), "the same bytes gave something else when they came in pieces");
}
