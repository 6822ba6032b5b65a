//! Canonical events into other dialects: the way back.

pub mod claude;

use crate::event::Event;
use crate::transcript::SENTINEL;

/// Appends one event as a JSON line.
pub(crate) fn json(event: &Event, out: &mut Vec<u8>) {
    event.write_json(out);
    out.push(b'\n');
}

/// Appends one event as a line of RTF1.
pub(crate) fn rtf1(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(SENTINEL.as_bytes());
    json(event, out);
}
