//! The shape of a stream: for each kind of event the set of its key paths, so that two versions of a CLI can be compared.
//!
//! Values are not looked at, except those that name a kind.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Deeper keys belong to tools, not to the stream.
const DEEPEST: usize = 5;

/// What a tool is given, and what it gives: the keys in it are the tool's.
const OF_TOOLS: [&str; 6] = ["args", "arguments", "input", "parameters", "tool_input", "tool_use_result"];

/// Kinds of events with their key paths.
#[derive(Default)]
pub struct Shapes(BTreeMap<String, BTreeSet<String>>);

impl Shapes {
    /// Adds every JSON line of a stream.
    pub fn read(&mut self, stream: &[u8]) {
        for line in stream.split(|byte| *byte == b'\n') {
            let Ok(event @ Value::Object(_)) = serde_json::from_slice(line) else { continue };
            let paths = self.0.entry(kind(&event)).or_default();
            walk(&event, "", 0, paths);
        }
    }

    /// What is different in `now`, a line each. Kinds that were not seen now say nothing: perhaps nobody asked for them.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, paths) in &now.0 {
            let Some(before) = self.0.get(kind) else {
                lines.push(format!("  + {kind}: {}", listed(paths.iter())));
                continue;
            };
            let (new, gone) = (listed(paths.difference(before)), listed(before.difference(paths)));
            if !new.is_empty() {
                lines.push(format!("  ~ {kind}: new {new}"));
            }
            if !gone.is_empty() {
                lines.push(format!("  ~ {kind}: not seen {gone}"));
            }
        }
        lines
    }
}

fn listed<'a>(paths: impl Iterator<Item = &'a String>) -> String {
    paths.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// `type`, and what refines it: `subtype`, or the type of what is inside.
fn kind(event: &Value) -> String {
    let places = ["/type", "/subtype", "/item/type", "/part/type", "/event/type", "/message/role"];
    let words: Vec<&str> = places.iter().filter_map(|place| event.pointer(place)?.as_str()).collect();
    if words.is_empty() { "?".to_owned() } else { words.join("/") }
}

fn walk(value: &Value, path: &str, depth: usize, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) if depth < DEEPEST => {
            for (name, member) in members {
                // A key such as the name of a model is a value.
                let key = if name.chars().all(|sign| sign.is_alphanumeric() || sign == '_') { name } else { "*" };
                let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                if !OF_TOOLS.contains(&name.as_str()) {
                    walk(member, &path, depth + 1, paths);
                }
                paths.insert(path);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                walk(element, &format!("{path}[]"), depth, paths);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stream: &str) -> Shapes {
        let mut shapes = Shapes::default();
        shapes.read(stream.as_bytes());
        shapes
    }

    #[test]
    fn new_kinds_and_new_and_missing_keys_are_told() {
        let before = of("{\"type\":\"a\",\"x\":1,\"y\":[{\"z\":1}]}\n{\"type\":\"b\"}\nplain\n");
        let now = of("{\"type\":\"a\",\"x\":2,\"w\":{\"v\":1}}\n{\"type\":\"c\",\"k\":1}\n");
        let changes = before.changes(&now);
        assert_eq!(changes, ["  ~ a: new w, w.v", "  ~ a: not seen y, y[].z", "  + c: k, type"]);
    }

    #[test]
    fn a_key_that_is_a_value_is_any_key() {
        let before = of("{\"type\":\"end\",\"models\":{\"large-4.1\":{\"tokens\":1}}}");
        assert!(before.changes(&of("{\"type\":\"end\",\"models\":{\"small-5.0\":{\"tokens\":1}}}")).is_empty());
    }

    #[test]
    fn what_a_tool_is_given_is_not_the_shape_of_a_stream() {
        let before = of("{\"type\":\"tool\",\"input\":{\"path\":\"x\"}}");
        assert!(before.changes(&of("{\"type\":\"tool\",\"input\":{\"command\":\"y\"}}")).is_empty());
        assert_eq!(before.changes(&of("{\"type\":\"tool\"}")), ["  ~ tool: not seen input"]);
    }

    #[test]
    fn the_same_stream_has_no_changes_whatever_its_values() {
        let before = of("{\"type\":\"item\",\"item\":{\"type\":\"text\",\"text\":\"one\"}}");
        let now = of("{\"type\":\"item\",\"item\":{\"type\":\"text\",\"text\":\"two\"}}");
        assert!(before.changes(&now).is_empty());
    }
}
