//! A part of a journal on its way: whole lines, compressed, with the offset at which they belong. Parts can come twice, and a worker that
//! lost its lease may have sent some that another worker then replaced: the fold gives the journal that counts.

use std::io::{self, Read as _};

/// The most bytes of a journal in one part.
pub(crate) const LARGEST: usize = 256 * 1024;
/// The most that a received part may become. A single line can be longer than [`LARGEST`].
const MOST: u64 = 16 * 1024 * 1024;
const LEVEL: i32 = 3;

/// The next part of what is read from a journal: whole lines only.
pub(crate) fn next(bytes: &[u8]) -> &[u8] {
    let within = &bytes[..bytes.len().min(LARGEST)];
    let end = match memchr::memrchr(b'\n', within) {
        Some(last) => last + 1,
        None => memchr::memchr(b'\n', bytes).map_or(0, |first| first + 1),
    };
    &bytes[..end]
}

pub(crate) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

pub(crate) fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    zstd::stream::read::Decoder::new(bytes)?.take(MOST).read_to_end(&mut unpacked)?;
    if unpacked.len() as u64 == MOST || (unpacked.last() != Some(&b'\n') && !unpacked.is_empty()) {
        return Err(io::Error::other("it is not a part of a journal"));
    }
    Ok(unpacked)
}

/// What a part changes in a journal of which `length` bytes are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is known already, or from a worker that lost its lease.
    Skip,
    /// The journal is cut here, and the part is added.
    At(u64),
    /// Something before it is missing.
    Gap,
}

/// Which parts count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fold {
    pub lease: u32,
    pub length: u64,
}

impl Fold {
    /// Takes a part that begins at `offset` and has `bytes` bytes.
    pub(crate) fn take(&mut self, lease: u32, offset: u64, bytes: u64) -> Step {
        if lease < self.lease {
            return Step::Skip;
        }
        if offset > self.length {
            return Step::Gap;
        }
        if lease == self.lease && offset < self.length {
            return Step::Skip;
        }
        (self.lease, self.length) = (lease, offset + bytes);
        Step::At(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_whole_lines() {
        assert_eq!(next(b"a\nb\nc"), b"a\nb\n");
        assert_eq!(next(b"abc"), b"");
        let long = [vec![b'x'; LARGEST + 10], b"\ny\n".to_vec()].concat();
        assert_eq!(next(&long).len(), LARGEST + 11);
        assert_eq!(unpack(&pack(b"a\nb\n").unwrap()).unwrap(), b"a\nb\n");
        assert!(unpack(&pack(b"a\nb").unwrap()).is_err());
        assert!(unpack(b"no zstd").is_err());
        assert!(unpack(&pack(&vec![b'\n'; 20 << 20]).unwrap()).is_err(), "a small part must not become a large one");
    }

    #[test]
    fn parts_of_a_lost_lease_do_not_count() {
        let mut fold = Fold::default();
        assert_eq!(fold.take(1, 0, 10), Step::At(0));
        assert_eq!(fold.take(1, 10, 5), Step::At(10));
        assert_eq!(fold.take(1, 10, 5), Step::Skip, "twice");
        assert_eq!(fold.take(2, 10, 7), Step::At(10), "another worker continues before the end");
        assert_eq!(fold.take(1, 15, 5), Step::Skip, "the first one returns");
        assert_eq!(fold.take(2, 20, 5), Step::Gap);
        assert_eq!(fold.length, 17);
    }
}
