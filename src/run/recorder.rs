//! Writes each record to the journal and only then shows it.

use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::writer::Appended;
use crate::journal::{Body, Fact, Journal};

/// Who is told about records that are on disk. Must never block.
pub type Observer = Box<dyn FnMut(Appended)>;

/// The journal and who watches it.
pub struct Recorder {
    journal: Journal,
    observer: Observer,
}

impl Recorder {
    /// Records into the journal, then tells the observer.
    pub fn new(journal: Journal, observer: Observer) -> Self {
        Self { journal, observer }
    }

    /// Records a fact of the loop.
    pub fn fact(&mut self, fact: Fact) -> Result<(), UserError> {
        self.append(Body::Loop(fact))
    }

    /// Records an event of the agent.
    pub fn event(&mut self, iteration: u32, from: Stream, event: Event) -> Result<(), UserError> {
        self.append(Body::Agent { iteration, from, event })
    }

    /// Makes sure that what is recorded survives a power cut.
    pub fn sync(&mut self) -> Result<(), UserError> {
        self.journal.sync().map_err(|error| unrecorded(&error))
    }

    fn append(&mut self, body: Body) -> Result<(), UserError> {
        let appended = self.journal.append(body).map_err(|error| unrecorded(&error))?;
        (self.observer)(appended);
        Ok(())
    }
}

/// A run never goes on unrecorded.
pub fn unrecorded(error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot write the journal: {}", io_reason(error)))
        .hint("the run was stopped, because it must not go on unrecorded; what was written so far is in `.ralph/runs`")
        .hint("make room on the disk, or mend the permissions, and start again")
}
