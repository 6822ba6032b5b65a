//! The forms in which a known value may come out again: as it is, escaped for JSON or a URL, inside base64, and broken over
//! several lines by a margin.

use std::fmt::Write as _;

use super::anchors::{LENGTH, rarest};
use super::tokens::{End, Fit};

/// How many bytes a line end takes at most, as JSON writes it twice over.
const LONGEST_BREAK: usize = 10;

/// One form of a value that must not come out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) name: String,
    characters: Vec<char>,
    text: String,
    /// How many bytes it takes at most.
    pub(super) longest: usize,
}

/// All forms of a value.
pub(super) fn forms(name: &str, value: &str) -> Vec<Form> {
    let mut texts = vec![value.to_owned()];
    for alphabet in [STANDARD, URL_SAFE] {
        // Three places in a group of three bytes: what depends on the neighbours is left off.
        for offset in 0..3 {
            let mut bytes = vec![0; offset];
            bytes.extend_from_slice(value.as_bytes());
            let whole = bytes.len() / 3 * 4;
            let first = [0, 2, 3][offset];
            let text = base64(&bytes, alphabet)[first..whole].to_owned();
            if text.len() >= 8 && !texts.contains(&text) {
                texts.push(text);
            }
        }
    }
    texts.into_iter().map(|text| Form::new(name, text)).collect()
}

impl Form {
    fn new(name: &str, text: String) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let bytes: usize = characters.iter().map(|&character| if is_plain(character) { 1 } else { 14 }).sum();
        let longest = bytes + breaks(characters.len()) * LONGEST_BREAK;
        Self { name: name.to_owned(), characters, text, longest }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Bytes to look for, with how many bytes precede them: two, so that a break inside one leaves the other.
    pub(super) fn anchors(&self) -> Vec<(Vec<u8>, usize)> {
        // Characters that no encoding changes.
        let mut runs: Vec<(usize, &str)> = Vec::new();
        for part in self.text.split(|character| !is_plain(character)) {
            let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
            runs.push((start, part));
        }
        runs.retain(|(_, run)| run.len() >= LENGTH - 1);
        let anchor = |(start, run): (usize, &str)| {
            rarest(run.as_bytes()).map(|(offset, window)| (window.to_vec(), start + offset))
        };
        let Some(&(start, longest)) = runs.iter().max_by_key(|(_, run)| run.len()) else {
            // Nothing is sure to stay: each encoding has its own.
            let json = serde_json::to_string(&self.text).unwrap_or_default();
            let json = json.trim_matches('"').to_owned();
            let texts = [self.text.clone(), json.replace('/', r"\/"), json, percent(&self.text)];
            let own = |text: &String| rarest(text.as_bytes()).map(|(offset, window)| (window.to_vec(), offset));
            return texts.iter().filter_map(own).collect();
        };
        if longest.len() >= 2 * LENGTH {
            let (left, right) = longest.split_at(longest.len() / 2);
            return [(start, left), (start + left.len(), right)].into_iter().filter_map(anchor).collect();
        }
        runs.into_iter().take(2).filter_map(anchor).collect()
    }

    /// The bytes it may begin with.
    pub(super) fn firsts(&self) -> impl Iterator<Item = u8> {
        let first = self.text.as_bytes().first().copied();
        let is_plain = self.characters.first().copied().is_some_and(is_plain);
        let escapes = if is_plain { &b""[..] } else { &br"\%"[..] };
        first.into_iter().chain(escapes.iter().copied())
    }

    /// The two bytes it may begin with.
    pub(super) fn pairs(&self, mut each: impl FnMut(u8, u8)) {
        for first in self.firsts() {
            match self.characters[..] {
                [one, two, ..] if is_plain(one) && is_plain(two) => {
                    // Or a line break after the first.
                    self.text.as_bytes().get(1).iter().for_each(|second| each(first, **second));
                    b"\r\n\\".iter().for_each(|second| each(first, *second));
                }
                _ => (0..=u8::MAX).for_each(|second| each(first, second)),
            }
        }
    }

