//! The table of CLIs: `clis.yml` says how each is led to the scripted model, `package.json` which version is installed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::scenario::Seen;
use crate::stage::Problem;

/// How a CLI is led to the scripted model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cli {
    /// The agent's name.
    #[serde(skip)]
    pub agent: String,
    /// Its package.
    #[serde(default)]
    pub package: String,
    /// Who has it.
    #[serde(default)]
    pub registry: Registry,
    /// Whether its model has no tools, so that every request takes a turn.
    #[serde(default)]
    pub toolless: bool,
    /// Why there is no package.
    pub absent: Option<String>,
    /// Variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Arguments beside those that ralph passes.
    #[serde(default)]
    pub args: Vec<String>,
    /// Files in its home.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// What forbids it its shell, where something does.
    pub denied: Option<Denied>,
    /// Why it can only be run up to its login.
    pub login: Option<String>,
    /// What its output does not tell, and why it is not looked for.
    #[serde(default)]
    pub lacks: BTreeMap<Seen, String>,
    /// Scenarios that it cannot play, and why.
    #[serde(default)]
    pub cannot: BTreeMap<String, String>,
}

/// Who has a package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registry {
    /// npm's.
    #[default]
    Npm,
    /// Python's.
    Pypi,
}

/// What forbids a CLI its shell.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Denied {
    /// Files instead of the usual ones.
    pub files: BTreeMap<String, String>,
    /// More arguments.
    pub args: Vec<String>,
}

/// All of them, or those that are named.
pub fn table(only: &[String]) -> Result<Vec<Cli>, Problem> {
    let wrong = |why: String| Problem::Wrong(format!("clis.yml: {why}"));
    let table: BTreeMap<String, Cli> =
        serde_saphyr::from_str(include_str!("../clis.yml")).map_err(|error| wrong(error.to_string()))?;
    if let Some(name) = only.iter().find(|name| !table.contains_key(*name)) {
        let known: Vec<&str> = table.keys().map(String::as_str).collect();
        return Err(wrong(format!("no CLI `{name}`; there are {}", known.join(", "))));
    }
    let chosen = table.into_iter().filter(|(agent, _)| only.is_empty() || only.contains(agent));
    Ok(chosen.map(|(agent, cli)| Cli { agent, ..cli }).collect())
}

impl Cli {
    /// Writes its files into a fresh home; the same words in variables are filled in the same way.
    pub fn settle(&self, home: &Path, base: &str, denied: Option<&Denied>) -> std::io::Result<()> {
        let none = BTreeMap::new();
        for (name, content) in self.files.iter().chain(denied.map_or(&none, |denied| &denied.files)) {
            let file = home.join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(home))?;
            std::fs::write(file, filled(content, home, base))?;
        }
        Ok(())
    }

    /// Its variables.
    pub fn variables(&self, home: &Path, base: &str) -> Vec<(String, String)> {
        self.env.iter().map(|(name, value)| (name.clone(), filled(value, home, base))).collect()
    }
}

fn filled(text: &str, home: &Path, base: &str) -> String {
    text.replace("{base}", base).replace("{home}", &home.to_string_lossy())
}
