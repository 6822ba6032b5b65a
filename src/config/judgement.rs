//! Values about the loop's judgement: sessions, hats, prices. Checks are in `verify.rs`.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::command::Program;
use super::origin::{Origin, Setting};
use super::reading::Reading;
use super::value::{SettingValue, words};
use crate::agent::Permissions;
use crate::error::UserError;
use crate::nearest::nearest;
use crate::run::budget::{Price, Pricing};
use crate::run::decide::Permission;
use crate::run::hats::{AgentChoice, Hat};
use crate::run::notify::Moment;
use crate::yaml::{Node, Value};

words! { Moment { "complete" => Complete, "failed" => Failed, "blocked" => Blocked, "waiting" => Waiting } }

words! { Permission { "continue" => Continue, "halt" => Halt, "threshold" => Threshold } }

/// A number that may be 0, which turns off what it bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrOff(pub u32);

impl SettingValue for OrOff {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match node.value {
            Value::Whole(number) if number >= 0 => Ok(Self(u32::try_from(number).unwrap_or(u32::MAX))),
            _ => Err(reading.expected(node, key, "a whole number, 0 or more")),
        }
    }

    fn shown(&self) -> String {
        if self.0 == 0 { "off".to_owned() } else { self.0.to_string() }
    }

    fn written(&self) -> Json {
        json!(self.0)
    }

    fn schema() -> Json {
        json!({"type": "integer", "minimum": 0})
    }
}

/// A part of a whole, from 1 to 100 per cent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(pub u32);

impl SettingValue for Percent {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let number = match &node.value {
            Value::Whole(number) => u32::try_from(*number).ok(),
            Value::Text(text) => text.strip_suffix('%').and_then(|number| number.trim().parse().ok()),
            _ => None,
        };
        number
            .filter(|number| (1..=100).contains(number))
            .map(Self)
            .ok_or_else(|| reading.wrong(node, &format!("`{key}` must be from `1%` to `100%`")))
    }

    fn shown(&self) -> String {
        format!("{}%", self.0)
    }

    fn written(&self) -> Json {
        json!(self.shown())
    }

    fn schema() -> Json {
        json!({"type": ["integer", "string"], "pattern": "^[0-9]{1,3} ?%$", "minimum": 1, "maximum": 100})
    }
}

/// An amount of money, in US dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dollars(pub f64);

impl SettingValue for Dollars {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        amount(node).filter(|usd| *usd > 0.0).map(Self).ok_or_else(|| {
            reading.wrong(node, &format!("`{key}` must be an amount of dollars above 0, such as `5` or `2.50`"))
        })
    }

    fn shown(&self) -> String {
        format!("${:.2}", self.0)
    }

    fn written(&self) -> Json {
        json!(self.0)
    }

    fn schema() -> Json {
        json!({"type": "number", "exclusiveMinimum": 0})
    }
}

/// A number with or without a point.
fn amount(node: &Node) -> Option<f64> {
    match &node.value {
        Value::Whole(number) => u32::try_from(*number).ok().map(f64::from),
        Value::Fraction(number) => Some(*number).filter(|number| number.is_finite() && *number >= 0.0),
        _ => None,
    }
}

/// Whether an iteration continues the session of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    Fresh,
    Resume,
    /// It continues until so much of the context is used, in per cent.
    ResumeUntil(u8),
}

impl SessionChoice {
    /// `fresh`, `resume`, or `resume-until: context 60%`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "fresh" => return Some(Self::Fresh),
            "resume" => return Some(Self::Resume),
            _ => {}
        }
        let rest = text.trim().strip_prefix("resume-until")?.trim_start_matches([':', ' ']);
        let rest = rest.strip_prefix("context").unwrap_or(rest).trim();
        let percent: u8 = rest.strip_suffix('%')?.trim().parse().ok()?;
        (1..=100).contains(&percent).then_some(Self::ResumeUntil(percent))
    }
}

impl SettingValue for SessionChoice {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let text = match &node.value {
            Value::Map(entries) => match entries.as_slice() {
                [entry] => match &entry.node.value {
                    Value::Text(text) => format!("{}: {text}", entry.key),
                    _ => String::new(),
                },
                _ => String::new(),
            },
            _ => String::read(reading, node, key)?,
        };
        let wrong =
            || reading.wrong(node, &format!("`{key}` must be `fresh`, `resume` or `resume-until: context 60%`"));
        Self::parse(&text).ok_or_else(wrong)
    }

    fn shown(&self) -> String {
        match self {
            Self::Fresh => "fresh".to_owned(),
            Self::Resume => "resume".to_owned(),
            Self::ResumeUntil(percent) => format!("resume-until: context {percent}%"),
        }
    }

    fn written(&self) -> Json {
        match self {
            Self::ResumeUntil(percent) => json!({"resume-until": format!("context {percent}%")}),
            _ => json!(self.shown()),
        }
    }

    fn schema() -> Json {
        let until = json!({
            "type": "object", "additionalProperties": false, "required": ["resume-until"],
            "properties": {"resume-until": {"type": "string", "pattern": "^context [0-9]+%$"}},
        });
        json!({"anyOf": [{"enum": ["fresh", "resume"]}, until]})
    }
}

