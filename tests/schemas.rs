//! The schemas say of real files what ralph says of them. Only the words of JSON schema that ralph's schemas use are known
//! here; any other is a failure, so that none is passed over.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;

use ralph::yaml::{self, Node, Value};
use serde_json::{Value as Json, json};

fn as_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Flag(flag) => json!(flag),
        Value::Whole(number) => json!(number),
        Value::Fraction(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::List(nodes) => nodes.iter().map(as_json).collect(),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| (entry.key.clone(), as_json(&entry.node)));
            entries.collect::<serde_json::Map<_, _>>().into()
        }
    }
}

fn is_of(value: &Json, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the type `{other}` is not known to this test"),
    }
}

/// What is wrong with a value, if anything.
fn problem(root: &Json, schema: &Json, value: &Json) -> Option<String> {
    let check = |schema: &Json| problem(root, schema, value);
    schema.as_object().into_iter().flatten().find_map(|(word, rule)| match word.as_str() {
        "$schema" | "title" | "description" | "default" | "definitions" | "format" | "pattern" => None,
        "$ref" => {
            let name = rule.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
            check(&root["definitions"][name])
        }
        "type" => {
            let kinds: Vec<&str> = rule.as_array().map_or_else(
                || vec![rule.as_str().unwrap()],
                |all| all.iter().map(|one| one.as_str().unwrap()).collect(),
            );
            (!kinds.iter().any(|kind| is_of(value, kind))).then(|| format!("{value} is not of {kinds:?}"))
        }
        "const" => (rule != value).then(|| format!("{value} is not {rule}")),
        "enum" => (!rule.as_array().unwrap().contains(value)).then(|| format!("{value} is not one of {rule}")),
        "minimum" => {
            value.as_i64().filter(|number| *number < rule.as_i64().unwrap()).map(|number| format!("{number} < {rule}"))
        }
        "anyOf" | "oneOf" => {
            let problems: Vec<_> = rule.as_array().unwrap().iter().map(check).collect();
            problems.iter().all(Option::is_some).then(|| format!("{problems:?}"))
        }
        "allOf" => rule.as_array().unwrap().iter().find_map(check),
        "items" => value.as_array().into_iter().flatten().find_map(|item| problem(root, rule, item)),
        "required" => rule
            .as_array()
            .unwrap()
            .iter()
            .find(|name| value.get(name.as_str().unwrap()).is_none())
            .map(|name| format!("{name} is missing")),
        "properties" => {
            rule.as_object().unwrap().iter().find_map(|(name, rule)| {
                problem(root, rule, value.get(name)?).map(|problem| format!("{name}: {problem}"))
            })
        }
        "additionalProperties" => {
            let known = |name: &str| schema["properties"].get(name).is_some();
            let mut others = value.as_object().into_iter().flatten().filter(|(name, _)| !known(name));
            match rule {
                Json::Bool(false) => others.next().map(|(name, _)| format!("`{name}` is not known")),
                rule => others
                    .find_map(|(name, value)| problem(root, rule, value).map(|problem| format!("{name}: {problem}"))),
            }
        }
        other => panic!("the word `{other}` is not known to this test"),
    })
}

fn problem_of(schema: &Json, text: &str) -> Option<String> {
    problem(schema, schema, &as_json(&yaml::parse("x.yml", text).unwrap()))
}

fn files(directory: &str) -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn every_built_in_agent_file_fits_the_schema() {
    let schema = ralph::agent::schema::schema();
    for (name, text) in files("agents") {
        assert_eq!(problem_of(&schema, &text), None, "{name}");
    }
}

#[test]
fn mistakes_in_an_agent_file_do_not_fit() {
    let schema = ralph::agent::schema::schema();
    let good = "id: x\nname: X\ncommands: [x]\ndialect: plain\n";
    assert_eq!(problem_of(&schema, good), None);
    for more in ["promt: {by: stdin}\n", "prompt: {by: pigeon}\n", "tty: maybe\n", "stop: [{signal: int}]\n"] {
        assert!(problem_of(&schema, &format!("{good}{more}")).is_some(), "{more}");
    }
    assert!(problem_of(&schema, "id: x\n").is_some());
}

#[test]
fn the_examples_of_the_handbook_and_the_file_to_begin_with_fit_the_schema() {
    let schema = ralph::config::schema();
    let handbook = include_str!("../docs/reference/configuration.md").split("```yaml\n").nth(1).unwrap();
    let adapters = include_str!("../docs/guide/agents.md").split("```yaml\n").nth(1).unwrap();
    let printed = ralph::config::effective(&ralph::config::Layer::default().settle(), &[]);
    for text in
        [handbook, adapters, &ralph::config::template("claude", "found", &ralph::config::Layer::default()), &printed]
    {
        let text = text.split("```").next().unwrap();
        assert_eq!(problem_of(&schema, text), None, "{text}");
    }
}

#[test]
fn mistakes_in_the_configuration_do_not_fit() {
    let schema = ralph::config::schema();
    for text in [
        "cli: {backnd: x}\n",
        "event_loop: {max_iterations: many}\n",
        "event_loop: {max_iterations: 0}\n",
        "completion: {match: somewhere}\n",
        "adapters: {codex: {timout: 5}}\n",
        "transcript: {cmd: x}\n",
    ] {
        assert!(problem_of(&schema, text).is_some(), "{text}");
    }
}
