//! Copies a repository's index for ralph's own use. The copy keeps what git knows about unchanged files (their times and sizes), so
//! that they need not be read, and drops everything that hides changes: flags, extensions, conflicts and submodules.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// What was found in an index.
#[derive(Debug, Default)]
pub(super) struct Copied {
    pub(super) bytes: Vec<u8>,
    /// Submodules: they are looked at as repositories of their own.
    pub(super) submodules: Vec<Vec<u8>>,
    /// Files that a sparse checkout leaves out.
    pub(super) left_out: Vec<Vec<u8>>,
    /// There are files in a skipped directory.
    pub(super) has_skipped: bool,
}

/// Times, device, inode, mode, owner and size.
const STAT: usize = 40;
const MODE: std::ops::Range<usize> = 24..28;
const SUBMODULE: u32 = 0o160_000;
const SPARSE_DIRECTORY: u32 = 0o040_000;
const SKIP_WORKTREE: u16 = 0x4000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;

/// The copy; `None` when the index is damaged or of a kind that cannot be copied.
pub(super) fn copy(index: &[u8], id_length: usize, skipped: &[PathBuf]) -> Option<Copied> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u16::from_be_bytes(index.get(at..at + 2)?.try_into().ok()?));
    let version = number(4)?;
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut copied = Copied { bytes: Vec::with_capacity(index.len()), ..Copied::default() };
    copied.bytes.extend_from_slice(b"DIRC\0\0\0\x02\0\0\0\0");
    let (mut at, mut kept, mut name) = (12, 0_u32, Vec::new());
    for _ in 0..number(8)? {
        let start = at;
        let mode = u32::from_be_bytes(index.get(start..)?.get(MODE)?.try_into().ok()?);
        at += STAT + id_length;
        let flags = short(at)?;
        at += 2;
        let mut extended = 0;
        if flags & EXTENDED != 0 {
            extended = short(at)?;
            at += 2;
        }
        if version == 4 {
            let drop = prefix_length(index, &mut at)?;
            name.truncate(name.len().checked_sub(drop)?);
        } else {
            name.clear();
        }
        let end = at + memchr::memchr(0, index.get(at..)?)?;
        name.extend_from_slice(&index[at..end]);
        // Up to version 3 entries are padded to a multiple of eight, with one NUL at least.
        at = if version == 4 { end + 1 } else { start + ((end - start + 8) & !7) };
        match mode & 0o170_000 {
            SPARSE_DIRECTORY => return None,
            SUBMODULE => {
                copied.submodules.push(name.clone());
                continue;
            }
            _ => {}
        }
        if flags & STAGE != 0 {
            continue;
        }
        if extended & SKIP_WORKTREE != 0 {
            copied.left_out.push(name.clone());
        }
        let path = Path::new(OsStr::from_bytes(&name));
        copied.has_skipped |= skipped.iter().any(|skipped| path.starts_with(skipped));
        let written = copied.bytes.len();
        copied.bytes.extend_from_slice(index.get(start..start + STAT + id_length)?);
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX).min(0x0fff);
        copied.bytes.extend_from_slice(&length.to_be_bytes());
        copied.bytes.extend_from_slice(&name);
        let padded = written + ((copied.bytes.len() - written + 8) & !7);
        copied.bytes.resize(padded, 0);
        kept += 1;
    }
    // A split index has its entries in another file.
    if index.get(at..at + 4) == Some(b"link") {
        return None;
    }
    copied.bytes[8..12].copy_from_slice(&kept.to_be_bytes());
    // No checksum, as with `index.skipHash`.
    copied.bytes.resize(copied.bytes.len() + id_length, 0);
    Some(copied)
}

/// How much of the last name a name of version 4 does not share: git's variable-length number.
fn prefix_length(index: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *index.get(*at)?;
        *at += 1;
        value = value.checked_shl(7)? | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
        if value > 1 << 32 {
            return None;
        }
    }
}
