//! Reads a journal: from any offset, never past the last whole line.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use super::record::{Record, RecordError};

/// Reads one record after the other.
#[derive(Debug)]
pub struct Reader {
    input: BufReader<File>,
    line: Vec<u8>,
    offset: u64,
}

impl Reader {
    /// Opens a journal at a record's first byte.
    pub fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { input: BufReader::with_capacity(64 * 1024, file), line: Vec::new(), offset })
    }

    /// Where the next record begins.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` at the end, and also before a line that is not finished.
    pub fn read(&mut self) -> io::Result<Option<Result<Record, RecordError>>> {
        self.line.clear();
        let read = self.input.read_until(b'\n', &mut self.line)?;
        if self.line.pop() != Some(b'\n') {
            self.input.seek_relative(-i64::try_from(read).unwrap_or(0))?;
            return Ok(None);
        }
        self.offset += read as u64;
        Ok(Some(Record::read_line(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::journal::{Body, Fact, Journal};

    #[test]
    fn a_torn_tail_is_not_a_record_until_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let first = journal.append(Body::Loop(Fact::Notice { message: "one".into() })).unwrap();
        let second = journal.append(Body::Loop(Fact::Notice { message: "two".into() })).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let torn = directory.path().join("torn.jsonl");
        let cut = whole.len() - 5;
        std::fs::write(&torn, &whole[..cut]).unwrap();

        let mut reader = Reader::open(&torn, 0).unwrap();
        assert_eq!(reader.read().unwrap().unwrap().unwrap(), *first.record);
        assert!(reader.read().unwrap().is_none());
        std::fs::OpenOptions::new().append(true).open(&torn).unwrap().write_all(&whole[cut..]).unwrap();
        assert_eq!(reader.read().unwrap().unwrap().unwrap(), *second.record);
        assert!(reader.read().unwrap().is_none());
        assert_eq!(reader.offset(), second.end);
    }
}
