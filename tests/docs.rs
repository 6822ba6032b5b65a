//! The documents are true: their commands work, their links resolve, and the README stays short.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use fake_agent::silent;
use support::Test;

/// A document, by its path in the repository.
struct Document {
    name: String,
    text: String,
}

/// A command line of a document.
#[derive(Debug)]
struct Line {
    document: String,
    words: Vec<String>,
    /// In a block, not in a sentence: readers paste it, so it is run.
    block: bool,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<Document> {
    let mut open = vec![root().join("docs")];
    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].iter().map(|name| root().join(name)).collect();
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                files.push(path);
            }
        }
    }
    let read = |path: &PathBuf| Document {
        name: path.strip_prefix(root()).unwrap().display().to_string(),
        text: std::fs::read_to_string(path).unwrap(),
    };
    let mut documents: Vec<Document> = files.iter().map(read).collect();
    documents.sort_by(|one, other| one.name.cmp(&other.name));
    documents
}

/// The lines of a text in blocks that are commands, and its prose.
fn split(text: &str) -> (Vec<&str>, String) {
    let (mut blocks, mut prose) = (Vec::new(), String::new());
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
        } else if let Some(language) = fence {
            blocks.extend((language == "sh").then_some(line));
        } else if let Some(line) = line.strip_prefix("    ") {
            blocks.push(line);
        } else {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    (blocks, prose)
}

/// The words after `ralph`, up to an explanation, a comment or a redirection.
fn words(line: &str) -> Option<Vec<String>> {
    let line = line.replace("cargo run --release -- ", "ralph ");
    let line = line.strip_prefix("nohup ").or_else(|| line.split_once(" | ").map(|(_, rest)| rest)).unwrap_or(&line);
    let line = line.split("  ").next().unwrap().split(" # ").next().unwrap();
    let mut words = shlex::split(line)?.into_iter();
    (words.next()? == "ralph").then(|| words.take_while(|word| !word.starts_with(['>', '&', '|'])).collect())
}

fn lines(document: &Document) -> Vec<Line> {
    let (blocks, prose) = split(&document.text);
    let spans: Vec<&str> = prose.split('`').skip(1).step_by(2).filter(|span| !span.contains('…')).collect();
    let found = blocks.iter().map(|line| (*line, true)).chain(spans.iter().map(|span| (*span, false)));
    let line = |(text, block)| Some(Line { document: document.name.clone(), words: words(text)?, block });
    found.filter_map(line).filter(|line: &Line| !line.words.is_empty()).collect()
}

/// All command lines. The help is made from the program itself.
fn all_lines() -> Vec<Line> {
    documents().iter().filter(|document| document.name != "docs/reference/cli.md").flat_map(lines).collect()
}

