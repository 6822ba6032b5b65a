//! Files that are made from the code are as the code would make them now.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

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
    same_part("docs/reference/configuration.md", "keys", &config::handbook());
}

#[test]
fn the_table_of_an_agent_files_keys_in_the_handbook() {
    same_part("docs/guide/agents.md", "keys", &agent::schema::handbook());
}

/// `ralph help` with these words, in a directory without a project.
fn help(words: &[&str]) -> String {
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.arg("help").args(words).current_dir(place.path()).env("COLUMNS", "100");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The modes take the flags of `ralph run`, which are printed once.
fn without_flags_of_run(help: &str) -> String {
    let parts: Vec<&str> = help.split("\n\n").collect();
    let examples = parts.iter().filter(|part| part.starts_with("Examples:"));
    let kept: Vec<&str> = parts[..2].iter().chain(examples).copied().collect();
    kept.join("\n\n") + "\n\nArguments and options are those of `ralph run`; the prompt is the goal."
}

/// The commands that a help lists under its headings.
fn listed(help: &str) -> Vec<String> {
    let section = help.split("\n\n").filter(|part| !part.starts_with("Options:") && !part.starts_with("Exit codes:"));
    let lines = section.filter_map(|part| part.split_once(":\n")).flat_map(|(_, rows)| rows.lines());
    lines.filter_map(|line| line.trim().split_once("  ")).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn the_reference_of_the_command_line() {
    let all = help(&["--all"]);
    let mut text = format!(
        "# Command line\n\nMade from `ralph help`. See [exit codes](exit-codes.md) and [configuration](configuration.md).\n\n\
         ```text\n{all}\n```\n"
    );
    let mut names: Vec<Vec<String>> = listed(&all).into_iter().map(|name| vec![name]).collect();
    names.reverse();
    while let Some(name) = names.pop() {
        let mut help = help(&name.iter().map(String::as_str).collect::<Vec<_>>());
        if ["plan", "build", "review", "understand"].contains(&name[0].as_str()) {
            help = without_flags_of_run(&help);
        }
        let _ = write!(text, "\n## ralph {}\n\n```text\n{}\n```\n", name.join(" "), help.trim_end());
        if let Some((_, below)) = help.split_once("\nCommands:\n") {
            let rows = below.split("\n\n").next().unwrap();
            let below = rows.lines().filter_map(|row| row.strip_prefix("  ")).filter(|row| !row.starts_with(' '));
            let below: Vec<&str> = below.filter_map(|row| row.split_whitespace().next()).collect();
            names.extend(below.iter().rev().map(|below| [&name[..], &[(*below).to_owned()]].concat()));
        }
    }
    same("docs/reference/cli.md", &text);
}
