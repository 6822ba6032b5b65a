//! The `.ralph` directory: where runs live. Everything in it is private to its owner.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::disk::{Disk, RealDisk, private};
use super::redact::Redactor;

/// What ralph itself writes is no business of git; plug-ins that the user keeps here are.
const GITIGNORE: &str = "/runs/\n/lock\n/.gitignore\n";

/// The settings with which a run began, as a valid `ralph.yml`; beside the journal.
pub const SETTINGS: &str = "settings.yml";
/// The user's words, when they were given once and are in no file.
pub const PROMPT: &str = "prompt.md";

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

/// Why no run is meant.
#[derive(Debug, thiserror::Error)]
pub enum Unresolved {
    /// There is none yet.
    #[error("there are no runs here")]
    NoRuns,
    /// None is called so.
    #[error("no run has this id")]
    Unknown,
    /// Several begin so.
    #[error("several runs have this id")]
    Many(Vec<String>),
    /// They cannot be listed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl RunDirectory {
    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// What the run came to, as far as it was summed up.
    pub fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// The prompt of an iteration, as it was sent.
    pub fn prompt(&self, iteration: u32) -> PathBuf {
        self.path.join("prompts").join(format!("{iteration}.md"))
    }

    /// Keeps a text beside the journal, without secrets.
    pub fn keep(&self, name: &str, text: &str, redactor: &Redactor) -> io::Result<()> {
        let clean = redactor.text(text);
        RealDisk.replace(&self.path.join(name), clean.as_deref().unwrap_or(text).as_bytes())
    }

    /// What an iteration changed.
    pub fn difference(&self, iteration: u32) -> PathBuf {
        self.path.join("diffs").join(format!("{iteration}.patch"))
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
        RealDisk.directory(&directory.join("runs"))?;
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

    /// The store of a working directory, if there is one. Nothing is created: looking changes nothing.
    pub fn find(workspace: &Path) -> Option<Self> {
        let directory = workspace.join(".ralph");
        directory.join("runs").is_dir().then_some(Self { directory })
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> io::Result<Vec<RunDirectory>> {
        let mut runs = Vec::new();
        for entry in std::fs::read_dir(self.directory.join("runs"))? {
            let entry = entry?;
            let run = RunDirectory { id: entry.file_name().to_string_lossy().into_owned(), path: entry.path() };
            if run.journal().is_file() {
                runs.push(run);
            }
        }
        runs.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(runs)
    }

    /// The run that is meant: by its id, its beginning, or the letters at its end; without any, the newest.
    pub fn resolve(&self, id: Option<&str>) -> Result<RunDirectory, Unresolved> {
        let mut runs = self.runs()?;
        let Some(id) = id else { return runs.pop().ok_or(Unresolved::NoRuns) };
        if let Some(exact) = runs.iter().position(|run| run.id == id) {
            return Ok(runs.swap_remove(exact));
        }
        let short = |run: &RunDirectory| {
            run.id.starts_with(id) || run.id.rsplit('-').next().is_some_and(|letters| letters.starts_with(id))
        };
        runs.retain(short);
        match (runs.pop(), runs.len()) {
            (Some(run), 0) => Ok(run),
            (Some(run), _) => {
                runs.push(run);
                Err(Unresolved::Many(runs.into_iter().map(|run| run.id).collect()))
            }
            (None, _) => Err(Unresolved::Unknown),
        }
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
            match RealDisk.new_directory(&path) {
                Ok(()) => {
                    RealDisk.directory(&path.join("raw"))?;
                    RealDisk.directory(&path.join("prompts"))?;
                    RealDisk.sync_directory(&self.directory.join("runs"))?;
                    return Ok(RunDirectory { id, path });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("no free run id"))
    }
}

/// `20261115-204512-k3f9`: the time in UTC to the millisecond, then two characters by chance.
fn new_id(now: Timestamp) -> String {
    // In the order in which they sort.
    const LETTERS: &[u8; 32] = b"2345679abcdefghijkmnopqrstuvwxyz";
    let random = RandomState::new().hash_one(0);
    // Two letters for the millisecond, so that runs of the same second are in order, and two by chance.
    let milliseconds = u64::try_from(now.subsec_millisecond()).unwrap_or(0);
    let mut id = now.strftime("%Y%m%d-%H%M%S-").to_string();
    for number in [milliseconds / 32, milliseconds, random, random / 32] {
        id.push(char::from(LETTERS[usize::try_from(number % 32).unwrap_or(0)]));
    }
    id
}
