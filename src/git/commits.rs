//! New commits and their files, read from loose objects without a process: what an agent has just committed is there. Anything else
//! (merges, packed objects, a history that was rewritten) is left to git.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::command::is_object_id;
use super::objects::{Id, Objects};
use super::tracked::path_of;

/// As many commits as git is asked for.
pub(super) const MOST_COMMITS: usize = 50;
/// More trees than this are compared by git.
const MOST_TREES: usize = 256;
const DIRECTORY: &[u8] = b"40000";

/// Commits between two states, newest first, each as its short id and subject; and the files that they change.
pub(super) fn commits(objects: &Objects, head: &str, before: Option<&str>) -> Option<(Vec<String>, BTreeSet<PathBuf>)> {
    let short = short_id(&objects.theirs);
    let (mut lines, mut files, mut left) = (Vec::new(), BTreeSet::new(), MOST_TREES);
    let mut next = head.to_owned();
    while Some(next.as_str()) != before {
        if lines.len() == MOST_COMMITS {
            return None;
        }
        let commit = Commit::read(objects, &next)?;
        lines.push(format!("{} {}", next.get(..short)?, commit.subject));
        let parent_tree = match &commit.parent {
            Some(parent) => Some(Commit::read(objects, parent)?.tree),
            None => None,
        };
        compare(objects, parent_tree.as_deref(), Some(&commit.tree), &mut Vec::new(), &mut files, &mut left)?;
        match commit.parent {
            Some(parent) => next = parent,
            None if before.is_none() => break,
            None => return None,
        }
    }
    Some((lines, files))
}

struct Commit {
    tree: Id,
    parent: Option<String>,
    subject: String,
}

impl Commit {
    /// `None` for a merge, and for what is not a loose commit in UTF-8.
    fn read(objects: &Objects, id: &str) -> Option<Self> {
        let text = String::from_utf8(objects.read("commit", &bytes(id)?)?).ok()?;
        let (head, message) = text.split_once("\n\n")?;
        let mut parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
        let (parent, second) = (parents.next().map(str::to_owned), parents.next());
        if second.is_some() || head.lines().any(|line| line.starts_with("encoding ")) {
            return None;
        }
        let lines = message.lines().skip_while(|line| line.trim().is_empty());
        let subject = lines.take_while(|line| !line.trim().is_empty()).map(str::trim_end).collect::<Vec<_>>().join(" ");
        Some(Self { tree: bytes(head.lines().next()?.strip_prefix("tree ")?)?, parent, subject })
    }
}

/// Adds the files that differ between two trees.
fn compare(
    objects: &Objects,
    before: Option<&[u8]>,
    now: Option<&[u8]>,
    place: &mut Vec<u8>,
    files: &mut BTreeSet<PathBuf>,
    left: &mut usize,
) -> Option<()> {
    if before == now {
        return Some(());
    }
    *left = left.checked_sub(1)?;
    let read = |tree: Option<&[u8]>| match tree {
        Some(id) => objects.read("tree", id),
        None => Some(Vec::new()),
    };
    let (before, now) = (read(before)?, read(now)?);
    let (before, now) = (entries(&before, objects.id_length)?, entries(&now, objects.id_length)?);
    let names: BTreeSet<&[u8]> = before.keys().chain(now.keys()).copied().collect();
    for name in names {
        let (old, new) = (before.get(name), now.get(name));
        if old == new {
            continue;
        }
        let length = place.len();
        place.extend_from_slice(name);
        let tree =
            |entry: Option<&(&[u8], &[u8])>| entry.filter(|(mode, _)| *mode == DIRECTORY).map(|(_, id)| id.to_vec());
        let is_file = |entry: Option<&(&[u8], &[u8])>| entry.is_some_and(|(mode, _)| *mode != DIRECTORY);
        if is_file(old) || is_file(new) {
            files.insert(path_of(place));
        }
        let (old, new) = (tree(old), tree(new));
        if old.is_some() || new.is_some() {
            place.push(b'/');
            compare(objects, old.as_deref(), new.as_deref(), place, files, left)?;
        }
        place.truncate(length);
    }
    Some(())
}

/// Mode and id by name.
type Entries<'a> = BTreeMap<&'a [u8], (&'a [u8], &'a [u8])>;

fn entries(mut tree: &[u8], id_length: usize) -> Option<Entries<'_>> {
    let mut found = BTreeMap::new();
    while !tree.is_empty() {
        let blank = memchr::memchr(b' ', tree)?;
        let end = blank + memchr::memchr(0, &tree[blank..])?;
        let id = tree.get(end + 1..end + 1 + id_length)?;
        found.insert(&tree[blank + 1..end], (&tree[..blank], id));
        tree = &tree[end + 1 + id_length..];
    }
    Some(found)
}

fn bytes(id: &str) -> Option<Id> {
    let digits = Some(id).filter(|id| is_object_id(id))?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// How many digits git shows of an id: more in a repository with many packed objects.
fn short_id(objects: &Path) -> usize {
    let packs = std::fs::read_dir(objects.join("pack")).into_iter().flatten().flatten().map(|entry| entry.path());
    let indices = packs.filter(|path| path.extension().is_some_and(|extension| extension == "idx"));
    let count: u64 = indices.filter_map(|path| objects_in_pack(&path)).sum();
    let bits = usize::try_from(u64::BITS - count.leading_zeros()).unwrap_or(0);
    bits.div_ceil(2).max(7)
}

/// The last number of the table at the beginning of a pack's index.
fn objects_in_pack(index: &Path) -> Option<u64> {
    use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(index).ok()?;
    let mut number = [0; 4];
    file.read_exact_at(&mut number, 8 + 255 * 4).ok()?;
    Some(u64::from(u32::from_be_bytes(number)))
}
