//! Private keys in PEM: a header, then lines of base64 up to a footer. They are longer than what a stream may hold back,
//! so that their body is skipped as it comes.

use super::tokens::{End, Fit};

pub(crate) const BEGIN: &[u8] = b"-----BEGIN ";
const FOOTER: &[u8] = b"-----END ";
const DASHES: &[u8] = b"-----";
/// The longest name between the dashes.
const LONGEST_NAME: usize = 60;
/// Shorter runs of letters are words, unless the footer follows them.
const SHORTEST_LINE: usize = 16;
const LONGEST: usize = 32 * 1024;

/// Whether the header that begins at `start` is one of a private key.
pub(crate) fn header(input: &[u8], start: usize, end: End) -> Fit {
    let name = &input[start + BEGIN.len()..];
    let length = name.iter().take(LONGEST_NAME).take_while(|&&byte| is_name(byte)).count();
    let rest = &name[length..];
    if !rest.starts_with(DASHES) {
        let open = end == End::Open && length < LONGEST_NAME && DASHES.starts_with(rest);
        return if open { Fit::Unknown } else { Fit::No };
    }
    let private = name[..length].ends_with(b"PRIVATE KEY") || name[..length].ends_with(b"PRIVATE KEY BLOCK");
    if private { Fit::To(start + BEGIN.len() + length + DASHES.len()) } else { Fit::No }
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
}

/// The body of a key whose header has been seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    seen: usize,
}

/// What follows in a body.
enum Next {
    /// This many bytes that belong to the key.
    Inside(usize),
    /// This many bytes, and with them the key is over.
    Last(usize),
    /// More input is needed to tell.
    Unknown,
}

impl Body {
    /// How much of the input belongs to the key, and whether it ends there. What is not skipped and not over needs more
    /// input to tell.
    pub(crate) fn skip(&mut self, input: &[u8], end: End) -> (usize, bool) {
        let mut at = 0;
        while at < input.len() {
            match next(&input[at..], end) {
                Next::Inside(length) if self.seen + at + length < LONGEST => at += length,
                Next::Inside(length) | Next::Last(length) => return (at + length, true),
                Next::Unknown => break,
            }
        }
        self.seen += at;
        (at, false)
    }
}

/// Blanks, and what is behind them.
fn next(input: &[u8], end: End) -> Next {
    let blank = blanks(input);
    let rest = &input[blank..];
    let cut = |rest: &[u8]| end == End::Open && rest.iter().all(|&byte| byte == b'\\');
    if cut(rest) && rest.len() < 4 {
        return Next::Unknown;
    }
    if rest.is_empty() {
        return Next::Inside(blank);
    }
    if rest.starts_with(FOOTER) || (end == End::Open && FOOTER.starts_with(rest)) {
        return match footer(rest, end) {
            Fit::To(length) => Next::Last(blank + length),
            Fit::Unknown => Next::Unknown,
            Fit::No => Next::Last(0),
        };
    }
    let line = rest.iter().take(LONGEST).take_while(|&&byte| is_base64(byte)).count();
    let after = &rest[line..];
    let attribute_begun = end == End::Open && ATTRIBUTES.iter().any(|name| name.starts_with(rest));
    if attribute_begun || (line < LONGEST && cut(after) && after.len() < 4) {
        return Next::Unknown;
    }
    if line >= SHORTEST_LINE {
        return Next::Inside(blank + line);
    }
    if let Some(length) = attribute(rest) {
        return if end == End::Open && length == rest.len() { Next::Unknown } else { Next::Inside(blank + length) };
    }
    // A short line is the last one, or it is a word of someone who speaks of keys.
    let behind = &after[blanks(after)..];
    match () {
        () if line == 0 => Next::Last(0),
        () if behind.starts_with(DASHES) || (end == End::Final && behind.is_empty()) => Next::Inside(blank + line),
        () if end == End::Open && (DASHES.starts_with(behind) || cut(behind)) => Next::Unknown,
        () => Next::Last(0),
    }
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// White space, also as JSON writes it, once or twice over.
fn blanks(input: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let rest = &input[at..];
        let slashes = rest.iter().take_while(|&&byte| byte == b'\\').count();
        match (slashes, rest.get(slashes)) {
            (0, Some(byte)) if byte.is_ascii_whitespace() => at += 1,
            (1.., Some(b'n' | b'r' | b't')) => at += slashes + 1,
            _ => return at,
        }
    }
}

/// What is allowed between header and body.
const ATTRIBUTES: [&[u8]; 4] = [b"Proc-Type: ", b"DEK-Info: ", b"Version: ", b"Comment: "];

/// `Proc-Type: 4,ENCRYPTED`.
fn attribute(rest: &[u8]) -> Option<usize> {
    let name = ATTRIBUTES.iter().find(|name| rest.starts_with(name))?;
    let value = rest[name.len()..].iter().take_while(|&&byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'"');
    Some(name.len() + value.count())
}

fn footer(rest: &[u8], end: End) -> Fit {
    let Some(name) = rest.strip_prefix(FOOTER) else { return Fit::Unknown };
    let length = name.iter().take(LONGEST_NAME).take_while(|&&byte| is_name(byte)).count();
    let after = &name[length..];
    if after.starts_with(DASHES) {
        Fit::To(FOOTER.len() + length + DASHES.len())
    } else if end == End::Open && DASHES.starts_with(after) {
        Fit::Unknown
    } else {
        Fit::No
    }
}
