//! Changes ralph's own index without git, and makes the trees of its directories. Pure. Only the plain form that ralph itself writes
//! is understood; anything else is left to git.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::index::{STAGE, STAT};
use super::objects::Id;

/// An index without entries.
const EMPTY: &[u8] = b"DIRC\0\0\0\x02\0\0\0\0";

/// What becomes of an entry: times and content, or none when it is removed.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The trees of the directories, by path; the top is the empty one.
#[derive(Debug, Default)]
pub(super) struct Trees(BTreeMap<Vec<u8>, Id>);

/// An index of version 2 without conflicts.
#[derive(Debug)]
pub(super) struct OwnIndex {
    bytes: Vec<u8>,
    id_length: usize,
    entries: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    name: usize,
    name_end: usize,
    end: usize,
}

impl OwnIndex {
    /// `None` for an index of another form. No bytes are an empty index.
    pub(super) fn read(mut bytes: Vec<u8>, id_length: usize) -> Option<Self> {
        if bytes.is_empty() {
            bytes = [EMPTY, &vec![0; id_length]].concat();
        }
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if bytes.get(..8)? != &EMPTY[..8] {
            return None;
        }
        let count = usize::try_from(number(8)?).ok()?;
        let mut entries = Vec::with_capacity(count.min(bytes.len() / (STAT + id_length)));
        let mut at = EMPTY.len();
        for _ in 0..count {
            let name = at + STAT + id_length + 2;
            let flags = u16::from_be_bytes(bytes.get(name - 2..name)?.try_into().ok()?);
            // Conflicts, and the flags of later versions.
            if flags & (STAGE | 0x4000) != 0 {
                return None;
            }
            let short = usize::from(flags & 0x0fff);
            let name_end = if short < 0x0fff { name + short } else { name + memchr::memchr(0, bytes.get(name..)?)? };
            let end = at + ((name_end - at + 8) & !7);
            if end > bytes.len() {
                return None;
            }
            entries.push(Place { start: at, name, name_end, end });
            at = end;
        }
        // Entries in another file, and directories in the place of their files.
        let split = [b"link", b"sdir"].iter().any(|kind| bytes.get(at..at + 4) == Some(&kind[..]));
        (!split).then_some(Self { bytes, id_length, entries })
    }

    fn name(&self, place: Place) -> &[u8] {
        &self.bytes[place.name..place.name_end]
    }

    fn stat_and_id(&self, place: Place) -> &[u8] {
        &self.bytes[place.start..place.name - 2]
    }

    fn position(&self, name: &[u8]) -> Result<usize, usize> {
        self.entries.binary_search_by(|place| self.name(*place).cmp(name))
    }

    /// Times and content of a file.
    pub(super) fn find(&self, name: &[u8]) -> Option<&[u8]> {
        self.position(name).ok().map(|at| self.stat_and_id(self.entries[at]))
    }

    /// True when there are files in this directory.
    pub(super) fn has_below(&self, directory: &[u8]) -> bool {
        let first = [directory, b"/"].concat();
        let at = self.position(&first).unwrap_or_else(|at| at);
        self.entries.get(at).is_some_and(|place| self.name(*place).starts_with(&first))
    }

