//! Follows a journal that grows: the one way for views to get records. The journal on disk is the queue, so that a view
//! never holds up the run and memory does not grow when it falls behind.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::reader::Reader;
use super::record::Record;

/// In a flood a follower takes what has come in this time at once: waking it for each record costs more than reading.
const BATCH: Duration = Duration::from_micros(500);
/// How often the journal of another process is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Tells a follower in the same process how far the journal is written. Writing never waits for a follower.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wake(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    /// Where the journal goes on after another process has cut it.
    cut: AtomicU64,
    shown: AtomicU64,
    /// As far as this it is on the terminal, too.
    flushed: AtomicU64,
    state: Mutex<Followed>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Followed {
    waiting: bool,
    following: bool,
    over: bool,
}

impl Wake {
    /// A record was written between these offsets.
    pub(crate) fn written(&self, start: u64, end: u64) {
        if start < self.0.written.load(Ordering::Acquire) {
            self.0.cut.store(start, Ordering::Release);
        }
        self.0.written.store(end, Ordering::Release);
        if self.state().waiting {
            self.0.changed.notify_all();
        }
    }

    /// Nothing more will be written.
    pub(crate) fn over(&self) {
        self.state().over = true;
        self.0.changed.notify_all();
    }

    /// How far the follower has shown the journal.
    pub(crate) fn shown(&self) -> u64 {
        self.0.shown.load(Ordering::Acquire)
    }

    /// Waits until a follower has shown everything, but no longer than this.
    pub(crate) fn settle(&self, patience: Duration) {
        let start = Instant::now();
        while self.state().following && self.0.flushed.load(Ordering::Acquire) < self.0.written.load(Ordering::Acquire)
        {
            if start.elapsed() > patience {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn state(&self) -> MutexGuard<'_, Followed> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who writes the journal.
enum Writer {
    This(Wake),
    /// Another process, or nobody any more; the function says whether it is alive.
    Another {
        is_alive: Box<dyn FnMut() -> bool + Send>,
        alive: bool,
    },
}

/// Reads a journal to its end and waits there.
pub(crate) struct Follow {
    path: PathBuf,
    reader: Reader,
    /// The file was opened again, and nothing was read since.
    reopened: bool,
    writer: Writer,
    woken: Instant,
}

impl Follow {
    /// Follows the journal that this process writes.
    pub(crate) fn own(path: &Path, offset: u64, wake: Wake) -> io::Result<Self> {
        wake.0.shown.store(offset, Ordering::Release);
        wake.0.flushed.store(offset, Ordering::Release);
        wake.0.written.fetch_max(offset, Ordering::AcqRel);
        wake.state().following = true;
        Self::open(path, offset, Writer::This(wake))
    }

    /// Follows the journal of another process as long as that is alive.
    pub(crate) fn another(path: &Path, offset: u64, mut is_alive: Box<dyn FnMut() -> bool + Send>) -> io::Result<Self> {
        // Asked before reading: what was written last is read, too.
        let alive = is_alive();
        Self::open(path, offset, Writer::Another { is_alive, alive })
    }

    fn open(path: &Path, offset: u64, writer: Writer) -> io::Result<Self> {
        let reader = Reader::open(path, offset)?;
        Ok(Self { path: path.to_owned(), reader, reopened: false, writer, woken: Instant::now() })
    }

    /// The next record that is on disk; `None` when there is none yet. A damaged line is passed over.
    pub(crate) fn read(&mut self) -> io::Result<Option<Record>> {
        loop {
            if let Writer::This(wake) = &self.writer {
                let written = wake.0.written.load(Ordering::Acquire);
                if self.reader.offset() > written {
                    self.reader = Reader::open(&self.path, wake.0.cut.load(Ordering::Acquire))?;
                }
                if self.reader.offset() == written {
                    return Ok(None);
                }
            }
            match self.reader.read()? {
                Some(Ok(record)) => {
                    self.reopened = false;
                    return Ok(Some(record));
                }
                Some(Err(_)) => {}
                None if matches!(self.writer, Writer::This(_)) && !self.reopened => {
                    // Another process may have replaced the file; the run has restored it under its name.
                    self.reader = Reader::open(&self.path, self.reader.offset())?;
                    self.reopened = true;
                    continue;
                }
                None => return Ok(None),
            }
            self.reopened = false;
        }
    }

    /// Everything that was read is shown. Waits for more, but no longer than this; false when nothing more will come.
    pub(crate) fn wait(&mut self, patience: Duration) -> bool {
        match &mut self.writer {
            Writer::Another { is_alive, alive } => {
                if !*alive {
                    return false;
                }
                std::thread::sleep(POLL.min(patience));
                *alive = is_alive();
                true
            }
            Writer::This(wake) => {
                let offset = self.reader.offset();
                wake.0.flushed.store(offset, Ordering::Release);
                if self.woken.elapsed() < BATCH * 2 {
                    std::thread::sleep(BATCH);
                }
                let mut state = wake.state();
                state.waiting = true;
                let is_quiet = |state: &mut Followed| !state.over && wake.0.written.load(Ordering::Acquire) == offset;
                let waited = wake.0.changed.wait_timeout_while(state, patience, is_quiet);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                state.waiting = false;
                self.woken = Instant::now();
                !state.over || (wake.0.written.load(Ordering::Acquire) != offset && !self.reopened)
            }
        }
    }

    /// A record was shown: the run may want to know how far its view is.
    pub(crate) fn shown(&self) {
        if let Writer::This(wake) = &self.writer {
            wake.0.shown.store(self.reader.offset(), Ordering::Release);
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        if let Writer::This(wake) = &self.writer {
            wake.state().following = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Body, Fact, Journal};

    fn notice(number: usize) -> Body {
        Body::Loop(Fact::Notice { message: format!("notice {number}") })
    }

    fn rest(follow: &mut Follow) -> Vec<u64> {
        std::iter::from_fn(|| follow.read().unwrap()).map(|record| record.seq).collect()
    }

    #[test]
    fn a_follower_sees_what_is_written_and_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let wake = Wake::default();
        let mut follow = Follow::own(&path, 0, wake.clone()).unwrap();
        let first = journal.append(notice(0)).unwrap();
        assert!(rest(&mut follow).is_empty(), "what was not announced may be taken back");
        wake.written(first.start, first.end);
        assert_eq!(rest(&mut follow), [0]);
        assert!(follow.wait(Duration::from_millis(1)), "more may come");
        wake.settle(Duration::from_secs(60));
        let second = journal.append(notice(1)).unwrap();
        wake.written(second.start, second.end);
        wake.over();
        assert!(follow.wait(Duration::from_secs(60)), "the last record is still to be read");
        assert_eq!(rest(&mut follow), [1]);
        assert!(!follow.wait(Duration::from_secs(60)));
        drop(follow);
        wake.written(second.end, u64::MAX);
        let start = Instant::now();
        wake.settle(Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(30), "nobody follows any more");
    }

    #[test]
    fn what_another_process_wrote_last_is_read_after_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        journal.append(notice(0)).unwrap();
        let mut answers = [true, false].into_iter();
        let is_alive = Box::new(move || answers.next().unwrap());
        let mut follow = Follow::another(&path, 0, is_alive).unwrap();
        assert_eq!(rest(&mut follow), [0]);
        journal.append(notice(1)).unwrap();
        assert!(follow.wait(Duration::from_secs(1)));
        assert_eq!(rest(&mut follow), [1]);
        assert!(!follow.wait(Duration::from_secs(1)));
    }
}
