//! A second copy of the running journal, in a file without a name. No other process can open it, so whatever happens to the
//! journal itself can be noticed and undone.
//!
//! It is packed: the fastest packing of what agents print costs a third of what writing it to a file does, and the copy
//! takes a small part of the space of the journal.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, Write as _};
use std::path::Path;

use zstd::bulk::Compressor;

use super::disk::private;

/// Records are collected up to this size, so that most of them cost no second write.
const COLLECTED: usize = 64 * 1024;

/// This much is packed at once, whatever the size of a record: memory does not grow with it.
const PACKED_AT_ONCE: usize = 256 * 1024;

/// Below zero zstd is faster than memory is filled, and still packs journals to a fifth.
const LEVEL: i32 = -5;

/// What the journal must contain.
pub(super) struct SafeCopy {
    file: File,
    /// Not written to the file yet.
    pending: Vec<u8>,
    length: u64,
    packer: Compressor<'static>,
    /// What was packed; kept for its memory.
    packed: Vec<u8>,
}

impl fmt::Debug for SafeCopy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SafeCopy")
            .field("file", &self.file)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl SafeCopy {
    /// Copies a journal. The path names the place where the copy is created; its name is gone at once.
    pub(super) fn of(journal: &mut File, path: &Path) -> io::Result<Self> {
        let _ = fs::remove_file(path);
        let file = private().read(true).write(true).create_new(true).open(path)?;
        fs::remove_file(path)?;
        let packer = Compressor::new(LEVEL)?;
        let mut copy = Self { file, pending: Vec::new(), length: 0, packer, packed: Vec::new() };
        // Without any part at all it could not be read.
        copy.pack(b"")?;
        journal.rewind()?;
        let mut part = Vec::new();
        while journal.take(PACKED_AT_ONCE as u64).read_to_end(&mut part)? > 0 {
            copy.append(&part)?;
            part.clear();
        }
        Ok(copy)
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        if bytes.len() >= COLLECTED {
            self.flush()?;
            return self.write(bytes);
        }
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= COLLECTED { self.flush() } else { Ok(()) }
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Whether a file has exactly these bytes.
    pub(super) fn is_same_as(&mut self, other: &mut File) -> io::Result<bool> {
        let mut file = self.unpacked()?;
        other.rewind()?;
        let (mut own, mut others) = (vec![0; COLLECTED], vec![0; COLLECTED]);
        loop {
            let read = file.read(&mut own)?;
            if read == 0 {
                return Ok(other.read(&mut others[..1])? == 0);
            }
            match other.read_exact(&mut others[..read]) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                result => result?,
            }
            if own[..read] != others[..read] {
                return Ok(false);
            }
        }
    }

    /// Writes all of it to a file.
    pub(super) fn write_to(&mut self, file: &mut File) -> io::Result<()> {
        io::copy(&mut self.unpacked()?, file).map(drop)
    }

    /// All of it, from the beginning.
    fn unpacked(&mut self) -> io::Result<impl Read + '_> {
        self.flush()?;
        self.file.rewind()?;
        zstd::Decoder::with_buffer(BufReader::new(&self.file))
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        let written = self.write(&pending);
        if written.is_ok() {
            pending.clear();
        }
        self.pending = pending;
        written
    }

    /// Writes bytes behind the others.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(PACKED_AT_ONCE).try_for_each(|part| self.pack(part))
    }

    /// Each part is packed for itself, so that all of it can be read at any time.
    fn pack(&mut self, part: &[u8]) -> io::Result<()> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(part.len()));
        self.packer.compress_to_buffer(part, &mut self.packed)?;
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.write_all(&self.packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_all_bytes_however_they_came() {
        let directory = tempfile::tempdir().unwrap();
        let open =
            |name: &str| private().read(true).write(true).create_new(true).open(directory.path().join(name)).unwrap();
        let mut journal = open("journal");
        let mut copy = SafeCopy::of(&mut journal, &directory.path().join("copy")).unwrap();
        assert!(copy.is_same_as(&mut journal).unwrap(), "nothing");
        for size in [1, 100, COLLECTED - 1, COLLECTED, 3 * PACKED_AT_ONCE + 7, 5] {
            let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
            copy.append(&bytes).unwrap();
            journal.seek(io::SeekFrom::End(0)).unwrap();
            assert!(!copy.is_same_as(&mut journal).unwrap(), "{size} bytes are missing");
            journal.seek(io::SeekFrom::End(0)).unwrap();
            journal.write_all(&bytes).unwrap();
            assert!(copy.is_same_as(&mut journal).unwrap(), "with {size} bytes more");
        }
        assert_eq!(copy.length(), journal.metadata().unwrap().len());
        let mut restored = open("restored");
        copy.write_to(&mut restored).unwrap();
        assert!(
            SafeCopy::of(&mut journal, &directory.path().join("again")).unwrap().is_same_as(&mut restored).unwrap()
        );
        journal.write_all(b"more").unwrap();
        assert!(!copy.is_same_as(&mut journal).unwrap());
    }
}
