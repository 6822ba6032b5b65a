//! `ralph status`: what the run of this directory is doing now, or how the last one ended, in a few lines.

use serde_json::json;

use crate::app::find::{Here, print};
use crate::cli::history::Status;
use crate::error::UserError;
use crate::ui::history::{RunDetails, last_reason, status};
use crate::ui::{pretty, state_key};

pub(crate) fn run(args: &Status) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    let run = here.details(&run)?;
    if !args.json {
        return print(&status(&run));
    }
    let RunDetails { summary, state, words, .. } = &run;
    print(&pretty(&json!({
        "run": summary.run,
        "state": state_key(*state),
        "rejected": summary.last_claim_was_rejected(),
        "goal": words,
        "agent": summary.agent,
        "place": run.place_json(),
        "iterations": summary.count(),
        "max_iterations": summary.max_iterations,
        "duration_ms": run.duration_ms(),
        "usage": summary.usage(),
        "cost_usd": summary.cost().map(|cost| cost.usd),
        "cost_source": summary.cost().map(|cost| cost.source),
        "max_cost_usd": summary.max_cost_usd,
        "reason": last_reason(&run),
    })))
}
