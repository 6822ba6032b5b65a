//! The JSON schema of `ralph.yml`, for editors: the tables of keys in another form.

use serde_json::{Map, Value as Json, json};

use super::adapter::{Adapter, SECTION};
use super::legacy::ALIASES;
use super::settings::Layer;
use super::table::Key;

/// The dialect of JSON schema that editors know best.
pub const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// The whole schema.
pub fn schema() -> Json {
    let adapter = object(Adapter::KEYS, "");
    let mut sections = object(Layer::KEYS, "");
    sections["properties"][SECTION] = json!({
        "description": "Settings of one agent, by its name.",
        "type": "object",
        "additionalProperties": adapter,
    });
    for (alias, key) in ALIASES {
        let mut means = sections["properties"][*key].clone();
        means["description"] = json!(format!("The same as `{key}`."));
        let place = alias.split('.').fold(&mut sections, |place, name| &mut place["properties"][name]);
        *place = means;
    }
    // One word for the whole section is its mode.
    let section = sections["properties"]["sandbox"].take();
    sections["properties"]["sandbox"] = json!({"anyOf": [section["properties"]["mode"].clone(), section]});
    let mut schema = json!({"$schema": DRAFT, "title": "ralph.yml", "description": "How ralph runs a coding agent."});
    if let (Some(schema), Json::Object(sections)) = (schema.as_object_mut(), sections) {
        schema.extend(sections);
    }
    schema
}

/// The keys of one section, and the sections in it.
fn object(keys: &[Key], prefix: &str) -> Json {
    let mut properties = Map::new();
    for (key, rest) in keys.iter().filter_map(|key| key.path.strip_prefix(prefix).map(|rest| (key, rest))) {
        let (name, value) = match rest.split_once('.') {
            Some((section, _)) => (section, None),
            None => (rest, Some(property(key))),
        };
        if !properties.contains_key(name) {
            let value = value.unwrap_or_else(|| object(keys, &format!("{prefix}{name}.")));
            properties.insert(name.to_owned(), value);
        }
    }
    // An empty section says nothing, and is allowed.
    json!({"type": ["object", "null"], "additionalProperties": false, "properties": properties})
}

fn property(key: &Key) -> Json {
    let mut property = json!({"description": key.doc()});
    if let (Some(property), Json::Object(schema)) = (property.as_object_mut(), (key.schema)()) {
        property.extend(schema);
        let default = (key.default)();
        if !default.is_null() {
            property.insert("default".to_owned(), default);
        }
    }
    property
}
