//! Projects as the installers of other loops leave them (`tests/worlds/`), started with a bare `ralph run`, `ralph plan`,
//! `ralph build` or `ralph doctor`: nothing in them is changed for ralph.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "worlds/bmalph.rs"]
mod bmalph;
#[path = "support/commands.rs"]
mod commands;
#[path = "worlds/orchestrator.rs"]
mod orchestrator;
#[path = "worlds/ralph_loop.rs"]
mod ralph_loop;
#[path = "worlds/ralph_py.rs"]
mod ralph_py;
#[path = "worlds/ralphex.rs"]
mod ralphex;
mod support;

use std::path::Path;

use support::Test;

/// A git repository with the files of a world in it. Nothing is said on the command line.
fn world(name: &str) -> Test {
    let test = Test::new().no_prompt();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worlds").join(name);
    copy(&from, &test.workspace());
    std::fs::create_dir_all(test.workspace().join(".ralph/logs")).unwrap();
    test
}

/// Copies a directory; a link becomes the file that it leads to.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// What another command of ralph prints there.
fn says(test: &Test, args: &[&str]) -> String {
    let output = test.tool().args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Replaces a text in a file of the world.
fn edit(test: Test, name: &str, from: &str, to: &str) -> Test {
    let text = std::fs::read_to_string(test.workspace().join(name)).unwrap();
    assert!(text.contains(from), "{from:?} is not in {name}");
    test.file(name, text.replace(from, to))
}

#[test]
fn a_command_that_speaks_claude_is_examined_too() {
    let test = Test::new().no_prompt().file(".ralphex/config", "claude_command = codex-as-claude.sh\n");
    let said = says(&test, &["doctor"]);
    assert!(said.contains("claude-command (command from .ralphex/config:1), selected"), "{said}");
    assert!(said.contains("codex-as-claude.sh") && said.contains("a run would not work here"), "{said}");
    let test = test.stands_for("codex-as-claude.sh", "true");
    let said = says(&test, &["doctor"]);
    assert!(said.contains("bin/codex-as-claude.sh") && said.contains("a run would work here"), "{said}");
    let shown = says(&test, &["agents", "show", "claude-command"]);
    assert!(shown.contains("codex-as-claude.sh") && shown.contains("--output-format stream-json"), "{shown}");
    assert_eq!(says(&test, &["config", "get", "cli.backend"]).trim(), "claude-command");
    assert!(says(&test, &["config"]).contains(".ralphex/config:1"));
}