    /// Where it begins, when an anchor of it is at `at` with this many bytes of it before.
    pub(super) fn around(&self, input: &[u8], at: usize, offset: usize, end: End) -> Option<(usize, Fit)> {
        let nearest = at.checked_sub(offset)?;
        let furthest = at.saturating_sub(self.longest);
        let fits = |start: usize| match self.fit(input, start, end) {
            Fit::To(to) if to <= at => None,
            Fit::No => None,
            fit => Some((start, fit)),
        };
        let is_first = |start: &usize| self.firsts().any(|first| input[*start] == first);
        (furthest..=nearest).rev().filter(is_first).find_map(fits)
    }

    /// Whether it begins at `start`.
    pub(super) fn fit(&self, input: &[u8], start: usize, end: End) -> Fit {
        let (mut at, mut broken) = (start, 0);
        for (index, &character) in self.characters.iter().enumerate() {
            let rest = &input[at..];
            match step(rest, character, self.characters.get(index + 1).copied(), end) {
                Step::Over(length) => at += length,
                Step::Unknown => return Fit::Unknown,
                Step::No if index == 0 || broken == breaks(self.characters.len()) => return Fit::No,
                Step::No => match line_break(rest, end) {
                    Step::Over(length) => {
                        broken += 1;
                        match step(&rest[length..], character, self.characters.get(index + 1).copied(), end) {
                            Step::Over(more) => at += length + more,
                            Step::Unknown => return Fit::Unknown,
                            Step::No => return Fit::No,
                        }
                    }
                    Step::Unknown => return Fit::Unknown,
                    Step::No => return Fit::No,
                },
            }
        }
        Fit::To(at)
    }
}

/// How often a margin may break a value of this many characters.
const fn breaks(characters: usize) -> usize {
    characters / 8 + 2
}

/// Characters that JSON and URLs leave as they are.
const fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '.' | '_' | '~')
}

enum Step {
    Over(usize),
    No,
    Unknown,
}

/// Whether a character is here, in any of its encodings.
fn step(rest: &[u8], character: char, next: Option<char>, end: End) -> Step {
    let unknown = if end == End::Open { Step::Unknown } else { Step::No };
    let Some(&first) = rest.first() else { return unknown };
    let mut buffer = [0; 4];
    let bytes = character.encode_utf8(&mut buffer).as_bytes();
    if is_plain(character) {
        return if first == bytes[0] { Step::Over(1) } else { Step::No };
    }
    let slashes = rest.iter().take(8).take_while(|&&byte| byte == b'\\').count();
    if character == '\\' && slashes > 0 {
        // Two mean one in JSON, unless the value itself has two.
        return match slashes {
            1 if rest.len() == 1 && end == End::Open => Step::Unknown,
            1 => Step::Over(1),
            _ if next == Some('\\') => Step::Over(1),
            _ => Step::Over(2),
        };
    }
    if slashes > 0 {
        let escape = &rest[slashes..];
        return match escape {
            [] => unknown,
            [b'u', digits @ ..] => unicode(digits, character, unknown).plus(slashes + 1),
            [b't', ..] if character == '\t' => Step::Over(slashes + 1),
            [byte, ..] if bytes == [*byte] => Step::Over(slashes + 1),
            _ => Step::No,
        };
    }
    let is_itself = character == '%' && (next == Some('2') || !rest.starts_with(b"%25"));
    if first == b'%' && !is_itself {
        return percents(rest, bytes, unknown);
    }
    if character == ' ' && first == b'+' {
        return Step::Over(1);
    }
    match rest.len() {
        length if length < bytes.len() && bytes.starts_with(rest) => unknown,
        _ if rest.starts_with(bytes) => Step::Over(bytes.len()),
        _ => Step::No,
    }
}

impl Step {
    fn plus(self, more: usize) -> Self {
        if let Self::Over(length) = self { Self::Over(length + more) } else { self }
    }
}

/// `0026`, or two halves of a character: `d83d\ude00`.
fn unicode(digits: &[u8], character: char, unknown: Step) -> Step {
    let mut halves = [0; 2];
    let mut wanted = String::new();
    for (index, half) in character.encode_utf16(&mut halves).iter().enumerate() {
        if index > 0 {
            wanted.push_str(r"\u");
        }
        let _ = write!(wanted, "{half:04x}");
    }
    let there = &digits[..digits.len().min(wanted.len())];
    match there.eq_ignore_ascii_case(&wanted.as_bytes()[..there.len()]) {
        true if there.len() == wanted.len() => Step::Over(wanted.len()),
        true => unknown,
        false => Step::No,
    }
}

