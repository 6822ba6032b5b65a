//! The CLIs themselves: `package.json` and `requirements.txt` say which and at which version; npm and pip bring each into a
//! folder of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph::process::Invocation;
use serde_json::{Value, json};

use crate::clis::{Cli, Registry};
use crate::stage::{Problem, Stage, said};

/// The pinned versions, the only place where they stand.
const PINNED: &str = include_str!("../package.json");

/// The same for those in Python.
const PINNED_IN_PYTHON: &str = include_str!("../requirements.txt");

/// The smallest ones, for the short form.
pub const SMALL: [&str; 2] = ["gemini", "pi"];

/// Which version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The pinned one.
    Pinned,
    /// The newest that the registry has.
    Latest,
}

/// What was installed.
#[derive(Clone)]
pub struct Installed {
    /// Where its programs are.
    pub programs: PathBuf,
    /// Its version.
    pub version: String,
}

/// Installs a CLI, unless it is there from another time.
pub fn install(stage: &Stage, cli: &Cli, version: Version) -> Result<Installed, Problem> {
    if cli.registry == Registry::Pypi {
        let programs = python(stage, &cli.package)?;
        return Ok(Installed { programs, version: pinned_in_python(&cli.package).unwrap_or_default().to_owned() });
    }
    let pinned: Value = serde_json::from_str(PINNED).map_err(|error| Problem::Wrong(error.to_string()))?;
    let pinned = pinned["dependencies"][&cli.package].as_str().unwrap_or("latest");
    let (folder, wanted) = match version {
        Version::Pinned => ("pinned", pinned),
        Version::Latest => ("latest", "latest"),
    };
    let place = stage.place.join(folder).join(&cli.agent);
    let manifest = format!("{:#}\n", json!({"private": true, "dependencies": {cli.package.as_str(): wanted}}));
    let done = place.join("installed.json");
    let present = std::fs::read_to_string(&done).ok().as_deref() == Some(manifest.as_str());
    if !present || version == Version::Latest {
        std::fs::create_dir_all(&place)?;
        std::fs::write(place.join("package.json"), &manifest)?;
        println!("installing {} {wanted} with npm", cli.package);
        let args = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
        let npm = Invocation { args: args.map(Into::into).to_vec(), ..Invocation::new("npm", &place) };
        said(npm, Duration::from_secs(300))
            .map_err(|why| Problem::Unavailable(format!("{} could not be installed: {why}", cli.agent)))?;
        std::fs::write(&done, &manifest)?;
    }
    let own = place.join("node_modules").join(&cli.package);
    let manifest: Value = std::fs::read_to_string(own.join("package.json"))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .ok_or_else(|| Problem::Wrong(format!("{} was installed without a package", cli.agent)))?;
    let named = place.join("node_modules").join(".bin");
    // A package of one platform may have a program and no name for it.
    let programs = if named.join(&cli.agent).exists() { named } else { own.join("bin") };
    Ok(Installed { programs, version: manifest["version"].as_str().unwrap_or(wanted).to_owned() })
}

/// The programs of a Python package at its pinned version, in an environment of its own.
pub fn python(stage: &Stage, package: &str) -> Result<PathBuf, Problem> {
    let version = pinned_in_python(package).ok_or_else(|| Problem::Wrong(format!("`{package}` has no version")))?;
    let wanted = format!("{package}=={version}");
    let place = stage.place.join("python").join(package);
    let (programs, done) = (place.join("bin"), place.join("installed.txt"));
    if std::fs::read_to_string(&done).ok().as_deref() == Some(wanted.as_str()) {
        return Ok(programs);
    }
    println!("installing {wanted} with pip");
    let run = |program: &Path, words: &[&str]| {
        let args = words.iter().map(Into::into).collect();
        let call = Invocation { args, ..Invocation::new(program, &stage.place) };
        said(call, Duration::from_secs(400))
            .map_err(|why| Problem::Unavailable(format!("{package} could not be installed: {why}")))
    };
    run(Path::new("python3"), &["-m", "venv", &place.to_string_lossy()])?;
    run(&programs.join("python"), &["-m", "pip", "install", "--quiet", &wanted])?;
    std::fs::write(&done, &wanted)?;
    Ok(programs)
}

fn pinned_in_python(package: &str) -> Option<&'static str> {
    PINNED_IN_PYTHON.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix("==")).map(str::trim)
}
