//! The form of an agent file for editors and for the handbook: both follow the types that read it.

use serde_json::Value as Json;

use super::definition::Definition;

/// The JSON schema of an agent file.
pub fn schema() -> Json {
    // The dialect of JSON schema that editors know best.
    let generator = schemars::generate::SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<Definition>();
    schema.insert("title".to_owned(), "ralph agent file".into());
    schema.insert("description".to_owned(), "How ralph calls one agent.".into());
    schema.into()
}

/// The keys as a Markdown table: `arguments.model`, what is allowed there, what it is for.
pub fn handbook() -> String {
    let schema = schema();
    let mut rows = vec!["| key | form | what it is for |\n|---|---|---|\n".to_owned()];
    rows_of(&schema, &schema, "", &mut rows);
    rows.concat()
}

fn rows_of(root: &Json, object: &Json, prefix: &str, rows: &mut Vec<String>) {
    let Some(properties) = object["properties"].as_object() else { return };
    let required =
        |name: &String| object["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    for (name, property) in properties {
        let path = format!("{prefix}{name}");
        let target = resolved(root, property);
        let said = property["description"].as_str().or(target["description"].as_str()).unwrap_or_default();
        let needed = if required(name) && prefix.is_empty() { " **Required.**" } else { "" };
        rows.push(format!("| `{path}` | {} | {}{needed} |\n", form(root, target), said.replace('\n', " ")));
        // What is said of a form once is not said again wherever it is used.
        if target["properties"].is_object() && prefix.is_empty() {
            rows_of(root, target, &format!("{path}."), rows);
        }
    }
}

/// What a property refers to, without its "or null".
fn resolved<'a>(root: &'a Json, property: &'a Json) -> &'a Json {
    let inner = ["allOf", "anyOf"].into_iter().find_map(|word| property[word].get(0));
    let property = inner.unwrap_or(property);
    let name = property["$ref"].as_str().and_then(|path| path.strip_prefix("#/definitions/"));
    name.map_or(property, |name| &root["definitions"][name])
}

/// What is allowed there, in a word.
fn form(root: &Json, target: &Json) -> String {
    let words = |choices: &Json| {
        let names = choices.as_array().into_iter().flatten();
        names
            .filter_map(|choice| choice["const"].as_str().or(choice["enum"][0].as_str()).or(choice.as_str()))
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
    };
    let choices = [words(&target["oneOf"]), words(&target["enum"])].concat();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    let kind = target["type"].as_str().or_else(|| target["type"][0].as_str()).unwrap_or_default();
    match kind {
        "array" => {
            let items = resolved(root, &target["items"]);
            match items["properties"].as_object() {
                Some(fields) => format!("list of {{{}}}", fields.keys().cloned().collect::<Vec<_>>().join(", ")),
                None => "list".to_owned(),
            }
        }
        "object" if target["properties"].is_object() => {
            let fields = target["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned());
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        "object" => "mapping".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        "integer" => "number".to_owned(),
        other => other.to_owned(),
    }
}
