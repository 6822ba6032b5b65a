//! Records as JSON lines, the very lines of the journal: for other programs.

use std::io::{self, Write};

use super::View;
use crate::journal::Record;

/// Writes each record as a line.
pub struct JsonView<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write + Send> JsonView<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }
}

impl<W: Write + Send> View for JsonView<W> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        record.write_line(&mut self.line)?;
        self.out.write_all(&self.line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
