//! One run at a time in a workspace. The lock is the operating system's, on the workspace directory itself: there is no
//! file to link, replace or clean up, and a crash never leaves a directory locked.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Store;
use super::disk::{Disk as _, RealDisk};

/// Who holds the lock: for the message to whoever comes second, and to reach the run.
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
    /// The socket that takes orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<PathBuf>,
}

/// Held as long as it lives.
#[derive(Debug)]
pub struct Lock {
    /// The workspace, locked.
    _directory: File,
    holder: PathBuf,
}

/// How long the lock of a dead process is waited for.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run has it.
    #[error("another run is active in this directory")]
    Held(Option<Holder>),
    /// The directory cannot be locked.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl Lock {
    /// Takes the lock of a workspace, or says who has it.
    pub fn take(store: &Store) -> Result<Self, LockError> {
        let directory = File::open(store.workspace())?;
        let deadline = Instant::now() + LEAVES_WITHIN;
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(Self { _directory: directory, holder: store.holder() }),
                Err(TryLockError::WouldBlock) => {
                    let holder = signed(&store.holder());
                    // A ralph that was killed may have forked a child just before, which has the descriptor until its exec.
                    if holder.as_ref().is_some_and(is_alive) || Instant::now() >= deadline {
                        return Err(LockError::Held(holder));
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }

    /// Who runs here now; `None` when nobody does. Trying the lock would refuse a run that starts in that moment, so it is
    /// tried only when the last holder is alive.
    pub(crate) fn holder(store: &Store) -> Option<Holder> {
        let holder = signed(&store.holder()).filter(is_alive)?;
        let held = match File::open(store.workspace()) {
            Ok(directory) => matches!(directory.try_lock_shared(), Err(TryLockError::WouldBlock)),
            // Someone removed the directory of an active run.
            Err(_) => answers(&holder),
        };
        held.then_some(holder)
    }

    /// Writes down who holds it.
    pub fn sign(&self, holder: &Holder) -> io::Result<()> {
        RealDisk.replace(&self.holder, &serde_json::to_vec(holder)?)
    }
}

fn is_alive(holder: &Holder) -> bool {
    let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of another user is alive too.
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// True when its socket takes orders.
fn answers(holder: &Holder) -> bool {
    holder.control.as_ref().is_some_and(|socket| std::os::unix::net::UnixStream::connect(socket).is_ok())
}

fn signed(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock itself goes with the descriptor.
        let _ = std::fs::remove_file(&self.holder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::State;

    #[test]
    fn the_second_learns_who_was_first() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = directory.path().join("work");
        std::fs::create_dir(&workspace).unwrap();
        let store = State::at(directory.path().join("state")).store(&workspace);
        store.create().unwrap();
        let (pid, since) = (std::process::id(), jiff::Timestamp::UNIX_EPOCH);
        let holder = Holder { pid, run: "r".into(), agent: "a".into(), since, control: None };
        let first = Lock::take(&store).unwrap();
        first.sign(&holder).unwrap();
        assert!(matches!(Lock::take(&store), Err(LockError::Held(Some(found))) if found == holder));
        assert_eq!(Lock::holder(&store), Some(holder));
        drop(first);
        assert_eq!(Lock::holder(&store), None);
        // Another test may have forked a child that still holds the descriptor until its exec.
        let mut attempts = 0..100;
        while Lock::take(&store).is_err() {
            assert!(attempts.next().is_some(), "the lock stays taken");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    #[test]
    fn nothing_in_the_workspace_is_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        let store = State::at(directory.path().join("state")).store(directory.path());
        let _lock = Lock::take(&store).unwrap();
        let names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert!(names.is_empty(), "{names:?}");
    }
}
