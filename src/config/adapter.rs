//! `adapters.NAME`: what the file says about one agent only, so that nobody waits for a release when a flag changes.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::command::CommandLine;
use super::reading::Reading;
use super::table::layer;
use super::value::{SettingValue, words};
use crate::agent::Permissions;
use crate::error::UserError;
use crate::nearest::nearest;
use crate::run::hooks::OnError;
use crate::yaml::{Node, Value};

pub(crate) const SECTION: &str = "adapters";

layer! {
    /// What a file says about one agent.
    Adapter {
        /// Whether `auto` may pick it.
        "enabled" enabled: bool = true;
        /// Maximum time for one iteration of this agent. Unset: `limits.timeout`.
        "timeout" timeout: Option<Duration> = None;
        /// The program and its first arguments, instead of the agent file's. A path is relative to this file.
        "command" command: Option<CommandLine> = None;
        /// Replaces all arguments that ralph passes for unattended work.
        "args" args: Option<Vec<String>> = None;
        /// Added after the arguments of its agent file, before session and prompt.
        "extra_args" extra_args: Vec<String> = Vec::new();
        /// What it may do without asking: `full`, or `safe`: as little as lets it work alone, or `read-only`: it changes nothing, where the agent has such a mode. Unset: `full`, and `safe` for codex. `docs/agents.md` lists the flags.
        "permissions" permissions: Option<Permissions> = None;
        /// Environment variables to set.
        "env" env: Variables = Variables::default();
        /// Ask the agent to stream partial messages, where it can.
        "partial" partial: bool = false;
    }
}

words! { Permissions { "safe" => Safe, "full" => Full, "read-only" => ReadOnly } }
words! { OnError { "warn" => Warn, "stop" => Stop } }

/// Environment variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(pub Vec<(String, String)>);

impl SettingValue for Variables {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let mut variables = Vec::new();
        for entry in reading.entries(node, key, "a mapping of variables")? {
            let value = match &entry.node.value {
                Value::Flag(flag) => flag.to_string(),
                _ => String::read_item(reading, &entry.node, &format!("{key}.{}", entry.key))?,
            };
            variables.push((entry.key.clone(), value));
        }
        Ok(Self(variables))
    }

    fn shown(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    fn written(&self) -> Json {
        self.0.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into()
    }

    fn schema() -> Json {
        json!({"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}})
    }
}

/// Reads the section: the agents with what is said of each, in the order of the file.
pub(crate) fn read(reading: &mut Reading<'_>, node: &Node) -> Result<Vec<(String, Adapter)>, UserError> {
    let mut adapters = Vec::new();
    for agent in reading.entries(node, SECTION, "a mapping of agents")? {
        let section = format!("{SECTION}.{}", agent.key);
        let mut adapter = Adapter::default();
        for entry in reading.entries(&agent.node, &section, "a mapping")? {
            let full = format!("{section}.{}", entry.key);
            let known = || Adapter::KEYS.iter().map(|key| key.path);
            if known().any(|path| path == entry.key) {
                adapter.read(&entry.key, &full, reading, &entry.node)?;
            } else {
                let meant = nearest(&entry.key, known()).map(|path| format!("{section}.{path}"));
                reading.unknown(&full, entry, meant.as_deref());
            }
        }
        adapters.push((agent.key.clone(), adapter));
    }
    Ok(adapters)
}
