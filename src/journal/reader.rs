//! Reads a journal: from any offset, never past the last whole line.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use jiff::Timestamp;

use super::record::{Body, Fact, Record, RecordError, VERSION};

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
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` at the end, and also before a line that is not finished.
    pub fn read(&mut self) -> io::Result<Option<Result<Record, RecordError>>> {
        Ok(if self.advance()? { Some(Record::read_line(&self.line)) } else { None })
    }

    /// The next record of the loop itself. What agents said in between is passed over without a look at it.
    pub(crate) fn read_fact(&mut self) -> io::Result<Option<Record>> {
        while self.advance()? {
            if is_of_the_loop(&self.line)
                && let Ok(record) = Record::read_line(&self.line)
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The line of the last record, without its newline.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Reads the next whole line.
    fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        let read = self.input.read_until(b'\n', &mut self.line)?;
        if self.line.pop() != Some(b'\n') {
            self.input.seek_relative(-i64::try_from(read).unwrap_or(0))?;
            return Ok(false);
        }
        self.offset += read as u64;
        Ok(true)
    }
}

/// The header tells it, and only ralph writes headers.
fn is_of_the_loop(line: &[u8]) -> bool {
    /// `{"seq":…,"at":"…","by":"` is never longer.
    const HEADER: usize = 80;
    let header = &line[..line.len().min(HEADER)];
    memchr::memmem::find(header, br#""by":""#).is_some_and(|at| !header[at..].starts_with(br#""by":"agent""#))
}

/// The end of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    /// Behind the last whole record.
    pub length: u64,
    /// How many bytes of a torn record are behind it.
    pub torn: u64,
    /// The number of the next record.
    pub next: u64,
    /// When the last whole record was written.
    pub at: Option<Timestamp>,
}

/// Looks at the end of a journal that is to be continued. A journal of a newer version is refused: it may be read, but
/// never written.
pub(crate) fn last(path: &Path) -> io::Result<Last> {
    let mut reader = Reader::open(path, 0)?;
    if let Some(Ok(Record { body: Body::Loop(Fact::RunStart { version, .. }), .. })) = reader.read()?
        && version > VERSION
    {
        let message = format!("the journal is of version {version}, this ralph writes version {VERSION}");
        return Err(io::Error::new(io::ErrorKind::Unsupported, message));
    }
    let mut file = File::open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    let mut length = size;
    // From the end to the front: the last line that is whole and a record.
    loop {
        let Some(newline) = newline_before(&mut file, length)? else {
            return Ok(Last { length: 0, torn: size, next: 0, at: None });
        };
        let start = newline_before(&mut file, newline)?.map_or(0, |before| before + 1);
        let mut line = vec![0; usize::try_from(newline - start).unwrap_or(0)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut line)?;
        match Record::read_line(&line) {
            Ok(record) => {
                let (torn, next) = (size - newline - 1, record.seq + 1);
                return Ok(Last { length: newline + 1, torn, next, at: Some(record.at) });
            }
            // After a power cut the end may be zeros or old bytes, newlines among them.
            Err(_) => length = start,
        }
    }
}

/// The last newline before an offset.
fn newline_before(file: &mut File, end: u64) -> io::Result<Option<u64>> {
    const BLOCK: u64 = 64 * 1024;
    let mut end = end;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.resize(usize::try_from(end - start).unwrap_or(0), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(at) = memchr::memrchr(b'\n', &block) {
            return Ok(Some(start + at as u64));
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
