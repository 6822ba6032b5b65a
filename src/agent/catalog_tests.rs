use super::*;
use crate::agent::definition::{Auto, THIS_PROGRAM};

#[test]
fn the_built_in_files_are_named_as_their_agents_and_stand_in_the_documents_order() {
    let catalog = Catalog::built_in().unwrap();
    assert_eq!(catalog.names()[..5], ["claude", "kiro", "gemini", "codex", "amp"]);
    assert_eq!(catalog.names().len(), 15);
    for ((file, _), name) in BUILT_IN.iter().zip(catalog.names()) {
        assert_eq!(file.strip_suffix(".yml"), Some(name));
    }
    let compiled = catalog.names().len();
    let there = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("agents")).unwrap().count();
    assert_eq!(compiled, there, "a file in `agents/` is not compiled in");
}

#[test]
fn every_built_in_agent_says_what_a_user_needs_when_it_is_missing() {
    for Entry { definition, .. } in Catalog::built_in().unwrap().entries() {
        if definition.commands == [THIS_PROGRAM] {
            assert_eq!(definition.auto, Auto::No);
            continue;
        }
        let id = &definition.id;
        assert!(definition.install.line.is_some() && definition.install.link.is_some(), "{id}: how to install it");
        assert!(definition.auth.login.is_some(), "{id}: how to log in");
        assert!(definition.version.tested.is_some(), "{id}: which version it was written from");
        assert!(definition.permission_help.is_some(), "{id}: what to do about permissions");
        assert!(!definition.help.args.is_empty() && !definition.help.flags.is_empty(), "{id}: flags to look for");
        assert!(!definition.stop.is_empty(), "{id}: how to stop it");
    }
}

#[test]
fn every_dialect_is_one_that_can_be_read() {
    for Entry { definition, .. } in Catalog::built_in().unwrap().entries() {
        let dialect = definition.dialect.as_str();
        assert!(crate::transcript::names().contains(&dialect), "{}: no dialect `{dialect}`", definition.id);
    }
}

/// A directory of agent files.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

#[test]
fn a_later_file_wins_by_name_and_a_new_one_comes_last() {
    let own = directory(&[
        ("claude.yml", "id: claude\nname: Ours\ncommands: [our-claude]\ndialect: claude\n"),
        ("house.yaml", "id: house\nname: House agent\ncommands: [house]\ndialect: plain\n"),
        ("notes.txt", "not an agent"),
    ]);
    let mut catalog = Catalog::built_in().unwrap();
    catalog.add(own.path()).unwrap();
    let claude = catalog.find("claude").unwrap();
    assert_eq!(claude.definition.commands, ["our-claude"]);
    assert_eq!(claude.source, Source::File(own.path().join("claude.yml")));
    assert_eq!((catalog.names()[0], *catalog.names().last().unwrap()), ("claude", "house"));
}

#[test]
fn a_directory_that_is_not_there_adds_nothing() {
    let mut catalog = Catalog::built_in().unwrap();
    catalog.add(Path::new("no/such/directory")).unwrap();
    assert_eq!(catalog.names().len(), 15);
}

#[test]
fn mistakes_in_an_agent_file_are_named() {
    let head = "name: X\ncommands: [x]\ndialect: plain\n";
    for (text, message) in [
        (format!("id: auto\n{head}"), "`id` must not be `auto`"),
        (format!("id: a b\n{head}"), "`id` must be letters"),
        ("id: x\nname: X\ncommands: []\ndialect: plain\n".to_owned(), "`commands` must name a program"),
        (
            format!("id: x\n{head}arguments: {{model: [--model]}}\n"),
            "`arguments.model` must say where it goes, as `{model}`",
        ),
        (format!("id: x\n{head}session: {{resume: {{args: [--last]}}}}\n"), "as `{session}`"),
        (format!("id: x\n{head}promt: {{by: stdin}}\n"), "promt"),
        (format!("id: x\n{head}stop: [{{signal: nudge, seconds: 1}}]\n"), "nudge"),
        ("name: X\n".to_owned(), "id"),
    ] {
        let error = definition::read("x.yml", &text).unwrap_err();
        assert!(error.message.contains(message) && error.message.contains("x.yml"), "{text}: {}", error.message);
    }
}

#[test]
fn the_example_in_the_document_is_an_agent_file() {
    let document = include_str!("../../docs/agents.md");
    let example = document.split("```yaml\n").find(|text| text.starts_with("id: ")).unwrap();
    let definition = definition::read("house.yml", example.split("```").next().unwrap()).unwrap();
    assert_eq!(definition.commands, ["house-ai", "house"]);
}
