//! A directory that only this user can enter and that goes away by itself: the temporary directory of a sandbox.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::guardian::{self, Duty};

/// A directory with mode 0700, removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    /// Makes a new one in the temporary directory.
    pub fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir().canonicalize()?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("ralph-sandbox-{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    guardian::add(Duty::Directory(path.clone()));
                    return Ok(Self { path });
                }
                // Left over from a process of the same number, or made by someone who guesses.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now.
    pub fn remove(&self) {
        remove(&self.path);
        guardian::remove(&Duty::Directory(self.path.clone()));
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes it, also where directories in it were closed. No link is followed.
pub(super) fn remove(path: &Path) {
    if std::fs::remove_dir_all(path).is_err() {
        open(path);
        let _ = std::fs::remove_dir_all(path);
    }
}

fn open(directory: &Path) {
    let is_directory = std::fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_dir());
    if !is_directory {
        return;
    }
    let _ = std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700));
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    entries.flatten().for_each(|entry| open(&entry.path()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_away_with_closed_directories_in_it() {
        let directory = PrivateDirectory::new().unwrap();
        let path = directory.path().to_owned();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/b/file"), "x").unwrap();
        std::fs::set_permissions(path.join("a"), std::fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        drop(directory);
        assert!(!path.exists());
    }
}
