//! What the agent wrote, made harmless: any part of a file of any size, of which only what is in sight is read.

use std::io::{self, Read as _, Seek as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::rows::{Row, paragraph};
use super::super::scroll::Pages;
use crate::event::Stream;
use crate::journal::raw;
use crate::ui::style::Ink;

/// How many bytes a page has.
const PAGE: usize = 64 * 1024;
/// This many pages are kept.
const MOST_PAGES: usize = 8;

/// The raw bytes of one iteration.
pub(crate) struct RawBytes {
    iteration: u32,
    stream: Stream,
    path: PathBuf,
    /// How long it is, as far as that is known.
    length: u64,
    reader: Option<(Box<dyn io::BufRead>, usize)>,
    read: Vec<(usize, Vec<Row>)>,
    columns: usize,
}

impl RawBytes {
    pub(crate) fn none() -> Self {
        Self {
            iteration: 0,
            stream: Stream::Stdout,
            path: PathBuf::new(),
            length: 0,
            reader: None,
            read: Vec::new(),
            columns: 80,
        }
    }

    /// What is shown: which iteration, which stream.
    pub(crate) const fn what(&self) -> (u32, Stream) {
        (self.iteration, self.stream)
    }

    /// Shows a stream of an iteration.
    pub(crate) fn open(directory: &Path, iteration: u32, stream: Stream) -> Self {
        let path = raw::find(directory, iteration, stream);
        let mut bytes = Self { iteration, stream, path, ..Self::none() };
        bytes.measure();
        bytes
    }

    /// Looks whether there is more; true when there is.
    pub(crate) fn measure(&mut self) -> bool {
        let length = if raw::is_packed(&self.path) {
            if self.length > 0 { self.length } else { unpacked(&self.path).unwrap_or(0) }
        } else {
            std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
        };
        let grown = length != self.length;
        if grown {
            let last = usize::try_from(self.length).unwrap_or(0) / PAGE;
            self.read.retain(|(page, _)| *page < last);
            self.length = length;
            self.reader = None;
        }
        grown
    }

    /// Shows it in this many columns.
    pub(crate) fn widen(&mut self, columns: usize) {
        if self.columns != columns {
            self.columns = columns;
            self.read.clear();
        }
    }

    fn load(&mut self, page: usize) -> &[Row] {
        let found = self.read.iter().position(|(number, _)| *number == page);
        let at = found.unwrap_or_else(|| {
            let rows = match self.bytes(page) {
                Ok(bytes) => self.lay_out(&bytes),
                Err(error) => vec![Row::new(Ink::Bad, &format!("cannot read it: {error}"))],
            };
            if self.read.len() == MOST_PAGES {
                self.read.remove(0);
            }
            self.read.push((page, rows));
            self.read.len() - 1
        });
        &self.read[at].1
    }

    fn lay_out(&self, bytes: &[u8]) -> Vec<Row> {
        if bytes.is_empty() {
            let name = if self.stream == Stream::Stdout { "standard output" } else { "standard error" };
            return vec![Row::new(Ink::Dim, &format!("nothing on {name}"))];
        }
        let text = String::from_utf8_lossy(bytes);
        paragraph(&Row::default(), &Row::default(), &text, Ink::None, self.columns)
    }

    /// The bytes of a page. A packed file can only be read on, or from its beginning.
    fn bytes(&mut self, page: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if self.length == 0 {
            return Ok(bytes);
        }
        if !raw::is_packed(&self.path) {
            let mut file = std::fs::File::open(&self.path)?;
            file.seek(io::SeekFrom::Start(page as u64 * PAGE as u64))?;
            file.take(PAGE as u64).read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
        let (mut reader, at) = match self.reader.take() {
            Some((reader, at)) if at <= page => (reader, at),
            _ => (raw::open(&self.path)?, 0),
        };
        let skipped = (page - at) as u64 * PAGE as u64;
        io::copy(&mut reader.by_ref().take(skipped), &mut io::sink())?;
        reader.by_ref().take(PAGE as u64).read_to_end(&mut bytes)?;
        self.reader = Some((reader, page + 1));
        Ok(bytes)
    }
}

/// How many bytes are in a packed file.
fn unpacked(path: &Path) -> io::Result<u64> {
    io::copy(&mut raw::open(path)?, &mut io::sink())
}

impl Pages for RawBytes {
    fn pages(&self) -> Range<usize> {
        0..usize::try_from(self.length.div_ceil(PAGE as u64)).unwrap_or(usize::MAX).max(1)
    }

    fn count(&mut self, page: usize) -> usize {
        self.load(page).len()
    }

    fn row(&mut self, page: usize, row: usize) -> Row {
        self.load(page).get(row).cloned().unwrap_or_default()
    }
}
