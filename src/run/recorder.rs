//! Writes what happened, and only then shows it. Events come clean from the stream; secrets are taken out of facts here.

use std::time::{Duration, Instant};

use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::disk::{Disk, RealDisk, Tampering};
use crate::journal::{Body, EventsFile, Fact, Journal, Raw, RunDirectory, Summary, Wake};
use crate::redact::{Clean, Redactor};
use crate::run::notify::Notifier;

/// The summary is kept no more often than this, so that many short iterations do not write it again and again.
const OFTEN: Duration = Duration::from_secs(2);

/// How long a view may take to show what it has, before an agent gets the terminal.
const SETTLES_WITHIN: Duration = Duration::from_millis(500);

/// Writes the journal, then wakes who follows it.
pub(crate) struct Recorder {
    journal: Journal,
    wake: Wake,
    notifier: Option<Notifier>,
    redactor: Redactor,
    /// Raw files are kept byte for byte.
    exact: bool,
    start: Option<Fact>,
    directory: RunDirectory,
    summary: Summary,
    /// When the summary was last kept.
    kept: Instant,
    copy: Option<EventsFile>,
}

impl Recorder {
    /// Records into the journal, then wakes its followers.
    pub(crate) fn new(journal: Journal, directory: &RunDirectory, redactor: Redactor, wake: Wake) -> Self {
        Self {
            journal,
            wake,
            notifier: None,
            redactor,
            exact: false,
            start: None,
            directory: directory.clone(),
            summary: Summary::default(),
            kept: Instant::now(),
            copy: None,
        }
    }

    /// Copies what agents say into a file for others.
    #[must_use]
    pub(crate) fn with_copy(mut self, file: Option<EventsFile>) -> Self {
        self.copy = file;
        self
    }

    /// Keeps raw files byte for byte.
    #[must_use]
    pub(crate) fn with_exact_raw_files(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Whether raw files are kept byte for byte.
    pub(crate) const fn is_exact(&self) -> bool {
        self.exact
    }

    /// Knows what must not be written.
    pub(crate) const fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Goes on where an earlier ralph has left off.
    #[must_use]
    pub(crate) fn after(mut self, summary: Summary) -> Self {
        self.summary = summary;
        self
    }

    /// Sends notifications about what is recorded.
    #[must_use]
    pub(crate) fn with_notifier(mut self, notifier: Notifier) -> Self {
        self.notifier = Some(notifier);
        self
    }

    /// The run is over; notifications may still be on their way.
    pub(crate) fn into_notifier(self) -> Option<Notifier> {
        self.notifier
    }

    /// Waits until a view has shown everything, but not for long.
    pub(crate) fn settle(&self) {
        self.wake.settle(SETTLES_WITHIN);
    }

    /// Records a fact of the loop.
    pub(crate) fn fact(&mut self, fact: Fact) -> Result<(), UserError> {
        if matches!(fact, Fact::RunStart { .. }) {
            self.start = Some(fact.clone());
        }
        let clean = match serde_json::to_value(&fact) {
            Ok(mut value) => {
                self.redactor.clean_value(&mut value);
                serde_json::from_value(value).unwrap_or(fact)
            }
            Err(_) => fact,
        };
        self.append(Body::Loop(clean))
    }

    /// Records an event of the agent.
    pub(crate) fn event(&mut self, iteration: u32, from: Stream, event: Clean<Event>) -> Result<(), UserError> {
        self.append(Body::Agent { iteration, from, event: event.into_inner() })
    }

    /// Opens the raw files of an iteration.
    pub(crate) fn raw(&self, iteration: u32) -> Result<Raw, UserError> {
        Raw::create(&RealDisk, &self.directory.raw(), iteration).map_err(|error| unrecorded(&error))
    }

    /// Keeps the prompt of an iteration.
    pub(crate) fn prompt(&self, iteration: u32, prompt: &str) -> Result<(), UserError> {
        let name = format!("prompts/{iteration}.md");
        self.directory.keep(&name, prompt, &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Keeps a diff: of an iteration, behind what an earlier try of it did, or of the whole run.
    pub(crate) fn difference(&self, name: &str, text: &str) -> Result<(), UserError> {
        let path = self.directory.difference(name);
        path.parent().map_or(Ok(()), |parent| RealDisk.directory(parent)).map_err(|error| unrecorded(&error))?;
        let before = std::fs::read_to_string(path).unwrap_or_default();
        let name = format!("diffs/{name}.patch");
        self.directory.keep(&name, &(before + text), &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Makes sure that what is recorded survives a power cut.
    pub(crate) fn sync(&mut self) -> Result<(), UserError> {
        self.journal.sync().map_err(|error| unrecorded(&error))
    }

    fn append(&mut self, body: Body) -> Result<(), UserError> {
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
        if let Some(tampering) = self.journal.tampering() {
            self.report(tampering)?;
        }
        let copied = self.copy.as_mut().map_or(Ok(()), |copy| copy.add(&appended.record));
        if let Some(notifier) = &mut self.notifier {
            notifier.see(&appended.record);
        }
        self.wake.written(appended.start, appended.end);
        let Err(error) = copied else { return Ok(()) };
        self.copy = None;
        let message = format!("cannot write `journal.events_file` any more: {}", io_reason(&error));
        self.fact(Fact::Notice { message: format!("{message}; everything is in the journal") })
    }
}

impl Recorder {
    /// Says loudly that another process has changed the journal.
    fn report(&mut self, tampering: Tampering) -> Result<(), UserError> {
        let what = match tampering {
            Tampering::Replaced => "removed or replaced the journal of this run; it was restored".to_owned(),
            Tampering::Longer(bytes) => format!("added {bytes} bytes to the journal of this run; they were removed"),
            Tampering::Cut(length) => {
                format!("cut the journal of this run to {length} bytes; what came after that is lost")
            }
        };
        self.fact(Fact::Notice { message: format!("another process {what}") })?;
        // Without its first record a journal cannot be shown or resumed, and ralph still has that one.
        match (tampering, self.start.clone()) {
            (Tampering::Cut(0), Some(start)) => self.fact(start),
            _ => Ok(()),
        }
    }
}

/// A run never goes on unrecorded.
pub(crate) fn unrecorded(error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot write the journal: {}", io_reason(error)))
        .hint("the run was stopped, because it must not go on unrecorded; `ralph path` prints where its records are")
        .hint("make room on the disk, or mend the permissions, and start again")
}
