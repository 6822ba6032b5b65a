//! `ralph run`: settings, agent, prompt, journal and view are put together; then the loop runs.

use std::path::PathBuf;

use super::dry_run;
use crate::app::execute::{Keeping, LockedWorkspace, PreparedRun, unusable};
use crate::app::placing::{self, Placed};
use crate::app::planning::{Planned, plan};
use crate::app::saved_plan::SavedPlan;
use crate::app::serving::{Page, Wanted, qr};
use crate::app::view::{Show, needs_terminal_for_agent};
use crate::app::{adopting, find, follow_up, phases, working_directory};
use crate::cli::Run;
use crate::config::Settings;
use crate::error::{UserError, io_reason};
use crate::journal::store::GOAL;
use crate::process;
use crate::redact::Redactor;
use crate::run::prompt::Source;
use crate::ui::out;
use crate::ui::web::Access;

/// Runs the loop and gives its exit code.
pub(crate) fn run(args: &Run, mode: Option<&str>) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let show = Show::wanted(args.tui, args.output)?;
    // Looking for agents already starts some.
    process::protect(process::own_program());
    let mut args = args.clone();
    let placed =
        if placing::is_wanted(&args) && !args.dry_run { Some(placing::prepare(&mut args, &workspace)?) } else { None };
    let begun =
        begin(&args, mode, placed.as_ref().map_or(workspace, |placed| placed.workspace.clone()), placed.as_ref(), show);
    match begun {
        Ok(code) => Ok(code),
        Err(NotBegun::Before(error)) => {
            if let Some(placed) = &placed {
                placing::take_back(placed);
            }
            Err(error)
        }
        Err(NotBegun::After(error)) => Err(error),
    }
}

/// Whether an error came before the run had a directory of its own.
enum NotBegun {
    Before(UserError),
    After(UserError),
}

fn begin(
    args: &Run,
    mode: Option<&str>,
    workspace: PathBuf,
    placed: Option<&Placed>,
    show: Show,
) -> Result<u8, NotBegun> {
    let ready = ready(args, mode, workspace, placed, show).map_err(NotBegun::Before)?;
    let Some(Ready { prepared, locked, settings }) = ready else { return Ok(0) };
    let run = prepared.directory.clone();
    let code = prepared.run_to_end(locked, show, &args.view).map_err(NotBegun::After)?;
    follow_up::next(code, &run, show, &settings).map_err(NotBegun::After)
}

/// A run that has its directory and its lock.
struct Ready {
    prepared: PreparedRun,
    locked: LockedWorkspace,
    settings: Settings,
}

/// `None` when the run was only to be shown.
fn ready(
    args: &Run,
    mode: Option<&str>,
    workspace: PathBuf,
    placed: Option<&Placed>,
    show: Show,
) -> Result<Option<Ready>, UserError> {
    if placed.is_some() {
        std::env::set_current_dir(&workspace).map_err(|error| {
            UserError::usage(format!("cannot enter `{}`: {}", workspace.display(), io_reason(&error)))
        })?;
    }
    let (planned, later) = match args.phases.phases.as_slice() {
        [] => (plan(args, mode, workspace)?, Vec::new()),
        _ if mode.is_some() => return Err(UserError::usage("`--phases` works with `ralph run` only")),
        _ => phases::plan(args, &workspace)?,
    };
    if args.dry_run {
        let report = dry_run::report(&planned, args.output)?;
        // The reader may be gone.
        let _ = out::print(&Redactor::of_process().text(&report).unwrap_or(report));
        return Ok(None);
    }
    let Planned { mut plan, mut settings, adapters, .. } = planned;
    needs_terminal_for_agent(plan.screen, show)?;
    let missing = |path: &&PathBuf| later.is_empty() && !plan.workspace.join(path).is_file();
    if let Some(path) = settings.plan_file.value.as_ref().filter(missing) {
        return Err(UserError::usage(format!(
            "no plan file `{}` (from {})",
            path.display(),
            settings.plan_file.origin
        ))
        .hint("`ralph plan \"the goal\"` writes `PLAN.md`"));
    }
    plan.notices.splice(0..0, placed.map(|placed| placed.notices.clone()).unwrap_or_default());
    let mut store = find::state(&settings, &plan.workspace)?.store(&plan.workspace);
    if let Some(place) = placed.map(|placed| &placed.place).filter(|place| place.worktree.is_some()) {
        store = store.of(&place.repository);
    }
    let locked = LockedWorkspace::take(store)?;
    let unusable = |error: std::io::Error| unusable(locked.store.path(), &error);
    let directory = adopting::directory(&args.place, &locked.store).map_err(unusable)?;
    // A resumed run uses the same agent, whatever is installed then.
    if settings.agent.value == "auto" {
        plan.chosen().agent.id().clone_into(&mut settings.agent.value);
    }
    if let Some(placed) = placed {
        directory.set_place(&placed.place).map_err(unusable)?;
    }
    let prompts = later.iter().map(|(_, phase)| &phase.plan.prompt);
    if let Some(goal) = std::iter::once(&plan.prompt).chain(prompts).find_map(Source::goal) {
        directory.keep(GOAL, &goal, &Redactor::of_process()).map_err(unusable)?;
    }
    // Before the journal: a directory with a journal is a run, and every run can continue.
    let redactor = Redactor::of_process();
    let saved = SavedPlan::new(&settings, &adapters, &plan.prompt, &redactor)?;
    saved.with_phases(phases::saved(&later, &redactor)?).write(&directory).map_err(unusable)?;
    plan.phases = later.into_iter().map(|(name, phase)| (name, phase.plan)).collect();
    let (journal, summary, memory) = adopting::journal(&args.place, &directory, &settings, &mut plan)?;
    if args.serve {
        show_on_page(args.qr)?;
    }
    let keeping = Keeping::from(&settings);
    let prepared = PreparedRun { plan, directory, journal, summary, memory, keeping };
    Ok(Some(Ready { prepared, locked, settings }))
}

/// Starts the page beside the run, and says where it is.
fn show_on_page(as_qr: bool) -> Result<(), UserError> {
    let bind = std::net::IpAddr::from([127, 0, 0, 1]);
    let page = Page::open(Wanted { bind, port: None, token: None, access: Access::Steer })?;
    let code = as_qr.then(|| qr(&page.address)).flatten().unwrap_or_default();
    out::tell(format_args!("page: {}\n{code}", page.address).to_string().trim_end());
    page.serve_beside();
    Ok(())
}
