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
    /// The number of the last record.
    seq: AtomicU64,
    /// How often the journal was restored after another process had changed it.
    restored: AtomicU64,
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
    /// Another process had changed the journal, and it was restored.
    pub(crate) fn restored(&self) {
        self.0.restored.fetch_add(1, Ordering::AcqRel);
    }

    /// A record of this number was written, up to this offset.
    pub(crate) fn written(&self, seq: u64, end: u64) {
        self.0.seq.store(seq, Ordering::Release);
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
    /// Where it began.
    from: u64,
    reader: Reader,
    /// The number of the next record, once one was read.
    next: u64,
    /// The journal was opened after it was restored this often.
    restored: u64,
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
        let path = path.to_owned();
        Ok(Self { path, from: offset, reader, next: 0, restored: 0, reopened: false, writer, woken: Instant::now() })
    }

    /// The next record that is on disk; `None` when there is none yet. A damaged line is passed over.
    pub(crate) fn read(&mut self) -> io::Result<Option<Record>> {
        let mut is_fresh = false;
        loop {
            let mut last = u64::MAX;
            if let Writer::This(wake) = &self.writer {
                let restored = wake.0.restored.load(Ordering::Acquire);
                if self.restored != restored {
                    // Foreign bytes may have been read, so that this offset means nothing. The numbers say what is new.
                    self.reader = Reader::open(&self.path, self.from)?;
                    self.restored = restored;
                }
                if self.reader.offset() >= wake.0.written.load(Ordering::Acquire) {
                    return Ok(None);
                }
                last = wake.0.seq.load(Ordering::Acquire);
            }
            match self.reader.read()? {
                Some(Ok(record)) if (self.next..=last).contains(&record.seq) => {
                    self.next = record.seq + 1;
                    self.reopened = false;
                    return Ok(Some(record));
                }
                Some(_) => {}
                None if matches!(self.writer, Writer::This(_)) && !is_fresh => {
                    // Another process may have removed or replaced the file; the run restores it under its name soon.
                    self.reopened = true;
                    let Ok(reader) = Reader::open(&self.path, self.reader.offset()) else { return Ok(None) };
                    (self.reader, is_fresh) = (reader, true);
                }
                None => return Ok(None),
            }
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
                let is_quiet = |state: &mut Followed| !state.over && wake.0.written.load(Ordering::Acquire) <= offset;
                let waited = wake.0.changed.wait_timeout_while(state, patience, is_quiet);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                state.waiting = false;
                self.woken = Instant::now();
                !state.over || (wake.0.written.load(Ordering::Acquire) > offset && !self.reopened)
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
        wake.written(0, first.end);
        assert_eq!(rest(&mut follow), [0]);
        assert!(follow.wait(Duration::from_millis(1)), "more may come");
        wake.settle(Duration::from_secs(60));
        let second = journal.append(notice(1)).unwrap();
        wake.written(1, second.end);
        wake.over();
        assert!(follow.wait(Duration::from_secs(60)), "the last record is still to be read");
        assert_eq!(rest(&mut follow), [1]);
        assert!(!follow.wait(Duration::from_secs(60)));
        drop(follow);
        wake.written(1, u64::MAX);
        let start = Instant::now();
        wake.settle(Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(30), "nobody follows any more");
    }

    #[test]
    fn a_follower_shows_each_record_once_whatever_another_process_did_to_the_journal() {
        use std::io::Write as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let wake = Wake::default();
        let mut follow = Follow::own(&path, 0, wake.clone()).unwrap();
        let mut shown = Vec::new();
        for number in 0..6 {
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            let forged = "{\"seq\":900,\"at\":\"2026-01-01T00:00:00Z\",\"by\":\"loop\",\"event\":\"paused\"}";
            file.write_all(format!("rubbish {number}\n{forged}\n").as_bytes()).unwrap();
            drop(file);
            let appended = journal.append(notice(number)).unwrap();
            wake.written(appended.record.seq, appended.end);
            shown.extend(rest(&mut follow));
            if number % 2 == 1 {
                assert!(journal.look().unwrap().is_some());
                wake.restored();
            }
            shown.extend(rest(&mut follow));
        }
        assert_eq!(shown, [0, 1, 2, 3, 4, 5]);
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