/// What ralph says against a command line. Nothing is run: `--help` comes after everything else was read.
fn problem(test: &Test, words: &[String]) -> Option<String> {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut command = test.tool();
    if words[0] == "as-claude" {
        // It passes everything on to the agent.
        command.args(&words[..1]).arg("--help");
    } else {
        command.args(&words[..end]).arg("--help");
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    (!output.status.success()).then(|| shown(words, &output))
}

fn shown(words: &[String], output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("`ralph {}`: {}\n{stdout}{stderr}", words.join(" "), output.status)
}

#[test]
fn every_command_in_the_documents_is_understood() {
    let test = Test::new();
    let lines = all_lines();
    assert!(lines.len() > 150, "only {} commands were found", lines.len());
    let mut seen = BTreeSet::new();
    let wrong: Vec<String> = lines
        .iter()
        .filter(|line| seen.insert(line.words.clone()))
        .filter_map(|line| Some(format!("{}: {}", line.document, problem(&test, &line.words)?)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_flag_or_value_in_a_document_is_found() {
    let test = Test::new();
    for (line, wrong) in [
        ("ralph run \"fix it\" --verfy 'cargo test'", true),
        ("ralph run -n many", true),
        ("ralph shwo", true),
        ("nohup ralph run \"fix it\" --max-cost 5 >log 2>&1 &", false),
        ("ralph run x -- --flag-of-the-agent", false),
        ("ralph status      what it does now", false),
    ] {
        assert_eq!(problem(&test, &words(line).unwrap()).is_some(), wrong, "{line}");
    }
    let document = Document { name: "x.md".into(), text: "Use `ralph\nshow --al`.\n\n```sh\nralph a\n```\n".into() };
    let found: Vec<String> = lines(&document).iter().map(|line| line.words.join(" ")).collect();
    assert_eq!(found, ["a", "show --al"]);
}

/// Commands that are not run: they need an agent, a terminal, a server, or a run in a certain state.
fn needs_more(words: &[String]) -> bool {
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let only_parsed = ["tui", "resume", "answer", "retry", "emit", "as-claude", "serve"];
    // `tests/batch.rs` gives them to a batch that is running.
    let to_batch = ["hint", "pause", "continue", "stop", "cancel", "skip", "retry"];
    let steers_batch = words[0] == "batch" && words.get(1).is_some_and(|word| to_batch.contains(&word.as_str()));
    only_parsed.contains(&words[0].as_str())
        || steers_batch
        || [
            "--tui",
            "-i",
            "--fallback",
            "--agent-cmd",
            "--claude-command",
            "--endpoint",
            "--from",
            "--serve",
            "--phases",
            "--judge",
        ]
        .iter()
        .any(|flag| has(flag) && !(*flag == "--from" && words[0] == "translate"))
        || (has("--agent") && !has("demo"))
        || has("--")
        || words == ["doctor", "codex"]
}

/// A project with a finished run of the demo agent, and what the commands of the documents name.
fn project() -> Test {
    let test = Test::new();
    let bin = test.workspace().join("../bin");
    std::fs::create_dir(&bin).unwrap();
    for name in ["cargo", "npm"] {
        let path = bin.join(name);
        std::fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let hats = std::fs::read_to_string(root().join("docs/guide/hats-and-modes.md")).unwrap();
    let hats = hats.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let test = test
        .env("RALPH_AGENT", "demo")
        .env("RALPH_DEMO_PAUSE_MS", "0")
        .env("PATH", &path)
        .file("PROMPT.md", "Fix the tests.\n")
        .file("PLAN.md", "- [x] Fix the tests.\n")
        .file("docs/plans/feature.md", "- [x] Fix the tests.\n")
        .file("presets/debug.yml", "event_loop: {max_iterations: 5}\n")
        .file("../capture.jsonl", "{\"type\":\"result\",\"result\":\"done\"}\n")
        .file(
            "tasks.yml",
            "tasks: [{id: json-flag, prompt: add it}, {id: docs, prompt: describe it, needs: [json-flag]}]\n",
        )
        .file("more.yml", "tasks: [{id: later, prompt: finish it}]\n")
        .file("../hats.yml", hats)
        .file("../notify.yml", "notify: {command: cat}\n")
        .repository();
    let ran = test.tool().args(["run", "fix the tests"]).stdin(Stdio::null()).output().unwrap();
    assert!(ran.status.success(), "{}", shown(&["run".to_owned()], &ran));
    test
}

#[test]
fn commands_in_blocks_run_on_a_project() {
    let steers = ["hint", "pause", "continue", "stop", "limit"];
    let lines: Vec<Line> = all_lines().into_iter().filter(|line| line.block && !needs_more(&line.words)).collect();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (document, lines) in by_document(&lines) {
        let test = project();
        for line in lines.iter().filter(|line| !steers.contains(&line.words[0].as_str())) {
            if !seen.insert(line.words.clone()) {
                continue;
            }
            let mut command = test.tool();
            command.args(line.words.iter().map(|word| if word == "capture.jsonl" { "../capture.jsonl" } else { word }));
            match line.words[0].as_str() {
                "hats" => drop(command.args(["--config", "../hats.yml"])),
                "notify" => drop(command.args(["--config", "../notify.yml"])),
                // A document shows several ways to make one file.
                "init" => drop(command.arg("--force")),
                _ => {}
            }
            let output = command.stdin(Stdio::null()).output().unwrap();
            count += 1;
            if !output.status.success() {
                wrong.push(format!("{document}: {}", shown(&line.words, &output)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 40, "only {count} commands were run");
}

fn by_document(lines: &[Line]) -> Vec<(&str, Vec<&Line>)> {
    let names: BTreeSet<&str> = lines.iter().map(|line| line.document.as_str()).collect();
    names.into_iter().map(|name| (name, lines.iter().filter(|line| line.document == name).collect())).collect()
}

#[test]
fn commands_that_steer_work_on_an_active_run() {
    let steers = ["status", "hint", "limit", "pause", "continue", "stop"];
    let lines: Vec<Line> = all_lines().into_iter().filter(|line| line.block).collect();
    let running = Test::new().agent(silent().hangs()).start();
    running.until("the agent has started", |running| !running.recorded().is_empty());
    let mut seen = BTreeSet::new();
    // In this order, because a run that is stopped takes no more orders.
    for verb in steers {
        let of_verb = lines.iter().filter(|line| line.words[0] == verb && line.words != ["stop", "--now"]);
        for line in of_verb.filter(|line| seen.insert(line.words.clone())) {
            running.tells(&line.words.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
    running.tells(&["stop", "--now"]);
    assert!(seen.len() >= steers.len(), "{seen:?}");
    running.wait();
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_between_documents_resolve() {
    let mut count = 0;
    for document in documents() {
        let place = root().join(&document.name);
        let (_, prose) = split(&document.text);
        for link in prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap().trim()) {
            if link.contains("://") {
                continue;
            }
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { place.clone() } else { place.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: no file for the link `{link}`", document.name);
            let has_part = |target: &Path| {
                let text = std::fs::read_to_string(target).unwrap();
                text.lines().any(|line| line.starts_with('#') && anchor(line) == part)
            };
            assert!(part.is_empty() || has_part(&target), "{}: no heading for the link `{link}`", document.name);
            count += 1;
        }
    }
    assert!(count > 30, "only {count} links were found");
}

#[test]
fn every_document_can_be_reached_from_the_readme() {
    let documents = documents();
    let mut reached = BTreeSet::from([root().join("README.md").canonicalize().unwrap()]);
    let mut open: Vec<PathBuf> = reached.iter().cloned().collect();
    while let Some(place) = open.pop() {
        let text = std::fs::read_to_string(&place).unwrap_or_default();
        let (_, prose) = split(&text);
        for link in prose.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap().trim()) {
            let target = place.parent().unwrap().join(link).canonicalize();
            open.extend(target.ok().filter(|target| target.is_file() && reached.insert(target.clone())));
        }
    }
    for document in documents {
        assert!(reached.contains(&root().join(&document.name)), "nothing links to {}", document.name);
    }
}

#[test]
fn the_readme_is_short() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= 900, "{words} words");
    let long = text.lines().find(|line| line.chars().count() > 120);
    assert_eq!(long, None);
}

#[test]
fn every_configuration_in_the_documents_is_read_without_a_warning() {
    let test = Test::new();
    let mut count = 0;
    for document in documents() {
        let blocks = document.text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        // Agent files have an id; `agent/catalog_tests.rs` reads them.
        for block in blocks.filter(|block| !block.starts_with("id:") && !block.contains("apiVersion:")) {
            let file = test.workspace().join("example.yml");
            std::fs::write(&file, block).unwrap();
            let read: &[&str] = if block.starts_with("tasks:") {
                &["tasks", "example.yml"]
            } else {
                &["config", "--config", "example.yml"]
            };
            let output = test.tool().args(read).output().unwrap();
            let clean = output.status.success() && output.stderr.is_empty();
            assert!(clean, "{}: {block}{}", document.name, String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert!(count >= 8, "only {count} were found");
}
