//! Where a repository is and what its HEAD names, found by reading files: no process, and nothing of its configuration but a few
//! plain words about the format of its files.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::command::{self, GitError, is_object_id};
use super::files;

/// Settings that say how files are stored. They start nothing, and only these values are taken over.
const FORMAT: [(&str, &[&str]); 6] = [
    ("core.autocrlf", &["true", "false", "input"]),
    ("core.eol", &["lf", "crlf", "native"]),
    ("core.filemode", &["true", "false"]),
    ("core.symlinks", &["true", "false"]),
    ("core.ignorecase", &["true", "false"]),
    ("core.precomposeunicode", &["true", "false"]),
];
const MOST_PACKED_REFS: u64 = 64 * 1024 * 1024;

/// A repository with a work tree.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    /// The directory that holds `.git`. `core.worktree` is not read: it could name any directory.
    pub(crate) top: PathBuf,
    /// The git directory of this work tree.
    pub(super) directory: PathBuf,
    /// The git directory that all work trees share.
    pub(super) common: PathBuf,
    config: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Head {
    pub(crate) commit: Option<String>,
    pub(crate) branch: Option<String>,
}

impl Repository {
    /// The repository that a directory belongs to. The search ends at a directory of someone else, as git's does.
    pub(crate) fn around(directory: &Path) -> Option<Self> {
        let owner = |path: &Path| std::fs::symlink_metadata(path).map(|metadata| metadata.uid()).ok();
        let (here, me) = (owner(directory)?, rustix::process::geteuid().as_raw());
        let ours = |path: &&Path| owner(path).is_some_and(|owner| owner == here || owner == me);
        directory.ancestors().take_while(ours).find_map(Self::at)
    }

    /// The repository whose work tree begins at this directory.
    pub(crate) fn at(top: &Path) -> Option<Self> {
        let link = top.join(".git");
        let directory = if std::fs::symlink_metadata(&link).ok()?.is_file() {
            top.join(files::text(&link)?.strip_prefix("gitdir:")?.trim_start())
        } else {
            link
        };
        let common = files::text(&directory.join("commondir"))
            .map_or_else(|| directory.clone(), |common| directory.join(common));
        if !directory.join("HEAD").exists() || !common.join("objects").is_dir() {
            return None;
        }
        let config = files::read(&common.join("config"), 1024 * 1024).unwrap_or_default();
        let config = settings(&String::from_utf8_lossy(&config)).collect();
        Some(Self { top: top.to_owned(), directory, common, config })
    }

