//! What a project is tested with, found from its files. It only reads.

use std::path::Path;

use crate::user_file;

/// A command that tests this project, and the file that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestCommand {
    pub command: String,
    pub source: String,
}

/// A larger file is not read.
const LARGEST: u64 = 1024 * 1024;

/// The command that tests the project in this directory: its build tool's, else that of its task runner, else its CI's.
pub(crate) fn test_command(directory: &Path) -> Option<TestCommand> {
    let finders = [cargo, node, go, python, gradle, maven, just, make, workflow];
    finders.iter().find_map(|find| find(directory)).map(|(command, source)| TestCommand { command, source })
}

type CommandAndSource = Option<(String, String)>;

#[expect(clippy::unnecessary_wraps, reason = "what every finder gives")]
fn found(command: &str, source: &str) -> CommandAndSource {
    Some((command.to_owned(), source.to_owned()))
}

fn text(directory: &Path, name: &str) -> Option<String> {
    let bytes = user_file::read(&directory.join(name), LARGEST).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn first_file<'a>(directory: &Path, names: &[&'a str]) -> Option<&'a str> {
    names.iter().copied().find(|name| directory.join(name).is_file())
}

fn cargo(directory: &Path) -> CommandAndSource {
    first_file(directory, &["Cargo.toml"]).and_then(|file| found("cargo test", file))
}

fn node(directory: &Path) -> CommandAndSource {
    let package: serde_json::Value = serde_json::from_str(&text(directory, "package.json")?).ok()?;
    let script = package["scripts"]["test"].as_str()?;
    // What `npm init` writes.
    if script.contains("no test specified") {
        return None;
    }
    let managers = [
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
    ];
    let manager = managers.iter().find(|(lock, _)| directory.join(lock).is_file());
    found(manager.map_or("npm test", |(_, command)| command), "package.json")
}

fn go(directory: &Path) -> CommandAndSource {
    first_file(directory, &["go.mod"]).and_then(|file| found("go test ./...", file))
}

fn python(directory: &Path) -> CommandAndSource {
    let runner = match first_file(directory, &["uv.lock", "poetry.lock", "pdm.lock"]) {
        Some("uv.lock") => "uv run ",
        Some("poetry.lock") => "poetry run ",
        Some(_) => "pdm run ",
        None => "",
    };
    let files = ["pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "requirements-dev.txt", "requirements.txt"];
    let mentions = |name: &str| text(directory, name).is_some_and(|text| text.contains("pytest"));
    let file = files.into_iter().find(|name| mentions(name));
    if let Some(file) = file.or_else(|| first_file(directory, &["conftest.py", "tests/conftest.py"])) {
        return found(&format!("{runner}pytest"), file);
    }
    let is_test =
        |name: &str| name.starts_with("test") && Path::new(name).extension().is_some_and(|extension| extension == "py");
    for place in ["tests", "test", "."] {
        let Ok(entries) = std::fs::read_dir(directory.join(place)) else { continue };
        if entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_test)) {
            let command = if place == "." {
                "python3 -m unittest".to_owned()
            } else {
                format!("python3 -m unittest discover {place}")
            };
            return found(&format!("{runner}{command}"), &format!("{place}/test*.py"));
        }
    }
    None
}

fn gradle(directory: &Path) -> CommandAndSource {
    let file = first_file(directory, &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"])?;
    found(if directory.join("gradlew").is_file() { "./gradlew test" } else { "gradle test" }, file)
}

fn maven(directory: &Path) -> CommandAndSource {
    let file = first_file(directory, &["pom.xml"])?;
    found(if directory.join("mvnw").is_file() { "./mvnw -q test" } else { "mvn -q test" }, file)
}

fn just(directory: &Path) -> CommandAndSource {
    let file = first_file(directory, &["justfile", "Justfile", ".justfile"])?;
    recipe(&text(directory, file)?).and_then(|name| found(&format!("just {name}"), file))
}

fn make(directory: &Path) -> CommandAndSource {
    let file = first_file(directory, &["Makefile", "makefile", "GNUmakefile"])?;
    recipe(&text(directory, file)?).and_then(|name| found(&format!("make {name}"), file))
}

/// The target of a Makefile, or the recipe of a justfile, that tests.
fn recipe(text: &str) -> Option<&'static str> {
    let begins = |line: &str, name: &str| {
        let rest = line.strip_prefix('@').unwrap_or(line).strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':') && !rest.contains(":="))
    };
    ["test", "check"].into_iter().find(|name| text.lines().any(|line| begins(line, name)))
}

