//! `ralph run`: settings, agent, prompt, journal and view are put together; then the loop runs.

use super::dry_run;
use crate::app::execute::{Keeping, LockedWorkspace, Performance, unusable};
use crate::app::planning::{Planned, plan};
use crate::app::saved_plan::SavedPlan;
use crate::app::serving::{Page, Wanted, qr};
use crate::app::view::{Show, needs_terminal_for_agent};
use crate::app::{find, working_directory};
use crate::cli::Run;
use crate::error::UserError;
use crate::journal::{Journal, Summary};
use crate::process;
use crate::redact::Redactor;
use crate::run::Memory;
use crate::ui::out;
use crate::ui::web::Access;

/// Runs the loop and gives its exit code.
pub(crate) fn run(args: &Run, mode: Option<&str>) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let show = Show::wanted(args.tui, args.output)?;
    // Looking for agents already starts some.
    process::protect(process::own_program());
    let planned = plan(args, mode, workspace)?;
    if args.dry_run {
        let report = dry_run::report(&planned, args.output)?;
        // The reader may be gone.
        let _ = out::print(&Redactor::of_process().text(&report).unwrap_or(report));
        return Ok(0);
    }
    let Planned { plan, mut settings, adapters, .. } = planned;
    needs_terminal_for_agent(plan.screen, show)?;
    if let Some(path) = settings.plan_file.value.as_ref().filter(|path| !plan.workspace.join(path).is_file()) {
        return Err(UserError::usage(format!(
            "no plan file `{}` (from {})",
            path.display(),
            settings.plan_file.origin
        ))
        .hint("`ralph plan \"the goal\"` writes `PLAN.md`"));
    }
    let stage = LockedWorkspace::take(find::state(&settings, &plan.workspace)?.store(&plan.workspace))?;
    let unusable = |error: std::io::Error| unusable(stage.store.path(), &error);
    let directory = stage.store.create_run().map_err(unusable)?;
    // A resumed run uses the same agent, whatever is installed then.
    if settings.agent.value == "auto" {
        plan.chosen().agent.id().clone_into(&mut settings.agent.value);
    }
    // Before the journal: a directory with a journal is a run, and every run can continue.
    let redactor = Redactor::of_process();
    SavedPlan::new(&settings, &adapters, &plan.prompt, &redactor)?.write(&directory).map_err(unusable)?;
    let journal = Journal::create(&directory.journal()).map_err(unusable)?;
    if args.serve {
        show_on_page(args.qr)?;
    }
    let (summary, memory) = (Summary::default(), Memory::default());
    let keeping = Keeping::from(&settings);
    Performance { plan, directory, journal, summary, memory, keeping }.play(stage, show, &args.view)
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
