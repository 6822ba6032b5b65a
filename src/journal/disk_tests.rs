//! A disk in memory that fails where it is told to, and loses what was not synced: every write of a run is let fail once,
//! and the power is cut after every one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::event::{Event, Stream, Tag};
use crate::journal::writer::{Journal, Raw};
use crate::journal::{Body, Fact, Record};
use crate::redact::Clean;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing more fits; half of the bytes were written.
    Full,
    /// Nothing may be written.
    Denied,
    /// The power is cut: nothing is done any more, and what was not synced may be gone.
    Power,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Stored>,
    steps: usize,
    fault: Option<(usize, Fault)>,
    off: bool,
}

#[derive(Clone, Debug, Default)]
struct Stored {
    bytes: Vec<u8>,
    synced: usize,
}

#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<State>>);

impl Memory {
    fn failing(step: usize, fault: Fault) -> Self {
        let memory = Self::default();
        memory.0.lock().unwrap().fault = Some((step, fault));
        memory
    }

    /// One step that may go wrong. How much of the bytes is still written, when it does.
    fn step(&self, length: usize) -> Result<(), (usize, io::Error)> {
        let mut state = self.0.lock().unwrap();
        state.steps += 1;
        if state.off {
            return Err((0, io::Error::other("no power")));
        }
        match state.fault {
            Some((step, fault)) if step + 1 == state.steps => match fault {
                Fault::Full => Err((length / 2, io::ErrorKind::StorageFull.into())),
                Fault::Denied => Err((0, io::ErrorKind::PermissionDenied.into())),
                Fault::Power => {
                    state.off = true;
                    Err((length / 3, io::Error::other("no power")))
                }
            },
            _ => Ok(()),
        }
    }

    fn steps(&self) -> usize {
        self.0.lock().unwrap().steps
    }

    /// What is found after a power cut: all that was synced, and `kept` of each hundred bytes behind it.
    fn after_power_cut(&self, path: &Path, kept: usize) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        let Some(Stored { bytes, synced }) = state.files.get(path) else { return Vec::new() };
        bytes[..synced + (bytes.len() - synced) * kept / 100].to_vec()
    }
}

#[derive(Debug)]
struct MemoryFile {
    disk: Memory,
    path: PathBuf,
}

impl MemoryFile {
    fn with<T>(&self, change: impl FnOnce(&mut Stored) -> T) -> T {
        change(self.disk.0.lock().unwrap().files.entry(self.path.clone()).or_default())
    }
}

impl Growing for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (written, result) = match self.disk.step(bytes.len()) {
            Ok(()) => (bytes.len(), Ok(())),
            Err((written, error)) => (written, Err(error)),
        };
        self.with(|stored| stored.bytes.extend_from_slice(&bytes[..written]));
        result
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.disk.step(0).map_err(|(_, error)| error)?;
        self.with(|stored| {
            stored.bytes.truncate(usize::try_from(length).unwrap());
            stored.synced = stored.synced.min(stored.bytes.len());
        });
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.step(0).map_err(|(_, error)| error)?;
        self.with(|stored| stored.synced = stored.bytes.len());
        Ok(())
    }

    fn guard(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _: Look) -> io::Result<Option<Tampering>> {
        Ok(None)
    }
}

impl Disk for Memory {
    fn grow(&self, path: &Path, _: Make) -> io::Result<Box<dyn Growing>> {
        self.step(0).map_err(|(_, error)| error)?;
        self.0.lock().unwrap().files.entry(path.to_owned()).or_default();
        Ok(Box::new(MemoryFile { disk: self.clone(), path: path.to_owned() }))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step(0).map_err(|(_, error)| error)?;
        let stored = Stored { bytes: bytes.to_vec(), synced: bytes.len() };
        self.0.lock().unwrap().files.insert(path.to_owned(), stored);
        Ok(())
    }

    fn directory(&self, _: &Path) -> io::Result<()> {
        self.step(0).map_err(|(_, error)| error)
    }

    fn new_directory(&self, _: &Path) -> io::Result<()> {
        self.step(0).map_err(|(_, error)| error)
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        self.step(0).map_err(|(_, error)| error)
    }
}

const JOURNAL: &str = "run/journal.jsonl";

/// What came of a run: the records that were said to be on disk, how many of them before the last sync, and the error.
#[derive(Default)]
struct Came {
    told: Vec<Record>,
    synced: usize,
    error: Option<io::Error>,
}

/// Writes three iterations as the loop does, and stops at the first error. After one that may pass, it says so in one
/// more record, as the loop does when it closes.
fn run(disk: &Memory) -> Came {
    let mut came = Came::default();
    let result = write(disk, &mut came);
    came.error = result.err();
    came
}

