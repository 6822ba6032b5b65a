//! The `.ralph` directory: where runs live. Everything in it is private to its owner.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::writer::private;

/// What ralph itself writes is no business of git; plug-ins that the user keeps here are.
const GITIGNORE: &str = "/runs/\n/lock\n/.gitignore\n";

/// The `.ralph` of one working directory.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
}

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    /// The run's id.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
}

impl RunDirectory {
    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Where the raw bytes are.
    pub fn raw(&self) -> PathBuf {
        self.path.join("raw")
    }
}

impl Store {
    /// Opens or creates the store of a working directory.
    pub fn open(workspace: &Path) -> io::Result<Self> {
        let directory = workspace.join(".ralph");
        directories(&directory.join("runs"))?;
        let ignore = directory.join(".gitignore");
        if !ignore.exists() {
            private().write(true).create(true).truncate(true).open(&ignore)?.write_all(GITIGNORE.as_bytes())?;
        }
        Ok(Self { directory })
    }

    /// The store of a working directory as it is; nothing is created.
    pub fn at(workspace: &Path) -> Self {
        Self { directory: workspace.join(".ralph") }
    }

    /// The directory of a run that was made here.
    pub fn run(&self, id: &str) -> Option<RunDirectory> {
        self.has_run(id).then(|| RunDirectory { id: id.to_owned(), path: self.directory.join("runs").join(id) })
    }

    /// The lock file.
    pub fn lock(&self) -> PathBuf {
        self.directory.join("lock")
    }

    /// True when a run of this id was made here.
    pub fn has_run(&self, id: &str) -> bool {
        !id.is_empty() && !id.contains('/') && self.directory.join("runs").join(id).is_dir()
    }

    /// Creates the directory of a new run. Its id sorts by time and is unique in the store.
    pub fn create_run(&self) -> io::Result<RunDirectory> {
        for _ in 0..100 {
            let id = new_id(Timestamp::now());
            let path = self.directory.join("runs").join(&id);
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    directories(&path.join("raw"))?;
                    return Ok(RunDirectory { id, path });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("no free run id"))
    }
}

fn directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::metadata(path).map(|_| ())
}

/// `20261115-204512-k3f9`: the time in UTC, then four random characters.
fn new_id(now: Timestamp) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnopqrstuvwxyz2345679";
    let mut random = std::hash::RandomState::new().build_hasher().finish();
    let mut id = now.strftime("%Y%m%d-%H%M%S-").to_string();
    for _ in 0..4 {
        id.push(char::from(LETTERS[usize::try_from(random % 32).unwrap_or(0)]));
        random /= 32;
    }
    id
}
