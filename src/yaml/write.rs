//! Values as YAML, the other way round: what is written here is read back as the same value.

use serde_json::Value as Json;

/// One `key: value` with its comment, indented, with all its lines.
pub(crate) fn entry(depth: usize, key: &str, value: &Json, comment: Option<&str>) -> String {
    let margin = "  ".repeat(depth);
    let head = head(depth, key);
    // A line break in a comment would end it.
    let comment = comment.map_or_else(String::new, |comment| format!("  # {}", comment.replace(['\n', '\r'], " ")));
    match value {
        Json::Object(entries) if !entries.is_empty() => {
            let inner = entries.iter().map(|(key, value)| entry(depth + 1, key, value, None));
            std::iter::once(format!("{head}{comment}\n")).chain(inner).collect()
        }
        Json::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            let inner = items.iter().map(|item| format!("{margin}  - {}\n", flow(item)));
            std::iter::once(format!("{head}{comment}\n")).chain(inner).collect()
        }
        other => format!("{head} {}{comment}\n", flow(other)),
    }
}

/// The `key:` of something that follows, indented.
pub(crate) fn head(depth: usize, key: &str) -> String {
    format!("{}{}:", "  ".repeat(depth), scalar(key))
}

pub(crate) fn flow(value: &Json) -> String {
    match value {
        Json::String(text) => scalar(text),
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Words that mean something else without quotes, to one reader of YAML or another.
const TAKEN: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Text without quotes where that is safe everywhere, else as JSON writes it, which YAML reads as well.
fn scalar(text: &str) -> String {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || "/_".contains(first));
    let plain = |character: char| character.is_ascii_alphanumeric() || "/_.-".contains(character);
    if begins && text.chars().all(plain) && !TAKEN.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    // JSON leaves some characters as they are that YAML does not take.
    let escaped = |character: char| match character {
        '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
            format!("\\u{:04x}", u32::from(character))
        }
        other => other.to_string(),
    };
    Json::String(text.to_owned()).to_string().chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::yaml::{self, Value};

    fn as_json(node: &yaml::Node) -> Json {
        match &node.value {
            Value::Null => Json::Null,
            Value::Flag(flag) => json!(flag),
            Value::Whole(number) => json!(number),
            Value::Fraction(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::List(nodes) => nodes.iter().map(as_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), as_json(&entry.node)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    #[test]
    fn what_is_written_reads_well() {
        let value = json!({"name": "my agent", "args": ["-p", "a"], "steps": [{"run": "x"}], "none": {}});
        let text = entry(1, "hat", &value, Some("ralph.yml:3"));
        assert_eq!(
            text,
            "  hat:  # ralph.yml:3\n    name: \"my agent\"\n    args: [\"-p\", a]\n    steps:\n      - {run: x}\n    none: {}\n"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_back_as_it_was(key in "\\PC{1,8}", text in any::<String>(), list in any::<Vec<String>>()) {
            let value = json!({ key.clone(): {"text": text, "list": list, "maps": [{key.clone(): list}]} });
            let written = entry(0, "top", &value, Some("a comment # with: signs"));
            let tree = yaml::parse("x.yml", &written).unwrap();
            prop_assert_eq!(as_json(&tree), json!({"top": value}), "{}", written);
        }
    }
}
