//! Reads small files of a repository that may be hostile: regular files only, never waiting for a writer, never more than a bound.

use std::fs::{Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The content of a file; `None` when it is missing, not a regular file, or longer than `most`.
pub(super) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > most {
        return None;
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).ok()?);
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The same as text without the blanks around it.
pub(super) fn text(path: &Path) -> Option<String> {
    String::from_utf8(read(path, 64 * 1024)?).ok().map(|text| text.trim().to_owned())
}

/// True when git could read this file to its end.
pub(super) fn is_readable(path: &Path) -> bool {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path).is_ok()
}

/// A number for a file that is not read. The time of the last status change cannot be set back by the file's owner.
pub(super) fn stat_print(metadata: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    (metadata.len(), metadata.mode(), metadata.ino()).hash(&mut hasher);
    (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()).hash(&mut hasher);
    hasher.finish()
}
