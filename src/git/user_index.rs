//! Replaces the index of a user's work tree, under git's own lock. The lock file says who holds it, so that one that a killed ralph left
//! can be told from one of the user's git.

use std::io::Write as _;
use std::path::PathBuf;

use super::command::GitError;
use super::files;
use super::writer::Writer;
use crate::journal::disk::step;

const LOCK: &[u8] = b"held by ralph\n";
const MOST_INDEX: u64 = 1024 * 1024 * 1024;

/// Held until it is dropped.
pub(super) struct IndexLock(PathBuf);

impl Drop for IndexLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        step();
    }
}

impl Writer {
    pub(super) fn index(&self) -> PathBuf {
        self.repository.directory.join("index")
    }

    /// The bytes of the index; `None` where there is none.
    pub(super) fn index_bytes(&self) -> Option<Vec<u8>> {
        files::read(&self.index(), MOST_INDEX)
    }

    /// Removes the lock that a killed ralph left. The caller keeps every other ralph out of the work tree.
    pub(crate) fn remove_stale_index_lock(&self) {
        let path = self.repository.directory.join("index.lock");
        if files::read(&path, 64).is_some_and(|found| LOCK.starts_with(&found)) {
            let _ = std::fs::remove_file(&path);
        }
    }

    /// Locks the index against every git.
    pub(super) fn lock_index(&self) -> Result<IndexLock, GitError> {
        let path = self.repository.directory.join("index.lock");
        self.remove_stale_index_lock();
        let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let mut file = made.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                GitError::Failed(format!("`{}` exists: another git is at work", path.display()))
            }
            _ => GitError::Failed(format!("cannot lock the index: {error}")),
        })?;
        let lock = IndexLock(path);
        step();
        file.write_all(LOCK).map_err(|error| GitError::Failed(format!("cannot lock the index: {error}")))?;
        Ok(lock)
    }

    /// Puts an index in place in one step; `None` removes it.
    pub(super) fn replace_index(&self, _lock: &IndexLock, bytes: Option<&[u8]>) -> Result<(), GitError> {
        let failed = |error: std::io::Error| GitError::Failed(format!("cannot write the index: {error}"));
        let index = self.index();
        let Some(bytes) = bytes else {
            return match std::fs::remove_file(&index) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        };
        let new = self.repository.directory.join("index.ralph");
        let written = std::fs::File::create(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        step();
        let renamed = written.and_then(|()| std::fs::rename(&new, index)).map_err(failed);
        step();
        renamed
    }
}
