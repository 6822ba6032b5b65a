//! The file layer of the journal: everything that is written goes through here, so that tests can let any write fail, and
//! can take away what was not synced, as a power cut does.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
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

    /// Looks whether another process has changed the file, which must have this many bytes. What was added is removed, and
    /// a file that was removed or replaced is restored. Says what happened, and how long the file is now.
    fn watch(&mut self, length: u64) -> io::Result<Option<Tampering>>;
}

/// What another process did to a file that only ralph may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tampering {
    /// It was removed, or another file was put in its place. It is restored.
    Replaced,
    /// Bytes were added. They are removed.
    Longer(u64),
    /// It was cut to this length, at the end of a record. The rest is lost.
    Cut(u64),
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
        let options = options.read(true).append(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = match make {
            Make::New => options.create_new(true).open(path)?,
            Make::OpenOrNew => options.create(true).open(path)?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file"));
        }
        Ok(Box::new(RealFile { file, path: path.to_owned() }))
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
struct RealFile {
    file: File,
    path: PathBuf,
}

impl Growing for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn watch(&mut self, length: u64) -> io::Result<Option<Tampering>> {
        let own = self.file.metadata()?;
        let found = match own.len() {
            size if size > length => {
                self.file.set_len(length)?;
                Some(Tampering::Longer(size - length))
            }
            size if size < length => {
                let end = last_line_end(&self.file, size)?;
                self.file.set_len(end)?;
                Some(Tampering::Cut(end))
            }
            _ => None,
        };
        match fs::symlink_metadata(&self.path) {
            Ok(there) if there.ino() == own.ino() && there.dev() == own.dev() => Ok(found),
            _ => {
                self.restore()?;
                Ok(Some(found.unwrap_or(Tampering::Replaced)))
            }
        }
    }
}

impl RealFile {
    /// Puts the file back in its place. The descriptor still has all of it.
    fn restore(&mut self) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            RealDisk.directory(directory)?;
        }
        let new = beside(&self.path);
        let _ = fs::remove_file(&new);
        let mut file = private().read(true).append(true).create_new(true).open(&new)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut file)?;
        file.sync_data()?;
        if self.path.is_dir() {
            fs::remove_dir_all(&self.path)?;
        }
        fs::rename(&new, &self.path)?;
        self.file = file;
        Ok(())
    }
}

/// Where the last complete line ends.
fn last_line_end(file: &File, size: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt as _;
    let mut end = size;
    let mut bytes = vec![0; 64 * 1024];
    while end > 0 {
        let start = end.saturating_sub(bytes.len() as u64);
        let part = &mut bytes[..usize::try_from(end - start).unwrap_or(0)];
        file.read_exact_at(part, start)?;
        if let Some(at) = memchr::memrchr(b'\n', part) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
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
