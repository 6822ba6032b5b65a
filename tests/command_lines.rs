//! The command line of every built-in agent in every form, word for word, as its evidence has it.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fmt::Write as _;
use std::path::Path;

use ralph::agent::{Agent, Catalog, Definition, LONGEST_ARGUMENT, Mode, Options, Partial, Session, Turn, User};

const WORKSPACE: &str = "/project";

fn agent(definition: &Definition, options: Options) -> Agent {
    let program = definition.commands[0].clone().into();
    Agent { definition: definition.clone(), options, program, leading: Vec::new(), plugin: None }
}

/// Every form of one agent, one a paragraph.
fn forms(definition: &Definition) -> String {
    let large = "x".repeat(LONGEST_ARGUMENT + 1);
    let new = Turn::new("Do the work.", Path::new(WORKSPACE));
    let with = |session: fn(String) -> Session| Turn { session: session("ID".to_owned()), ..new.clone() };
    let usual = Options::default;
    let forms = [
        ("new", usual(), new.clone()),
        ("new, a prompt like a flag", usual(), Turn { prompt: "--help me", ..new.clone() }),
        ("new, as root", Options { user: User::Root, ..usual() }, new.clone()),
        ("new, words as they come", Options { partial: Partial::On, ..usual() }, new.clone()),
        ("given session", usual(), with(Session::Given)),
        ("resume", usual(), with(Session::Resume)),
        ("fork", usual(), with(Session::Fork)),
        ("model", Options { model: Some("some-model".to_owned()), ..usual() }, new.clone()),
        ("effort", Options { effort: Some("high".to_owned()), ..usual() }, new.clone()),
        ("tools", Options { tools: vec!["Read".to_owned(), "Edit".to_owned()], ..usual() }, new.clone()),
        ("large prompt", usual(), Turn { prompt: &large, ..new.clone() }),
        ("interactive", usual(), Turn { mode: Mode::Interactive, ..new.clone() }),
    ];
    let mut text = String::new();
    for (name, options, turn) in forms {
        let line = agent(definition, options).shell_line(&turn).unwrap_or_else(|error| error.to_string());
        let line = line.replace(&large, "<LARGE PROMPT>");
        let _ = writeln!(text, "{name}:\n  {}\n", line.replace('\n', "\n  "));
    }
    text
}

#[test]
fn every_agent_has_its_command_lines() {
    for entry in Catalog::built_in().entries() {
        insta::assert_snapshot!(entry.id.as_str(), forms(&entry.definition));
    }
}
