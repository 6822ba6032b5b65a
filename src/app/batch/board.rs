//! The board of a batch on the full screen: of the one that this process runs, or of one that runs elsewhere.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::local::Places;
use super::{Project, is_running, read, send};
use crate::app::appearance::appearance;
use crate::app::find::Here;
use crate::app::steering::{Steering, ending_signals};
use crate::app::view::needs_terminal;
use crate::batch::order::BatchOrder;
use crate::batch::state::{Stage, TaskState};
use crate::batch::task::TaskId;
use crate::cli::{AppearanceArgs, Colour};
use crate::error::{UserError, io_reason};
use crate::journal::Summary;
use crate::process;
use crate::ui::tui::board::{self, Left, Now, Watched};
use crate::ui::tui::{self, Options, Owner, Remote};
use crate::ui::{Glyphs, Palette, out};

/// How long a full screen may take to give the terminal back.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// A batch, as a reader of its files sees it.
struct Watch {
    directory: PathBuf,
    places: Arc<Places>,
}

impl Watched for Watch {
    fn now(&mut self) -> Option<Now> {
        let batch = read(&self.directory).ok()?;
        let progress = |state: &TaskState| {
            let summary = Summary::of(&self.places.run(&batch.branch(&state.task.id))?).ok()?;
            let since = jiff::Timestamp::now().as_millisecond() - summary.started?.as_millisecond();
            Some((state.task.id.clone(), (summary.count(), u64::try_from(since).unwrap_or(0))))
        };
        let running = batch.tasks.iter().filter(|state| state.stage == Stage::Running);
        let progress = running.filter_map(progress).collect();
        Some(Now { is_running: is_running(&self.directory), batch, progress })
    }

    fn order(&mut self, order: BatchOrder) -> String {
        send(&self.directory, &order).map_or_else(|why| why, |()| order.effect())
    }
}

/// Shows the board and the runs that someone opens from it, until that someone leaves.
fn show(
    watch: &mut Watch,
    look: (Palette, Glyphs),
    owner: Signals,
    close: &AtomicBool,
) -> std::io::Result<Option<i32>> {
    let ending = || if owner == Signals::Ours { ending_signals() } else { Vec::new() };
    let mut at = 0;
    loop {
        match board::show(watch, look, ending(), close, &mut at)? {
            Left::Closed => return Ok(None),
            Left::Signal(number) => return Ok(Some(number)),
            Left::Run(task) => {
                if let Some(number) = open(watch, &task, look)? {
                    return Ok(Some(number));
                }
            }
        }
    }
}

/// The full screen of the run of a task.
fn open(watch: &Watch, task: &TaskId, (palette, glyphs): (Palette, Glyphs)) -> std::io::Result<Option<i32>> {
    let run = read(&watch.directory).ok().and_then(|batch| batch.task(task)?.run.clone());
    let Some((here, directory)) = run.and_then(|id| Here::run(Some(&id)).ok()) else { return Ok(None) };
    let actions = Box::new(Steering::new(&here.store, &directory));
    let options = Options { directory, palette, glyphs, owner: Owner::Another, actions };
    match tui::show(options, &Remote::default())?.left {
        tui::Left::Signal(number) => Ok(Some(number)),
        _ => Ok(None),
    }
}

/// Who takes care of Unix signals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signals {
    Ours,
    Coordinators,
}

fn look() -> (Palette, Glyphs) {
    let appearance = appearance(AppearanceArgs { color: Colour::Auto, ascii: false });
    (appearance.palette, appearance.glyphs)
}

/// `ralph batch status --tui`.
pub(crate) fn watch() -> Result<u8, UserError> {
    let project = Project::here()?;
    let mut watch = Watch { directory: project.newest()?, places: Arc::new(project.places()) };
    needs_terminal("--tui")?;
    read(&watch.directory)?;
    let shown = show(&mut watch, look(), Signals::Ours, &AtomicBool::new(false));
    match shown.map_err(|error| UserError::failed(format!("cannot use the terminal: {}", io_reason(&error))))? {
        Some(number) => process::die_by(number),
        None => Ok(0),
    }
}

/// The full screen beside the coordinator, in a thread of its own; or none.
#[derive(Clone)]
pub(crate) struct Screen(Option<Arc<Taken>>);

struct Taken {
    is_taken: AtomicBool,
    close: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Screen {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    pub(super) fn open(directory: &Path, places: Arc<Places>) -> Result<Self, UserError> {
        let close = AtomicBool::new(false);
        let taken = Arc::new(Taken { is_taken: AtomicBool::new(true), close, thread: Mutex::new(None) });
        let (mut watch, shared) = (Watch { directory: directory.to_owned(), places }, Arc::clone(&taken));
        let thread = std::thread::Builder::new().name("screen".into()).spawn(move || {
            let shown = show(&mut watch, look(), Signals::Coordinators, &shared.close);
            shared.is_taken.store(false, Ordering::SeqCst);
            if let Err(error) = shown {
                out::warn(format_args!("the full screen stopped: {}", io_reason(&error)));
            }
        });
        let thread = thread.map_err(|error| UserError::failed(format!("cannot start the view: {error}")))?;
        *taken.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(thread);
        Ok(Self(Some(taken)))
    }

    pub(super) fn is_taken(&self) -> bool {
        self.0.as_ref().is_some_and(|taken| taken.is_taken.load(Ordering::SeqCst))
    }

    /// The batch is over: the board stays until someone leaves it, unless the batch was interrupted.
    pub(super) fn over(&self, is_interrupted: bool) {
        let Some(taken) = &self.0 else { return };
        if is_interrupted {
            taken.close.store(true, Ordering::SeqCst);
        }
        let since = Instant::now();
        while taken.is_taken.load(Ordering::SeqCst) && !(is_interrupted && since.elapsed() > GIVE_BACK) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let thread = taken.thread.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(thread) = thread.filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}
