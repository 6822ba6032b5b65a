//! Canonical events into other dialects: the way back.

use std::io::{self, Write};

use crate::event::Event;
use crate::transcript::SENTINEL;

/// Writes one event as a JSON line.
pub fn json(event: &Event, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    out.write_all(b"\n")
}

/// Writes one event as a line of RTF1.
pub fn rtf1(event: &Event, out: &mut impl Write) -> io::Result<()> {
    out.write_all(SENTINEL.as_bytes())?;
    json(event, out)
}
