//! The input without what only changes how it looks: colour codes between the bytes of a secret, and JSON's `\u0041` for a
//! character that needs no escape. Most input has neither, and is not copied.

use std::sync::LazyLock;

use memchr::{memchr, memmem};

/// The longest colour code. A longer one is something else.
const LONGEST: usize = 64;

/// How the escapes begin that are looked at. A cut `\u` at the end of the input is held back by the caller.
static UNICODE: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(br"\u00"));

/// The bytes that matter, and where each of them is in the input.
#[derive(Debug)]
pub(super) struct Flat {
    pub(super) bytes: Vec<u8>,
    /// From this byte on, the flat bytes are further left by so much; and how long the first of them is in the input.
    shifts: Vec<(usize, usize)>,
    /// Single bytes that are longer in the input: where, and how long.
    long: Vec<(usize, usize)>,
    /// Where the input may end inside a code.
    pub(super) open: Option<usize>,
}

/// `None`: the input is flat already.
pub(super) fn flat(input: &[u8], more: bool) -> Option<Flat> {
    let mut codes = Codes::new(input);
    let first = codes.next(0)?;
    let mut flat = Flat { bytes: Vec::with_capacity(input.len()), shifts: Vec::new(), long: Vec::new(), open: None };
    let (mut copied, mut found) = (0, Some(first));
    while let Some(at) = found {
        let skipped = match code(&input[at..]) {
            Code::Open if more => {
                flat.open = Some(at);
                break;
            }
            Code::Other | Code::Open => 0,
            Code::Nothing(length) | Code::Byte(_, length) => length,
        };
        if skipped > 0 {
            flat.bytes.extend_from_slice(&input[copied..at]);
            copied = at + skipped;
            if let Code::Byte(byte, length) = code(&input[at..]) {
                flat.long.push((flat.bytes.len(), length));
                flat.bytes.push(byte);
            }
            flat.shifts.push((flat.bytes.len(), copied - flat.bytes.len()));
        }
        found = codes.next(at + skipped.max(1));
    }
    flat.bytes.extend_from_slice(&input[copied..flat.open.unwrap_or(input.len())]);
    Some(flat)
}

/// True when something in the input may only change how it looks.
pub(super) fn has_codes(input: &[u8]) -> bool {
    memchr::memchr2(0x1b, b'\\', input).is_some() && Codes::new(input).next(0).is_some()
}

impl Flat {
    /// Where something was left out.
    pub(super) fn edges(&self) -> Vec<usize> {
        self.shifts.iter().map(|(at, _)| *at).collect()
    }

    /// Where a byte of the flat input begins in the input.
    pub(super) fn start(&self, at: usize) -> usize {
        if let Ok(index) = self.long.binary_search_by_key(&at, |(at, _)| *at) {
            let length = self.long[index].1;
            return self.shifted(at + 1) - length;
        }
        self.shifted(at)
    }

    /// Where what ends before this byte ends in the input.
    pub(super) fn end(&self, at: usize) -> usize {
        match at.checked_sub(1) {
            None => 0,
            Some(last) => match self.long.binary_search_by_key(&last, |(at, _)| *at) {
                Ok(_) => self.shifted(at),
                Err(_) => self.shifted(last) + 1,
            },
        }
    }

    fn shifted(&self, at: usize) -> usize {
        let before = self.shifts.partition_point(|(from, _)| *from <= at);
        at + before.checked_sub(1).map_or(0, |index| self.shifts[index].1)
    }
}

/// Where codes may begin. Each kind is searched for once, however many there are of the other.
struct Codes<'a> {
    input: &'a [u8],
    escape: Option<usize>,
    unicode: Option<usize>,
}

impl<'a> Codes<'a> {
    fn new(input: &'a [u8]) -> Self {
        Self { input, escape: memchr(0x1b, input), unicode: UNICODE.find(input) }
    }

    fn next(&mut self, from: usize) -> Option<usize> {
        let rest = self.input.get(from..)?;
        if self.escape.is_some_and(|at| at < from) {
            self.escape = memchr(0x1b, rest).map(|at| from + at);
        }
        if self.unicode.is_some_and(|at| at < from) {
            self.unicode = UNICODE.find(rest).map(|at| from + at);
        }
        self.escape.into_iter().chain(self.unicode).min()
    }
}

enum Code {
    /// It shows nothing and takes this many bytes.
    Nothing(usize),
    /// One byte, written with this many.
    Byte(u8, usize),
    Other,
    /// The input ends inside it.
    Open,
}

fn code(input: &[u8]) -> Code {
    let (introducer, escaped) = match input {
        [0x1b, ..] => (1, None),
        [b'\\', b'u', digits @ ..] => {
            let Some(digits) = digits.get(..4) else {
                return if digits.iter().all(u8::is_ascii_hexdigit) { Code::Open } else { Code::Other };
            };
            let number = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
            match number {
                Some(0x1b) => (6, None),
                Some(number @ 0x20..0x7f) => (6, u8::try_from(number).ok()),
                _ => return Code::Other,
            }
        }
        _ => return Code::Other,
    };
    // A quote or a backslash that is written so must not look like the end of a string.
    if let Some(byte) = escaped {
        return if matches!(byte, b'"' | b'\\') { Code::Other } else { Code::Byte(byte, introducer) };
    }
    match &input[introducer..] {
        [] => Code::Open,
        [b'[', rest @ ..] => {
            match rest.iter().take(LONGEST).position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':')) {
                Some(end) if matches!(rest[end], b'm' | b'K') => Code::Nothing(introducer + 1 + end + 1),
                None if rest.len() < LONGEST => Code::Open,
                _ => Code::Other,
            }
        }
        _ => Code::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_needless_escapes_go_and_places_are_kept() {
        let input = b"a\x1b[31mb\x1b[0m\\u0063d";
        let flat = flat(input, true).unwrap();
        assert_eq!(flat.bytes, b"abcd");
        assert_eq!([0, 1, 2, 3].map(|at| flat.start(at)), [0, 6, 11, 17]);
        assert_eq!([1, 2, 3, 4].map(|at| flat.end(at)), [1, 7, 17, 18]);
        assert!(super::flat(b"plain \\n text", true).is_none());
    }

    #[test]
    fn a_code_that_is_cut_waits_for_its_rest() {
        for (input, open) in
            [(&b"ab\x1b"[..], Some(2)), (b"ab\x1b[3", Some(2)), (b"ab\\u00", Some(2)), (b"a\\u00zz", None)]
        {
            assert_eq!(flat(input, true).unwrap().open, open);
            assert_eq!(flat(input, false).unwrap().bytes, input);
        }
    }
}