/// Model → prices in dollars for a million tokens.
impl SettingValue for Pricing {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let mut prices = BTreeMap::new();
        for model in reading.entries(node, key, "a mapping of models")? {
            let full = format!("{key}.{}", model.key);
            let mut price = Price::default();
            let mut named = [false; 2];
            for entry in reading.entries(&model.node, &full, "a mapping with `input` and `output`")? {
                let place = match entry.key.as_str() {
                    "input" => &mut price.input,
                    "output" => &mut price.output,
                    "cached" => price.cached.insert(0.0),
                    "cache_write" => price.cache_write.insert(0.0),
                    other => {
                        unknown(reading, &full, other, entry, &["input", "output", "cached", "cache_write"]);
                        continue;
                    }
                };
                let form = "dollars for a million tokens, such as `3` or `0.25`";
                *place = amount(&entry.node)
                    .ok_or_else(|| reading.expected(&entry.node, &format!("{full}.{}", entry.key), form))?;
                named[0] |= entry.key == "input";
                named[1] |= entry.key == "output";
            }
            if named != [true, true] {
                return Err(reading.wrong(&model.node, &format!("`{full}` needs both `input` and `output`")));
            }
            prices.insert(model.key.clone(), price);
        }
        Ok(Self(prices))
    }

    fn shown(&self) -> String {
        if self.0.is_empty() { "not set".to_owned() } else { self.0.keys().cloned().collect::<Vec<_>>().join(", ") }
    }

    fn written(&self) -> Json {
        if self.0.is_empty() { Json::Null } else { json!(self.0) }
    }

    fn schema() -> Json {
        let price = json!({"type": "number", "minimum": 0});
        json!({"type": "object", "additionalProperties": {
            "type": "object", "additionalProperties": false, "required": ["input", "output"],
            "properties": {"input": price, "output": price, "cached": price, "cache_write": price},
        }})
    }
}

/// The hats, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HatList {
    pub hats: Vec<Hat>,
    /// The hats that name an agent, and where.
    pub choices: Vec<Setting<(String, AgentChoice)>>,
}

const HAT_KEYS: [&str; 13] = [
    "name",
    "description",
    "triggers",
    "publishes",
    "instructions",
    "agent",
    "args",
    "model",
    "effort",
    "tools",
    "permissions",
    "max_activations",
    "default_publishes",
];

impl SettingValue for HatList {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let mut list = Self::default();
        for entry in reading.entries(node, key, "a mapping of hats")? {
            let (hat, origin) = hat(reading, &entry.key, &entry.node, &format!("{key}.{}", entry.key))?;
            list.choices.extend(origin.map(|origin| Setting::new((hat.id.clone(), hat.choice.clone()), origin)));
            list.hats.push(hat);
        }
        Ok(list)
    }

    fn shown(&self) -> String {
        let names: Vec<&str> = self.hats.iter().map(|hat| hat.id.as_str()).collect();
        if names.is_empty() { "not set".to_owned() } else { names.join(", ") }
    }

    fn written(&self) -> Json {
        if self.hats.is_empty() {
            return Json::Null;
        }
        let hats = self.hats.iter().map(|hat| {
            let mut map = serde_json::Map::new();
            let mut put = |name: &str, value: Json| drop(map.insert(name.to_owned(), value));
            put("name", json!(hat.name));
            if !hat.description.is_empty() {
                put("description", json!(hat.description));
            }
            put("triggers", json!(hat.triggers));
            put("publishes", json!(hat.publishes));
            if !hat.instructions.is_empty() {
                put("instructions", json!(hat.instructions));
            }
            let AgentChoice { agent, command, args, model, effort, tools, permissions } = &hat.choice;
            match (agent, command) {
                (_, Some(argv)) => put("agent", json!({"command": argv.first(), "args": argv.get(1..)})),
                (Some(agent), None) => put("agent", json!(agent)),
                (None, None) => {}
            }
            if !args.is_empty() {
                put("args", json!(args));
            }
            for (key, value) in [("model", model), ("effort", effort)] {
                if let Some(value) = value {
                    put(key, json!(value));
                }
            }
            if !tools.is_empty() {
                put("tools", json!(tools));
            }
            if let Some(permissions) = permissions {
                put("permissions", SettingValue::written(permissions));
            }
            if let Some(most) = hat.max_activations {
                put("max_activations", json!(most));
            }
            if let Some(topic) = &hat.default_publishes {
                put("default_publishes", json!(topic));
            }
            (hat.id.clone(), Json::Object(map))
        });
        Json::Object(hats.collect())
    }

    fn schema() -> Json {
        let (text, list) = (String::schema(), Vec::<String>::schema());
        let with_args = json!({"type": "object", "additionalProperties": false,
            "properties": {"type": text, "agent": text, "command": text, "args": list}});
        json!({"type": "object", "additionalProperties": {
            "type": "object", "required": ["triggers"],
            "properties": {
                "name": text, "description": text, "triggers": list, "publishes": list, "instructions": text,
                "agent": {"anyOf": [text, with_args]}, "args": list, "model": text, "effort": text,
                "tools": list, "permissions": Permissions::schema(),
                "max_activations": u32::schema(), "default_publishes": text,
            },
        }})
    }
}

