//! A second copy of the running journal, in a file without a name. No other process can open it, so whatever happens to the
//! journal itself can be noticed and undone.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::disk::private;

/// Records are collected up to this size, so that most of them cost no second write.
const COLLECTED: usize = 64 * 1024;

/// What the journal must contain.
#[derive(Debug)]
pub(super) struct SafeCopy {
    file: File,
    /// Not written to the file yet.
    pending: Vec<u8>,
    length: u64,
}

impl SafeCopy {
    /// Copies a journal. The path names the place where the copy is created; its name is gone at once.
    pub(super) fn of(journal: &mut File, path: &Path) -> io::Result<Self> {
        let _ = fs::remove_file(path);
        let mut file = private().read(true).write(true).create_new(true).open(path)?;
        fs::remove_file(path)?;
        journal.rewind()?;
        let length = io::copy(journal, &mut file)?;
        Ok(Self { file, pending: Vec::new(), length })
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        if bytes.len() >= COLLECTED {
            self.flush()?;
            return self.file.write_all(bytes);
        }
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= COLLECTED { self.flush() } else { Ok(()) }
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Whether a file has exactly these bytes.
    pub(super) fn is_same_as(&mut self, other: &mut File) -> io::Result<bool> {
        self.flush()?;
        self.file.rewind()?;
        other.rewind()?;
        let (mut own, mut others) = (vec![0; COLLECTED], vec![0; COLLECTED]);
        loop {
            let read = self.file.read(&mut own)?;
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
        self.flush()?;
        self.file.rewind()?;
        io::copy(&mut self.file, file).map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.seek(io::SeekFrom::End(0))?;
        self.file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}
