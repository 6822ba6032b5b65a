//! A fresh repository and a fresh home for one run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::clis::{Cli, Denied};
use crate::stage::Stage;

/// A place for one run, with nothing in it but a repository.
pub struct Place {
    /// The repository.
    pub work: PathBuf,
    /// The home.
    pub home: PathBuf,
}

impl Place {
    /// Removes and creates it.
    pub fn fresh(stage: &Stage, name: &str) -> std::io::Result<Self> {
        let place = stage.place.join("runs").join(name);
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        let (work, home) = (place.join("work"), place.join("home"));
        std::fs::create_dir_all(&work)?;
        std::fs::create_dir_all(&home)?;
        std::fs::write(work.join("README.md"), "A place for a script.\n")?;
        let identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid"];
        for words in [&["init", "--quiet"][..], &["add", "-A"], &["commit", "--quiet", "-m", "Begin"]] {
            let status = Command::new("git").args(identity).args(words).current_dir(&work).status()?;
            if !status.success() {
                return Err(std::io::Error::other(format!("`git {}` failed", words.join(" "))));
            }
        }
        Ok(Self { work, home })
    }

    /// Tells ralph what it is to give the CLI beside what it gives by itself.
    /// `strict` is the address of the model, where only that can be reached.
    pub fn configure(&self, cli: &Cli, denied: Option<&Denied>, strict: Option<&str>) -> std::io::Result<()> {
        let (args, env) = (cli.extra_args(denied), denied.map(|denied| &denied.env));
        let mut settings = json!({});
        if !args.is_empty() || !env.is_none_or(BTreeMap::is_empty) {
            settings["adapters"] =
                json!({cli.agent.as_str(): {"extra_args": args, "env": env.cloned().unwrap_or_default()}});
        }
        if let Some(base) = strict {
            let host = base.trim_start_matches("http://");
            let names: Vec<String> = cli.variables(self, base).into_iter().map(|(name, _)| name).collect();
            settings["sandbox"] = json!({"network": [host], "env": names});
        }
        if settings == json!({}) {
            return Ok(());
        }
        std::fs::write(self.work.join("ralph.yml"), settings.to_string())
    }
}

/// The directory of the only run of a fresh home.
pub fn only_run(home: &Path) -> Option<PathBuf> {
    let inside = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    inside(home.join(".local/state/ralph/projects")).flat_map(|project| inside(project.join("runs"))).next()
}
