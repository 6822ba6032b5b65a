//! Which run is meant, and how far it has come: what all commands that look at runs begin with.

use std::io;
use std::path::Path;

use super::working_directory;
use crate::config::{self, Settings};
use crate::error::{UserError, io_reason};
use crate::journal::store::Unresolved;
use crate::journal::{Holder, Lock, RunDirectory, State, Store, Summary};
use crate::ui::RunState;
use crate::ui::history::RunDetails;
use crate::ui::out;

/// The runs of one project.
pub(crate) struct Here {
    pub store: Store,
    pub running: Option<Holder>,
    /// The worktrees that were made here, which have runs of their own.
    worktrees: Vec<Store>,
}

impl Here {
    /// The project of this directory, or of the nearest directory above it that has runs. Nothing is created.
    pub(crate) fn find() -> Result<Self, UserError> {
        let workspace = working_directory()?;
        let states = states(&workspace);
        let known: Vec<Store> = states.iter().filter_map(|state| state.stores().ok()).flatten().collect();
        let worktrees = |store: &Store| {
            let own = known.iter().filter(|one| one.is_worktree_of(store.workspace()) && one.path() != store.path());
            own.cloned().collect::<Vec<_>>()
        };
        let stores = workspace.ancestors().flat_map(|place| states.iter().map(|state| state.store(place)));
        let mut stores = stores.map(|store| (worktrees(&store), store));
        let found = stores.find(|(worktrees, store)| store.exists() || !worktrees.is_empty());
        found.map(|(worktrees, store)| Self { worktrees, ..Self::of(store) }).ok_or_else(|| no_runs(&workspace))
    }

    /// The newest run, also of worktrees.
    fn newest(self) -> Result<(Self, RunDirectory), Unresolved> {
        let own = if self.store.exists() { self.store.resolve(None) } else { Err(Unresolved::NoRuns) };
        let others = self.worktrees.iter().filter_map(|store| Some((store.clone(), store.resolve(None).ok()?)));
        let newest = others.max_by(|(_, one), (_, other)| one.id.cmp(&other.id));
        match (own, newest) {
            (Ok(own), Some((store, run))) if run.id > own.id => Ok((Self::of(store), run)),
            (Err(Unresolved::NoRuns), Some((store, run))) => Ok((Self::of(store), run)),
            (Ok(own), _) => Ok((self, own)),
            (Err(error), _) => Err(error),
        }
    }

    /// This project and its worktrees, as far as they have runs.
    pub(crate) fn with_worktrees(self) -> Vec<Self> {
        let worktrees: Vec<Self> = self.worktrees.iter().cloned().map(Self::of).collect();
        std::iter::once(self).chain(worktrees).filter(|here| here.store.exists()).collect()
    }

    /// The project with an active run: this one, or the only worktree of it that has one.
    pub(crate) fn active() -> Result<Self, UserError> {
        let here = Self::find()?;
        if here.running.is_some() {
            return Ok(here);
        }
        let mut active: Vec<Self> =
            here.worktrees.iter().cloned().map(Self::of).filter(|one| one.running.is_some()).collect();
        match (active.pop(), active.is_empty()) {
            (Some(only), true) => Ok(only),
            (Some(one), false) => {
                let runs = active.iter().chain([&one]).filter_map(|one| Some(one.running.as_ref()?.run.as_str()));
                Err(UserError::usage("several worktree runs are active here")
                    .hint(format!("name one with `--run`: {}", runs.collect::<Vec<_>>().join(", "))))
            }
            (None, _) => Ok(here),
        }
    }

    /// The run that is meant, with its project: one of this directory, or, when an id is given, of any project.
    pub(crate) fn run(id: Option<&str>) -> Result<(Self, RunDirectory), UserError> {
        let here = Self::find();
        if id.is_none() {
            return here?.newest().map_err(|error| unresolved(&error, id));
        }
        let local = match &here {
            Ok(here) => here.store.resolve(id),
            Err(_) => Err(Unresolved::NoRuns),
        };
        let unknown = match (local, here) {
            (Ok(run), Ok(here)) => return Ok((here, run)),
            (Err(Unresolved::Unknown | Unresolved::NoRuns), here) if id.is_some() => here.err(),
            (Err(error), Ok(_)) => return Err(unresolved(&error, id)),
            (_, Err(error)) => return Err(error),
        };
        let mut found = Vec::new();
        for state in states(&working_directory()?) {
            let stores = state.stores().map_err(|error| unlisted(&error))?;
            found.extend(stores.into_iter().filter_map(|store| store.resolve(id).ok().map(|run| (store, run))));
        }
        match (found.pop(), found.is_empty()) {
            (Some((store, run)), true) => Ok((Self::of(store), run)),
            (Some((_, run)), false) => {
                let ids = found.into_iter().map(|(_, run)| run.id).chain([run.id]).collect();
                Err(unresolved(&Unresolved::Many(ids), id))
            }
            (None, _) => Err(unknown.unwrap_or_else(|| unresolved(&Unresolved::Unknown, id))),
        }
    }