/// A step of a workflow that tests, where it is one plain line.
fn workflow(directory: &Path) -> CommandAndSource {
    let mut files: Vec<String> = [".github/workflows", ".gitlab-ci.yml"]
        .iter()
        .flat_map(|place| match std::fs::read_dir(directory.join(place)) {
            Ok(entries) => {
                let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
                names
                    .filter(|name| {
                        Path::new(name).extension().is_some_and(|extension| extension == "yml" || extension == "yaml")
                    })
                    .map(|name| format!("{place}/{name}"))
                    .collect()
            }
            Err(_) => vec![(*place).to_owned()],
        })
        .collect();
    files.sort();
    files.iter().find_map(|file| {
        let text = text(directory, file)?;
        let steps = text.lines().filter_map(|line| {
            let line = line.trim_start().trim_start_matches("- ");
            line.strip_prefix("run:").or_else(|| file.starts_with(".gitlab").then_some(line))
        });
        let mut commands = steps.map(|step| step.trim().trim_matches(['"', '\'']));
        let tests = |step: &&str| {
            let mut words = step.split_whitespace();
            step.is_ascii()
                && !step.contains("${{")
                && !step.contains(['|', '>', '&', ':', '#'])
                && words.nth(1).is_some_and(|word| word.starts_with("test"))
        };
        commands.find(tests).and_then(|command| found(command, file))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_command_follows_the_files_of_a_project() {
        for (files, command, source) in [
            (&[("Cargo.toml", "[package]")][..], "cargo test", "Cargo.toml"),
            (&[("package.json", r#"{"scripts":{"test":"vitest"}}"#)], "npm test", "package.json"),
            (
                &[("package.json", r#"{"scripts":{"test":"vitest"}}"#), ("pnpm-lock.yaml", "")],
                "pnpm test",
                "package.json",
            ),
            (&[("package.json", r#"{"scripts":{"test":"jest"}}"#), ("yarn.lock", "")], "yarn test", "package.json"),
            (&[("package.json", r#"{"scripts":{"test":"x"}}"#), ("bun.lockb", "")], "bun run test", "package.json"),
            (&[("go.mod", "module x")], "go test ./...", "go.mod"),
            (&[("pyproject.toml", "[tool.pytest.ini_options]"), ("uv.lock", "")], "uv run pytest", "pyproject.toml"),
            (&[("tests/conftest.py", "")], "pytest", "tests/conftest.py"),
            (&[("tests/test_a.py", "import unittest")], "python3 -m unittest discover tests", "tests/test*.py"),
            (&[("test_a.py", "import unittest")], "python3 -m unittest", "./test*.py"),
            (&[("build.gradle.kts", ""), ("gradlew", "")], "./gradlew test", "build.gradle.kts"),
            (&[("pom.xml", "")], "mvn -q test", "pom.xml"),
            (&[("justfile", "build:\n  x\n\ntest filter='':\n  y\n")], "just test", "justfile"),
            (&[("Makefile", "all: a\n\ncheck: all\n\ttrue\n")], "make check", "Makefile"),
            (&[(".github/workflows/ci.yml", "steps:\n  - run: echo \"${{ x }} test\"\n")], "", ""),
            (&[(".github/workflows/ci.yml", "steps:\n  - run: rake test\n")], "rake test", ".github/workflows/ci.yml"),
            (&[(".gitlab-ci.yml", "script:\n  - mix test\n")], "mix test", ".gitlab-ci.yml"),
            (&[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#)], "", ""),
            (&[("Makefile", "test := 1\nall:\n\ttrue\n")], "", ""),
            (&[], "", ""),
        ] {
            let directory = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = directory.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let found = test_command(directory.path());
            let found = found.as_ref().map_or(("", ""), |found| (found.command.as_str(), found.source.as_str()));
            assert_eq!(found, (command, source), "{files:?}");
        }
    }
}
