//! `ralph batch --on`: a batch whose tasks are worked on by a fleet.

use std::path::Path;
use std::sync::Arc;

use super::{Places, Project, Wishes};
#[cfg(feature = "fleet")]
use crate::app::fleet::submit::{Fleet, check};
use crate::batch::state::{Ledger, OnFleet};
use crate::cli::batch::Begin;
use crate::error::UserError;

/// The fleet that the arguments name, checked as far as that is possible without it.
pub(super) fn wanted(args: &Begin) -> Result<Option<OnFleet>, UserError> {
    let (Some(address), Some(repo)) = (&args.on, &args.repo) else { return Ok(None) };
    let on = OnFleet { address: without_credentials(address), repo: repo.clone(), label: args.label.clone() };
    check(&on)?;
    Ok(Some(on))
}

/// What is before the `@` of each address stays out of the records.
fn without_credentials(address: &str) -> String {
    let one = |text: &str| match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => text.to_owned(),
    };
    address.split(',').map(one).collect::<Vec<_>>().join(",")
}

#[cfg(feature = "fleet")]
pub(super) fn drive(
    project: Project,
    directory: &Path,
    ledger: Ledger,
    places: Arc<Places>,
    fleet: &OnFleet,
    wishes: Wishes,
) -> Result<u8, UserError> {
    let start = ledger.batch.start.clone();
    let agent = start.run_args.iter().find_map(|arg| arg.strip_prefix("--agent=")).map(str::to_owned);
    let agent = agent.or_else(|| Some(project.settings.agent.value.clone())).filter(|agent| agent != "auto");
    let address = wishes.on.unwrap_or(&fleet.address);
    let opening = Fleet::open(&start, fleet.clone(), address, agent, Arc::clone(&places));
    let runner = crate::process::runtime()?.block_on(opening)?;
    super::drive_with(project, directory, ledger, places, runner, wishes.tui)
}

#[cfg(not(feature = "fleet"))]
fn check(_: &OnFleet) -> Result<(), UserError> {
    Err(crate::app::without_fleet())
}

#[cfg(not(feature = "fleet"))]
pub(super) fn drive(_: Project, _: &Path, _: Ledger, _: Arc<Places>, _: &OnFleet, _: Wishes) -> Result<u8, UserError> {
    Err(crate::app::without_fleet())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_stay_out_of_the_records() {
        for (given, kept) in [
            ("nats://host:4222", "nats://host:4222"),
            ("nats://user:pass@host", "nats://host"),
            ("tls://token@a,tls://b", "tls://a,tls://b"),
            ("token@host", "host"),
        ] {
            assert_eq!(without_credentials(given), kept);
        }
    }
}
