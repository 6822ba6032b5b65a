//! Stress, code and links inside one line. One pass for each depth, and few depths: a hostile line costs little.

use crate::ui::style::Ink;
use crate::ui::styled::Styled;

/// How deep things may be nested.
const DEPTH: usize = 4;

/// The line with the inks of what its signs mean; signs without a partner stay.
pub(crate) fn styled(line: &str, ink: Ink) -> Styled {
    let mut out = Styled::default();
    parse(line, ink, DEPTH, &mut out);
    out
}

fn parse(text: &str, ink: Ink, depth: usize, out: &mut Styled) {
    let bytes = text.as_bytes();
    let (mut at, mut plain) = (0, 0);
    while at < bytes.len() {
        let found = match bytes[at] {
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii_punctuation) => {
                out.push(&text[plain..at], ink);
                // The sign after it is a sign and nothing more.
                plain = at + 1;
                at += 2;
                continue;
            }
            b'`' => code(text, at),
            b'*' | b'_' if depth > 0 => stress(text, at, ink),
            b'~' if depth > 0 => struck(text, at),
            b'[' if depth > 0 => link(text, at),
            _ => None,
        };
        let Some(Delimited { inner, end, ink: own, behind }) = found else {
            at += run(bytes, at);
            continue;
        };
        out.push(&text[plain..at], ink);
        match own {
            Ink::Code => out.push(inner, Ink::Code),
            own => parse(inner, own, depth - 1, out),
        }
        out.push(&behind, Ink::Dim);
        (at, plain) = (end, end);
    }
    out.push(&text[plain..], ink);
}

/// Something that was marked.
struct Delimited<'a> {
    inner: &'a str,
    end: usize,
    ink: Ink,
    /// What is shown behind it.
    behind: String,
}

impl<'a> Delimited<'a> {
    fn new(inner: &'a str, end: usize, ink: Ink) -> Option<Self> {
        (!inner.is_empty()).then_some(Self { inner, end, ink, behind: String::new() })
    }
}

/// How often the byte is there in a row; what is no sign is alone.
fn run(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        sign @ (b'*' | b'_' | b'`' | b'~') => bytes[at..].iter().take_while(|byte| **byte == sign).count(),
        _ => 1,
    }
}

fn code(text: &str, at: usize) -> Option<Delimited<'_>> {
    let bytes = text.as_bytes();
    let length = run(bytes, at);
    let mut close = at + length;
    while close < bytes.len() {
        if bytes[close] == b'`' {
            let found = run(bytes, close);
            if found == length {
                let inner = &text[at + length..close];
                let padded = inner.strip_prefix(' ').and_then(|inner| inner.strip_suffix(' '));
                let inner = padded.filter(|inner| !inner.trim().is_empty()).unwrap_or(inner);
                return Delimited::new(inner, close + length, Ink::Code);
            }
            close += found;
        } else {
            close += 1;
        }
    }
    None
}

fn stress(text: &str, at: usize, around: Ink) -> Option<Delimited<'_>> {
    let bytes = text.as_bytes();
    let length = run(bytes, at).min(3);
    // `__init__` is a name far more often than it is stress.
    if bytes[at] == b'_' && length > 1 {
        return None;
    }
    let end = closing(text, at, length)?;
    let ink = match (length, around) {
        (_, Ink::Heading) => Ink::Heading,
        (3, _) | (1, Ink::Strong) | (2, Ink::Emphasis) | (_, Ink::StrongEmphasis) => Ink::StrongEmphasis,
        (2, _) => Ink::Strong,
        _ => Ink::Emphasis,
    };
    Delimited::new(&text[at + length..end], end + length, ink)
}

fn struck(text: &str, at: usize) -> Option<Delimited<'_>> {
    if run(text.as_bytes(), at) != 2 {
        return None;
    }
    let end = closing(text, at, 2)?;
    Delimited::new(&text[at + 2..end], end + 2, Ink::Struck)
}

/// Where the partner of the signs is. Signs stand close to their words, and an underscore within a word is a letter.
fn closing(text: &str, at: usize, length: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let sign = bytes[at];
    let before = text[..at].chars().next_back();
    let after = text[at + length..].chars().next()?;
    if after.is_whitespace() || (sign == b'_' && before.is_some_and(char::is_alphanumeric)) {
        return None;
    }
    let mut close = at + length;
    while close < bytes.len() {
        match bytes[close] {
            b'\\' => close += 2,
            byte if byte == sign => {
                let found = run(bytes, close);
                let behind = text[close + found..].chars().next();
                let within_word = sign == b'_' && behind.is_some_and(char::is_alphanumeric);
                if !within_word && !bytes[close - 1].is_ascii_whitespace() && found >= length {
                    // Of a longer row the last ones are ours: `**a *b***`.
                    return Some(close + found - length);
                }
                close += found;
            }
            _ => close += 1,
        }
    }
    None
}

/// `[words](address)`: the address is behind the words, because nobody can click here.
fn link(text: &str, at: usize) -> Option<Delimited<'_>> {
    let close = at + text[at..].find("](")?;
    let inner = &text[at + 1..close];
    let end = close + 2 + text[close + 2..].find(')')?;
    let address = &text[close + 2..end];
    if inner.contains('[') || address.is_empty() || address.contains(' ') {
        return None;
    }
    let behind = if address == inner { String::new() } else { format!(" ({address})") };
    Some(Delimited { behind, ..Delimited::new(inner, end + 1, Ink::Link)? })
}
