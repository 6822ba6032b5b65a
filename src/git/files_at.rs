//! Changes the files of a work tree from one tree to another, and nothing else: files that are the same in both are not looked at. It
//! refuses before anything is changed when a file is neither as in the one nor as in the other, so that it can be repeated after it
//! was interrupted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::command::GitError;
use super::writer::Writer;

/// A file in a tree: mode and object.
pub(super) type Entry = (String, String);

/// One path that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) path: PathBuf,
    pub(super) from: Option<Entry>,
    pub(super) to: Option<Entry>,
}

/// Why files were not changed. Nothing was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("{}", in_the_way(.0))]
    InTheWay(Vec<PathBuf>),
    #[error("`{}` is converted by the filter `{filter}`, and ralph runs no filters", path.display())]
    Filtered { path: PathBuf, filter: String },
    #[error("{0}")]
    Git(#[from] GitError),
}

fn in_the_way(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().take(5).map(|path| format!("`{}`", path.display())).collect();
    let more = if paths.len() > 5 { format!(" and {} more", paths.len() - 5) } else { String::new() };
    format!("uncommitted changes in {}{more}", names.join(", "))
}

/// Whether a file that was half written by an interrupted try counts as ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Try {
    First,
    Again,
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

impl Writer {
    /// The paths that differ.
    pub(super) async fn changed(&self, from: &str, to: &str) -> Result<Vec<Changed>, GitError> {
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", from, to];
        let printed = self.git(&args, Vec::new()).await?;
        if printed.cut {
            return Err(GitError::Failed("too many files differ".to_owned()));
        }
        let mut parts = printed.bytes.split(|&byte| byte == 0);
        let mut changed = Vec::new();
        while let (Some(facts), Some(path)) = (parts.next().filter(|facts| !facts.is_empty()), parts.next()) {
            let facts = String::from_utf8_lossy(facts);
            let facts: Vec<&str> = facts.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, new, _] = facts[..] else { continue };
            let entry = |mode: &str, id: &str| (mode != "000000").then(|| (mode.to_owned(), id.to_owned()));
            changed.push(Changed { path: path_of(path), from: entry(old_mode, old), to: entry(new_mode, new) });
        }
        Ok(changed)
    }

    /// The names of the files that differ.
    pub(crate) async fn paths_between(&self, from: &str, to: &str) -> Result<Vec<PathBuf>, GitError> {
        Ok(self.changed(from, to).await?.into_iter().map(|changed| changed.path).collect())
    }

    /// What an index holds of some paths; `index` may be any.
    pub(super) async fn entries(&self, index: &Path) -> Result<BTreeMap<PathBuf, Entry>, GitError> {
        let printed = self.git_on(index, &self.repository.top, &["ls-files", "-s", "-z"], Vec::new()).await?;
        let mut found = BTreeMap::new();
        for line in printed.bytes.split(|&byte| byte == 0) {
            let Some(tab) = memchr::memchr(b'\t', line) else { continue };
            let facts = String::from_utf8_lossy(&line[..tab]).into_owned();
            let mut facts = facts.split(' ');
            let (Some(mode), Some(id)) = (facts.next(), facts.next()) else { continue };
            found.insert(path_of(&line[tab + 1..]), (mode.to_owned(), id.to_owned()));
        }
        Ok(found)
    }

    /// Puts entries into an index; `None` removes the path.
    pub(super) async fn put<'a>(
        &self,
        index: &Path,
        entries: impl Iterator<Item = (&'a PathBuf, Option<&'a Entry>)>,
    ) -> Result<(), GitError> {
        let zeros = "0".repeat(2 * self.repository.id_length());
        let mut lines = Vec::new();
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for (path, entry) in entries {
            let line = match entry {
                Some((mode, id)) => format!("{mode} {id}\t"),
                None => format!("0 {zeros}\t"),
            };
            let list = if entry.is_some() { &mut there } else { &mut gone };
            list.extend([line.as_bytes(), path.as_os_str().as_bytes(), b"\0"].concat());
        }
        // A file must go before a directory of its name comes.
        lines.append(&mut gone);
        lines.append(&mut there);
        if lines.is_empty() {
            return Ok(());
        }
        self.git_on(index, &self.repository.top, &["update-index", "-z", "--index-info"], lines).await.map(drop)
    }

    /// The first of these paths that a filter converts.
    pub(super) async fn filter_of(
        &self,
        paths: &[&PathBuf],
        tree: &str,
    ) -> Result<Option<(PathBuf, String)>, GitError> {
        if paths.is_empty() {
            return Ok(None);
        }
        let list: Vec<u8> = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        // From an index, because versions before 2.40 cannot read attributes from a tree.
        let (index, top) = (self.scratch("attributes"), self.repository.top.as_path());
        self.git_on(&index, top, &["read-tree", "--end-of-options", tree], Vec::new()).await?;
        let words = ["check-attr", "--cached", "-z", "--stdin", "filter"];
        let printed = self.git_on(&index, top, &words, list).await?;
        let mut parts = printed.bytes.split(|&byte| byte == 0);
        while let (Some(path), Some(_), Some(value)) = (parts.next(), parts.next(), parts.next()) {
            if ![&b"unspecified"[..], b"unset"].contains(&value) {
                return Ok(Some((path_of(path), String::from_utf8_lossy(value).into_owned())));
            }
        }
        Ok(None)
    }

    /// Changes the files of the work tree from one tree to the other. The user's index is not touched.
    pub(crate) async fn change_files(&self, from: &str, to: &str, tried: Try) -> Result<usize, Refused> {
        let changed = self.changed(from, to).await?;
        if changed.is_empty() {
            return Ok(0);
        }
        let paths: Vec<&PathBuf> = changed.iter().map(|changed| &changed.path).collect();
        for tree in [from, to] {
            if let Some((path, filter)) = self.filter_of(&paths, tree).await? {
                return Err(Refused::Filtered { path, filter });
            }
        }
        if let Some(submodule) = changed
            .iter()
            .find(|changed| [&changed.from, &changed.to].into_iter().flatten().any(|(mode, _)| mode == "160000"))
        {
            let path = submodule.path.display();
            return Err(GitError::Failed(format!("`{path}` is a submodule, which ralph does not change")).into());
        }
        // How the paths are on disk, and nothing else.
        let now = self.scratch("now");
        let top = self.repository.top.clone();
        let _ = std::fs::remove_file(&now);
        self.git_on(&now, &top, &["read-tree", "--empty"], Vec::new()).await?;
        let is_there = |path: &Path| {
            let beyond = path.ancestors().skip(1).any(|parent| {
                !parent.as_os_str().is_empty() && top.join(parent).symlink_metadata().is_ok_and(|it| !it.is_dir())
            });
            !beyond && top.join(path).symlink_metadata().is_ok_and(|found| !found.is_dir())
        };
        let there: Vec<u8> = paths
            .iter()
            .filter(|path| is_there(path))
            .flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat())
            .collect();
        if !there.is_empty() {
            self.git_on(&now, &top, &["update-index", "--add", "-z", "--stdin"], there).await?;
        }
        let disk = self.entries(&now).await?;
        let mut in_the_way = Vec::new();
        for Changed { path, from, to } in &changed {
            let found = disk.get(path);
            if found != from.as_ref() && found != to.as_ref() && !self.is_half_written(path, to.as_ref(), tried).await?
            {
                in_the_way.push(path.clone());
            }
        }
        if !in_the_way.is_empty() {
            return Err(Refused::InTheWay(in_the_way));
        }
        let before = self.tree_of_index(&now).await?;
        let wanted = self.scratch("wanted");
        let _ = std::fs::remove_file(&wanted);
        self.git_on(&wanted, &top, &["read-tree", "--empty"], Vec::new()).await?;
        self.put(&wanted, changed.iter().map(|changed| (&changed.path, changed.to.as_ref()))).await?;
        let after = self.tree_of_index(&wanted).await?;
        self.git_on(&now, &top, &["read-tree", "-m", "-u", &before, &after], Vec::new()).await?;
        Ok(changed.len())
    }

    pub(super) async fn tree_of_index(&self, index: &Path) -> Result<String, GitError> {
        let printed = self.git_on(index, &self.repository.top, &["write-tree", "--missing-ok"], Vec::new()).await?;
        Ok(String::from_utf8_lossy(&printed.bytes).trim().to_owned())
    }

    /// A try that was killed may have left the beginning of a file.
    async fn is_half_written(&self, path: &Path, to: Option<&Entry>, tried: Try) -> Result<bool, GitError> {
        let Some((_, id)) = to.filter(|_| tried == Try::Again) else { return Ok(false) };
        let Some(found) = super::files::read(&self.repository.top.join(path), 16 * 1024 * 1024) else {
            return Ok(false);
        };
        let wanted = self.git(&["cat-file", "blob", id], Vec::new()).await?;
        Ok(wanted.bytes.starts_with(&found))
    }
}
