//! The shapes of well-known tokens, read from `rules.txt`, and how one is matched.
//!
//! A shape says three things of its input: it fits, it does not, or more input is needed to tell. The third is what a
//! stream needs, and what the usual regular expressions do not say.

/// The rules as data; the file says where they come from.
const RULES: &str = include_str!("rules.txt");

/// A part without an upper bound still ends here, so that a stream never holds back more than this.
const LONGEST_PART: usize = 4096;

/// The shape of one kind of token.
#[derive(Debug)]
pub struct Shape {
    /// What stands in its place.
    pub name: &'static str,
    /// How every such token begins.
    pub literal: Vec<u8>,
    /// It must not begin inside a word.
    starts_word: bool,
    /// It must not end inside a word.
    ends_word: bool,
    /// Fewer bits a byte are a placeholder.
    entropy: Option<f64>,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    class: Class,
    least: usize,
    most: usize,
}

/// A set of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Class([bool; 256]);

/// Whether a shape fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It does not.
    No,
    /// Up to this place.
    To(usize),
    /// More input is needed to tell.
    Unknown,
}

/// Whether more input may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This is all there is.
    Final,
    /// More may follow.
    Open,
}

/// All shapes of the rule file.
pub fn shapes() -> Vec<Shape> {
    RULES.lines().filter_map(Shape::parse).collect()
}

impl Shape {
    /// Reads one line; `None` for an empty line or a comment.
    fn parse(line: &'static str) -> Option<Self> {
        let (name, rest) = line.split_once(' ').filter(|(name, _)| !name.starts_with('#'))?;
        // The shape is the rest of the line: there may be blanks in it.
        let (entropy, text) = rest.trim().split_once(' ')?;
        let (entropy, text) = (entropy.parse().ok(), text.trim_start());
        let (starts_word, text) = match text.strip_prefix(r"\b") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (ends_word, text) = match text.strip_suffix(r"\b") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut parts = Vec::new();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            parts.push(Part::parse(&mut rest)?);
        }
        let literals = parts.iter().take_while(|part| part.byte().is_some()).count();
        let literal = parts.drain(..literals).filter_map(|part| part.byte()).collect();
        Some(Self { name, literal, starts_word, ends_word, entropy, parts })
    }

    /// Whether the token that begins at `start` with the literal fits. `before` is what precedes the input.
    pub fn fit(&self, input: &[u8], start: usize, before: &[u8], end: End) -> Fit {
        if self.starts_word && inside_word(input, start, before) {
            return Fit::No;
        }
        let mut at = start + self.literal.len();
        for (index, part) in self.parts.iter().enumerate() {
            // A token that is longer than its rule says is still one token.
            let last = index + 1 == self.parts.len();
            let most = if last && !self.ends_word { LONGEST_PART } else { part.most };
            let taken = input[at..].iter().take(most).take_while(|&&byte| part.class.has(byte)).count();
            at += taken;
            if at == input.len() && taken < most && end == End::Open {
                return Fit::Unknown;
            }
            if taken < part.least {
                return Fit::No;
            }
        }
        if self.ends_word && end == End::Open && at == input.len() {
            return Fit::Unknown;
        }
        if self.ends_word && input.get(at).is_some_and(|&byte| is_word(byte)) {
            return Fit::No;
        }
        match self.entropy {
            Some(least) if entropy(&input[start..at]) < least => Fit::No,
            _ => Fit::To(at),
        }
    }
}

impl Part {
    fn parse(rest: &mut &[u8]) -> Option<Self> {
        let (class, after) = match *rest {
            [b'\\', b'w', after @ ..] => (Class::of(is_word), after),
            [b'\\', b'd', after @ ..] => (Class::of(|byte| byte.is_ascii_digit()), after),
            [b'\\', byte, after @ ..] => (Class::of(|other| other == *byte), after),
            [b'[', after @ ..] => {
                let close = after.iter().position(|&byte| byte == b']')?;
                (Class::parse(&after[..close]), &after[close + 1..])
            }
            [byte, after @ ..] => (Class::of(|other| other == *byte), after),
            [] => return None,
        };
        *rest = after;
        let (least, most) = match after.strip_prefix(b"{") {
            None => (1, 1),
            Some(counts) => {
                let close = counts.iter().position(|&byte| byte == b'}')?;
                *rest = &counts[close + 1..];
                let counts = std::str::from_utf8(&counts[..close]).ok()?;
                match counts.split_once(',') {
                    None => (counts.parse().ok()?, counts.parse().ok()?),
                    Some((least, "")) => (least.parse().ok()?, LONGEST_PART),
                    Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
                }
            }
        };
        Some(Self { class, least, most })
    }

