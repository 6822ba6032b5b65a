//! Files that are made from the code are as the code would make them now.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::path::Path;

use ralph::agent;
use ralph::config;

/// Compares a file with what it should be, or writes it when asked to.
#[track_caller]
fn same(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, expected).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == expected, "`{name}` is out of date: run `UPDATE_GENERATED=1 cargo test --test generated`");
}

/// The same for the part of a document between `<!-- NAME -->` and `<!-- end -->`.
#[track_caller]
fn same_part(name: &str, part: &str, expected: &str) {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let (before, rest) = text.split_once(&format!("<!-- {part} -->\n")).expect("the mark of the part");
    let (_, after) = rest.split_once("<!-- end -->\n").expect("the mark of its end");
    same(name, &format!("{before}<!-- {part} -->\n{expected}<!-- end -->\n{after}"));
}

#[test]
fn the_schema_of_the_configuration() {
    same("schema/ralph.schema.json", &format!("{:#}\n", config::schema()));
}

#[test]
fn the_schema_of_an_agent_file() {
    same("schema/agent.schema.json", &format!("{:#}\n", agent::schema::schema()));
}

#[test]
fn the_table_of_keys_in_the_handbook() {
    same_part("docs/configuration.md", "keys", &config::handbook());
}

#[test]
fn the_table_of_an_agent_files_keys_in_the_handbook() {
    same_part("docs/agents.md", "keys", &agent::schema::handbook());
}
