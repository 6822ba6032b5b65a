//! The short way to store the files of a work tree: ralph reads and hashes them itself, without a process of git. Where git would do more
//! than that (line ends, attributes, symbolic links, very large files), git does it.

use std::collections::BTreeSet;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::command::GitError;
use super::files;
use super::index::{MODE, STAT};
use super::objects::{Id, Objects, hex};
use super::own_index::{Changes, OwnIndex};
use super::patch::{Changed, Version, patch};
use super::tracked::{Look, Tracked, is_beyond_symlink};

/// More files than this at once, a larger file, or more new trees are stored by git.
const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 1024 * 1024;
const MOST_NEW_TREES: usize = 64;

/// What was stored.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) tree: String,
    /// In the order of git.
    pub(super) changes: Vec<Changed>,
}

impl Tracked {
    pub(super) fn objects(&self) -> Objects {
        Objects { own: self.store.objects(), theirs: self.repository.objects(), id_length: self.repository.id_length() }
    }

    /// Puts files as they are now into the index, and gives the tree of it. `None`: git has to do it.
    pub(super) fn store_directly(&mut self, paths: &[PathBuf]) -> Option<Stored> {
        if !self.stores_plainly || paths.len() > MOST_FILES {
            return None;
        }
        let (objects, index_file) = (self.objects(), self.store.path().join("index"));
        let time = std::fs::metadata(&index_file).and_then(|metadata| metadata.modified()).ok();
        let bytes = match time {
            Some(_) => files::read(&index_file, super::store::MOST_INDEX)?,
            None => Vec::new(),
        };
        let index = OwnIndex::read(bytes, objects.id_length)?;
        let mut changes = Changes::new();
        let mut without_attributes = BTreeSet::new();
        for path in paths {
            let name = path.as_os_str().as_bytes();
            if is_beyond_symlink(&self.repository.top, path)
                || !self.has_no_attributes(path, &index, &mut without_attributes)
                || index.has_below(name)
                || path.ancestors().skip(1).any(|parent| index.find(parent.as_os_str().as_bytes()).is_some())
            {
                return None;
            }
            changes.insert(name.to_owned(), self.entry(path, index.find(name), &objects)?);
        }
        let changed: Vec<Changed> = changes
            .iter()
            .map(|(name, now)| {
                let version = |entry: &[u8]| Some(Version { mode: mode(entry)?, id: entry.get(STAT..)?.to_owned() });
                let (before, now) = (index.find(name).and_then(version), now.as_deref().and_then(version));
                Changed { name: name.clone(), before, now }
            })
            .filter(|changed| changed.before != changed.now)
            .collect();
        let index = if changes.is_empty() { index } else { index.changed(&changes)? };
        self.trees.forget(changed.iter().map(|changed| &changed.name[..]));
        let tree = write_trees(&index, self, &objects);
        // Trees that were not stored must not be taken for stored ones.
        if tree.is_none() {
            self.trees.clear();
        }
        let tree = hex(&tree?);
        if !changes.is_empty() {
            match time {
                // Entries that are newer than the index are read again by git, so that nothing is missed.
                Some(time) => super::store::write_at(&index_file, index.bytes(), time).ok()?,
                None => std::fs::write(&index_file, index.bytes()).ok()?,
            }
        }
        Some(Stored { tree, changes: changed })
    }

    /// What a look found, as a patch. `below` is in front of every name.
    pub(super) async fn patch(&self, look: &Look, below: &str) -> Result<String, GitError> {
        let objects = self.objects();
        let changes = look.changes.as_deref().filter(|changes| !changes.is_empty());
        match changes.and_then(|changes| patch(changes, below, |id| objects.read("blob", id))) {
            Some(text) => Ok(text),
            None => self.store.patch(&look.before.tree, &self.now.tree, below).await,
        }
    }

    /// The entry of a file as it is now; nothing when it is gone. `None`: git has to look.
    #[expect(clippy::option_option, reason = "a file that is gone is an answer")]
    fn entry(&self, path: &Path, before: Option<&[u8]>, objects: &Objects) -> Option<Option<Vec<u8>>> {
        let full = self.repository.top.join(path);
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&full) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(None),
            Err(_) => return None,
        };
        let metadata = file.metadata().ok()?;
        let was_file = before.is_none_or(|before| matches!(mode(before), Some(0o100_644 | 0o100_755)));
        if !metadata.is_file() || metadata.len() > MOST_BYTES || !was_file {
            return None;
        }
        let mut content = Vec::with_capacity(usize::try_from(metadata.len()).ok()? + 1);
        file.take(MOST_BYTES + 1).read_to_end(&mut content).ok()?;
        if content.len() as u64 != metadata.len() {
            return None;
        }
        let id = objects.write("blob", &content).ok()??;
        Some(Some([&stat(&metadata)[..], &id].concat()))
    }

    /// True when no attributes say how a file is stored.
    fn has_no_attributes(&self, path: &Path, index: &OwnIndex, seen: &mut BTreeSet<PathBuf>) -> bool {
        path.ancestors().skip(1).all(|directory| {
            let attributes = directory.join(".gitattributes");
            seen.contains(directory)
                || index.find(attributes.as_os_str().as_bytes()).is_none()
                    && self.repository.top.join(attributes).symlink_metadata().is_err()
                    && seen.insert(directory.to_owned())
        })
    }
}

fn write_trees(index: &OwnIndex, tracked: &mut Tracked, objects: &Objects) -> Option<Id> {
    let Tracked { trees, stored_trees, .. } = tracked;
    let mut new = 0;
    index.trees(trees, &mut |tree| {
        let id = objects.id("tree", tree)?;
        // git knows the empty tree, and the repository has those that its own index names.
        if tree.is_empty() || stored_trees.contains(&id) {
            return Some(id);
        }
        new += 1;
        if new > MOST_NEW_TREES { None } else { objects.write("tree", tree).ok()? }
    })
}

fn mode(entry: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(entry.get(MODE)?.try_into().ok()?))
}

/// What git's index says about a file: times, device, inode, mode, owner and size, cut to 32 bits.
fn stat(metadata: &Metadata) -> [u8; STAT] {
    let mode = if metadata.mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 };
    let numbers = [
        metadata.ctime().cast_unsigned(),
        metadata.ctime_nsec().cast_unsigned(),
        metadata.mtime().cast_unsigned(),
        metadata.mtime_nsec().cast_unsigned(),
        metadata.dev(),
        metadata.ino(),
        mode,
        u64::from(metadata.uid()),
        u64::from(metadata.gid()),
        metadata.len(),
    ];
    let mut bytes = [0; STAT];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes()[4..]);
    }
    bytes
}
