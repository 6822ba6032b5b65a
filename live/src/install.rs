//! The CLIs themselves: `package.json` says which and at which version, npm brings them.

use std::path::PathBuf;
use std::time::Duration;

use ralph::process::Invocation;
use serde_json::{Map, Value, json};

use crate::stage::{Problem, Stage, said};

/// The pinned versions, the only place where they stand.
const PINNED: &str = include_str!("../package.json");

/// The smallest ones, for the short form.
const SMALL: [&str; 2] = ["@mariozechner/pi-coding-agent", "@google/gemini-cli"];

/// How many of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All.
    All,
    /// The smallest.
    Short,
}

/// What was installed.
pub struct Installed {
    /// Where the programs are.
    pub programs: PathBuf,
    /// Each package with its version.
    pub packages: Vec<(String, String)>,
}

/// Installs them, unless they are there from another time.
pub fn install(stage: &Stage, extent: Extent) -> Result<Installed, Problem> {
    let wrong = |error: std::io::Error| Problem::Wrong(error.to_string());
    let pinned: Value = serde_json::from_str(PINNED).map_err(|error| Problem::Wrong(error.to_string()))?;
    let wanted: Map<String, Value> = pinned["dependencies"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| extent == Extent::All || SMALL.contains(&name.as_str()))
        .map(|(name, version)| (name.clone(), version.clone()))
        .collect();
    let (folder, patience) = match extent {
        Extent::All => ("all", Duration::from_secs(900)),
        Extent::Short => ("short", Duration::from_secs(150)),
    };
    let place = stage.place.join(folder);
    let manifest = format!("{:#}\n", json!({"private": true, "dependencies": wanted}));
    let done = place.join("installed.json");
    let programs = place.join("node_modules").join(".bin");
    if std::fs::read_to_string(&done).ok().as_deref() != Some(manifest.as_str()) {
        std::fs::create_dir_all(&place).map_err(wrong)?;
        std::fs::write(place.join("package.json"), &manifest).map_err(wrong)?;
        println!("installing {} packages with npm, {} s at most", wanted.len(), patience.as_secs());
        let args = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
        let npm = Invocation { args: args.map(Into::into).to_vec(), ..Invocation::new("npm", &place) };
        said(npm, patience).map_err(|why| Problem::Unavailable(format!("the CLIs could not be installed: {why}")))?;
        std::fs::write(&done, &manifest).map_err(wrong)?;
    }
    let packages = wanted.into_iter().map(|(name, version)| (name, version.as_str().unwrap_or_default().to_owned()));
    Ok(Installed { programs, packages: packages.collect() })
}