    /// The byte, when the part is exactly one.
    fn byte(&self) -> Option<u8> {
        let mut bytes = (0..=u8::MAX).filter(|&byte| self.class.has(byte));
        match (bytes.next(), bytes.next(), self.least, self.most) {
            (Some(byte), None, 1, 1) => Some(byte),
            _ => None,
        }
    }
}

impl Class {
    fn of(has: impl Fn(u8) -> bool) -> Self {
        let mut class = Self([false; 256]);
        for byte in 0..=u8::MAX {
            class.0[usize::from(byte)] = has(byte);
        }
        class
    }

    /// The inside of brackets: bytes, ranges, `\w`.
    fn parse(mut text: &[u8]) -> Self {
        let mut class = Self([false; 256]);
        loop {
            text = match text {
                [b'\\', b'w', rest @ ..] => {
                    (0..=u8::MAX).filter(|&byte| is_word(byte)).for_each(|byte| class.0[usize::from(byte)] = true);
                    rest
                }
                [first, b'-', last, rest @ ..] => {
                    (*first..=*last).for_each(|byte| class.0[usize::from(byte)] = true);
                    rest
                }
                [byte, rest @ ..] => {
                    class.0[usize::from(*byte)] = true;
                    rest
                }
                [] => return class,
            }
        }
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }
}

/// Whether the place is inside a word. In JSON a word may follow `\n`, and then it is not inside one.
fn inside_word(input: &[u8], start: usize, before: &[u8]) -> bool {
    let byte = |back: usize| match start.checked_sub(back) {
        Some(at) => Some(input[at]),
        None => before.len().checked_sub(back - start).map(|at| before[at]),
    };
    match (byte(2), byte(1)) {
        (Some(b'\\'), Some(b'n' | b'r' | b't')) | (_, None) => false,
        (_, Some(previous)) => is_word(previous),
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Shannon's, in bits a byte: how much chance is in it.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    let used = counts.iter().filter(|&&count| count > 0);
    used.map(|&count| f64::from(count) / length).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &'static str) -> Shape {
        Shape::parse(line).unwrap()
    }

    #[test]
    fn every_rule_is_read_and_begins_with_a_literal() {
        let lines = RULES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        let shapes = shapes();
        assert_eq!(shapes.len(), lines);
        for shape in shapes {
            assert!(shape.literal.len() >= 3, "{}: {:?}", shape.name, String::from_utf8_lossy(&shape.literal));
            assert!(!shape.parts.is_empty(), "{}", shape.name);
        }
    }

    #[test]
    fn a_shape_fits_does_not_or_needs_more() {
        let shape = shape(r"x  -  \bkey-[a-f0-9]{4}\b");
        let fit = |text: &str, end| shape.fit(text.as_bytes(), text.find("key-").unwrap(), b"", end);
        assert_eq!(fit("a key-12ab.", End::Open), Fit::To(10));
        assert_eq!(fit("key-12ab", End::Open), Fit::Unknown);
        assert_eq!(fit("key-12ab", End::Final), Fit::To(8));
        assert_eq!(fit("key-12", End::Open), Fit::Unknown);
        assert_eq!(fit("key-12", End::Final), Fit::No);
        assert_eq!(fit("key-12abc", End::Final), Fit::No);
        assert_eq!(fit("monkey-12ab ", End::Final), Fit::No);
        assert_eq!(fit(r"\nkey-12ab ", End::Final), Fit::To(10), "behind an escape of JSON");
        assert_eq!(shape.fit(b"key-12ab ", 0, b"a", End::Final), Fit::No);
    }

    #[test]
    fn a_blank_may_be_in_a_shape() {
        let shape = shape(r"bearer  3  \bBearer [a-z]{2}");
        assert_eq!(shape.literal, b"Bearer ");
        assert_eq!(shape.entropy, Some(3.0));
    }

    #[test]
    fn placeholders_have_little_entropy() {
        assert!(entropy(b"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx") < 3.0);
        assert!(entropy(b"ghp_16C7e42F292c6912E7710c838347Ae178B4a") > 3.0);
    }
}