    /// The same index with other entries.
    pub(super) fn changed(&self, changes: &Changes) -> Option<Self> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 256 * changes.len());
        bytes.extend_from_slice(EMPTY);
        let mut count = self.entries.len();
        let (mut next, mut same_form) = (0, true);
        let at_entry = |number: usize| self.entries.get(number).map_or_else(|| self.end(), |place| place.start);
        for (name, change) in changes {
            let (found, at) = match self.position(name) {
                Ok(at) => (true, at),
                Err(at) => (false, at),
            };
            bytes.extend_from_slice(&self.bytes[at_entry(next)..at_entry(at)]);
            next = at + usize::from(found);
            count -= usize::from(found);
            same_form &= found && change.is_some();
            if let Some(stat_and_id) = change {
                count += 1;
                let start = bytes.len();
                bytes.extend_from_slice(stat_and_id);
                let length = u16::try_from(name.len()).unwrap_or(u16::MAX).min(0x0fff);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.extend_from_slice(name);
                let padded = start + ((bytes.len() - start + 8) & !7);
                bytes.resize(padded, 0);
            }
        }
        bytes.extend_from_slice(&self.bytes[at_entry(next)..self.end()]);
        bytes[8..12].copy_from_slice(&u32::try_from(count).ok()?.to_be_bytes());
        // What git knows about untracked files still holds when no file came or went.
        if same_form && let Some(untracked) = self.extension(*b"UNTR") {
            bytes.extend_from_slice(untracked);
        }
        // No checksum, as with `index.skipHash`.
        bytes.resize(bytes.len() + self.id_length, 0);
        Self::read(bytes, self.id_length)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the entries end.
    fn end(&self) -> usize {
        self.entries.last().map_or(EMPTY.len(), |place| place.end)
    }

    /// A part behind the entries, with its header.
    fn extension(&self, kind: [u8; 4]) -> Option<&[u8]> {
        extensions(&self.bytes, self.end(), self.id_length).find(|part| part[..4] == kind)
    }

    /// Makes the trees of all directories that are not known, and gives that of the top. `store` stores a tree and gives its id.
    pub(super) fn trees(&self, known: &mut Trees, store: &mut dyn FnMut(&[u8]) -> Option<Id>) -> Option<Id> {
        if let Some(id) = known.0.get(&b""[..]) {
            return Some(id.clone());
        }
        // Directories that are open now: the length of the path with its slash, and the tree so far.
        let mut open: Vec<(usize, Vec<u8>)> = vec![(0, Vec::new())];
        let mut path: Vec<u8> = Vec::new();
        let mut at = 0;
        while let Some(place) = self.entries.get(at).copied() {
            let name = self.name(place);
            while !name.starts_with(&path) {
                close(&mut open, &mut path, known, store)?;
            }
            let begin = path.len();
            if let Some(slash) = memchr::memchr(b'/', &name[begin..]) {
                let directory = &name[..begin + slash];
                if let Some(id) = known.0.get(directory) {
                    let (_, tree) = open.last_mut()?;
                    tree.extend([b"40000 ", &directory[begin..], b"\0", id].concat());
                    let inside = [directory, b"/"].concat();
                    at += self.entries[at..].partition_point(|place| self.name(*place).starts_with(&inside));
                } else {
                    path.extend_from_slice(&name[begin..=begin + slash]);
                    open.push((begin, Vec::new()));
                }
                continue;
            }
            let stat_and_id = self.stat_and_id(place);
            let mode = u32::from_be_bytes(stat_and_id[super::index::MODE].try_into().ok()?);
            let (_, tree) = open.last_mut()?;
            tree.extend(format!("{mode:o} ").bytes());
            tree.extend([&name[begin..], b"\0", &stat_and_id[STAT..]].concat());
            at += 1;
        }
        while open.len() > 1 {
            close(&mut open, &mut path, known, store)?;
        }
        let (_, top) = open.pop()?;
        let id = store(&top)?;
        known.0.insert(Vec::new(), id.clone());
        Some(id)
    }
}

/// Ends the innermost directory.
fn close(
    open: &mut Vec<(usize, Vec<u8>)>,
    path: &mut Vec<u8>,
    known: &mut Trees,
    store: &mut dyn FnMut(&[u8]) -> Option<Id>,
) -> Option<()> {
    let (begin, tree) = open.pop()?;
    let id = store(&tree)?;
    let (_, above) = open.last_mut()?;
    let directory = &path[..path.len() - 1];
    above.extend([b"40000 ", &directory[begin..], b"\0", &id[..]].concat());
    known.0.insert(directory.to_vec(), id);
    path.truncate(begin);
    Some(())
}

impl Trees {
    /// Forgets the trees of the directories above these files.
    pub(super) fn forget<'a>(&mut self, files: impl Iterator<Item = &'a [u8]>) {
        let mut gone: BTreeSet<&[u8]> = BTreeSet::new();
        for file in files {
            gone.insert(b"");
            gone.extend(memchr::memchr_iter(b'/', file).map(|slash| &file[..slash]));
        }
        for directory in gone {
            self.0.remove(directory);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The parts behind the entries of an index, each with its header.
fn extensions(index: &[u8], mut at: usize, id_length: usize) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let header = index.get(at..at + 8)?;
        let length = usize::try_from(u32::from_be_bytes(header[4..].try_into().ok()?)).ok()?;
        let end = at.checked_add(8)?.checked_add(length)?;
        let part = index.get(at..end).filter(|_| end + id_length <= index.len())?;
        at = end;
        Some(part)
    })
}

/// The trees that an index names; `end` is where its entries end. They say what git has stored, nothing more.
pub(super) fn cached_trees(index: &[u8], end: usize, id_length: usize) -> HashSet<Id> {
    let mut found = HashSet::new();
    let Some(part) = extensions(index, end, id_length).find(|part| part.starts_with(b"TREE")) else { return found };
    let mut rest = &part[8..];
    while let Some(name) = memchr::memchr(0, rest) {
        let Some(line) = memchr::memchr(b'\n', &rest[name..]) else { break };
        let (facts, behind) = (&rest[name + 1..name + line], &rest[name + line + 1..]);
        let length = if facts.starts_with(b"-") { 0 } else { id_length };
        let Some(id) = behind.get(..length) else { break };
        if length > 0 {
            found.insert(id.to_vec());
        }
        rest = &behind[length..];
    }
    found
}