/// `%26`, for each byte of a character.
fn percents(rest: &[u8], bytes: &[u8], unknown: Step) -> Step {
    let mut wanted = String::new();
    for byte in bytes {
        let _ = write!(wanted, "%{byte:02x}");
    }
    let there = &rest[..rest.len().min(wanted.len())];
    match there.eq_ignore_ascii_case(&wanted.as_bytes()[..there.len()]) {
        true if there.len() == wanted.len() => Step::Over(wanted.len()),
        true => unknown,
        false => Step::No,
    }
}

/// A line end, also as JSON writes it.
fn line_break(rest: &[u8], end: End) -> Step {
    let slashes = rest.iter().take(3).take_while(|&&byte| byte == b'\\').count();
    let more = |rest: &[u8]| if rest.is_empty() && end == End::Open { Step::Unknown } else { Step::No };
    match (slashes, &rest[slashes..]) {
        (0, [b'\n', ..]) => Step::Over(1),
        (0, [b'\r', b'\n', ..]) => Step::Over(2),
        (1.., [b'n', ..]) => Step::Over(slashes + 1),
        (1.., [b'r', after @ ..]) => match line_break(after, end) {
            Step::No => Step::Over(slashes + 1),
            other => other.plus(slashes + 1),
        },
        (0, [b'\r', after @ ..]) | (_, after) => more(after),
    }
}

fn percent(text: &str) -> String {
    let escape = |byte: u8| {
        if is_plain(char::from(byte)) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(escape).collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// base64 of whole groups; a rest that fills none is left off.
fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let groups = bytes.chunks_exact(3).flat_map(|group| {
        let number = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        [18, 12, 6, 0].map(|shift| char::from(alphabet[(number >> shift & 63) as usize]))
    });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> bool {
        forms("X", value).iter().any(|form| {
            form.anchors().into_iter().any(|(anchor, offset)| {
                let hits = (0..text.len()).filter(|&at| text.as_bytes()[at..].starts_with(&anchor));
                hits.into_iter()
                    .any(|at| matches!(form.around(text.as_bytes(), at, offset, End::Final), Some((_, Fit::To(_)))))
            })
        })
    }

    #[test]
    fn a_value_is_found_in_every_form() {
        // As `base64` prints them.
        for encoded in ["aHVudGVyMi1odW50ZXIy", "eDpodW50ZXIyLWh1bnRlcjI=", "eGh1bnRlcjItaHVudGVyMg=="] {
            assert!(found("hunter2-hunter2", encoded), "{encoded}");
            let (head, tail) = encoded.split_at(9);
            assert!(found("hunter2-hunter2", &format!("{head}\n{tail}")), "{encoded}");
        }
        let value = "a b/c\"d&efgh\\ij=é";
        for text in [
            value,
            "a%20b%2Fc%22d%26efgh%5Cij%3D%C3%A9",
            "a+b%2fc%22d%26efgh%5cij%3d%c3%a9",
            r#"a b/c\"d&efgh\\ij=é"#,
            r#"a b\/c\"d\u0026efgh\\ij\u003d\u00e9"#,
            r#"a b\\/c\\\"d\\u0026efgh\\ij=é"#,
            "a b/c\"d\r\n&efgh\\ij=é",
            r#"a b/c\"d&\nefgh\\ij=é"#,
        ] {
            assert!(found(value, &format!("see {text} there")), "{text}");
        }
        assert!(!found(value, "a b/c\"d&efgh\\ij=e"));
        assert!(found("p@ss:w0rd", r#"{"x":"p@ss:w0rd"}"#) && found("p@ss:w0rd", "p%40ss%3Aw0rd"));
        assert!(found("🔑key🔑keys", r"\ud83d\udd11key\ud83d\udd11keys"));
        assert!(found("a%25b%%cdefg", "a%25b%%cdefg") && found("100%safe-safe", "100%25safe-safe"));
    }
}
