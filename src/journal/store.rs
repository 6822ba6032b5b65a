//! Where runs live: a directory for each project in the user's state directory, outside every workspace, so that an agent
//! that works in the workspace does not touch the records about it. Everything is private to its owner.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::disk::{Disk, RealDisk, private};
use crate::redact::Redactor;

/// Which working directory a project is.
const PROJECT: &str = "project.json";

/// The settings and the prompt with which a run began, beside the journal.
const PLAN: &str = "plan.json";
/// The user's goal, beside the journal.
pub(crate) const GOAL: &str = "goal";
/// The diff of a whole run, from its start to its end.
pub(crate) const WHOLE_DIFF: &str = "run";
/// An id may be shortened to this many characters.
const SHORTEST_ID: usize = 4;

/// ralph's state directory: all projects of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    directory: PathBuf,
}

/// The runs of one project, that is, of one working directory.
#[derive(Clone, Debug)]
pub struct Store {
    directory: PathBuf,
    workspace: PathBuf,
    /// The checkout whose worktree the working directory is in.
    main: Option<PathBuf>,
}

/// What a project's own file says, so that its history is known after the project was moved or deleted.
#[derive(Debug, Serialize, Deserialize)]
struct Project {
    workspace: PathBuf,
    /// The checkout whose worktree it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    main: Option<PathBuf>,
}

impl State {
    /// `RALPH_STATE_DIR`, or `ralph` in `$XDG_STATE_HOME`, or in `~/.local/state`. `None` when no variable names a place.
    pub(crate) fn of_user() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
        let own = variable("RALPH_STATE_DIR").and_then(|path| std::path::absolute(path).ok());
        let directory = own
            .or_else(|| absolute("XDG_STATE_HOME").map(|path| path.join("ralph")))
            .or_else(|| absolute("HOME").map(|path| path.join(".local/state/ralph")))?;
        Some(Self { directory })
    }

    /// The state directory at a place.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// The store of a working directory. Nothing is created.
    pub fn store(&self, workspace: &Path) -> Store {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let hash = Sha256::digest(workspace.as_os_str().as_bytes());
        let hash = hash.iter().take(5).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let name = workspace.file_name().unwrap_or(OsStr::new("root")).to_string_lossy();
        let usual = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        let name: String = name.chars().map(|letter| if usual(letter) { letter } else { '_' }).take(40).collect();
        Store { directory: self.projects().join(format!("{name}-{hash}")), workspace, main: None }
    }

    /// The stores of all projects that have runs.
    pub(crate) fn stores(&self) -> io::Result<Vec<Store>> {
        let mut stores = Vec::new();
        let listing = match std::fs::read_dir(self.projects()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(stores),
            listing => listing?,
        };
        for entry in listing {
            let directory = entry?.path();
            let Ok(text) = std::fs::read(directory.join(PROJECT)) else { continue };
            if let Ok(Project { workspace, main }) = serde_json::from_slice(&text) {
                stores.push(Store { directory, workspace, main });
            }
        }
        stores.sort_unstable_by(|one, other| one.directory.cmp(&other.directory));
        Ok(stores)
    }

    fn projects(&self) -> PathBuf {
        self.directory.join("projects")
    }
}

/// How much of a prompt is read for its first words.
const BEGINNING: u64 = 400;