fn write(disk: &Memory, came: &mut Came) -> io::Result<()> {
    let mut journal = Journal::create_on(disk, Path::new(JOURNAL))?;
    let result = (|| {
        for iteration in 1..=3 {
            let mut raw = Raw::create(disk, Path::new("run/raw"), iteration)?;
            disk.replace(Path::new("run/prompts/1.md"), b"prompt")?;
            for word in ["one", "two", "three"] {
                raw.write(Stream::Stdout, &Clean::exact(word))?;
                let event = Event::text(Tag::Ai, word);
                let appended = journal.append(Body::Agent { iteration, from: Stream::Stdout, event })?;
                came.told.push((appended.record).clone());
            }
            let together = stage(&mut journal, iteration, ["four", "five"])?;
            journal.commit()?;
            came.told.extend(together);
            let appended = journal.append(Body::Loop(Fact::Notice { message: format!("end of {iteration}") }))?;
            came.told.push((appended.record).clone());
            journal.sync()?;
            came.synced = came.told.len();
        }
        Ok(())
    })();
    if result.is_err()
        && let Ok(appended) = journal.append(Body::Loop(Fact::Notice { message: "stopped".into() }))
    {
        came.told.push((appended.record).clone());
    }
    result
}

fn stage(journal: &mut Journal, iteration: u32, words: [&str; 2]) -> io::Result<[Record; 2]> {
    let mut stage = |word| {
        let body = Body::Agent { iteration, from: Stream::Stdout, event: Event::text(Tag::Ai, word) };
        journal.stage(body).map(|appended| appended.record)
    };
    Ok([stage(words[0])?, stage(words[1])?])
}

/// All whole lines, which must all be records.
#[track_caller]
fn records(bytes: &[u8]) -> Vec<Record> {
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    bytes[..whole].split_inclusive(|&byte| byte == b'\n').map(|line| Record::read_line(line).unwrap()).collect()
}

#[test]
fn records_that_come_together_are_one_write_and_come_in_order() {
    let disk = Memory::default();
    let mut journal = Journal::create_on(&disk, Path::new(JOURNAL)).unwrap();
    let before = disk.steps();
    let told = stage(&mut journal, 1, ["one", "two"]).unwrap();
    assert_eq!(disk.steps(), before, "nothing is written before the commit");
    journal.commit().unwrap();
    assert_eq!(disk.steps(), before + 1);
    assert_eq!(records(&disk.after_power_cut(Path::new(JOURNAL), 100)), told);
    assert_eq!(journal.append(Body::Loop(Fact::Notice { message: "third".into() })).unwrap().record.seq, 2);
}

#[test]
fn wherever_a_write_fails_the_journal_has_exactly_what_was_told() {
    let steps = {
        let disk = Memory::default();
        assert!(run(&disk).error.is_none());
        disk.steps()
    };
    assert!(steps > 30, "{steps}");
    for fault in [Fault::Full, Fault::Denied] {
        for step in 0..steps {
            let disk = Memory::failing(step, fault);
            let came = run(&disk);
            assert!(came.error.is_some(), "{fault:?} at step {step}: the run went on");
            let found = records(&disk.after_power_cut(Path::new(JOURNAL), 100));
            assert_eq!(found, came.told, "{fault:?} at step {step}");
        }
    }
}

#[test]
fn a_power_cut_takes_nothing_that_was_synced_and_leaves_nothing_half() {
    let steps = {
        let disk = Memory::default();
        run(&disk);
        disk.steps()
    };
    for step in 0..steps {
        for kept in [0, 17, 50, 83, 100] {
            let disk = Memory::failing(step, Fault::Power);
            let came = run(&disk);
            let left = disk.after_power_cut(Path::new(JOURNAL), kept);
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("journal.jsonl");
            std::fs::write(&path, &left).unwrap();
            let mut journal = Journal::reopen(&RealDisk, &path).unwrap();
            journal.append(Body::Loop(Fact::Notice { message: "goes on".into() })).unwrap();
            let found = records(&std::fs::read(&path).unwrap());
            assert!(found.len() > came.synced, "step {step}: {} of {} synced records", found.len() - 1, came.synced);
            // What was being written when the power went may be there as well, if it was whole.
            let same = came.told.iter().zip(&found[..found.len() - 1]).all(|(told, found)| told == found);
            assert!(same, "step {step}, {kept} %");
            assert_eq!(found.last().unwrap().seq + 1, found.len() as u64);
        }
    }
}
