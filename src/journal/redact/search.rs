//! Finds many literals in a stream at memory speed.
//!
//! Each literal is known by the three of its bytes that are rarest in text. Of any three bytes in a row, two begin at an
//! even place together: so it is enough to look at every second pair of bytes, and nearly none of them is in the table.

/// The shortest literal.
pub const SHORTEST: usize = 3;

/// How many pairs are looked at before the first branch.
const STRIDE: usize = 16;

const BUCKETS: usize = 4096;

/// Where a literal was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Its first byte.
    pub start: usize,
    /// Which literal.
    pub literal: usize,
}

/// A set of literals, ready to be searched for.
#[derive(Debug)]
pub struct Literals {
    all: Vec<Vec<u8>>,
    /// Whether a pair of bytes is in the window of any literal.
    pairs: Box<[bool]>,
    /// The literals by the hash of their window, each with the window's offset.
    buckets: Vec<Vec<(usize, usize)>>,
    /// Which buckets hold anything: small enough to stay close to the processor.
    used: Box<[u64]>,
    /// The literals by their first byte, for the end of a stream.
    firsts: Vec<Vec<usize>>,
    longest: usize,
}

impl Literals {
    /// Takes literals of at least [`SHORTEST`] bytes.
    pub fn new(literals: Vec<Vec<u8>>) -> Self {
        let mut found = Self {
            pairs: vec![false; 65536].into_boxed_slice(),
            buckets: vec![Vec::new(); BUCKETS],
            used: vec![0; BUCKETS / 64].into_boxed_slice(),
            firsts: vec![Vec::new(); 256],
            longest: literals.iter().map(Vec::len).max().unwrap_or(0),
            all: literals,
        };
        for (index, literal) in found.all.iter().enumerate() {
            let Some((offset, window)) = rarest(literal) else { continue };
            found.pairs[pair(window[0], window[1])] = true;
            found.pairs[pair(window[1], window[2])] = true;
            let bucket = bucket(window);
            found.buckets[bucket].push((index, offset));
            found.used[bucket / 64] |= 1 << (bucket % 64);
            found.firsts[usize::from(literal[0])].push(index);
        }
        found
    }

    /// Every place where a literal stands in full, in order.
    pub fn find(&self, input: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let mut chunks = input.chunks_exact(2 * STRIDE);
        let mut at = 0;
        for chunk in &mut chunks {
            // Without a branch in it: a bit for each pair that is known.
            let pairs = chunk.chunks_exact(2).enumerate();
            let mut known =
                pairs.fold(0u32, |known, (index, two)| known | u32::from(self.pairs[pair(two[0], two[1])]) << index);
            while known != 0 {
                self.around(input, at + 2 * known.trailing_zeros() as usize, &mut hits);
                known &= known - 1;
            }
            at += 2 * STRIDE;
        }
        self.look(input, at, input.len(), &mut hits);
        hits.sort_unstable();
        hits.dedup();
        hits
    }

    /// Where the end of the input may be the beginning of a literal.
    pub fn begun(&self, input: &[u8]) -> Option<usize> {
        let from = input.len().saturating_sub(self.longest.saturating_sub(1));
        (from..input.len()).find(|&start| {
            let end = &input[start..];
            self.firsts[usize::from(end[0])]
                .iter()
                .any(|&index| self.all[index].len() > end.len() && self.all[index].starts_with(end))
        })
    }

    /// Looks closely at the pairs that begin at even places in a range.
    fn look(&self, input: &[u8], from: usize, to: usize, hits: &mut Vec<Hit>) {
        for at in (from..to).step_by(2) {
            let Some(&[first, second]) = input.get(at..at + 2) else { return };
            if self.pairs[pair(first, second)] {
                self.around(input, at, hits);
            }
        }
    }

    /// A known pair stands here: the window begins with it, or one byte before.
    fn around(&self, input: &[u8], at: usize, hits: &mut Vec<Hit>) {
        for window in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            self.verify(input, window, hits);
        }
    }

    fn verify(&self, input: &[u8], window: usize, hits: &mut Vec<Hit>) {
        let Some(bytes) = input.get(window..window + SHORTEST) else { return };
        let bucket = bucket(bytes);
        if self.used[bucket / 64] >> (bucket % 64) & 1 == 0 {
            return;
        }
        for &(literal, offset) in &self.buckets[bucket] {
            if let Some(start) = window.checked_sub(offset)
                && input[start..].starts_with(&self.all[literal])
            {
                hits.push(Hit { start, literal });
            }
        }
    }
}

const fn pair(first: u8, second: u8) -> usize {
    (first as usize) << 8 | second as usize
}

fn bucket(window: &[u8]) -> usize {
    let number = usize::from(window[0]) << 16 | usize::from(window[1]) << 8 | usize::from(window[2]);
    number.wrapping_mul(0x9E37_79B1) >> 12 & (BUCKETS - 1)
}

/// The window of a literal that is least likely in text and code.
fn rarest(literal: &[u8]) -> Option<(usize, &[u8])> {
    let likely = |byte: u8| match byte {
        b'a'..=b'z' | b' ' => 12,
        b'A'..=b'Z' | b'-' | b'.' | b'/' | b'"' | b'=' => 4,
        b'_' | b'0'..=b'9' => 3,
        _ => 1,
    };
    let weight = |window: &[u8]| likely(window[0]) * likely(window[1]) + likely(window[1]) * likely(window[2]);
    literal.windows(SHORTEST).enumerate().min_by_key(|(_, window)| weight(window))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_simple_search_finds(
            literals in prop::collection::vec("[ab_-]{3,6}", 1..6),
            text in "[ab_-]{0,200}",
        ) {
            let set = Literals::new(literals.iter().map(|literal| literal.clone().into_bytes()).collect());
            let mut expected = Vec::new();
            for start in 0..text.len() {
                for (literal, bytes) in literals.iter().enumerate() {
                    if text[start..].starts_with(bytes.as_str()) {
                        expected.push(Hit { start, literal });
                    }
                }
            }
            prop_assert_eq!(set.find(text.as_bytes()), expected);
            let begun = (0..text.len()).find(|&start| {
                literals.iter().any(|literal| literal.len() > text.len() - start && literal.starts_with(&text[start..]))
            });
            prop_assert_eq!(set.begun(text.as_bytes()), begun);
        }
    }
}