/// A hat, and where it names an agent.
fn hat(reading: &mut Reading<'_>, id: &str, node: &Node, full: &str) -> Result<(Hat, Option<Origin>), UserError> {
    let mut hat = Hat { id: id.to_owned(), name: id.to_owned(), ..Hat::default() };
    let mut origin = None;
    for entry in reading.entries(node, full, "a mapping with `triggers`")? {
        let key = format!("{full}.{}", entry.key);
        let node = &entry.node;
        match entry.key.as_str() {
            _ if matches!(node.value, Value::Null) => {}
            "name" => hat.name = String::read(reading, node, &key)?,
            "description" => hat.description = String::read(reading, node, &key)?,
            "triggers" => hat.triggers = topics(reading, node, &key)?,
            "publishes" => hat.publishes = topics(reading, node, &key)?,
            "instructions" => hat.instructions = String::read(reading, node, &key)?,
            "agent" | "backend" => backend(reading, node, &key, &mut hat.choice)?,
            "args" | "backend_args" => hat.choice.args.extend(Vec::<String>::read(reading, node, &key)?),
            "model" => hat.choice.model = Some(String::read(reading, node, &key)?),
            "effort" => hat.choice.effort = Some(String::read(reading, node, &key)?),
            "tools" => hat.choice.tools = Vec::<String>::read(reading, node, &key)?,
            "permissions" => hat.choice.permissions = Some(Permissions::read(reading, node, &key)?),
            "max_activations" => hat.max_activations = Some(u32::read(reading, node, &key)?),
            "default_publishes" => hat.default_publishes = Some(String::read(reading, node, &key)?),
            other => unknown(reading, full, other, entry, &HAT_KEYS),
        }
        if origin.is_none() && hat.choice != AgentChoice::default() {
            origin = Some(reading.origin(node));
        }
    }
    if hat.triggers.is_empty() {
        return Err(reading.wrong(node, &format!("`{full}` has no `triggers`, so that nothing would ever call it")));
    }
    Ok((hat, origin))
}

/// The agent of a hat: its name, `{type, args}`, `{type, agent, args}` for an agent with profiles of its own, or
/// `{command, args}` for any command.
fn backend(reading: &mut Reading<'_>, node: &Node, key: &str, choice: &mut AgentChoice) -> Result<(), UserError> {
    if !matches!(node.value, Value::Map(_)) {
        choice.agent = Some(String::read(reading, node, key)?);
        return Ok(());
    }
    let form = "the name of an agent, or a mapping with `type` or `command`";
    let (mut profile, mut args) = (Vec::new(), Vec::new());
    for entry in reading.entries(node, key, form)? {
        let full = format!("{key}.{}", entry.key);
        let node = &entry.node;
        match entry.key.as_str() {
            "type" => choice.agent = Some(String::read(reading, node, &full)?),
            "agent" => profile = vec!["--agent".to_owned(), String::read(reading, node, &full)?],
            "command" => choice.command = Some(vec![Program::read(reading, node, &full)?.0]),
            "args" => args = Vec::<String>::read(reading, node, &full)?,
            other => unknown(reading, key, other, entry, &["type", "agent", "command", "args"]),
        }
    }
    match (&choice.agent, &mut choice.command) {
        (Some(_), None) => choice.args.splice(0..0, profile.into_iter().chain(args)).for_each(drop),
        (None, Some(command)) if profile.is_empty() => command.extend(args),
        _ => return Err(reading.expected(node, key, form)),
    }
    Ok(())
}

/// Topics: `a.b`, `a.*` or `*`.
fn topics(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Vec<String>, UserError> {
    let topics = match &node.value {
        Value::Text(one) => vec![one.clone()],
        _ => Vec::<String>::read(reading, node, key)?,
    };
    for topic in &topics {
        let stars = topic.matches('*').count();
        let wrong = topic.trim().is_empty() || stars > 1 || stars == 1 && topic != "*" && !topic.ends_with(".*");
        if wrong {
            let message = format!("`{key}`: `{topic}` is not a topic; use `a.b`, `a.*` or `*`");
            return Err(reading.wrong(node, &message));
        }
    }
    Ok(topics)
}

pub(super) fn unknown(reading: &mut Reading<'_>, section: &str, key: &str, entry: &crate::yaml::Entry, known: &[&str]) {
    let meant = nearest(key, known.iter().copied()).map(|meant| format!("{section}.{meant}"));
    reading.unknown(&format!("{section}.{key}"), entry, meant.as_deref());
}
