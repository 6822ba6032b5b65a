//! What ralph says of the real programs: every version read, every flag found.

use std::time::Duration;

use ralph::process::Invocation;
use serde_json::Value;

use crate::clis::Cli;
use crate::install::{Version, install};
use crate::place::Place;
use crate::stage::{Problem, Stage, said};

/// Installs, looks, compares.
pub fn run(clis: &[Cli], version: Version) -> Result<(), Problem> {
    let stage = Stage::open()?;
    let ralph = Stage::ralph()?;
    // A repository of its own: ralph starts no program of the repository it is in, and `target/` is inside ours.
    let place = Place::fresh(&stage, "doctor")?;
    let mut wrong = Vec::new();
    for cli in clis {
        let installed = install(&stage, cli, version)?;
        let ask = |words: &[&str]| -> Result<Value, Problem> {
            let call = Invocation {
                args: words.iter().map(Into::into).collect(),
                env: stage.environment(&installed.programs),
                ..Invocation::new(&ralph, &place.work)
            };
            let text = said(call, Duration::from_secs(120)).map_err(Problem::Wrong)?;
            serde_json::from_str(&text).map_err(|error| Problem::Wrong(format!("`ralph {}`: {error}", words.join(" "))))
        };
        let (table, report, id) = (ask(&["agents", "--json"])?, ask(&["doctor", "--json"])?, &cli.agent);
        let found = of(&table, id)["version"].as_str().unwrap_or("not read").to_owned();
        let flags = check(&report, id, "flags");
        println!("{id:<9} {found:<24} {}", flags["said"].as_str().unwrap_or("flags were not looked at"));
        if found != installed.version {
            wrong.push(format!("{id}: {} is installed, and ralph reads {found}", installed.version));
        }
        for what in ["program", "version", "flags"] {
            let check = check(&report, id, what);
            if check["state"] != "ok" {
                wrong.push(format!("{id}: {what}: {}", check["said"].as_str().unwrap_or("was not looked at")));
            }
        }
    }
    if wrong.is_empty() {
        println!("all {} are as their agent files say", clis.len());
        return Ok(());
    }
    Err(Problem::Wrong(wrong.join("\n       ")))
}

fn of<'a>(agents: &'a Value, id: &str) -> &'a Value {
    agents.as_array().into_iter().flatten().find(|agent| agent["id"] == id).unwrap_or(&Value::Null)
}

fn check<'a>(report: &'a Value, id: &str, what: &str) -> &'a Value {
    let checks = of(&report["agents"], id)["checks"].as_array();
    checks.into_iter().flatten().find(|check| check["what"] == what).unwrap_or(&Value::Null)
}
