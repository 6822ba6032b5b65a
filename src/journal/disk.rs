//! The file layer of the journal: everything that is written goes through here, so that tests can let any write fail, and
//! can take away what was not synced, as a power cut does.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::safe_copy::SafeCopy;

/// A watched file up to this size is compared in full when it is synced. The clock of a file system is too coarse to tell
/// every change of it.
const COMPARED_IN_FULL: u64 = 4 * 1024 * 1024;

/// Called behind each change that a killed command must be able to repeat. In a debug build `CRASH_AT_STEP=N` kills ralph at the
/// Nth of them: so the crash tests reach every one.
pub(crate) fn step() {
    static DONE: AtomicU32 = AtomicU32::new(0);
    if cfg!(debug_assertions)
        && let Some(wanted) = std::env::var_os("CRASH_AT_STEP")
        && wanted == *(DONE.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// A file that is only appended to.
pub trait Growing: Debug + Send {
    /// Appends all bytes. After an error, some of them may be there.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file to a length.
    fn shorten(&mut self, length: u64) -> io::Result<()>;

    /// Returns when a power cut can no longer take anything away.
    fn sync(&mut self) -> io::Result<()>;

    /// Keeps a copy of the file from now on, so that [`Growing::watch`] can restore it.
    fn guard(&mut self) -> io::Result<()>;

    /// Looks whether another process has changed the file. If so, restores it and says what happened.
    fn watch(&mut self, look: Look) -> io::Result<Option<Tampering>>;
}

/// How closely a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Its bytes are compared when its time or size is not what the last write left.
    Quick,
    /// Its bytes are compared, unless there are too many.
    Full,
}

/// What another process did to a file that only ralph may write. The file is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tampering {
    /// It was removed, or another file was put in its place.
    Replaced,
    /// It had this many bytes more.
    Extended(u64),
    /// It had this many bytes less.
    Cut(u64),
    /// It had other bytes.
    Overwritten,
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
            Make::OpenOrNew => {
                clear(path)?;
                options.create(true).open(path)?
            }
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file"));
        }
        Ok(Box::new(RealFile { file, path: path.to_owned(), guard: None }))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        clear(path)?;
        let new = beside(path);
        // Whatever has this name is never written to: it may be a link.
        remove(&new)?;
        let written = private().write(true).create_new(true).open(&new).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        let renamed = written.and_then(|()| fs::rename(&new, path));
        if renamed.is_err() {
            let _ = fs::remove_file(&new);
        }
        step();
        renamed
    }

    fn directory(&self, path: &Path) -> io::Result<()> {
        make_directory(path)?;
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
    guard: Option<Guard>,
}

/// What is known about a file that is watched.
#[derive(Debug)]
struct Guard {
    copy: SafeCopy,
    stamp: Stamp,
}

/// When a file was last changed, and its size: different after every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(i64, i64, u64);

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self(metadata.ctime(), metadata.ctime_nsec(), metadata.len())
    }
}

impl Growing for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        let Some(guard) = &mut self.guard else { return Ok(()) };
        guard.stamp = Stamp::of(&self.file.metadata()?);
        guard.copy.append(bytes)
    }

    fn shorten(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn guard(&mut self) -> io::Result<()> {
        let copy = SafeCopy::of(&mut self.file, &with_suffix(&self.path, ".copy"))?;
        self.guard = Some(Guard { copy, stamp: Stamp::of(&self.file.metadata()?) });
        Ok(())
    }

    fn watch(&mut self, look: Look) -> io::Result<Option<Tampering>> {
        let Some(Guard { copy, stamp }) = &mut self.guard else { return Ok(None) };
        let own = self.file.metadata()?;
        let in_place =
            fs::symlink_metadata(&self.path).is_ok_and(|there| there.ino() == own.ino() && there.dev() == own.dev());
        // What ralph itself wrote is counted; the stamp has the size that the file had behind it.
        let as_left = *stamp == Stamp::of(&own) && own.len() == copy.length();
        let in_full = look == Look::Full && copy.length() <= COMPARED_IN_FULL;
        let is_same = (as_left && !in_full) || copy.is_same_as(&mut self.file)?;
        if is_same && in_place {
            *stamp = Stamp::of(&own);
            return Ok(None);
        }
        let found = match (is_same, own.len()) {
            (true, _) => Tampering::Replaced,
            (false, size) if size > copy.length() => Tampering::Extended(size - copy.length()),
            (false, size) if size < copy.length() => Tampering::Cut(copy.length() - size),
            (false, _) => Tampering::Overwritten,
        };
        self.restore()?;
        Ok(Some(found))
    }
}

impl RealFile {
    /// Puts the file back in its place, with what it must contain.
    fn restore(&mut self) -> io::Result<()> {
        let Some(guard) = &mut self.guard else { return Ok(()) };
        make_way(&self.path)?;
        let new = beside(&self.path);
        remove(&new)?;
        let mut file = private().read(true).append(true).create_new(true).open(&new)?;
        guard.copy.write_to(&mut file)?;
        file.sync_data()?;
        fs::rename(&new, &self.path)?;
        guard.stamp = Stamp::of(&file.metadata()?);
        self.file = file;
        Ok(())
    }
}

/// Makes sure that a file of a run can be written at a path, whatever another process has put there: its directory is a real
/// one, and nothing but an ordinary file with one name is at the path. True when something had to be restored.
pub(crate) fn make_way(path: &Path) -> io::Result<bool> {
    let restored = path.parent().map_or(Ok(false), own_directory)?;
    Ok(clear(path)? || restored)
}

/// The same for any file. Its directory may be a link of the user's.
fn clear(path: &Path) -> io::Result<bool> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        make_directory(directory)?;
    }
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() && there.nlink() == 1 => {
            if there.mode() & 0o600 != 0o600 {
                fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            }
            Ok(false)
        }
        Ok(_) => remove(path).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Makes sure that a directory is a real one that the owner may write to. True when it was missing, was a link or something else, or could not be written to.
pub(crate) fn own_directory(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() && there.mode() & 0o700 == 0o700 => return Ok(false),
        Ok(there) if there.is_dir() => fs::set_permissions(path, fs::Permissions::from_mode(0o700))?,
        Ok(_) => {
            remove(path)?;
            DirBuilder::new().mode(0o700).create(path)?;
        }
        Err(_) => {
            if let Some(above) = path.parent() {
                make_directory(above)?;
            }
            DirBuilder::new().mode(0o700).create(path)?;
        }
    }
    Ok(true)
}

fn make_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() { Ok(()) } else { DirBuilder::new().recursive(true).mode(0o700).create(path) }
}

/// Removes what has a name, if anything: a directory with all that is in it, a link without its target.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Where a file is written before it takes its place.
fn beside(path: &Path) -> PathBuf {
    with_suffix(path, ".new")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
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
