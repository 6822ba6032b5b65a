//! A file that only this user can read and that goes away by itself: the way for a long prompt.
//!
//! It must never be readable by others, not even for the moment between creation and `chmod`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::guardian::{self, Duty};

/// A file with mode 0600, removed when it is dropped.
#[derive(Debug)]
pub struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// Writes `bytes` to a new file in `directory`.
    pub fn new(directory: &Path, bytes: &[u8]) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("ralph-prompt-{}-{number}.txt", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    // From here on the drop of `created` cleans up after a disk that is full.
                    let created = Self { path };
                    guardian::add(Duty::File(created.path.clone()));
                    file.write_all(bytes)?;
                    return Ok(created);
                }
                // Left over from a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // Someone else may have removed it; either way it is gone, which is all that is wanted.
        let _ = std::fs::remove_file(&self.path);
        guardian::remove(&Duty::File(self.path.clone()));
    }
}
