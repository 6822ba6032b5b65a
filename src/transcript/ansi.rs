//! Takes terminal control sequences out of event text. The raw file keeps them.

use std::borrow::Cow;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// The text without ANSI escape sequences. Everything else stays, other control characters included.
pub(crate) fn strip(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(ESCAPE, 0xc2, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_introducer) {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[sequence_length(rest)..];
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// ESC, or the C1 forms of CSI, OSC, DCS, SOS, PM, APC and ST.
fn is_introducer(character: char) -> bool {
    matches!(character, '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9c}' | '\u{9d}' | '\u{9e}' | '\u{9f}')
}

/// How many bytes the sequence at the start of `text` has. A sequence without an end takes only its
/// introducer, so that it cannot swallow words.
fn sequence_length(text: &str) -> usize {
    let mut characters = text.chars();
    let first = characters.next();
    let (introducer, kind) = match first {
        Some('\u{1b}') => match characters.next() {
            Some(second) => (1 + second.len_utf8(), second),
            None => return text.len(),
        },
        Some('\u{9b}') => (2, '['),
        Some('\u{9d}') => (2, ']'),
        Some('\u{9c}') => return 2,
        Some(_) => (2, 'P'),
        None => return 0,
    };
    let body = &text.as_bytes()[introducer..];
    match kind {
        // CSI: parameters and intermediates, then one final byte.
        '[' => match body.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
            Some(end) if (0x40..=0x7e).contains(&body[end]) => introducer + end + 1,
            _ => introducer,
        },
        // OSC, DCS, SOS, PM, APC: up to BEL or ST.
        ']' | 'P' | 'X' | '^' | '_' => string_end(body).map_or(introducer, |end| introducer + end),
        // nF: intermediates, then one final byte.
        ' '..='/' => match body.iter().position(|byte| !(0x20..=0x2f).contains(byte)) {
            Some(end) if (0x30..=0x7e).contains(&body[end]) => introducer + end + 1,
            _ => introducer,
        },
        '0'..='~' => introducer,
        // ESC before anything else is a lone ESC.
        _ => 1,
    }
}

/// The length of a control string with its terminator.
fn string_end(body: &[u8]) -> Option<usize> {
    for (at, byte) in body.iter().enumerate() {
        match *byte {
            BELL => return Some(at + 1),
            ESCAPE => return (body.get(at + 1) == Some(&b'\\')).then_some(at + 2),
            0xc2 if body.get(at + 1) == Some(&0x9c) => return Some(at + 2),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::strip;

    #[test]
    fn sequences_go_and_words_stay() {
        for (with, without) in [
            ("plain", "plain"),
            ("\u{1b}[1;32mok\u{1b}[0m", "ok"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\after", "after"),
            ("\u{1b}(Bascii", "ascii"),
            ("\u{1b}7saved\u{1b}8", "saved"),
            ("\u{9b}31mred", "red"),
            ("¢ £ ünï", "¢ £ ünï"),
            // Never swallow words because an end is missing.
            ("\u{1b}]0;no end <promise>COMPLETE</promise>", "0;no end <promise>COMPLETE</promise>"),
            ("\u{1b}[12", "12"),
            ("tail\u{1b}", "tail"),
            ("\u{1b}äb", "äb"),
        ] {
            assert_eq!(strip(with), without, "{with:?}");
        }
    }
}
