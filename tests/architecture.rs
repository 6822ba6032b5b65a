//! The direction of dependencies, and other rules of the house that a compiler does not check.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which room may know which, in the order of the pipeline. Whoever adds an arrow says why in ARCHITECTURE.md.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "config",
        &[
            "agent",
            "user_file",
            "duration",
            "error",
            "nearest",
            "process",
            "redact",
            "run",
            "sandbox",
            "signals",
            "transcript",
            "yaml",
        ],
    ),
    ("agent", &["user_file", "error", "nearest", "process", "yaml"]),
    ("process", &["error", "event", "nearest"]),
    ("transcript", &["event", "process"]),
    ("redact", &["event"]),
    ("sandbox", &["error", "git", "process", "user_file", "yaml"]),
    ("stream", &["event", "process", "redact", "transcript"]),
    ("emit", &["event", "transcript"]),
    ("signals", &["event"]),
    ("git", &["error", "event", "journal", "process"]),
    (
        "run",
        &[
            "user_file",
            "agent",
            "control",
            "duration",
            "error",
            "event",
            "git",
            "journal",
            "local_time",
            "plural",
            "process",
            "redact",
            "sandbox",
            "signals",
            "stream",
            "terminal",
            "transcript",
        ],
    ),
    (
        "plugin",
        &["agent", "user_file", "config", "error", "event", "journal", "process", "redact", "run", "signals", "trust"],
    ),
    ("control", &["duration", "event", "plural", "process"]),
    ("trust", &["user_file", "config", "error", "journal", "ui"]),
    ("journal", &["control", "event", "redact", "signals"]),
    ("ui", &["batch", "control", "error", "event", "journal", "local_time", "plural", "redact", "signals", "terminal"]),
    ("batch", &["control", "duration", "error", "journal", "nearest", "plural", "process", "user_file", "yaml"]),
    ("terminal", &["process"]),
    ("duration", &[]),
    ("local_time", &[]),
    ("error", &[]),
    ("user_file", &[]),
    ("event", &[]),
    ("nearest", &[]),
    ("plural", &[]),
    ("yaml", &["error", "nearest"]),
    ("cli", &["config", "duration", "sandbox"]),
    (
        "app",
        &[
            "batch",
            "git",
            "redact",
            "user_file",
            "agent",
            "cli",
            "config",
            "control",
            "duration",
            "error",
            "journal",
            "local_time",
            "nearest",
            "plugin",
            "plural",
            "process",
            "redact",
            "run",
            "sandbox",
            "signals",
            "terminal",
            "transcript",
            "trust",
            "ui",
        ],
    ),
    (
        "commands",
        &[
            "agent",
            "app",
            "batch",
            "control",
            "plugin",
            "trust",
            "cli",
            "config",
            "duration",
            "emit",
            "error",
            "event",
            "git",
            "journal",
            "local_time",
            "nearest",
            "plural",
            "process",
            "redact",
            "run",
            "sandbox",
            "signals",
            "terminal",
            "stream",
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

/// The rooms that a path behind `crate::` names: one, or those of a group `{a::B, c}`.
fn rooms_named(rest: &str) -> Vec<&str> {
    let name = |text: &'_ str| -> usize {
        text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len())
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![&rest[..name(rest)]].into_iter().filter(|room| room.starts_with(char::is_lowercase)).collect();
    };
    let (mut rooms, mut depth, mut at_start) = (Vec::new(), 0, true);
    for (index, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            _ if at_start && !character.is_whitespace() => {
                at_start = false;
                rooms.push(&group[index..index + name(&group[index..])]);
            }
            _ => {}
        }
    }
    rooms
}

#[test]
fn groups_of_imports_are_seen() {
    assert_eq!(rooms_named("run::decide::{A, B};"), ["run"]);
    assert_eq!(rooms_named("{run::{self, decide}, ui, journal::Fact};"), ["run", "ui", "journal"]);
    assert_eq!(rooms_named("{\n    ui::tui,\n    run,\n};"), ["ui", "run"]);
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
        let known: BTreeSet<&str> = code.split("crate::").skip(1).flat_map(rooms_named).collect();
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

/// Text for people leaves through `ui/out.rs`; the terminal's own control sequences through what takes the terminal.
#[test]
fn only_one_file_prints() {
    let allowed = ["src/ui/out.rs", "src/terminal/mod.rs", "src/terminal/screen.rs"];
    let prints = |text: &str| {
        let text = text.replace("stdio::std", "");
        ["io::stdout()", "io::stderr()", "print!(", "println!("].iter().any(|way| text.contains(way))
    };
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !is_test(path) && !allowed.contains(&path.to_str().unwrap()) && prints(product(text)))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "only src/ui/out.rs may print: {wrong:?}");
}

#[test]
fn only_the_redaction_says_that_output_is_clean() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| {
            let makes = product(text).contains("Clean::made(") || product(text).contains("Clean::exact(");
            !is_test(path) && !["redact", "stream"].contains(&room(path).as_str()) && makes
        })
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "only `redact` and `stream` may call output clean: {wrong:?}");
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
