//! `ralph status`: what the run of this directory is doing now, or how the last one ended, in a few lines.

use std::fmt::Write as _;

use serde_json::json;

use crate::app::find::{Here, print};
use crate::cli::history::Status;
use crate::error::UserError;
use crate::journal::Activity;
use crate::ui::figures;
use crate::ui::history::{Standing, Told, clock};
use crate::ui::pretty;
use crate::ui::{cut, harmless};

pub(crate) fn run(args: &Status) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.id.as_deref())?;
    let told = here.tell(&run)?;
    if args.json {
        let summary = &told.summary;
        return print(&pretty(&json!({
            "run": summary.run,
            "state": told.standing.name().replace([' ', '-'], "_"),
            "goal": told.words,
            "agent": summary.agent,
            "iterations": summary.count(),
            "duration_ms": told.duration_ms(),
            "usage": summary.usage(),
            "cost_usd": summary.cost(),
            "reason": reason(&told),
        })));
    }
    print(&text(&told))
}

/// The lines for people.
pub(super) fn text(told: &Told) -> String {
    let summary = &told.summary;
    let mut state = told.standing.name().to_owned();
    match &summary.activity {
        Activity::Waiting { until, .. } if told.standing == Standing::Waiting => {
            let _ = write!(state, " until {}", clock(*until));
        }
        Activity::Pausing if told.standing.is_alive() => "pausing after this iteration".clone_into(&mut state),
        _ => {}
    }
    let mut text = format!("{state}: {}\n", cut(&harmless(&told.words), 70));
    let _ = writeln!(
        text,
        "  {} · iteration {} · {}",
        harmless(&summary.agent),
        summary.count(),
        figures::duration(told.duration_ms()),
    );
    let spent = figures::usage(&summary.usage());
    if !spent.is_empty() {
        let _ = writeln!(text, "  {}", spent.join(" · "));
    }
    if let Some(reason) = reason(told) {
        let _ = writeln!(text, "  last: {}", cut(&harmless(reason.lines().next().unwrap_or_default()), 72));
    }
    let next = match told.standing {
        Standing::Paused => "`ralph continue`, `ralph stop`; watch: `ralph tui`",
        Standing::Waiting => "`ralph retry` ends the wait, `ralph stop`; watch: `ralph tui`",
        standing if standing.is_alive() => "`ralph hint \"…\"`, `ralph pause`, `ralph stop`; watch: `ralph tui`",
        standing if standing.can_resume() => "`ralph show`, `ralph diff`, `ralph resume`",
        _ => "`ralph show`, `ralph diff`",
    };
    let _ = writeln!(text, "next: {next}");
    text
}

/// What was decided last, and why.
fn reason(told: &Told) -> Option<&str> {
    let end = told.summary.end.as_ref().filter(|_| !told.standing.is_alive()).map(|end| end.reason.as_str());
    end.or_else(|| told.summary.decisions.last().map(|decision| decision.reason.as_str()))
}
