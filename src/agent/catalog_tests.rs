use super::*;
use crate::agent::definition::{Auto, THIS_PROGRAM};

#[test]
fn the_built_in_files_are_named_as_their_agents_in_the_order_of_usage_or_of_another_program() {
    let mut catalog = Catalog::built_in();
    let order = ["claude", "codex", "copilot", "cursor", "opencode", "gemini", "amp", "kiro"];
    assert_eq!(catalog.names()[..8], order);
    assert_eq!(catalog.names().len(), 20);
    for entry in catalog.entries() {
        assert_eq!(entry.id, entry.definition.id);
    }
    let compiled = catalog.names().len();
    let there = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("agents")).unwrap().count();
    assert_eq!(compiled, there, "a file in `agents/` is not compiled in");
    catalog.prefer(&["claude", "kiro"]);
    assert_eq!(catalog.names()[..4], ["claude", "kiro", "codex", "copilot"]);
}

#[test]
fn every_built_in_agent_says_what_a_user_needs_when_it_is_missing() {
    for Entry { definition, .. } in Catalog::built_in().entries() {
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
    for Entry { definition, .. } in Catalog::built_in().entries() {
        let dialect = definition.dialect.as_str();
        assert!(crate::transcript::names().contains(&dialect), "{}: no dialect `{dialect}`", definition.id);
    }
}

/// What a dialect can be, in these tests.
const DIALECTS: [&str; 2] = ["plain", "claude"];

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
    let mut catalog = Catalog::built_in();
    catalog.add(own.path(), &DIALECTS);
    let claude = catalog.find("claude").unwrap();
    assert_eq!(claude.definition.commands, ["our-claude"]);
    assert_eq!(claude.source, Source::File(own.path().join("claude.yml")));
    assert_eq!((catalog.names()[0], *catalog.names().last().unwrap()), ("claude", "house"));
}

#[test]
fn a_directory_that_is_not_there_adds_nothing() {
    let mut catalog = Catalog::built_in();
    catalog.add(Path::new("no/such/directory"), &DIALECTS);
    assert_eq!(catalog.names().len(), 20);
}

#[test]
fn mistakes_in_an_agent_file_are_named() {
    let head = "name: X\ncommands: [x]\ndialect: plain\n";
    for (text, message) in [
        (format!("id: auto\n{head}"), "`id` must not be `auto`"),
        (format!("id: a b\n{head}"), "`id` must be letters"),
        ("id: x\nname: X\ncommands: []\ndialect: plain\n".to_owned(), "`commands` must name a program"),
        (format!("id: x\n{head}arguments: {{model: [--model]}}\n"), "`arguments.model` must contain `{model}`"),
        (format!("id: x\n{head}session: {{resume: {{args: [--last]}}}}\n"), "must contain `{session}`"),
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
    let document = include_str!("../../docs/guide/agents.md");
    let example = document.split("```yaml\n").find(|text| text.starts_with("id: ")).unwrap();
    let definition = definition::read("house.yml", example.split("```").next().unwrap()).unwrap();
    assert_eq!(definition.commands, ["house-ai", "house"]);
}

fn agent_file(id: &str, more: &str) -> String {
    format!("id: {id}\nname: X\ncommands: [x]\ndialect: plain\n{more}")
}

#[test]
fn a_file_that_cannot_be_used_is_told_and_stands_in_nobodys_way() {
    let own = directory(&[
        ("one.yml", &agent_file("house", "promt: {by: stdin}\n")),
        ("claude.yml", "id: claude\n  name: [\n"),
        ("fine.yml", &agent_file("fine", "")),
    ]);
    let mut catalog = Catalog::built_in();
    catalog.add(own.path(), &DIALECTS);
    assert!(catalog.find("fine").is_ok() && catalog.find("codex").is_ok());
    let warnings = catalog.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("agent `claude` is skipped: `") && warnings[0].contains("not valid YAML"));
    assert!(warnings[1].starts_with("agent `house` is skipped: `") && warnings[1].contains("unknown key `promt`"));
    assert!(catalog.find("house").unwrap_err().message.contains("did you mean `prompt`?"), "who asks for it hears all");
    assert!(catalog.find("claude").unwrap_err().message.contains("not valid YAML"), "nor is the built-in one meant");
    assert!(!catalog.names().contains(&"claude"));
}

#[test]
fn a_nearer_file_mends_a_broken_one() {
    let far = directory(&[("house.yml", "id: house\n")]);
    let near = directory(&[("house.yml", &agent_file("house", ""))]);
    let mut catalog = Catalog::built_in();
    catalog.add(far.path(), &DIALECTS);
    catalog.add(near.path(), &DIALECTS);
    assert!(catalog.find("house").is_ok());
    assert_eq!(catalog.warnings(), Vec::<String>::new());
}

#[test]
fn a_dialect_that_nobody_can_read_is_seen_when_the_file_is_read() {
    let own = directory(&[("x.yml", "id: x\nname: X\ncommands: [x]\ndialect: claud\n")]);
    let mut catalog = Catalog::built_in();
    catalog.add(own.path(), &DIALECTS);
    let error = catalog.find("x").unwrap_err();
    assert!(error.message.ends_with("unknown dialect `claud`"), "{}", error.message);
    assert_eq!(error.hints, ["did you mean `claude`?"]);
}

#[test]
fn two_files_of_one_directory_with_the_same_id_are_told() {
    let own = directory(&[("a.yml", &agent_file("house", "")), ("b.yml", &agent_file("house", ""))]);
    let mut catalog = Catalog::built_in();
    catalog.add(own.path(), &DIALECTS);
    assert_eq!(catalog.warnings().len(), 1);
    assert!(catalog.warnings()[0].contains("both define agent `house`"), "{:?}", catalog.warnings());
    assert_eq!(catalog.find("house").unwrap().source, Source::File(own.path().join("b.yml")));
}

#[test]
fn agents_of_a_parent_directory_are_found_and_the_nearest_wins() {
    let project = tempfile::tempdir().unwrap();
    let inner = project.path().join("one/two");
    let outer_agents = project.path().join(".ralph/agents");
    let inner_agents = inner.join(".ralph/agents");
    for place in [&outer_agents, &inner_agents] {
        std::fs::create_dir_all(place).unwrap();
    }
    std::fs::write(outer_agents.join("house.yml"), agent_file("house", "")).unwrap();
    std::fs::write(outer_agents.join("shed.yml"), agent_file("shed", "")).unwrap();
    std::fs::write(inner_agents.join("house.yml"), agent_file("house", "")).unwrap();
    let catalog = Catalog::load(&inner, None, &crate::transcript::names());
    assert_eq!(catalog.find("shed").unwrap().source, Source::File(outer_agents.join("shed.yml")));
    assert_eq!(catalog.find("house").unwrap().source, Source::File(inner_agents.join("house.yml")));
    let elsewhere = tempfile::tempdir().unwrap();
    let beside = Catalog::load(elsewhere.path(), Some(project.path()), &crate::transcript::names());
    assert!(beside.find("shed").is_ok(), "also beside the configuration that is given");
}

#[test]
fn text_where_a_list_must_be_is_no_fault_of_the_yaml() {
    let error = definition::read("x.yml", "id: x\nname: X\ncommands: house\ndialect: plain\n").unwrap_err();
    assert_eq!(
        error.message,
        "wrong form: expected a list\n --> x.yml:3:11\n  |\n3 | commands: house\n  |           ^"
    );
}
