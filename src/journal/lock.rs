//! One run at a time in a directory. The lock is the operating system's: it dies with the process, so a
//! crash never leaves a directory locked.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::disk::private;

/// Who holds the lock, for the message to whoever comes second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Its run.
    pub run: String,
    /// Its agent.
    pub agent: String,
    /// Since when.
    pub since: jiff::Timestamp,
}

/// Held as long as it lives.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run has it.
    #[error("another run is active in this directory")]
    Held(Option<Holder>),
    /// The file cannot be used.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes the lock, or says who has it.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let mut file = private().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                Err(LockError::Held(serde_json::from_str(&text).ok()))
            }
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Who runs here now; `None` when nobody does. A lock that is taken for a moment would refuse a run that starts in that
    /// moment, so that it is only tried when its holder seems to be alive.
    pub fn holder(path: &Path) -> Option<Holder> {
        let holder: Holder = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let pid = rustix::process::Pid::from_raw(i32::try_from(holder.pid).ok()?)?;
        rustix::process::test_kill_process(pid).ok()?;
        let held = matches!(File::open(path).ok()?.try_lock_shared(), Err(TryLockError::WouldBlock));
        held.then_some(holder)
    }

    /// Writes down who holds it.
    pub fn sign(&mut self, holder: &Holder) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&serde_json::to_vec(holder)?)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // An empty file says that nobody is here; the lock itself goes with the descriptor.
        let _ = self.file.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_learns_who_was_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let holder = Holder { pid: 1, run: "r".into(), agent: "a".into(), since: jiff::Timestamp::UNIX_EPOCH };
        let mut first = Lock::take(&path).unwrap();
        first.sign(&holder).unwrap();
        assert!(matches!(Lock::take(&path), Err(LockError::Held(Some(found))) if found == holder));
        assert_eq!(Lock::holder(&path), Some(holder));
        drop(first);
        assert_eq!(Lock::holder(&path), None);
        Lock::take(&path).unwrap();
    }
}