/// The directory of one run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    /// The run's id.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error("no runs here")]
    NoRuns,
    #[error("no run has this id")]
    Unknown,
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
    pub(crate) fn summary(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// What a resumed run starts from.
    pub(crate) fn plan(&self) -> PathBuf {
        self.path.join(PLAN)
    }

    /// The prompt of an iteration, as it was sent.
    pub(crate) fn prompt(&self, iteration: u32) -> PathBuf {
        self.path.join("prompts").join(format!("{iteration}.md"))
    }

    /// What the run is for: the user's goal, else the first line of its first prompt that says something; empty when there is none yet.
    pub(crate) fn goal(&self) -> String {
        if let Some(goal) = self.kept_goal() {
            return goal;
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(self.prompt(1)).and_then(|file| file.take(BEGINNING).read_to_end(&mut bytes));
        if read.is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        first.trim_start_matches('#').trim().to_owned()
    }

    /// The user's goal, where the prompt is that of a mode around it.
    pub(crate) fn kept_goal(&self) -> Option<String> {
        let mut text = String::new();
        std::fs::File::open(self.path.join(GOAL)).ok()?.take(BEGINNING).read_to_string(&mut text).ok()?;
        Some(text).filter(|text| !text.is_empty())
    }

    /// Keeps a text beside the journal, without secrets.
    pub(crate) fn keep(&self, name: &str, text: &str, redactor: &Redactor) -> io::Result<()> {
        let clean = redactor.text(text);
        RealDisk.replace(&self.path.join(name), clean.as_deref().unwrap_or(text).as_bytes())
    }

    /// A diff: its name is the number of an iteration, or [`WHOLE_DIFF`].
    pub(crate) fn difference(&self, name: &str) -> PathBuf {
        self.path.join("diffs").join(format!("{name}.patch"))
    }

    /// Where the raw bytes are.
    pub fn raw(&self) -> PathBuf {
        self.path.join("raw")
    }

    /// Where those of judges are.
    pub(crate) fn judge_raw(&self) -> PathBuf {
        self.raw().join("judge")
    }
}

impl Store {
    /// The same, in a worktree of a checkout.
    #[must_use]
    pub(crate) fn of(mut self, main: &Path) -> Self {
        self.main = Some(main.to_owned());
        self
    }

    /// True for a worktree that was made in this directory, or below it.
    pub(crate) fn is_worktree_of(&self, directory: &Path) -> bool {
        self.main.as_deref().is_some_and(|main| directory.starts_with(main))
    }

    /// Creates what is missing of it.
    pub fn create(&self) -> io::Result<()> {
        RealDisk.directory(&self.runs_directory())?;
        let project = self.directory.join(PROJECT);
        if !project.exists() {
            RealDisk.replace(
                &project,
                &serde_json::to_vec(&Project { workspace: self.workspace.clone(), main: self.main.clone() })?,
            )?;
        }
        // Only where the user keeps the state inside of a repository does git see it at all.
        if let Some(state) = self.directory.ancestors().nth(2)
            && state.starts_with(&self.workspace)
            && !state.join(".gitignore").exists()
        {
            private().write(true).create_new(true).open(state.join(".gitignore"))?.write_all(b"*\n")?;
        }
        Ok(())
    }

    /// The working directory.
    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// True when the state is kept inside of the working directory, where the agent can write.
    pub(crate) fn is_inside_workspace(&self) -> bool {
        self.directory.starts_with(&self.workspace)
    }

    /// True when there is any run.
    pub(crate) fn exists(&self) -> bool {
        self.runs_directory().is_dir()
    }

    fn runs_directory(&self) -> PathBuf {
        self.directory.join("runs")
    }

    /// All runs, oldest first.
    pub(crate) fn runs(&self) -> io::Result<Vec<RunDirectory>> {
        let mut runs = Vec::new();
        let entries = match std::fs::read_dir(self.runs_directory()) {
            // No run of its own yet: all of them may be in worktrees.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(runs),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let run = RunDirectory { id: entry.file_name().to_string_lossy().into_owned(), path: entry.path() };
            if is_id(&run.id) && run.journal().is_file() {
                runs.push(run);
            }
        }
        runs.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(runs)
    }

    /// The run that is meant: by its id, its beginning, or the letters at its end; without any, the newest.
    pub(crate) fn resolve(&self, id: Option<&str>) -> Result<RunDirectory, Unresolved> {
        let mut runs = self.runs()?;
        let Some(id) = id else { return runs.pop().ok_or(Unresolved::NoRuns) };
        if let Some(exact) = runs.iter().position(|run| run.id == id) {
            return Ok(runs.swap_remove(exact));
        }
        if id.len() < SHORTEST_ID {
            return Err(Unresolved::Unknown);
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

    /// Who runs here, for the message to whoever comes second. The lock itself is on the working directory.
    pub(crate) fn holder(&self) -> PathBuf {
        self.directory.join("holder.json")
    }

    /// True when a run of this id was made here.
    pub(crate) fn has_run(&self, id: &str) -> bool {
        is_id(id) && self.runs_directory().join(id).is_dir()
    }

    /// Creates the directory of a new run. Its id sorts by time and is unique in the store.
    pub(crate) fn create_run(&self) -> io::Result<RunDirectory> {
        for _ in 0..100 {
            match self.create_run_with(&new_id(Timestamp::now())) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
        Err(io::Error::other("no free run id"))
    }

    /// The directory of a run that began elsewhere.
    pub(crate) fn create_run_with(&self, id: &str) -> io::Result<RunDirectory> {
        if !is_id(id) {
            return Err(io::Error::other("this cannot be the id of a run"));
        }
        let path = self.runs_directory().join(id);
        RealDisk.new_directory(&path)?;
        RealDisk.directory(&path.join("raw"))?;
        RealDisk.directory(&path.join("prompts"))?;
        RealDisk.sync_directory(&self.runs_directory())?;
        Ok(RunDirectory { id: id.to_owned(), path })
    }
}

/// True for a text that can be the id of a run. Ids are printed into shells and used as file names.
pub(crate) fn is_id(text: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(usual)
}

/// `20261115-204512-k3f9`: the time in UTC to the millisecond, then two characters by chance.
pub(crate) fn new_id(now: Timestamp) -> String {
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
