//! A real consumer: Anthropic's own client for Claude's stream-json, led to ralph by a link called `AGENT-as-claude`.
//!
//! It sees what any tool sees that can only drive Claude Code; nothing here is read by ralph's own code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fake_model::{Bounds, Scenario, Server};
use serde_json::Value;

use crate::clis::Cli;
use crate::install::{Version, install, python};
use crate::place::Place;
use crate::processes;
use crate::stage::{Problem, Stage};

const SCRIPT: &str = "
turns:
  - text: I write a file.
    calls: [{write_file: {path: hello.txt, content: \"hello\\n\"}}]
  - text: The file is written.
";

/// Plays the demo agent, and the real CLIs that are given, through the client.
pub fn run(clis: &[Cli]) -> Result<(), Problem> {
    let stage = Stage::open()?;
    let ralph = Stage::ralph()?;
    let python = python(&stage, "claude-agent-sdk")?.join("python");
    let mut wrong = Vec::new();
    let place = Place::fresh(&stage, "sdk-demo")?;
    let environment = vec![("PATH".to_owned(), Stage::path(Path::new("/usr/bin")).to_string_lossy().into_owned())];
    let messages = ask(&python, &link(&stage, &ralph, "demo")?, &place, environment)?;
    wrong.extend(faults("demo", &messages, "fixed"));
    wrong.extend(failures(&stage, &python, &link(&stage, &ralph, "codex")?)?);
    for cli in clis {
        let installed = install(&stage, cli, Version::Pinned)?;
        let place = Place::fresh(&stage, &format!("sdk-{}", cli.agent))?;
        let script = Scenario::parse(SCRIPT).map_err(Problem::Wrong)?;
        let server = Server::start(script, &place.work, Bounds::default(), 0)?;
        cli.settle(&place, &server.address(), None)?;
        let mut environment = cli.variables(&place, &server.address());
        environment.push(("PATH".to_owned(), Stage::path(&installed.programs).to_string_lossy().into_owned()));
        let messages = ask(&python, &link(&stage, &ralph, &cli.agent)?, &place, environment)?;
        wrong.extend(faults(&cli.agent, &messages, "The file is written."));
        if std::fs::read_to_string(place.work.join("hello.txt")).ok().as_deref() != Some("hello\n") {
            wrong.push(format!("{}: the file was not written", cli.agent));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Problem::Wrong(wrong.join("\n       "))) }
}

/// A link whose name says which agent plays Claude.
fn link(stage: &Stage, ralph: &Path, agent: &str) -> Result<PathBuf, Problem> {
    let place = stage.place.join("links");
    std::fs::create_dir_all(&place)?;
    let link = place.join(format!("{agent}-as-claude"));
    if link.is_symlink() {
        std::fs::remove_file(&link)?;
    }
    std::os::unix::fs::symlink(ralph, &link)?;
    Ok(link)
}

/// What a codex that fails says, how the client must see it, and the words in the client's own error.
const FAILURES: [(&str, Option<&str>, &str); 4] = [
    ("You've hit your usage limit. Try again at 8:00 PM.", Some("rate_limit"), "You've hit your limit"),
    ("unexpected status 401 Unauthorized: bad key", Some("authentication_failed"), "Not logged in"),
    ("unexpected status 503 Service Unavailable", Some("server_error"), "API Error: 529"),
    ("something broke", None, "something broke"),
];

/// Plays a codex that fails in each of the ways; the client must get the kind of failure and raise an error.
fn failures(stage: &Stage, python: &Path, link: &Path) -> Result<Vec<String>, Problem> {
    let place = Place::fresh(stage, "sdk-failures")?;
    let bin = place.home.join("bin");
    std::fs::create_dir_all(&bin)?;
    let path = Stage::path(&bin).to_string_lossy().into_owned();
    let mut wrong = Vec::new();
    for (says, kind, words) in FAILURES {
        let event = serde_json::json!({"type": "turn.failed", "error": {"message": says}});
        let script = format!("#!/bin/sh\ncat >/dev/null\ncat <<'LINE'\n{event}\nLINE\nexit 1\n");
        let program = bin.join("codex");
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        let answer = client(python, link, &place, vec![("PATH".to_owned(), path.clone())])?;
        let seen = answer.messages.iter().any(|message| kind.is_some_and(|kind| message["error"] == kind));
        let is_error = answer.messages.last().is_some_and(|message| message["is_error"] == true);
        let raised = !answer.succeeded && answer.complaint.contains(words);
        if seen != kind.is_some() || !is_error || !raised {
            wrong.push(format!("`{says}`: the client saw {:?}; {}", answer.messages.last(), answer.complaint));
        }
    }
    println!("failures: {} kinds reach the client: {}", FAILURES.len(), if wrong.is_empty() { "ok" } else { "WRONG" });
    Ok(wrong)
}

/// What the client came to.
struct Answer {
    messages: Vec<Value>,
    succeeded: bool,
    /// The last line of its standard error.
    complaint: String,
}

/// The messages that the client yields, which must succeed.
fn ask(python: &Path, link: &Path, place: &Place, environment: Vec<(String, String)>) -> Result<Vec<Value>, Problem> {
    let answer = client(python, link, place, environment)?;
    if !answer.succeeded {
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        return Err(Problem::Wrong(format!("{name}: the client failed: {}", answer.complaint)));
    }
    Ok(answer.messages)
}

/// Runs the client, two minutes long at most.
fn client(python: &Path, link: &Path, place: &Place, environment: Vec<(String, String)>) -> Result<Answer, Problem> {
    let (out, err) = (place.home.join("stdout"), place.home.join("stderr"));
    let mark = processes::mark();
    let mut child = Command::new(python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk.py"))
        .arg(link)
        .arg("Do what the script says.")
        .current_dir(&place.work)
        .env_clear()
        .env("HOME", &place.home)
        .env(processes::MARK, &mark)
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out)?)
        .stderr(std::fs::File::create(&err)?)
        .spawn()?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let left = processes::left(&mark, Duration::from_millis(500));
    let complaint = std::fs::read_to_string(&err).unwrap_or_default();
    let name = link.file_name().unwrap_or_default().to_string_lossy();
    if !left.is_empty() {
        return Err(Problem::Wrong(format!("{name}: left behind: {}", left.join(", "))));
    }
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    Ok(Answer {
        messages: text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        succeeded: status.is_some_and(|status| status.success()),
        complaint: complaint.lines().last().unwrap_or("it did not end").to_owned(),
    })
}

/// What a consumer would miss.
fn faults(agent: &str, messages: &[Value], words: &str) -> Vec<String> {
    let blocks = |class: &str| -> Vec<&Value> {
        let contents = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
        contents.filter(|block| block["class"] == class).collect()
    };
    let (texts, calls, results) = (blocks("TextBlock"), blocks("ToolUseBlock"), blocks("ToolResultBlock"));
    let mut wrong = Vec::new();
    let mut unless = |good: bool, why: &str| {
        if !good {
            wrong.push(format!("{agent}: {why}"));
        }
    };
    unless(
        messages.iter().any(|message| message["class"] == "SystemMessage" && message["subtype"] == "init"),
        "no first message",
    );
    unless(texts.iter().any(|block| block["text"].as_str().is_some_and(|text| text.contains(words))), "no words");
    unless(!calls.is_empty(), "no tool was used");
    unless(
        calls.iter().all(|call| results.iter().any(|result| result["tool_use_id"] == call["id"])),
        "a tool has no result",
    );
    let result = messages.last().filter(|message| message["class"] == "ResultMessage");
    unless(result.is_some(), "the last message is no result");
    if let Some(result) = result {
        unless(result["is_error"] == false, "the result is an error");
        unless(result["session_id"].as_str().is_some_and(|id| !id.is_empty()), "the result has no session");
        unless(result["usage"]["output_tokens"].as_u64() > Some(0), "the result has no usage");
        unless(result["result"].as_str().is_some_and(|text| text.contains(words)), "the result has no words");
    }
    println!(
        "{agent}: {} messages, {} texts, {} tools, {} results: {}",
        messages.len(),
        texts.len(),
        calls.len(),
        results.len(),
        if wrong.is_empty() { "ok" } else { "WRONG" }
    );
    wrong
}
