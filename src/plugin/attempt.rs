//! The output of one try of an iteration as a file for a hook: an earlier try is before it in the raw file.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::process::PrivateFile;
use crate::run::plugins::Output;

/// A copy holds no more: hooks read their file into memory.
const LARGEST_COPY: u64 = 64 * 1024 * 1024;

/// A file that ends in a line, because a shell does not read a last line without its end.
pub(super) struct Attempt {
    path: PathBuf,
    _copy: Option<PrivateFile>,
}

impl Attempt {
    /// The raw file itself where it holds one try in whole lines; otherwise a private copy of this try.
    pub(super) fn of(output: &Output) -> io::Result<Self> {
        let mut file = std::fs::File::open(&output.path)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > output.start {
            file.seek(SeekFrom::Start(length - 1))?;
            file.read_exact(&mut last)?;
        }
        if output.start == 0 && last == *b"\n" {
            return Ok(Self { path: output.path.clone(), _copy: None });
        }
        file.seek(SeekFrom::Start(output.start))?;
        let copy = PrivateFile::new(&std::env::temp_dir(), b"")?;
        let mut written = std::fs::OpenOptions::new().append(true).open(copy.path())?;
        io::copy(&mut file.take(LARGEST_COPY), &mut written)?;
        if last != *b"\n" || length - output.start > LARGEST_COPY {
            written.write_all(b"\n")?;
        }
        Ok(Self { path: copy.path().to_owned(), _copy: Some(copy) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_is_read_from_where_it_began_and_to_its_last_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("1.stdout");
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(
            Attempt::of(&Output { path: path.clone(), start: 0 }).unwrap().path,
            path,
            "no copy where none is needed"
        );
        let attempt = Attempt::of(&Output { path: path.clone(), start: 4 }).unwrap();
        assert_eq!(std::fs::read_to_string(&attempt.path).unwrap(), "two\n");
        let copy = attempt.path.clone();
        drop(attempt);
        assert!(!copy.exists(), "the copy goes with the try");
        std::fs::write(&path, "one\ntwo").unwrap();
        let attempt = Attempt::of(&Output { path, start: 0 }).unwrap();
        assert_eq!(std::fs::read_to_string(&attempt.path).unwrap(), "one\ntwo\n");
    }
}