    /// The git directories that are not below `inside`, if they belong to this work tree. A `.git` file can name any
    /// directory, so one is believed only when it says the same of the work tree.
    pub(crate) fn directories_outside(&self, inside: &Path) -> Result<Vec<PathBuf>, PathBuf> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (directory, common, link) = (real(&self.directory), real(&self.common), self.top.join(".git"));
        let outside: Vec<PathBuf> =
            [directory.clone(), common.clone()].into_iter().filter(|path| !path.starts_with(real(inside))).collect();
        if outside.is_empty() || link.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return Ok(outside);
        }
        let back = files::text(&directory.join("gitdir")).map(|text| directory.join(text));
        let own_tree = files::read(&directory.join("config"), 1024 * 1024).unwrap_or_default();
        let own_tree = settings(&String::from_utf8_lossy(&own_tree)).find(|(name, _)| name == "core.worktree");
        let linked = back.is_some_and(|back| real(&back) == real(&link))
            || own_tree.is_some_and(|(_, tree)| real(&directory.join(tree)) == real(&self.top));
        let below = directory == common || directory.starts_with(common.join("worktrees"));
        if linked && below { Ok(outside) } else { Err(directory) }
    }

    /// What git runs or follows for whoever works in this repository: hooks, configuration, and the links between its
    /// directories.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let (own, common) = (&self.directory, &self.common);
        let mut found = vec![common.join("hooks"), common.join("config")];
        found.extend(["commondir", "gitdir", "config.worktree"].map(|name| own.join(name)));
        let link = self.top.join(".git");
        if link.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            found.push(link);
        }
        found
    }

    /// Fails where git would wait forever: a pipe or a device in the place of a file that git reads.
    pub(super) fn check(&self) -> Result<(), GitError> {
        let read = [".gitignore", ".gitattributes", ".gitmodules"].map(|name| self.top.join(name));
        let read = read.into_iter().chain([self.common.join("objects/info/alternates")]);
        for path in read {
            if std::fs::metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
                return Err(GitError::Failed(format!("`{}` is not an ordinary file", path.display())));
            }
        }
        Ok(())
    }

    /// Reads HEAD. Refs that are not kept in files are asked for.
    pub(crate) async fn head(&self) -> Head {
        if self.config.get("extensions.refstorage").is_some_and(|storage| storage != "files") {
            return self.asked_head().await;
        }
        let head = files::text(&self.directory.join("HEAD")).unwrap_or_default();
        let Some(name) = head.strip_prefix("ref:").map(str::trim) else {
            return Head { commit: Some(head).filter(|head| is_object_id(head)), branch: None };
        };
        let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
        Head { commit: self.resolve(name, 5), branch }
    }

    pub(super) fn resolve(&self, name: &str, depth: u8) -> Option<String> {
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if depth == 0 || !plain || !name.starts_with("refs/") {
            return None;
        }
        let found = [&self.directory, &self.common].iter().find_map(|place| files::text(&place.join(name)));
        match found {
            Some(text) if is_object_id(&text) => Some(text),
            Some(text) => self.resolve(text.strip_prefix("ref:")?.trim(), depth - 1),
            None => {
                let packed = files::read(&self.common.join("packed-refs"), MOST_PACKED_REFS)?;
                let ending = format!(" {name}");
                let packed = String::from_utf8_lossy(&packed);
                let commit = packed.lines().find_map(|line| line.strip_suffix(ending.as_str()))?;
                is_object_id(commit).then(|| commit.to_owned())
            }
        }
    }

    /// HEAD of a repository with reftables.
    async fn asked_head(&self) -> Head {
        let ask = async |args: &[&str]| {
            let printed = command::run(&self.directory, &self.top, args, Vec::new()).await.ok()?;
            String::from_utf8(printed.bytes).ok().map(|text| text.trim().to_owned())
        };
        let commit = ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD"]).await;
        let branch = ask(&["symbolic-ref", "--quiet", "HEAD"]).await;
        Head {
            commit: commit.filter(|commit| is_object_id(commit)),
            branch: branch.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)),
        }
    }

    /// Name and address for commits of ralph's: the environment's, the repository's or the user's, as in git.
    pub(super) fn identity(&self) -> (String, String) {
        let of_user = user_settings();
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let find = |variables: [&str; 2], key: &str| {
            let given = variables.into_iter().find_map(variable);
            given.or_else(|| self.config.get(key).or_else(|| of_user.get(key)).cloned()).filter(|text| !text.is_empty())
        };
        let name = find(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"], "user.name");
        let email = find(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"], "user.email");
        (name.unwrap_or_else(|| "ralph".to_owned()), email.unwrap_or_else(|| "ralph@localhost".to_owned()))
    }

    /// The address of a remote, as the repository's configuration says.
    pub(crate) fn remote(&self, name: &str) -> Option<String> {
        self.config.get(&format!("remote.{name}.url")).cloned()
    }

    /// Why ralph makes no branches and work trees here.
    pub(super) fn unsupported(&self) -> Option<&'static str> {
        let storage = self.config.get("extensions.refstorage").is_some_and(|storage| storage != "files");
        storage.then_some("it keeps its refs in reftables, which ralph cannot write")
    }

    /// The commit of a branch.
    pub(crate) fn branch(&self, name: &str) -> Option<String> {
        self.resolve(&format!("refs/heads/{name}"), 5)
    }

    /// The names of refs below a place such as `refs/ralph/undo/RUN`.
    pub(super) fn refs_below(&self, place: &str) -> Vec<String> {
        let mut names = Vec::new();
        let mut waiting = vec![place.to_owned()];
        while let Some(name) = waiting.pop() {
            for entry in std::fs::read_dir(self.common.join(&name)).into_iter().flatten().flatten() {
                let name = format!("{name}/{}", entry.file_name().to_string_lossy());
                if entry.path().is_dir() { waiting.push(name) } else { names.push(name) }
            }
        }
        let packed = files::read(&self.common.join("packed-refs"), MOST_PACKED_REFS).unwrap_or_default();
        let packed = String::from_utf8_lossy(&packed).into_owned();
        let below = format!("{place}/");
        names.extend(
            packed
                .lines()
                .filter_map(|line| Some(line.split_once(' ')?.1.to_owned()))
                .filter(|name| name.starts_with(&below)),
        );
        names.sort();
        names.dedup();
        names
    }

    /// The main work tree and all others, with the branch that each has checked out.
    pub(crate) fn checkouts(&self) -> Vec<Self> {
        let linked = std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        let tops = linked.filter_map(|entry| {
            let link = files::text(&entry.path().join("gitdir"))?;
            Path::new(&link).parent().map(Path::to_owned)
        });
        let main = self.common.parent().filter(|_| self.common.ends_with(".git")).map(Path::to_owned);
        main.into_iter().chain(tops).filter_map(|top| Self::at(&top)).collect()
    }

    pub(super) fn objects(&self) -> PathBuf {
        std::path::absolute(self.common.join("objects")).unwrap_or_else(|_| self.common.join("objects"))
    }

    /// The length of an object id in bytes.
    pub(super) fn id_length(&self) -> usize {
        if self.config.get("extensions.objectformat").is_some_and(|format| format == "sha256") { 32 } else { 20 }
    }

    /// Lines of configuration for a git directory that stores files as this one does.
    pub(super) fn format_settings(&self) -> String {
        let mut text = "[core]\n\tbare = false\n".to_owned();
        if self.id_length() == 32 {
            text += "\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n[core]\n";
        } else {
            text += "\trepositoryformatversion = 0\n";
        }
        let of_user = user_settings();
        for (name, values) in FORMAT {
            let value = self.config.get(name).or_else(|| of_user.get(name));
            if let Some(value) = value.filter(|value| values.contains(&value.as_str())) {
                text.extend(["\t", name.trim_start_matches("core."), " = ", value, "\n"]);
            }
        }
        text
    }

    /// True when a git directory without configuration stores files as this one does.
    pub(super) fn has_usual_format(&self) -> bool {
        let eol = "core.eol";
        let has_ends = self.config.contains_key(eol) || user_settings().contains_key(eol);
        self.stores_plainly() && self.id_length() == 20 && !has_ends
    }

    /// True when git stores regular files here byte for byte, unless attributes say otherwise.
    pub(super) fn stores_plainly(&self) -> bool {
        let of_user = user_settings();
        let usual = [("autocrlf", "false"), ("filemode", "true"), ("symlinks", "true"), ("ignorecase", "false")];
        usual.into_iter().chain([("precomposeunicode", "false")]).all(|(name, usual)| {
            let name = format!("core.{name}");
            self.config.get(&name).or_else(|| of_user.get(&name)).is_none_or(|value| value == usual)
        })
    }

    /// Hides a file that ralph writes, where only this clone knows it.
    pub(crate) fn exclude(&self, file: &Path) -> std::io::Result<()> {
        let Ok(path) = file.strip_prefix(&self.top) else { return Ok(()) };
        let exclude = self.common.join("info/exclude");
        let (before, line) = (files::read(&exclude, 1024 * 1024).unwrap_or_default(), rule(path));
        if memchr::memmem::find(&before, &line).is_some() {
            return Ok(());
        }
        std::fs::create_dir_all(self.common.join("info"))?;
        let options =
            std::fs::OpenOptions::new().append(true).create(true).custom_flags(libc::O_NONBLOCK).open(exclude);
        options?.write_all(&[b"# ralph's copy of events\n", &line[..]].concat())
    }

    /// What the user does not want to see, as it is written now: rules that an agent adds later in `.git/info/exclude` hide nothing.
    pub(super) fn exclude_rules(&self) -> Vec<u8> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let own = user_settings().remove("core.excludesfile");
        let global = match own.as_deref().map(|path| (path, path.strip_prefix("~/"))) {
            Some((_, Some(below))) => home.map(|home| home.join(below)),
            Some((path, None)) => Some(PathBuf::from(path)),
            None => user_config_directory().map(|directory| directory.join("ignore")),
        };
        let exclude = self.common.join("info/exclude");
        let rules = [global, Some(exclude)].into_iter().flatten().filter_map(|path| files::read(&path, 1024 * 1024));
        rules
            .flat_map(|mut rules| {
                rules.push(b'\n');
                rules
            })
            .collect()
    }
}

