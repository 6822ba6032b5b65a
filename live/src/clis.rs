//! The table of CLIs: `clis.yml` says how each is led to the scripted model, `package.json` which version is installed.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::place::Place;
use crate::scenario::Seen;
use crate::stage::Problem;

/// Files in a home: where, and what is in them.
pub type Files = BTreeMap<String, String>;

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
    pub files: Files,
    /// What forbids it its shell, where something does.
    pub denied: Option<Denied>,
    /// How a person works with it, where that is played.
    pub interactive: Option<Interactive>,
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
    pub files: Files,
    /// More arguments.
    pub args: Vec<String>,
    /// Variables, in place of those that ralph sets too.
    pub env: BTreeMap<String, String>,
}

/// How a person works with a CLI on a terminal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interactive {
    /// Files instead of the usual ones, so that it asks nothing at its start.
    #[serde(default)]
    pub files: Files,
    /// What it shows after Ctrl-C in mid-answer.
    pub interrupted: String,
    /// What ends it then: lines that are typed one after the other.
    pub leave: Vec<String>,
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
    pub fn settle(&self, place: &Place, base: &str, more: Option<&Files>) -> std::io::Result<()> {
        for (name, content) in self.files.iter().chain(more.into_iter().flatten()) {
            let file = place.home.join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(&place.home))?;
            std::fs::write(file, filled(content, place, base))?;
        }
        Ok(())
    }

    /// Arguments beside those that ralph passes.
    pub fn extra_args(&self, denied: Option<&Denied>) -> Vec<String> {
        self.args.iter().chain(denied.into_iter().flat_map(|denied| &denied.args)).cloned().collect()
    }

    /// Its variables.
    pub fn variables(&self, place: &Place, base: &str) -> Vec<(String, String)> {
        self.env.iter().map(|(name, value)| (name.clone(), filled(value, place, base))).collect()
    }
}

fn filled(text: &str, place: &Place, base: &str) -> String {
    let words =
        [("{base}", base), ("{home}", &place.home.to_string_lossy()), ("{work}", &place.work.to_string_lossy())];
    words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}
