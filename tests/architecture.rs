//! The direction of dependencies, and other rules of the house that a compiler does not check.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which room may know which, in the order of the pipeline. Whoever adds an arrow says why in ARCHITECTURE.md.
const ALLOWED: &[(&str, &[&str])] = &[
    ("config", &["duration", "error", "nearest", "process", "run", "signals", "transcript", "yaml"]),
    ("agent", &["error", "nearest", "process", "yaml"]),
    ("process", &["event", "nearest"]),
    ("transcript", &["event", "process"]),
    ("emit", &["event", "transcript"]),
    ("signals", &["event"]),
    ("run", &["agent", "error", "event", "journal", "plural", "process", "signals", "transcript"]),
    ("journal", &["event", "signals"]),
    ("ui", &["event", "journal", "plural", "signals"]),
    ("duration", &[]),
    ("error", &[]),
    ("event", &[]),
    ("nearest", &[]),
    ("plural", &[]),
    ("yaml", &["error", "nearest"]),
    ("cli", &["config", "duration"]),
    (
        "commands",
        &[
            "agent",
            "cli",
            "config",
            "duration",
            "emit",
            "error",
            "event",
            "journal",
            "nearest",
            "plural",
            "process",
            "run",
            "signals",
            "transcript",
            "ui",
        ],
    ),
];

fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().to_owned(), text));
            }
        }
    }
    files.sort();
    files
}

/// The room a file belongs to: `src/run/decide.rs` and `src/run.rs` are of `run`.
fn room(path: &Path) -> String {
    let first = path.components().nth(1).unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The file without its tests, which may look anywhere.
fn product(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

fn is_test(path: &Path) -> bool {
    let name = path.to_str().unwrap();
    name.ends_with("_tests.rs") || name.ends_with("/tests.rs")
}

#[test]
fn every_arrow_between_rooms_is_allowed() {
    let mut wrong = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| !is_test(path)) {
        let room = room(path);
        if ["lib", "main"].contains(&room.as_str()) {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: the room `{room}` is not in the list", path.display()));
            continue;
        };
        let code: String =
            product(text).lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let known: BTreeSet<&str> = code
            .split("crate::")
            .skip(1)
            .filter_map(|rest| {
                let end =
                    rest.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(rest.len());
                Some(&rest[..end]).filter(|name| !name.is_empty() && name.starts_with(char::is_lowercase))
            })
            .collect();
        let unknown = known.into_iter().filter(|name| *name != room && !allowed.contains(name));
        wrong.extend(unknown.map(|name| format!("{}: `{room}` must not know `{name}`", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_one_file_makes_commands() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| {
            !is_test(path) && !path.ends_with("process/spawn.rs") && product(text).contains("Command::new(")
        })
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "only src/process/spawn.rs may make commands: {wrong:?}");
}

#[test]
fn unsafe_code_is_in_the_process_room_only() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| text.contains("unsafe_code") && room(path) != "process")
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn files_say_why_they_exist_and_have_one_idea() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let lines = if is_test(&path) { 0 } else { product(&text).lines().count() };
        if lines > 500 {
            wrong.push(format!("{}: {lines} lines", path.display()));
        }
        if !is_test(&path) && !text.starts_with("//!") {
            wrong.push(format!("{}: does not say why it exists", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