fn user_config_directory() -> Option<PathBuf> {
    let directory = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = directory.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(directory.join("git"))
}

/// The user's own configuration of git.
fn user_settings() -> BTreeMap<String, String> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".gitconfig"));
    let places = [user_config_directory().map(|directory| directory.join("config")), home];
    let texts = places.into_iter().flatten().filter_map(|path| files::read(&path, 1024 * 1024));
    texts.flat_map(|text| settings(&String::from_utf8_lossy(&text)).collect::<Vec<_>>()).collect()
}

/// Plain settings of `[core]`, `[extensions]`, `[user]` and `[remote "NAME"]`; the last one wins, as in git.
fn settings(text: &str) -> impl Iterator<Item = (String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            section = rest.split(']').next().unwrap_or_default().trim().replace(" \"", ".").replace('"', "");
            // The name of a remote keeps its letters.
            section = match section.split_once('.') {
                Some((kind, name)) => format!("{}.{name}", kind.to_lowercase()),
                None => section.to_lowercase(),
            };
        } else if let Some((name, value)) = line.split_once('=')
            && (["core", "extensions", "user"].contains(&section.as_str()) || section.starts_with("remote."))
        {
            let value = value.split(['#', ';']).next().unwrap_or_default().trim().trim_matches('"');
            found.push((format!("{section}.{}", name.trim().to_lowercase()), value.to_owned()));
        }
    }
    found.into_iter()
}

/// A line of `info/exclude` that names exactly this path.
pub(super) fn rule(path: &Path) -> Vec<u8> {
    let mut line = vec![b'/'];
    for &byte in path.as_os_str().as_bytes() {
        if b"\\*?[]!# ".contains(&byte) {
            line.push(b'\\');
        }
        line.push(byte);
    }
    line.push(b'\n');
    // A rule is one line.
    if line[..line.len() - 1].contains(&b'\n') { Vec::new() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_settings_are_read_and_others_are_not() {
        let text =
            "[core]\n\tautocrlf = input ; yes\n[filter \"x\"]\n\tclean = evil\n[Extensions]\nobjectFormat=\"sha256\"\n";
        let found: Vec<_> = settings(text).collect();
        let expected = [("core.autocrlf", "input"), ("extensions.objectformat", "sha256")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
