//! Reads an index of git, and copies a repository's index for ralph's own use. The copy keeps what git knows about unchanged files (their times and sizes), so
//! that they need not be read, and drops everything that hides changes: flags, extensions, conflicts and submodules.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::objects::Id;
use super::own_index::cached_trees;

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
    /// Trees that git has stored.
    pub(super) trees: HashSet<Id>,
}

/// Times, device, inode, mode, owner and size.
pub(super) const STAT: usize = 40;
pub(super) const MODE: std::ops::Range<usize> = 24..28;
const SUBMODULE: u32 = 0o160_000;
const SPARSE_DIRECTORY: u32 = 0o040_000;
const SKIP_WORKTREE: u16 = 0x4000;
const EXTENDED: u16 = 0x4000;
pub(super) const STAGE: u16 = 0x3000;

/// The copy; `None` when the index is damaged or of a kind that cannot be copied.
pub(super) fn copy(index: &[u8], id_length: usize, skipped: &[PathBuf]) -> Option<Copied> {
    let mut copied = Copied { bytes: Vec::with_capacity(index.len()), ..Copied::default() };
    copied.bytes.extend_from_slice(b"DIRC\0\0\0\x02\0\0\0\0");
    let mut kept = 0_u32;
    let end = for_each(index, id_length, |entry| {
        match entry.mode & 0o170_000 {
            SPARSE_DIRECTORY => return None,
            SUBMODULE => {
                copied.submodules.push(entry.name.to_owned());
                return Some(());
            }
            _ => {}
        }
        if entry.flags & STAGE != 0 {
            return Some(());
        }
        if entry.extended & SKIP_WORKTREE != 0 {
            copied.left_out.push(entry.name.to_owned());
        }
        let path = Path::new(OsStr::from_bytes(entry.name));
        copied.has_skipped |= skipped.iter().any(|skipped| path.starts_with(skipped));
        let written = copied.bytes.len();
        copied.bytes.extend_from_slice(entry.stat_and_id);
        let length = u16::try_from(entry.name.len()).unwrap_or(u16::MAX).min(0x0fff);
        copied.bytes.extend_from_slice(&length.to_be_bytes());
        copied.bytes.extend_from_slice(entry.name);
        let padded = written + ((copied.bytes.len() - written + 8) & !7);
        copied.bytes.resize(padded, 0);
        kept += 1;
        Some(())
    })?;
    copied.trees = cached_trees(index, end, id_length);
    copied.bytes[8..12].copy_from_slice(&kept.to_be_bytes());
    // No checksum, as with `index.skipHash`.
    copied.bytes.resize(copied.bytes.len() + id_length, 0);
    Some(copied)
}

/// Mode and content of these files; `None` when the index cannot be read.
pub(super) fn contents(
    index: &[u8],
    id_length: usize,
    files: &BTreeSet<PathBuf>,
) -> Option<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for_each(index, id_length, |entry| {
        let path = Path::new(OsStr::from_bytes(entry.name));
        if entry.flags & STAGE == 0 && files.contains(path) {
            let id = &entry.stat_and_id[STAT..];
            found.insert(path.to_owned(), [&entry.mode.to_be_bytes(), id].concat());
        }
        Some(())
    })?;
    Some(found)
}

struct Entry<'a> {
    mode: u32,
    stat_and_id: &'a [u8],
    flags: u16,
    extended: u16,
    name: &'a [u8],
}

/// Reads all entries, until `see` gives `None`; says where they end.
fn for_each(index: &[u8], id_length: usize, mut see: impl FnMut(&Entry<'_>) -> Option<()>) -> Option<usize> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u16::from_be_bytes(index.get(at..at + 2)?.try_into().ok()?));
    let version = number(4)?;
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut name) = (12, Vec::new());
    for _ in 0..number(8)? {
        let start = at;
        let mode = u32::from_be_bytes(index.get(start..)?.get(MODE)?.try_into().ok()?);
        at += STAT + id_length;
        let stat_and_id = index.get(start..at)?;
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
        see(&Entry { mode, stat_and_id, flags, extended, name: &name })?;
    }
    // A split index has its entries in another file.
    (index.get(at..at + 4) != Some(b"link")).then_some(at)
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
