//! The end of a raw file, packed or not, read on in small steps while it grows.
//!
//! It never holds a part of the file, and never goes through more than a few megabytes of it at once: a night's raw file
//! may have gigabytes, and someone waits for the next key.

use std::fs::File;
use std::io::{self, BufRead, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::journal::raw;

/// So much before the end is read at most.
pub(crate) const MOST: u64 = 4 * 1024 * 1024;
/// So much of a packed file is passed over in one step.
const PASSED: u64 = 512 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Read(usize),
    /// None yet, but more was passed over.
    Passed,
    /// There is no more, as of now.
    End,
}

/// The end of a raw file.
pub(crate) struct Tail {
    source: Source,
    /// The next byte to read.
    at: u64,
}

enum Source {
    /// It is held open: a run that ends packs its files, and takes the names of the old ones away.
    Plain(File),
    /// How long it is when unpacked is known only when it was unpacked once.
    Packed { path: PathBuf, reader: Box<dyn BufRead>, length: Option<u64> },
}

impl Tail {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let source = if raw::is_packed(path) {
            Source::Packed { path: path.to_owned(), reader: raw::open(path)?, length: None }
        } else {
            Source::Plain(File::open(path)?)
        };
        Ok(Self { source, at: 0 })
    }

    /// Reads on, or goes towards what is to be read.
    pub(crate) fn read(&mut self, piece: &mut [u8]) -> io::Result<Step> {
        let count = match &mut self.source {
            Source::Plain(file) => {
                // An agent may write faster than a screen is drawn: then the latest is worth most.
                self.at = self.at.max(file.metadata()?.len().saturating_sub(MOST));
                file.read_at(piece, self.at)?
            }
            Source::Packed { path, reader, length: length @ None } => {
                let passed = io::copy(&mut reader.by_ref().take(PASSED), &mut io::sink())?;
                self.at += passed;
                if passed == 0 {
                    *length = Some(self.at);
                    (*reader, self.at) = (raw::open(path)?, 0);
                }
                return Ok(Step::Passed);
            }
            Source::Packed { reader, length: Some(length), .. } => {
                let early = length.saturating_sub(MOST).saturating_sub(self.at);
                let passed = io::copy(&mut reader.by_ref().take(early.min(PASSED)), &mut io::sink())?;
                self.at += passed;
                if passed > 0 {
                    return Ok(Step::Passed);
                }
                reader.read(piece)?
            }
        };
        self.at += count as u64;
        Ok(if count == 0 { Step::End } else { Step::Read(count) })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn rest(tail: &mut Tail) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        loop {
            match tail.read(&mut piece).unwrap() {
                Step::Read(count) => all.extend_from_slice(&piece[..count]),
                Step::Passed => {}
                Step::End => return all,
            }
        }
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read_packed_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("1.stdout");
        let text: Vec<u8> = (0..1_000_000).flat_map(|line| format!("line {line}\n").into_bytes()).collect();
        std::fs::write(&plain, &text).unwrap();
        let end = &text[text.len() - usize::try_from(MOST).unwrap()..];
        assert!(rest(&mut Tail::open(&plain).unwrap()) == end, "plain");
        raw::pack(directory.path()).unwrap();
        let packed = raw::find(directory.path(), 1, crate::event::Stream::Stdout);
        assert!(raw::is_packed(&packed));
        assert!(rest(&mut Tail::open(&packed).unwrap()) == end, "packed");
    }

    #[test]
    fn a_file_that_grows_is_read_on_also_when_its_name_is_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("1.stdout");
        let mut file = File::create(&path).unwrap();
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(rest(&mut tail), b"");
        file.write_all(b"one").unwrap();
        assert_eq!(rest(&mut tail), b"one");
        std::fs::remove_file(&path).unwrap();
        file.write_all(b"two").unwrap();
        assert_eq!(rest(&mut tail), b"two");
    }
}
