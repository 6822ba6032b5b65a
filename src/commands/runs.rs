//! `ralph runs`: the runs of this directory, newest first.

use std::path::Path;

use serde_json::json;

use crate::app::appearance::{columns, palette};
use crate::app::find::{Here, print, print_painted};
use crate::cli::history::Runs;
use crate::error::UserError;
use crate::ui::history::{RunDetails, table};
use crate::ui::{pretty, state_key};

pub(crate) fn run(args: &Runs) -> Result<u8, UserError> {
    let mut runs = if args.all {
        let mut runs = Vec::new();
        for here in Here::everywhere()? {
            runs.extend(here.runs()?);
        }
        runs.sort_by(|one, other| other.summary.run.cmp(&one.summary.run));
        runs
    } else {
        Here::find()?.runs()?
    };
    runs.truncate(args.limit.unwrap_or(usize::MAX));
    if args.ids {
        return print(&runs.iter().fold(String::new(), |text, run| text + &run.summary.run + "\n"));
    }
    if !args.json {
        if args.all {
            for run in &mut runs {
                let project = Path::new(&run.summary.workspace).file_name().unwrap_or_default().to_string_lossy();
                run.words = format!("{project}: {}", run.words);
            }
        }
        return print_painted(&table(&runs, columns().count(), palette()));
    }
    let rows: Vec<_> = runs.iter().map(row).collect();
    print(&pretty(&serde_json::Value::Array(rows)))
}

fn row(run: &RunDetails) -> serde_json::Value {
    let RunDetails { summary, state, words, .. } = run;
    json!({
        "run": summary.run,
        "started": summary.started,
        "agent": summary.agent,
        "place": run.place_json(),
        "prompt": words,
        "iterations": summary.count(),
        "duration_ms": run.duration_ms(),
        "usage": summary.usage(),
        "cost_usd": summary.cost().map(|cost| cost.usd),
        "cost_source": summary.cost().map(|cost| cost.source),
        "outcome": state_key(*state),
        "rejected": summary.last_claim_was_rejected(),
        "exit_code": summary.end.as_ref().map(|end| end.exit_code),
        "reason": summary.end.as_ref().map(|end| &end.reason),
    })
}
