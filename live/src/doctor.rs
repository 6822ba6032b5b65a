//! What ralph says of the real programs: every version read, every flag found.

use std::time::Duration;

use ralph::agent::{Catalog, Entry};
use ralph::process::Invocation;
use serde_json::Value;

use crate::install::{Extent, install};
use crate::stage::{Problem, Stage, said};

/// Installs, looks, compares.
pub fn run(extent: Extent) -> Result<(), Problem> {
    let stage = Stage::open()?;
    let installed = install(&stage, extent)?;
    let ralph = Stage::ralph()?;
    let ask = |words: &[&str]| -> Result<Value, Problem> {
        let call = Invocation {
            args: words.iter().map(Into::into).collect(),
            env: stage.environment(&installed.programs),
            ..Invocation::new(&ralph, stage.place.join("work"))
        };
        let text = said(call, Duration::from_secs(120)).map_err(Problem::Wrong)?;
        serde_json::from_str(&text).map_err(|error| Problem::Wrong(format!("`ralph {}`: {error}", words.join(" "))))
    };
    let table = ask(&["agents", "--json"])?;
    let report = ask(&["doctor", "--json"])?;
    let catalog = Catalog::built_in().map_err(|error| Problem::Wrong(error.to_string()))?;
    let mut wrong = Vec::new();
    for (package, pinned) in &installed.packages {
        let Some(id) = agent_of(&catalog, package) else {
            wrong.push(format!("no agent file says how to install `{package}`"));
            continue;
        };
        let found = of(&table, &id);
        let version = found["version"].as_str().unwrap_or("not read").to_owned();
        let flags = check(&report, &id, "flags");
        println!("{id:<9} {version:<24} {}", flags["said"].as_str().unwrap_or("flags were not looked at"));
        if version != *pinned {
            wrong.push(format!("{id}: {pinned} is installed, and ralph reads {version}"));
        }
        for what in ["program", "version", "flags"] {
            let check = check(&report, &id, what);
            if check["state"] != "ok" {
                wrong.push(format!("{id}: {what}: {}", check["said"].as_str().unwrap_or("was not looked at")));
            }
        }
    }
    if wrong.is_empty() {
        println!("all {} are as their agent files say", installed.packages.len());
        return Ok(());
    }
    Err(Problem::Wrong(wrong.join("\n       ")))
}

/// The agent whose install line ends in this package.
fn agent_of(catalog: &Catalog, package: &str) -> Option<String> {
    let installs = |entry: &&Entry| {
        let line = entry.definition.install.line.as_deref();
        line.is_some_and(|line| line.split_whitespace().last() == Some(package))
    };
    catalog.entries().iter().find(installs).map(|entry| entry.definition.id.clone())
}

fn of<'a>(agents: &'a Value, id: &str) -> &'a Value {
    agents.as_array().into_iter().flatten().find(|agent| agent["id"] == id).unwrap_or(&Value::Null)
}

fn check<'a>(report: &'a Value, id: &str, what: &str) -> &'a Value {
    let checks = of(&report["agents"], id)["checks"].as_array();
    checks.into_iter().flatten().find(|check| check["what"] == what).unwrap_or(&Value::Null)
}
