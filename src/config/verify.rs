//! Values of `verify` and `until`: the checks and judges that decide when a run is done.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::judgement::unknown;
use super::reading::Reading;
use super::value::{SettingValue, words};
use crate::error::UserError;
use crate::run::decide::Until;
use crate::run::judging::Judge;
use crate::run::verify::{Check, DEFAULT_TIMEOUT, When};
use crate::yaml::{Node, Value};

words! { Until { "claim" => Claim, "checks" => Checks } }

words! { When { "claim" => Claim, "iteration" => Iteration, "end" => End } }

const CHECK_KEYS: [&str; 7] = ["run", "name", "timeout", "cwd", "when", "required", "baseline"];

/// A command, or a mapping of `run` with more.
impl SettingValue for Check {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        if let Value::Text(command) = &node.value {
            return if command.trim().is_empty() {
                Err(reading.wrong(node, &format!("`{key}` must not be empty")))
            } else {
                Ok(Self::new(command.clone()))
            };
        }
        let form = "a command, or a mapping with `run`";
        let mut check = Self::new("");
        let mut name = None;
        for entry in reading.entries(node, key, form)? {
            let full = format!("{key}.{}", entry.key);
            match entry.key.as_str() {
                "run" | "command" => check.command = String::read(reading, &entry.node, &full)?,
                "name" => name = Some(String::read(reading, &entry.node, &full)?),
                "timeout" => check.timeout = Duration::read(reading, &entry.node, &full)?,
                "cwd" => check.directory = Some(PathBuf::read(reading, &entry.node, &full)?),
                "when" => check.when = When::read(reading, &entry.node, &full)?,
                "required" => check.required = bool::read(reading, &entry.node, &full)?,
                "baseline" => check.baseline = bool::read(reading, &entry.node, &full)?,
                other => unknown(reading, key, other, entry, &CHECK_KEYS),
            }
        }
        if check.command.is_empty() {
            return Err(reading.expected(node, key, form));
        }
        check.name = name.unwrap_or_else(|| check.command.clone());
        Ok(check)
    }

    fn shown(&self) -> String {
        format!("`{}`", self.command)
    }

    fn written(&self) -> Json {
        let usual = Self::new(self.command.clone());
        if *self == usual {
            return json!(self.command);
        }
        let mut map = serde_json::Map::new();
        let mut put = |key: &str, value: Json| drop(map.insert(key.to_owned(), value));
        put("run", json!(self.command));
        if self.name != self.command {
            put("name", json!(self.name));
        }
        if self.timeout != DEFAULT_TIMEOUT {
            put("timeout", self.timeout.written());
        }
        if let Some(directory) = &self.directory {
            put("cwd", directory.written());
        }
        if self.when != usual.when {
            put("when", self.when.written());
        }
        for (key, value, usual) in
            [("required", self.required, usual.required), ("baseline", self.baseline, usual.baseline)]
        {
            if value != usual {
                put(key, json!(value));
            }
        }
        Json::Object(map)
    }

    fn schema() -> Json {
        let mapping = json!({
            "type": "object", "additionalProperties": false, "required": ["run"],
            "properties": {
                "run": {"type": "string"}, "name": {"type": "string"},
                "timeout": Duration::schema(), "cwd": {"type": "string"},
                "when": When::schema(), "required": {"type": "boolean"}, "baseline": {"type": "boolean"},
            },
        });
        json!({"anyOf": [{"type": "string"}, mapping]})
    }
}

/// What `verify` lists: commands, and other agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verify {
    pub checks: Vec<Check>,
    pub judges: Vec<Judge>,
}

/// One item of the list.
enum Gate {
    Check(Check),
    Judge(Judge),
}

impl SettingValue for Gate {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match &node.value {
            Value::Map(entries) if entries.iter().any(|entry| entry.key == "judge") => {
                Judge::read(reading, node, key).map(Self::Judge)
            }
            _ => Check::read(reading, node, key).map(Self::Check),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Check(check) => check.shown(),
            Self::Judge(judge) => judge.shown(),
        }
    }

    fn written(&self) -> Json {
        match self {
            Self::Check(check) => check.written(),
            Self::Judge(judge) => judge.written(),
        }
    }

    fn schema() -> Json {
        let mut schema = Check::schema();
        if let Some(forms) = schema.get_mut("anyOf").and_then(Json::as_array_mut) {
            forms.push(Judge::schema());
        }
        schema
    }
}

impl SettingValue for Verify {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let mut verify = Self::default();
        for gate in Vec::<Gate>::read(reading, node, key)? {
            match gate {
                Gate::Check(check) => verify.checks.push(check),
                Gate::Judge(judge) => verify.judges.push(judge),
            }
        }
        Ok(verify)
    }

    fn shown(&self) -> String {
        self.gates().shown()
    }

    fn written(&self) -> Json {
        self.gates().written()
    }

    fn schema() -> Json {
        Vec::<Gate>::schema()
    }
}

impl Verify {
    fn gates(&self) -> Vec<Gate> {
        let checks = self.checks.iter().cloned().map(Gate::Check);
        checks.chain(self.judges.iter().cloned().map(Gate::Judge)).collect()
    }
}

/// The name of an agent, or a mapping of `judge` with more.
impl SettingValue for Judge {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        if !matches!(node.value, Value::Map(_)) {
            return Ok(Self { agent: String::read(reading, node, key)?, ..Self::default() });
        }
        let mut judge = Self::default();
        for entry in reading.entries(node, key, "a mapping with `judge`")? {
            let full = format!("{key}.{}", entry.key);
            let mut text = || String::read(reading, &entry.node, &full);
            match entry.key.as_str() {
                "judge" => judge.agent = text()?,
                "model" => judge.model = Some(text()?),
                "effort" => judge.effort = Some(text()?),
                "prompt" => judge.prompt = Some(text()?),
                other => unknown(reading, key, other, entry, &["judge", "model", "effort", "prompt"]),
            }
        }
        if judge.agent.is_empty() {
            return Err(reading.expected(node, key, "the name of an agent, or a mapping with `judge`"));
        }
        Ok(judge)
    }

    fn shown(&self) -> String {
        format!("judge {}", self.agent)
    }

    fn written(&self) -> Json {
        let mut map = serde_json::Map::from_iter([("judge".to_owned(), json!(self.agent))]);
        for (key, value) in [("model", &self.model), ("effort", &self.effort), ("prompt", &self.prompt)] {
            map.extend(value.as_ref().map(|value| (key.to_owned(), json!(value))));
        }
        Json::Object(map)
    }

    fn schema() -> Json {
        let text = String::schema();
        json!({
            "type": "object", "additionalProperties": false, "required": ["judge"],
            "properties": {"judge": text, "model": text, "effort": text, "prompt": text},
        })
    }
}
