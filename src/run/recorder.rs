//! Where everything leaves the program: secrets are taken out, then it is written, and only then shown.

use std::time::{Duration, Instant};

use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::disk::{Disk, RealDisk};
use crate::journal::redact::Records;
use crate::journal::writer::Appended;
use crate::journal::{Body, EventsFile, Fact, Journal, Raw, Redactor, RunDirectory, Summary};

/// The summary is kept no more often than this, so that many short iterations do not write it again and again.
const OFTEN: Duration = Duration::from_secs(2);

/// Who is told about records that are on disk. Must never block.
pub type Observer = Box<dyn FnMut(Appended)>;

/// The journal and who watches it.
pub struct Recorder {
    journal: Journal,
    observer: Observer,
    settler: Option<Box<dyn Fn()>>,
    redactor: Redactor,
    /// For raw files.
    raw: Redactor,
    records: Records,
    /// What is to be written, without secrets.
    clean: Vec<Body>,
    directory: RunDirectory,
    summary: Summary,
    /// When the summary was last kept.
    kept: Instant,
    /// A copy for others.
    copy: Option<EventsFile>,
}

impl Recorder {
    /// Records into the journal, then tells the observer.
    pub fn new(journal: Journal, directory: &RunDirectory, redactor: Redactor, observer: Observer) -> Self {
        Self {
            journal,
            observer,
            settler: None,
            records: Records::new(redactor.clone()),
            raw: redactor.clone(),
            redactor,
            clean: Vec::new(),
            directory: directory.clone(),
            summary: Summary::default(),
            kept: Instant::now(),
            copy: None,
        }
    }

    /// Copies what agents say into a file for others.
    #[must_use]
    pub fn with_copy(mut self, file: Option<EventsFile>) -> Self {
        self.copy = file;
        self
    }

    /// Keeps raw files byte for byte.
    #[must_use]
    pub fn with_exact_raw_files(mut self) -> Self {
        self.raw = Redactor::off();
        self
    }

    /// Goes on where an earlier ralph has left off.
    #[must_use]
    pub fn after(mut self, summary: Summary) -> Self {
        self.summary = summary;
        self
    }

    /// Has this done when everything that was recorded must be seen before the run goes on.
    #[must_use]
    pub fn settled_by(mut self, settler: Box<dyn Fn()>) -> Self {
        self.settler = Some(settler);
        self
    }

    /// Waits until whoever watches has seen everything, but not for long.
    pub fn settle(&self) {
        if let Some(settler) = &self.settler {
            settler();
        }
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
    pub fn raw(&self, iteration: u32) -> Result<Raw, UserError> {
        Raw::create(&RealDisk, &self.directory.raw(), iteration, &self.raw).map_err(|error| unrecorded(&error))
    }

    /// Keeps the prompt of an iteration.
    pub fn prompt(&self, iteration: u32, prompt: &str) -> Result<(), UserError> {
        let name = format!("prompts/{iteration}.md");
        self.directory.keep(&name, prompt, &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Keeps what an iteration changed, behind what an earlier try of it did.
    pub fn difference(&self, iteration: u32, text: &str) -> Result<(), UserError> {
        let path = self.directory.difference(iteration);
        path.parent().map_or(Ok(()), |parent| RealDisk.directory(parent)).map_err(|error| unrecorded(&error))?;
        let before = std::fs::read_to_string(path).unwrap_or_default();
        let name = format!("diffs/{iteration}.patch");
        self.directory.keep(&name, &(before + text), &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Makes sure that what is recorded survives a power cut.
    pub fn sync(&mut self) -> Result<(), UserError> {
        self.journal.sync().map_err(|error| unrecorded(&error))
    }

    fn append(&mut self, body: Body) -> Result<(), UserError> {
        self.records.take(body, &mut self.clean);
        let mut uncopied = None;
        for body in self.clean.drain(..) {
            let appended = self.journal.append(body).map_err(|error| unrecorded(&error))?;
            self.summary.see(&appended.record, appended.start, appended.end);
            let turning = match &appended.record.body {
                Body::Loop(Fact::RunEnd { .. }) => true,
                Body::Loop(Fact::Decision { .. }) => self.kept.elapsed() > OFTEN,
                _ => false,
            };
            if turning {
                // It only saves time to whoever looks: without it, the journal is read.
                let _ = RealDisk.replace(&self.directory.summary(), &self.summary.to_json());
                self.kept = Instant::now();
            }
            if let Some(Err(error)) = self.copy.as_mut().map(|copy| copy.add(&appended.record)) {
                self.copy = None;
                uncopied = Some(error);
            }
            (self.observer)(appended);
        }
        match uncopied {
            Some(error) => {
                let message = format!("cannot go on with `journal.events_file`: {}", io_reason(&error));
                self.fact(Fact::Notice { message: format!("{message}; everything is in the journal") })
            }
            None => Ok(()),
        }
    }
}

/// A run never goes on unrecorded.
pub fn unrecorded(error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot write the journal: {}", io_reason(error)))
        .hint("the run was stopped, because it must not go on unrecorded; what was written so far is in `.ralph/runs`")
        .hint("make room on the disk, or mend the permissions, and start again")
}
