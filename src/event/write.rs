//! Writing events: the same JSON as serde's, but that it has no character which a terminal obeys, and faster where it
//! counts. Words and tool output are nearly all of a transcript, and nearly none of their characters need an escape.

use super::{Event, Status, Tag, ToolEnd, ToolRef, ToolStart};

impl Event {
    /// Appends the event as one JSON object, without a newline.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text { tag, text, delta, parent } => {
                out.extend_from_slice(match tag {
                    Tag::Ai => br#"{"type":"text","tag":"AI","text":"#,
                    Tag::Think => br#"{"type":"text","tag":"THINK","text":"#,
                    Tag::Sys => br#"{"type":"text","tag":"SYS","text":"#,
                    Tag::Tool => br#"{"type":"text","tag":"TOOL","text":"#,
                    Tag::Prompt => br#"{"type":"text","tag":"PROMPT","text":"#,
                    Tag::User => br#"{"type":"text","tag":"USER","text":"#,
                });
                write_string(text, out);
                close(*delta, parent.as_deref(), out);
            }
            Self::ToolOutput { tool: ToolRef { id }, text, delta, parent } => {
                out.extend_from_slice(br#"{"type":"tool_output","tool":{"id":"#);
                write_string(id, out);
                out.extend_from_slice(br#"},"text":"#);
                write_string(text, out);
                close(*delta, parent.as_deref(), out);
            }
            Self::ToolStart { tool: ToolStart { id, name, input }, parent } => {
                out.extend_from_slice(br#"{"type":"tool_start","tool":{"id":"#);
                write_string(id, out);
                out.extend_from_slice(br#","name":"#);
                write_string(name, out);
                if let Some(input) = input {
                    out.extend_from_slice(br#","input":"#);
                    write_value(input, out);
                }
                out.push(b'}');
                close(false, parent.as_deref(), out);
            }
            Self::ToolEnd { tool: ToolEnd { id, status, duration_ms }, parent } => {
                out.extend_from_slice(br#"{"type":"tool_end","tool":{"id":"#);
                write_string(id, out);
                out.extend_from_slice(match status {
                    Status::Ok => br#","status":"ok""#,
                    Status::Fail => br#","status":"fail""#,
                    Status::Unknown => br#","status":"unknown""#,
                });
                if let Some(duration) = duration_ms {
                    out.extend_from_slice(br#","duration_ms":"#);
                    write_value(duration, out);
                }
                out.push(b'}');
                close(false, parent.as_deref(), out);
            }
            Self::Usage { .. } | Self::Meta { .. } => write_value(self, out),
        }
    }
}

/// Maps with text as keys, text and numbers: there is nothing in them that could not be written.
pub fn write_value(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

fn close(delta: bool, parent: Option<&str>, out: &mut Vec<u8>) {
    if delta {
        out.extend_from_slice(br#","delta":true"#);
    }
    if let Some(parent) = parent {
        out.extend_from_slice(br#","parent":"#);
        write_string(parent, out);
    }
    out.push(b'}');
}

/// Appends a JSON string, without any character that a terminal obeys.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    /// As many bytes as the compiler looks at in one go.
    const CHUNK: usize = 32;
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    // What is before this is written. What needs no escape is copied in runs as long as possible.
    let mut written = 0;
    for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
        // Without a branch in it, so that it becomes vector instructions.
        if !chunk.iter().fold(false, |found, &byte| found | needs_escape(byte)) {
            continue;
        }
        for (at, &byte) in (number * CHUNK..).zip(chunk).filter(|(_, byte)| needs_escape(**byte)) {
            let before = at.checked_sub(1).map(|before| bytes[before]);
            match (before, byte, bytes.get(at + 1)) {
                // C1 controls, which a terminal obeys: their second byte says which.
                (_, 0xc2, Some(0x80..=0x9f)) => out.extend_from_slice(&bytes[written..at]),
                (Some(0xc2), 0x80..=0x9f, _) => write_escape(byte, out),
                // A part of another character.
                (_, 0x80.., _) => continue,
                _ => {
                    out.extend_from_slice(&bytes[written..at]);
                    write_ascii_escape(byte, out);
                }
            }
            written = at + 1;
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

#[expect(clippy::needless_bitwise_bool, reason = "a lazy operator is a branch, and keeps vectors away")]
const fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0x7f) | ((byte >= 0x80) & (byte <= 0xc2))
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

fn write_ascii_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return write_escape(byte, out),
    };
    out.extend_from_slice(&[b'\\', short]);
}
