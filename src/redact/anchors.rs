//! Finds where a secret may be, at memory speed: each secret is known by a few of its bytes that are rare in text.
//!
//! The vectorised search of `aho-corasick` is fast up to about fifty patterns of four bytes, so the patterns are split into groups.

use aho_corasick::packed::{Config, Searcher};
use aho_corasick::{AhoCorasick, Span};

/// How long an anchor is, where the literal is long enough.
pub(super) const LENGTH: usize = 4;

/// More patterns than this make the vectorised search slower than two searches.
const GROUP: usize = 48;

/// Shorter inputs are first searched for the first two bytes of the anchors.
const SHORT: usize = 64;

/// A place where an anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    pub(super) at: usize,
    /// Which secret it belongs to.
    pub(super) owner: usize,
    /// How many bytes of the secret precede it.
    pub(super) offset: usize,
}

#[derive(Debug)]
pub(super) struct Anchors {
    groups: Vec<Group>,
    /// The first two bytes of all anchors, one bit for each pair.
    pairs: Vec<u64>,
    /// One of them has only one byte.
    has_single: bool,
}

#[derive(Debug)]
struct Group {
    search: Search,
    owners: Vec<Owners>,
}

/// Which secrets have a pattern, and how many bytes of them precede it.
type Owners = Vec<(usize, usize)>;

#[derive(Debug)]
enum Search {
    Packed(Box<Searcher>),
    /// Where the processor has no vector instructions for it.
    Automaton(Box<AhoCorasick>),
}

impl Anchors {
    /// Takes each anchor with the secret it belongs to and its offset in it.
    pub(super) fn new(mut anchors: Vec<(Vec<u8>, usize, usize)>) -> Self {
        // The length of the shortest pattern of a group is what the group is searched by.
        anchors.sort_by(|one, other| one.0.len().cmp(&other.0.len()).then_with(|| one.0.cmp(&other.0)));
        let mut patterns: Vec<(Vec<u8>, Owners)> = Vec::new();
        for (bytes, owner, offset) in anchors {
            match patterns.last_mut() {
                Some((last, owners)) if *last == bytes => owners.push((owner, offset)),
                _ => patterns.push((bytes, vec![(owner, offset)])),
            }
        }
        let mut pairs = vec![0; (1 << 16) / 64];
        for (bytes, _) in &patterns {
            let seconds = bytes.get(1).map_or(0..=u8::MAX, |&second| second..=second);
            seconds.for_each(|second| {
                let (at, bit) = place(bytes[0], second);
                pairs[at] |= bit;
            });
        }
        let mut groups = Vec::new();
        for same in patterns.chunk_by(|one, other| one.0.len() == other.0.len()) {
            let size = same.len().div_ceil(same.len().div_ceil(GROUP)).max(1);
            groups.extend(same.chunks(size).filter_map(Group::new));
        }
        let has_single = patterns.iter().any(|(bytes, _)| bytes.len() < 2);
        Self { groups, pairs, has_single }
    }

    /// True when an anchor is in the input.
    pub(super) fn is_in(&self, input: &[u8]) -> bool {
        // The vectorised search is slow to begin.
        let is_short = input.len() < SHORT;
        let begins = |pair: &[u8]| {
            let (at, bit) = place(pair[0], pair[1]);
            self.pairs[at] & bit != 0
        };
        if is_short && input.len() > 1 && !input.windows(2).any(begins) && !self.has_single {
            return false;
        }
        self.groups.iter().any(|group| group.search.next(input, 0).is_some())
    }

    /// Every place where an anchor is, in order.
    pub(super) fn find(&self, input: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        for group in &self.groups {
            let mut from = 0;
            while let Some((at, pattern)) = group.search.next(input, from) {
                hits.extend(group.owners[pattern].iter().map(|&(owner, offset)| Hit { at, owner, offset }));
                from = at + 1;
            }
        }
        hits.sort_unstable();
        hits
    }
}

/// Where the bit of a pair is.
fn place(first: u8, second: u8) -> (usize, u64) {
    let number = usize::from(first) << 8 | usize::from(second);
    (number / 64, 1 << (number % 64))
}

impl Group {
    fn new(patterns: &[(Vec<u8>, Owners)]) -> Option<Self> {
        let bytes = || patterns.iter().map(|(bytes, _)| bytes);
        let packed = Config::new().builder().extend(bytes()).build().map(|search| Search::Packed(Box::new(search)));
        let search = match packed {
            Some(packed) => packed,
            None => Search::Automaton(Box::new(AhoCorasick::new(bytes()).ok()?)),
        };
        Some(Self { search, owners: patterns.iter().map(|(_, owners)| owners.clone()).collect() })
    }
}

impl Search {
    fn next(&self, input: &[u8], from: usize) -> Option<(usize, usize)> {
        let found = match self {
            Self::Packed(search) => search.find_in(input, Span { start: from, end: input.len() }),
            Self::Automaton(search) => search.find(aho_corasick::Input::new(input).range(from..)),
        };
        found.map(|found| (found.start(), found.pattern().as_usize()))
    }
}

/// The window of the bytes that is least likely in text and code: its offset and its bytes.
pub(super) fn rarest(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let likely = |byte: u8| match byte {
        b'a'..=b'z' | b' ' => 12,
        b'A'..=b'Z' | b'-' | b'.' | b'/' | b'"' | b'=' => 4,
        b'_' | b'0'..=b'9' => 3,
        _ => 1,
    };
    let weight = |window: &[u8]| -> u32 { window.windows(2).map(|pair| likely(pair[0]) * likely(pair[1])).sum() };
    bytes.windows(LENGTH.min(bytes.len()).max(1)).enumerate().min_by_key(|(_, window)| weight(window))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_simple_search_finds(
            literals in prop::collection::vec("[ab_-]{3,4}", 1..120),
            text in "[ab_-]{0,200}",
        ) {
            let anchors = literals.iter().enumerate().map(|(owner, text)| (text.clone().into_bytes(), owner, 0));
            let set = Anchors::new(anchors.collect());
            let mut expected = Vec::new();
            for at in 0..text.len() {
                for (owner, literal) in literals.iter().enumerate() {
                    if text[at..].starts_with(literal.as_str()) {
                        expected.push(Hit { at, owner, offset: 0 });
                    }
                }
            }
            prop_assert_eq!(set.is_in(text.as_bytes()), !expected.is_empty());
            prop_assert_eq!(set.find(text.as_bytes()), expected);
        }
    }
}
