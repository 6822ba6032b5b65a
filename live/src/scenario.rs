//! A scenario: what the model says, how ralph is called, what someone does to it meanwhile, and what must come out.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::stage::Problem;

/// Every file of `scenarios/`, in the order of the table.
const FILES: [(&str, &str); 14] = [
    ("task", include_str!("../scenarios/01-task.yml")),
    ("resume", include_str!("../scenarios/02-resume.yml")),
    ("tool-failure", include_str!("../scenarios/03-tool-failure.yml")),
    ("permission", include_str!("../scenarios/04-permission.yml")),
    ("unauthorized", include_str!("../scenarios/05-unauthorized.yml")),
    ("rate-limit", include_str!("../scenarios/06-rate-limit.yml")),
    ("overload", include_str!("../scenarios/07-overload.yml")),
    ("context", include_str!("../scenarios/08-context.yml")),
    ("killed", include_str!("../scenarios/09-killed.yml")),
    ("interrupt", include_str!("../scenarios/10-interrupt.yml")),
    ("long-prompt", include_str!("../scenarios/11-long-prompt.yml")),
    ("large-output", include_str!("../scenarios/12-large-output.yml")),
    ("huge-output", include_str!("../scenarios/13-huge-output.yml")),
    ("terminal", include_str!("../scenarios/14-terminal.yml")),
];

/// A scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    #[serde(skip)]
    pub name: &'static str,
    /// What it shows.
    pub about: String,
    /// Whether the short form plays it.
    #[serde(default)]
    pub short: bool,
    /// Arguments of `ralph run`.
    #[serde(default)]
    pub run: Vec<String>,
    /// How long it may take at most.
    #[serde(default = "a_minute_and_a_half")]
    pub seconds: u64,
    /// The prompt is filled up to this length.
    #[serde(default)]
    pub prompt_bytes: usize,
    /// Whether the CLI is forbidden its shell.
    #[serde(default)]
    pub permission: Permission,
    /// When faults without a number end.
    pub lift: Option<Lift>,
    /// What is done to it.
    pub act: Option<Act>,
    /// Seconds that it may still take after that.
    pub within: Option<u64>,
    /// Whether it is too large for a fixture.
    #[serde(default)]
    pub bulky: bool,
    /// Whether a CLI plays it that cannot come further than its login.
    #[serde(default)]
    pub without_login: bool,
    /// What the model says.
    pub model: fake_model::Scenario,
    /// What must come out.
    pub expect: Expect,
}

fn a_minute_and_a_half() -> u64 {
    90
}

/// Whether the CLI may use its shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// As ralph gives it.
    #[default]
    Given,
    /// Its own settings forbid it.
    Denied,
}

/// When faults end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lift {
    /// With the first decision of ralph.
    Decision,
}

/// What is done to a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Act {
    /// When this file is there.
    pub when: String,
    /// The Unix signal.
    pub send: Sent,
    /// To whom.
    pub to: To,
}

/// A Unix signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sent {
    /// SIGINT.
    Int,
    /// SIGKILL.
    Kill,
}

/// Who gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum To {
    /// ralph.
    Ralph,
    /// The agent that it runs.
    Agent,
}

/// What must come out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// ralph's exit code.
    pub exit: Option<i32>,
    /// The Unix signal it died of.
    pub signal: Option<i32>,
    /// How many iterations counted.
    pub iterations: Option<u64>,
    /// Files of the workspace.
    pub files: BTreeMap<String, String>,
    /// Files that must not be there.
    pub absent: Vec<String>,
    /// Kinds of events that must be seen.
    pub events: Vec<Seen>,
    /// What the model must have been told in the last request.
    pub heard: Vec<String>,
}

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Words of the agent, each as the model said them.
    Text,
    /// A tool with its end.
    Tool,
    /// A tool that failed.
    FailedTool,
    /// Tokens.
    Usage,
    /// A session with its id.
    Session,
}

/// All of them.
pub fn all() -> Result<Vec<Scenario>, Problem> {
    let read = |(name, text): (&'static str, &str)| {
        let read: Result<Scenario, _> = serde_saphyr::from_str(text);
        read.map(|read| Scenario { name, ..read })
            .map_err(|error| Problem::Wrong(format!("scenario `{name}`: {error}")))
    };
    let mut all: Vec<Scenario> = FILES.into_iter().map(read).collect::<Result<_, _>>()?;
    let walled = SANDBOXES.map(|(name, flag, about)| {
        let task = all.iter().find(|scenario| scenario.name == "task").cloned();
        task.map(|task| Scenario {
            name,
            about: about.to_owned(),
            run: [task.run, vec![flag.to_owned()]].concat(),
            ..task
        })
    });
    all.extend(walled.into_iter().flatten());
    Ok(all)
}

/// The task again, behind each wall.
const SANDBOXES: [(&str, &str, &str); 2] = [
    ("workspace", "--sandbox=workspace", "the task in `sandbox: workspace`"),
    ("strict", "--sandbox=strict", "the task in `sandbox: strict`; the model is reached through ralph's proxy"),
];

impl Scenario {
    /// Whether the agent reaches only what is listed.
    pub fn is_strict(&self) -> bool {
        self.name == "strict"
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::clis;

    #[test]
    fn every_file_of_the_directory_is_played() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files = std::fs::read_dir(directory).unwrap().count();
        assert_eq!(FILES.len(), files);
    }

    #[test]
    fn what_a_cli_cannot_play_is_a_scenario() {
        let scenarios = all().ok().unwrap();
        for cli in clis::table(&[]).ok().unwrap() {
            for name in cli.cannot.keys() {
                assert!(scenarios.iter().any(|scenario| scenario.name == name), "{}: no scenario `{name}`", cli.agent);
            }
            assert!(cli.absent.is_some() || !cli.package.is_empty(), "{} has no package", cli.agent);
        }
    }
}
