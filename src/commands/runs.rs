//! `ralph runs`: the runs of this directory, newest first.

use serde_json::json;

use crate::app::find::{Here, print};
use crate::cli::history::Runs;
use crate::error::UserError;
use crate::ui::history::{Told, table};
use crate::ui::pretty;

pub(crate) fn run(args: &Runs) -> Result<u8, UserError> {
    let mut told = if args.all {
        let mut told = Vec::new();
        for here in Here::everywhere()? {
            told.extend(here.told()?);
        }
        told.sort_by(|one, other| other.summary.run.cmp(&one.summary.run));
        told
    } else {
        Here::find()?.told()?
    };
    told.truncate(args.limit.unwrap_or(usize::MAX));
    if args.ids {
        return print(&told.iter().fold(String::new(), |text, told| text + &told.summary.run + "\n"));
    }
    if !args.json {
        return print(&table(&told));
    }
    let rows: Vec<_> = told.iter().map(row).collect();
    print(&pretty(&serde_json::Value::Array(rows)))
}

fn row(told: &Told) -> serde_json::Value {
    let Told { summary, standing, words } = told;
    json!({
        "run": summary.run,
        "started": summary.started,
        "agent": summary.agent,
        "prompt": words,
        "iterations": summary.count(),
        "duration_ms": told.duration_ms(),
        "usage": summary.usage(),
        "cost_usd": summary.cost(),
        "outcome": standing.name().replace([' ', '-'], "_"),
        "exit_code": summary.end.as_ref().map(|end| end.exit_code),
        "reason": summary.end.as_ref().map(|end| &end.reason),
    })
}
