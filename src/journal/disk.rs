//! The file layer of the journal: everything that is written goes through here, so that tests can let any write fail, and
//! can take away what was not synced, as a power cut does.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A file that is only appended to.
pub trait Growing: Debug + Send {
    /// Appends all bytes. After an error, some of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file to a length.
    fn shorten(&mut self, length: u64) -> io::Result<()>;

    /// Returns when a power cut can no longer take anything away.
    fn sync(&mut self) -> io::Result<()>;

    /// Fails when the file is no longer in any directory: what is written to it, nobody will ever read.
    fn is_there(&self) -> io::Result<()>;
}

/// Whether a file may exist already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// It must be new.
    New,
    /// It is opened when it exists.
    OpenOrNew,
}

/// Where files are.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file for appending.
    fn grow(&self, path: &Path, make: Make) -> io::Result<Box<dyn Growing>>;

    /// Puts a file in place in one step: there is the old one or the new one, never half of it.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Makes a directory, and those above it; it may exist.
    fn directory(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory that must be new.
    fn new_directory(&self, path: &Path) -> io::Result<()>;

    /// Returns when a power cut can no longer take away the names in a directory.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// The real one. Everything is private to its owner.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn grow(&self, path: &Path, make: Make) -> io::Result<Box<dyn Growing>> {
        let mut options = private();
        let options = options.append(true);
        let file = match make {
            Make::New => options.create_new(true).open(path)?,
            Make::OpenOrNew => options.create(true).open(path)?,
        };
        Ok(Box::new(RealFile(file)))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let new = beside(path);
        let written = private().write(true).create(true).truncate(true).open(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        let renamed = written.and_then(|()| fs::rename(&new, path));
        if renamed.is_err() {
            let _ = fs::remove_file(&new);
        }
        renamed
    }

    fn directory(&self, path: &Path) -> io::Result<()> {
        if !path.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        }
        fs::metadata(path).map(|_| ())
    }

    fn new_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// A file on a real disk.
#[derive(Debug)]
struct RealFile(File);

impl Growing for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn is_there(&self) -> io::Result<()> {
        if self.0.metadata()?.nlink() == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the run's directory was removed"));
        }
        Ok(())
    }
}

/// Where a file is written before it takes its place.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

/// Files that only their owner reads.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
