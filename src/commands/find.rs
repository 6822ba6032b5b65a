//! Which run is meant, and how far it has come: what all commands that look at runs begin with.

use std::io::{self, Write as _};
use std::path::Path;

use super::run::working_directory;
use crate::error::{UserError, io_reason};
use crate::journal::store::Unresolved;
use crate::journal::{Lock, RunDirectory, Store, Summary};
use crate::ui::history::{Standing, Told};

/// How much of a prompt is read for its first words.
const BEGINNING: usize = 400;

/// The runs of this directory.
pub struct Here {
    /// Where they are.
    pub store: Store,
    /// The one that is under way.
    pub running: Option<String>,
}

impl Here {
    /// Looks for them; nothing is created.
    pub fn find() -> Result<Self, UserError> {
        let workspace = working_directory()?;
        let store = Store::find(&workspace).ok_or_else(|| no_runs(&workspace))?;
        let running = Lock::holder(&store.lock()).map(|holder| holder.run);
        Ok(Self { store, running })
    }

    /// The run that is meant.
    pub fn run(&self, id: Option<&str>) -> Result<RunDirectory, UserError> {
        self.store.resolve(id).map_err(|error| match error {
            Unresolved::NoRuns => UserError::usage("there are no runs here").hint("start one: `ralph run \"…\"`"),
            Unresolved::Unknown => UserError::usage(format!("no run here has the id `{}`", id.unwrap_or_default()))
                .hint("see `ralph runs`"),
            Unresolved::Many(ids) => UserError::usage(format!(
                "`{}` is the beginning of several runs: {}",
                id.unwrap_or_default(),
                ids.join(", ")
            ))
            .hint("give more of its id"),
            Unresolved::Io(error) => UserError::failed(format!("cannot list the runs: {}", io_reason(&error))),
        })
    }

    /// All runs, newest first. One that cannot be read is left out and named on standard error.
    pub fn told(&self) -> Result<Vec<Told>, UserError> {
        let runs = self
            .store
            .runs()
            .map_err(|error| UserError::failed(format!("cannot list the runs: {}", io_reason(&error))))?;
        let mut told = Vec::new();
        for run in runs.iter().rev() {
            match self.tell(run) {
                Ok(run) => told.push(run),
                Err(error) => drop(writeln!(io::stderr(), "warning: {}", error.message)),
            }
        }
        Ok(told)
    }

    /// What is known of a run.
    pub fn tell(&self, run: &RunDirectory) -> Result<Told, UserError> {
        let mut summary = Summary::of(run).map_err(|error| unreadable(run, &error))?;
        if summary.run.is_empty() {
            summary.run.clone_from(&run.id);
        }
        let standing = match summary.outcome() {
            _ if self.running.as_ref() == Some(&run.id) => Standing::Running,
            Some(outcome) => Standing::Ended(outcome),
            None => Standing::Unfinished,
        };
        Ok(Told { standing, words: first_words(run), summary })
    }
}

/// A journal that cannot be read.
pub fn unreadable(run: &RunDirectory, error: &io::Error) -> UserError {
    UserError::failed(format!("cannot read the run `{}`: {}", run.id, io_reason(error)))
        .hint(format!("its directory is `{}`", run.path.display()))
}

fn no_runs(workspace: &Path) -> UserError {
    UserError::usage(format!("there are no runs in `{}`", workspace.display()))
        .hint("change to the directory where ralph ran, or start a run: `ralph run \"…\"`")
}

/// The first words of the first prompt.
fn first_words(run: &RunDirectory) -> String {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(run.prompt(1)).and_then(|file| file.take(BEGINNING as u64).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .trim_start_matches('#')
        .trim()
        .to_owned()
}

/// Prints; whoever reads may have enough before the end.
pub fn print(text: &str) -> Result<u8, UserError> {
    shown(io::stdout().write_all(text.as_bytes()))
}

/// How showing something went. A reader that left had enough.
pub fn shown(result: io::Result<()>) -> Result<u8, UserError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(UserError::failed(format!("cannot show it: {}", io_reason(&error))))
        }
        _ => Ok(0),
    }
}