    /// All projects of this user that have runs.
    pub(crate) fn everywhere() -> Result<Vec<Self>, UserError> {
        let mut all = Vec::new();
        for state in states(&working_directory()?) {
            let stores = state.stores().map_err(|error| unlisted(&error))?;
            all.extend(stores.into_iter().filter(Store::exists).map(Self::of));
        }
        Ok(all)
    }

    /// A project, and who runs there.
    pub(crate) fn of(store: Store) -> Self {
        let running = Lock::holder(&store);
        Self { store, running, worktrees: Vec::new() }
    }

    /// True while this run is running.
    pub(crate) fn is_running(&self, run: &RunDirectory) -> bool {
        self.running.as_ref().is_some_and(|holder| holder.run == run.id)
    }

    /// All runs, newest first. One that cannot be read is left out and named on standard error.
    pub(crate) fn runs(&self) -> Result<Vec<RunDetails>, UserError> {
        let mut all = Vec::new();
        if self.store.exists() || self.worktrees.is_empty() {
            let runs = self.store.runs().map_err(|error| unlisted(&error))?;
            for run in runs.iter().rev() {
                match self.details(run) {
                    Ok(run) => all.push(run),
                    Err(error) => out::warn(error.message),
                }
            }
        }
        for store in self.worktrees.iter().filter(|store| store.exists()) {
            all.extend(Self::of(store.clone()).runs()?);
        }
        all.sort_by(|one, other| other.summary.run.cmp(&one.summary.run));
        Ok(all)
    }

    /// What is known of a run.
    pub(crate) fn details(&self, run: &RunDirectory) -> Result<RunDetails, UserError> {
        let mut summary = Summary::of(run).map_err(|error| unreadable(run, &error))?;
        // Its directory has a name that was checked; what a file says may be anything.
        summary.run.clone_from(&run.id);
        let state = RunState::of(&summary, self.is_running(run));
        Ok(RunDetails { state, words: run.goal(), summary, place: run.place() })
    }
}

/// The state directories to look in: the one that the configuration here names, and the user's.
fn states(workspace: &Path) -> Vec<State> {
    // A configuration that cannot be read must not hide the runs.
    let file = config::nearest_file(None, workspace).unwrap_or_default();
    let configured = file.layer.journal_directory.and_then(|setting| setting.value).map(State::at);
    let mut states: Vec<State> = configured.into_iter().chain(State::of_user()).collect();
    states.dedup();
    states
}

/// Where a run keeps its records.
pub(crate) fn state(settings: &Settings, workspace: &Path) -> Result<State, UserError> {
    let configured = settings.journal_directory.value.as_ref().map(|path| State::at(workspace.join(path)));
    configured.or_else(State::of_user).ok_or_else(|| {
        UserError::usage("cannot find ralph's state directory: HOME is not set")
            .hint("set HOME, XDG_STATE_HOME or RALPH_STATE_DIR, or `journal.directory` in `ralph.yml`")
    })
}

fn unlisted(error: &io::Error) -> UserError {
    UserError::failed(format!("cannot list the runs: {}", io_reason(error)))
}

fn unresolved(error: &Unresolved, id: Option<&str>) -> UserError {
    let id = id.unwrap_or_default();
    match error {
        Unresolved::NoRuns => UserError::usage("no runs here").hint("start one: `ralph run \"…\"`"),
        Unresolved::Unknown => {
            UserError::usage(format!("no run has the id `{id}`")).hint("`ralph runs --all` lists all runs")
        }
        Unresolved::Many(ids) => UserError::usage(format!("`{id}` matches several runs: {}", ids.join(", ")))
            .hint("type more characters of the id"),
        Unresolved::Io(error) => unlisted(error),
    }
}

/// A journal that cannot be read.
pub(crate) fn unreadable(run: &RunDirectory, error: &io::Error) -> UserError {
    UserError::failed(format!("cannot read the run `{}`: {}", run.id, io_reason(error)))
        .hint(format!("its directory is `{}`", run.path.display()))
}

fn no_runs(workspace: &Path) -> UserError {
    UserError::usage(format!("no runs in `{}`", workspace.display()))
        .hint("change to the directory of the run, or start one: `ralph run \"…\"`")
}

/// Prints; whoever reads may have enough before the end.
pub(crate) fn print(text: &str) -> Result<u8, UserError> {
    shown(out::print(text))
}

/// The same for text that ralph has painted.
pub(crate) fn print_painted(text: &str) -> Result<u8, UserError> {
    shown(out::print_painted(text))
}

/// How showing something went. A reader that left had enough.
pub(crate) fn shown(result: io::Result<()>) -> Result<u8, UserError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(UserError::failed(format!("cannot show it: {}", io_reason(&error))))
        }
        _ => Ok(0),
    }
}
