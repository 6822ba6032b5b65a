//! Brings records to a view in a thread of its own.
//!
//! The queue is bounded in bytes. A view that falls behind, because its terminal stands still, misses
//! nothing: it catches up from the journal on disk, so that the agent never waits and memory stays flat.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::View;
use crate::journal::Reader;
use crate::journal::writer::Appended;

/// How many bytes of records may wait for the view.
const MOST_WAITING: usize = 2 * 1024 * 1024;

/// In a flood the view takes what has come in so long at once: to be woken for each record costs more than to show it.
const BATCH: Duration = Duration::from_micros(500);

/// How often a view hears that nothing happened.
const TICK: Duration = Duration::from_secs(1);

/// The sending side. Dropping it lets the view show the rest; [`Feed::finish`] also waits for it.
#[derive(Debug)]
pub struct Feed {
    sender: Option<Sender<Appended>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Shown>>,
    behind: bool,
}

/// How much of a run a view has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything, or as much as its reader wanted.
    InFull,
    /// Its reader stood still, or could not be written to.
    InPart,
}

#[derive(Debug)]
struct Shared {
    waiting: AtomicUsize,
    /// How far the view has come.
    shown: AtomicU64,
    /// How far the journal reaches that the view may read.
    end: AtomicU64,
}

impl Feed {
    /// Starts the view's thread.
    pub fn start(view: Box<dyn View>, journal: PathBuf) -> io::Result<Self> {
        Self::start_at(view, journal, 0)
    }

    /// Starts the view's thread; what is in the journal before the offset is not shown again.
    pub fn start_at(view: Box<dyn View>, journal: PathBuf, offset: u64) -> io::Result<Self> {
        let at = || AtomicU64::new(offset);
        let shared = Arc::new(Shared { waiting: AtomicUsize::new(0), shown: at(), end: at() });
        let (sender, receiver) = channel();
        let showing = Showing { view, journal, shared: Arc::clone(&shared), receiver, shown: offset };
        let thread = std::thread::Builder::new().name("view".into()).spawn(move || {
            match showing.run() {
                // The reader is gone, `head` for example: that ends the view, not the run.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Shown::InFull,
                Err(_) => Shown::InPart,
                Ok(()) => Shown::InFull,
            }
        })?;
        Ok(Self { sender: Some(sender), shared, thread: Some(thread), behind: false })
    }

    /// Hands on a record that is on disk. Never blocks.
    pub fn send(&mut self, appended: Appended) {
        self.shared.end.store(appended.end, Ordering::Release);
        let Some(sender) = &self.sender else { return };
        let waiting = self.shared.waiting.load(Ordering::Acquire);
        if self.behind && waiting > 0 {
            return;
        }
        let size = usize::try_from(appended.end - appended.start).unwrap_or(usize::MAX);
        self.behind = waiting > MOST_WAITING;
        if !self.behind {
            self.shared.waiting.fetch_add(size, Ordering::AcqRel);
            let _ = sender.send(appended);
        }
    }

    /// Waits until the view has shown what it was handed, but no longer than this.
    pub fn settle(&self, patience: Duration) {
        let start = Instant::now();
        let is_behind = || self.shared.shown.load(Ordering::Acquire) < self.shared.end.load(Ordering::Acquire);
        while is_behind() && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        // What was shown last is on its way from the view's buffer to the terminal.
        std::thread::sleep(Duration::from_millis(20));
    }

    /// Waits until the view has shown everything, but not for ever: its reader may stand still.
    pub fn finish(mut self, patience: Duration) -> Shown {
        self.sender = None;
        let Some(thread) = self.thread.take() else { return Shown::InFull };
        let mut progress = (self.shared.shown.load(Ordering::Acquire), Instant::now());
        while !thread.is_finished() {
            let shown = self.shared.shown.load(Ordering::Acquire);
            if shown != progress.0 {
                progress = (shown, Instant::now());
            } else if progress.1.elapsed() > patience {
                return Shown::InPart;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        thread.join().unwrap_or(Shown::InPart)
    }
}

/// The view's thread.
struct Showing {
    view: Box<dyn View>,
    journal: PathBuf,
    shared: Arc<Shared>,
    receiver: Receiver<Appended>,
    /// The offset up to which the journal has been shown.
    shown: u64,
}

impl Showing {
    fn run(mut self) -> io::Result<()> {
        let mut idle = Instant::now();
        loop {
            let next = if let Ok(appended) = self.receiver.try_recv() {
                Ok(appended)
            } else {
                self.catch_up(self.shared.end.load(Ordering::Acquire))?;
                self.view.flush()?;
                if std::mem::replace(&mut idle, Instant::now()).elapsed() < BATCH * 2 {
                    std::thread::sleep(BATCH);
                }
                self.receiver.recv_timeout(TICK)
            };
            match next {
                Ok(appended) => {
                    let size = usize::try_from(appended.end - appended.start).unwrap_or(usize::MAX);
                    self.shared.waiting.fetch_sub(size, Ordering::AcqRel);
                    self.catch_up(appended.start)?;
                    if appended.start == self.shown {
                        self.view.record(&appended.record)?;
                        self.shown = appended.end;
                        self.shared.shown.store(self.shown, Ordering::Release);
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.view.tick()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.catch_up(self.shared.end.load(Ordering::Acquire))?;
                    return self.view.close();
                }
            }
        }
    }

    /// Shows from disk what did not come through the queue.
    fn catch_up(&mut self, end: u64) -> io::Result<()> {
        if self.shown >= end {
            return Ok(());
        }
        let mut reader = Reader::open(&self.journal, self.shown)?;
        while reader.offset() < end {
            match reader.read()? {
                Some(Ok(record)) => {
                    self.view.record(&record)?;
                    self.shared.shown.store(reader.offset(), Ordering::Release);
                }
                Some(Err(_)) => {}
                None => break,
            }
        }
        self.shown = reader.offset();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::event::{Event, Stream, Tag};
    use crate::journal::{Body, Journal, Record};

    struct Slow {
        gate: mpsc::Receiver<()>,
        seen: mpsc::Sender<u64>,
    }

    impl View for Slow {
        fn record(&mut self, record: &Record) -> io::Result<()> {
            let _ = self.gate.recv();
            let _ = self.seen.send(record.seq);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_view_that_stands_still_misses_nothing_and_blocks_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        let mut journal = Journal::create(&path).unwrap();
        let (open, gate) = mpsc::channel();
        let (seen, shown) = mpsc::channel();
        let mut feed = Feed::start(Box::new(Slow { gate, seen }), path).unwrap();
        let count = 200;
        for _ in 0..count {
            let event = Event::text(Tag::Ai, "x".repeat(64 * 1024));
            feed.send(journal.append(Body::Agent { iteration: 1, from: Stream::Stdout, event }).unwrap());
        }
        assert!(feed.shared.waiting.load(Ordering::Acquire) <= MOST_WAITING + 128 * 1024, "the queue is bounded");
        drop(open);
        assert_eq!(feed.finish(Duration::from_secs(20)), Shown::InFull);
        assert_eq!(shown.iter().collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
    }
}
