//! Values of `verify` and `until`: the checks that decide when a run is done.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::judgement::unknown;
use super::reading::Reading;
use super::value::{SettingValue, words};
use crate::error::UserError;
use crate::run::decide::Until;
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
