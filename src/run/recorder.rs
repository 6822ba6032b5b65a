//! Writes what happened, and only then shows it. Events come clean from the stream; secrets are taken out of facts here.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{UserError, io_reason};
use crate::event::{Event, Stream};
use crate::journal::disk::{self, Disk, RealDisk, Tampering};
use crate::journal::{Appended, Body, EventsFile, Fact, Journal, Raw, RunDirectory, Summary, Wake};
use crate::redact::{Clean, Redactor};
use crate::run::iteration::Part;
use crate::run::notify::Notifier;
use crate::user_file;

/// The summary is kept no more often than this, so that many short iterations do not write it again and again.
const OFTEN: Duration = Duration::from_secs(2);

/// Events that come together are one write up to this size.
const MOST_STAGED: usize = 256 * 1024;

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
    /// The saved plan of the run, which a resumed run starts from.
    plan: Option<Vec<u8>>,
    /// A notice about a foreign change is being written.
    reporting: bool,
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
            plan: user_file::read(&directory.plan(), user_file::MOST_BYTES).ok(),
            reporting: false,
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

    /// Continues where an earlier ralph has left off.
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

    /// Notifications may take no longer than the run has time left, within reason.
    pub(crate) fn hurry_notifications(&mut self, left: Option<Duration>) {
        if let (Some(notifier), Some(left)) = (&mut self.notifier, left) {
            notifier.hurry(left);
        }
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
        let clean = match serde_json::to_value(&fact) {
            Ok(mut value) => {
                self.redactor.clean_value(&mut value);
                serde_json::from_value(value).unwrap_or(fact)
            }
            Err(_) => fact,
        };
        self.append(Body::Loop(clean))
    }

    /// Records events of the agent that came together.
    pub(crate) fn events(
        &mut self,
        iteration: u32,
        from: Stream,
        events: impl Iterator<Item = Clean<Event>>,
    ) -> Result<(), UserError> {
        let mut staged = Vec::new();
        for event in events {
            let body = Body::Agent { iteration, from, event: event.into_inner() };
            if staged.is_empty() {
                self.look_before(&body)?;
            }
            staged.push(self.journal.stage(body).map_err(|error| unrecorded(&error))?);
            if self.journal.staged() >= MOST_STAGED {
                self.commit(staged.drain(..))?;
            }
        }
        self.commit(staged.drain(..))
    }

    /// Opens the raw files of an iteration.
    pub(crate) fn raw(&mut self, place: &Path, iteration: u32) -> Result<Raw, UserError> {
        if place != self.directory.raw() {
            RealDisk.directory(place).map_err(|error| unrecorded(&error))?;
        }
        for path in Raw::paths(place, iteration) {
            self.make_way(&path)?;
        }
        Raw::create(&RealDisk, place, iteration).map_err(|error| unrecorded(&error))
    }

    /// Keeps the prompt of an iteration.
    pub(crate) fn prompt(&mut self, iteration: u32, part: &Part, prompt: &str) -> Result<(), UserError> {
        let name = match part {
            Part::Work => format!("prompts/{iteration}.md"),
            Part::Judge { .. } => format!("prompts/{iteration}-judge.md"),
        };
        self.make_way(&self.directory.path.join(&name))?;
        self.directory.keep(&name, prompt, &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Keeps a diff of an iteration, behind what an earlier try of it did.
    pub(crate) fn difference(&mut self, name: &str, text: &str) -> Result<(), UserError> {
        let before = std::fs::read_to_string(self.directory.difference(name)).unwrap_or_default();
        self.whole_difference(name, &(before + text))
    }

    /// Keeps a diff in place of an earlier one.
    pub(crate) fn whole_difference(&mut self, name: &str, text: &str) -> Result<(), UserError> {
        let path = self.directory.difference(name);
        if path.parent().is_some_and(|parent| parent.symlink_metadata().is_ok()) {
            self.make_way(&path)?;
        }
        let name = format!("diffs/{name}.patch");
        self.directory.keep(&name, text, &self.redactor).map_err(|error| unrecorded(&error))
    }

    /// Makes sure that what is recorded survives a power cut.
    pub(crate) fn sync(&mut self) -> Result<(), UserError> {
        self.journal.sync().map_err(|error| unrecorded(&error))
    }

    fn append(&mut self, body: Body) -> Result<(), UserError> {
        self.look_before(&body)?;
        let turning = match &body {
            Body::Loop(Fact::RunEnd { .. }) => true,
            Body::Loop(Fact::Decision { .. }) => self.kept.elapsed() > OFTEN,
            _ => false,
        };
        if turning {
            self.restore_plan()?;
        }
        let staged = self.journal.stage(body).map_err(|error| unrecorded(&error))?;
        self.commit(std::iter::once(staged))?;
        if turning {
            // It only saves time to whoever looks: without it, the journal is read.
            let _ = RealDisk.replace(&self.directory.summary(), &self.summary.to_json());
            self.kept = Instant::now();
        }
        Ok(())
    }

    /// Looks whether another process has changed the journal, before a record like this.
    fn look_before(&mut self, body: &Body) -> Result<(), UserError> {
        if !self.reporting
            && let Some(tampering) = self.journal.look_before(body).map_err(|error| unrecorded(&error))?
        {
            self.wake.restored();
            self.report(tampering)?;
        }
        Ok(())
    }

    /// Writes the staged records, then tells everyone.
    fn commit(&mut self, staged: impl Iterator<Item = Appended>) -> Result<(), UserError> {
        self.journal.commit().map_err(|error| unrecorded(&error))?;
        let (mut copied, mut last) = (Ok(()), None);
        for appended in staged {
            self.summary.see(&appended.record, appended.start, appended.end);
            if copied.is_ok() {
                copied = self.copy.as_mut().map_or(Ok(()), |copy| copy.add(&appended.record));
            }
            if let Some(notifier) = &mut self.notifier {
                notifier.see(&appended.record);
            }
            last = Some((appended.record.seq, appended.end));
        }
        if let Some((seq, end)) = last {
            self.wake.written(seq, end);
        }
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
            Tampering::Replaced => "removed or replaced the journal of this run".to_owned(),
            Tampering::Extended(bytes) => format!("added {bytes} bytes to the journal of this run"),
            Tampering::Cut(bytes) => format!("cut {bytes} bytes off the journal of this run"),
            Tampering::Overwritten => "overwrote the journal of this run".to_owned(),
        };
        self.notice(&format!("another process {what}; it was restored"))
    }

    /// Makes sure that a file of the run can be written where it belongs.
    fn make_way(&mut self, path: &Path) -> Result<(), UserError> {
        let run = self.directory.path.clone();
        let restored = disk::own_directory(&run)
            .and_then(|directory| Ok(disk::make_way(path)? || directory))
            .map_err(|error| unrecorded(&error))?;
        if !restored {
            return Ok(());
        }
        let place = path.strip_prefix(&run).unwrap_or(path).display();
        self.notice(&format!("another process changed the files of this run: the place of `{place}` was restored"))
    }

    /// A resumed run must start from the plan that this one has.
    fn restore_plan(&mut self) -> Result<(), UserError> {
        let Some(plan) = &self.plan else { return Ok(()) };
        let path = self.directory.plan();
        if user_file::read(&path, user_file::MOST_BYTES).is_ok_and(|found| found == *plan) {
            return Ok(());
        }
        RealDisk.replace(&path, plan).map_err(|error| unrecorded(&error))?;
        self.notice("another process changed the saved plan of this run; it was restored")
    }

    fn notice(&mut self, message: &str) -> Result<(), UserError> {
        let before = std::mem::replace(&mut self.reporting, true);
        let result = self.fact(Fact::Notice { message: message.to_owned() });
        self.reporting = before;
        result
    }
}

/// A run never continues unrecorded.
pub(crate) fn unrecorded(error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot write the journal: {}", io_reason(error)))
        .hint("the run was stopped, because its records cannot be written; `ralph path` prints where its records are")
        .hint("free disk space or fix the permissions, then `ralph resume`")
}
