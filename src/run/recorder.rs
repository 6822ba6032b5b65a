//! Where everything leaves the program: secrets are taken out, then it is written, and only then shown.

use std::path::Path;

use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::disk::{Disk, RealDisk};
use crate::journal::redact::Records;
use crate::journal::writer::Appended;
use crate::journal::{Body, Fact, Journal, Raw, Redactor};

/// Who is told about records that are on disk. Must never block.
pub type Observer = Box<dyn FnMut(Appended)>;

/// The journal and who watches it.
pub struct Recorder {
    journal: Journal,
    observer: Observer,
    redactor: Redactor,
    records: Records,
    /// What is to be written, without secrets.
    clean: Vec<Body>,
}

impl Recorder {
    /// Records into the journal, then tells the observer.
    pub fn new(journal: Journal, redactor: Redactor, observer: Observer) -> Self {
        Self { journal, observer, records: Records::new(redactor.clone()), redactor, clean: Vec::new() }
    }

    /// Records a fact of the loop.
    pub fn fact(&mut self, fact: Fact) -> Result<(), UserError> {
        self.append(Body::Loop(fact))
    }

    /// Records an event of the agent.
    pub fn event(&mut self, iteration: u32, from: Stream, event: Event) -> Result<(), UserError> {
        self.append(Body::Agent { iteration, from, event })
    }

    /// Opens the raw files of an iteration.
    pub fn raw(&self, directory: &Path, iteration: u32) -> Result<Raw, UserError> {
        Raw::create(&RealDisk, directory, iteration, &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Keeps the prompt of an iteration.
    pub fn prompt(&self, path: &Path, prompt: &str) -> Result<(), UserError> {
        let clean = self.redactor.text(prompt);
        let prompt = clean.as_deref().unwrap_or(prompt);
        RealDisk.replace(path, prompt.as_bytes()).map_err(|error| unrecorded(&error))
    }

    /// Makes sure that what is recorded survives a power cut.
    pub fn sync(&mut self) -> Result<(), UserError> {
        self.journal.sync().map_err(|error| unrecorded(&error))
    }

    fn append(&mut self, body: Body) -> Result<(), UserError> {
        self.records.take(body, &mut self.clean);
        for body in self.clean.drain(..) {
            let appended = self.journal.append(body).map_err(|error| unrecorded(&error))?;
            (self.observer)(appended);
        }
        Ok(())
    }
}

/// A run never goes on unrecorded.
pub fn unrecorded(error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot write the journal: {}", io_reason(error)))
        .hint("the run was stopped, because it must not go on unrecorded; what was written so far is in `.ralph/runs`")
        .hint("make room on the disk, or mend the permissions, and start again")
}
