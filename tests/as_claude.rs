//! Claude's stream-json, written by ralph: what goes in comes out again, for every captured run of every agent.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "transcripts/capture.rs"]
#[allow(dead_code, reason = "the facts are another test's")]
mod capture;

use ralph::emit::claude::{Claude, Form, Tools};
use ralph::event::{Event, Known, Tag};
use ralph::process::Lines;
use ralph::transcript::{Choice, Context, Selected, select};

const WHOLE: Form = Form { partial: true, tools: Tools::Blocks };

fn written(events: &[Event], form: Form) -> Vec<u8> {
    let (mut emitter, mut out) = (Claude::new(form), Vec::new());
    for event in events {
        emitter.event(event, &mut out);
    }
    emitter.finish(1, None, &mut out);
    out
}

fn read(bytes: &[u8]) -> Vec<Event> {
    let Ok(Selected::Dialect(dialect)) = select(&[Choice::from("claude")], None) else { panic!("claude is a dialect") };
    let mut adapter = (dialect.adapter)(&Context::default());
    let (mut lines, mut events) = (Lines::default(), Vec::new());
    lines.push(bytes, |line| adapter.line(line, &mut events));
    lines.finish(|line| adapter.line(line, &mut events));
    adapter.end(None, &mut events);
    events
}

/// Where the format lets the order of facts differ: the end is told last, and what a tool printed comes with its end.
fn settled(events: &[Event]) -> Vec<Event> {
    let is_end = |event: &Event| matches!(event, Event::Meta { meta } if meta.kind() == Some("turn_end"));
    let is_output = |event: &Event| matches!(event, Event::ToolOutput { .. });
    let mut rest: Vec<Event> = events.iter().filter(|event| !is_end(event) && !is_output(event)).cloned().collect();
    rest.extend(events.iter().filter(|event| is_end(event)).cloned());
    rest
}

/// The words of each tag, and each tool's output, without the cuts between fragments.
fn texts(events: &[Event]) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for event in events {
        let (key, text) = match event {
            Event::Text { tag: tag @ (Tag::Ai | Tag::Think), text, parent, .. } => {
                (format!("{tag:?} {parent:?}"), text)
            }
            Event::ToolOutput { tool, text, .. } => (tool.id.clone(), text),
            _ => continue,
        };
        match texts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, all)) => all.push_str(text),
            None => texts.push((key, text.clone())),
        }
    }
    texts.sort();
    texts.retain(|(_, text)| !text.is_empty());
    texts
}

#[test]
fn what_is_written_for_claude_is_read_as_the_same_events() {
    let mut different = Vec::new();
    for capture in capture::all() {
        let events = capture.events();
        let again = read(&written(&events, WHOLE));
        let name = format!("{}/{}/{}", capture.agent, capture.version, capture.name);
        if settled(&events) != settled(&again) {
            let (before, after) = (settled(&events), settled(&again));
            let at = before
                .iter()
                .zip(&after)
                .position(|(one, other)| one != other)
                .unwrap_or(before.len().min(after.len()));
            different.push(format!("{name}\n  before {:?}\n  after  {:?}", before.get(at), after.get(at)));
        }
        assert_eq!(texts(&events), texts(&again), "{name}");
    }
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different[..different.len().min(12)].join("\n"));
}

#[test]
fn without_fragments_the_words_are_the_same() {
    for capture in capture::all() {
        let events = capture.events();
        let again = read(&written(&events, Form { partial: false, tools: Tools::Blocks }));
        assert_eq!(texts(&events), texts(&again), "{}/{}", capture.agent, capture.name);
    }
}

#[test]
fn every_line_is_an_object_and_the_result_is_the_last() {
    for capture in capture::all() {
        let bytes = written(&capture.events(), WHOLE);
        let lines: Vec<serde_json::Value> = bytes
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!(lines[0]["subtype"], "init");
        let results = lines.iter().filter(|line| line["type"] == "result").count();
        assert_eq!((results, &lines.last().unwrap()["type"]), (1, &"result".into()), "{}", capture.name);
    }
}

#[test]
fn failures_are_told_in_the_words_that_others_look_for() {
    use ralph::event::FailureClass as C;
    for (class, words, error_name, status) in [
        (C::RateLimit, "You've hit your limit", "rate_limit", 429),
        (C::Overload, "API Error: 529", "server_error", 529),
        (C::Auth, "Not logged in", "authentication_failed", 401),
    ] {
        let message = "why".to_owned();
        let error = Known::Error { class, message, status: None, resets_at: None, retry_after_ms: None, resets: None };
        let end = Known::TurnEnd { success: Some(false), reason: None };
        let bytes = written(&[error.into(), end.into()], WHOLE);
        let lines = lines(&bytes);
        let [.., synthetic, last] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(synthetic["message"]["model"], "<synthetic>", "{synthetic}");
        assert_eq!(synthetic["error"], error_name);
        assert_eq!(synthetic["message"]["content"][0]["text"], last["result"]);
        assert_eq!((&last["is_error"], &last["api_error_status"]), (&true.into(), &status.into()));
        assert!(last.get("total_cost_usd").is_none(), "an unknown cost is absent: {last}");
        assert_eq!(lines[0]["claude_code_version"], "2.1.0");
        assert!(last["result"].as_str().unwrap().starts_with(words), "{last}");
    }
}

#[test]
fn a_refused_login_ends_with_an_exit_code_as_claude_does() {
    let refused =
        r#"echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: bad key"}}'; exit 1"#;
    let output = Test::new().stands_for("codex", refused).tool().args(["as-claude", "codex", "-p", "x"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let lines = lines(&output.stdout);
    assert_eq!(lines[lines.len() - 2]["error"], "authentication_failed", "{lines:?}");
}

// Whole programs.

#[path = "support/commands.rs"]
mod commands;
#[path = "support/mod.rs"]
mod support;

use support::Test;

fn lines(bytes: &[u8]) -> Vec<serde_json::Value> {
    bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[test]
fn any_agent_plays_claude() {
    let test = Test::new();
    let output = test.tool().args(["as-claude", "demo", "--verbose", "--strange", "-p", "do it"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = lines(&output.stdout);
    assert_eq!(lines[0]["subtype"], "init");
    assert!(lines.iter().any(|line| line["message"]["content"][0]["type"] == "tool_use"), "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["type"], &last["is_error"]), (&"result".into(), &false.into()));
    assert!(last["usage"]["output_tokens"].as_u64().unwrap() > 0, "{last}");
    let version = test.tool().args(["as-claude", "demo", "-v"]).output().unwrap();
    assert!(String::from_utf8(version.stdout).unwrap().starts_with("2."));
    let text = test.tool().args(["as-claude", "demo", "--output-format", "text", "-p", "do it"]).output().unwrap();
    assert_eq!(String::from_utf8(text.stdout).unwrap().trim_end(), last["result"].as_str().unwrap().trim_end());
}

#[test]
fn a_demo_leaves_nothing_behind_also_when_its_reader_goes_away() {
    let test = Test::new();
    let temporary = test.workspace().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let left = || std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    for reader in ["cat", "head -1", "head -c 1"] {
        let line = format!("\"$0\" as-claude demo -p 'do it' | {reader}");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_ralph")]).current_dir(test.workspace());
        command.env("TMPDIR", &temporary).env("RALPH_DEMO_PAUSE_MS", "50");
        let output = command.output().unwrap();
        assert!(!output.stdout.is_empty(), "{reader}: {output:?}");
        // The pipeline is over when its last command is; the first may need a moment more.
        let start = std::time::Instant::now();
        while !left().is_empty() && start.elapsed() < std::time::Duration::from_secs(20) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(left(), Vec::<std::path::PathBuf>::new(), "{reader}");
    }
}

#[test]
fn a_link_plays_claude_with_its_agent_and_reads_standard_input() {
    use std::io::Write as _;
    let test = Test::new();
    let link = test.workspace().join("demo-as-claude");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), &link).unwrap();
    let mut child = std::process::Command::new(&link)
        .args(["--print", "--output-format", "stream-json"])
        .current_dir(test.workspace())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"do it").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(lines(&output.stdout).last().unwrap()["type"], "result");
}

#[test]
fn clauses_of_the_control_protocol_are_answered() {
    use std::io::Write as _;
    let test = Test::new();
    let mut child = test
        .tool()
        .args(["as-claude", "demo", "--input-format", "stream-json"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let said = "{\"type\":\"control_request\",\"request_id\":\"r1\",\"request\":{\"subtype\":\"initialize\"}}\n\
                {\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"do it\"}}\n";
    child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    let lines = lines(&child.wait_with_output().unwrap().stdout);
    assert_eq!(lines[0]["response"]["request_id"], "r1");
    assert_eq!(lines.last().unwrap()["type"], "result");
}

#[test]
fn what_cannot_start_is_told_in_the_stream_too() {
    let output = Test::new().tool().args(["as-claude", "nobody", "-p", "x"]).output().unwrap();
    assert!(!output.status.success());
    let last = lines(&output.stdout).pop().unwrap();
    assert_eq!((&last["type"], &last["is_error"]), (&"result".into(), &true.into()));
}

#[test]
fn a_session_that_is_told_after_a_complaint_is_in_the_result() {
    let complaint = Event::Text { tag: Tag::Sys, text: "a warning".to_owned(), delta: false, parent: None };
    let events = [complaint, Known::Session { id: "s-1".to_owned() }.into(), Event::text(Tag::Ai, "Done.")];
    let told = String::from_utf8(written(&events, WHOLE)).unwrap();
    let result: serde_json::Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(result["session_id"], "s-1", "{told}");
}

#[test]
fn a_permission_mode_leaves_the_agent_to_its_own_rules() {
    let test = Test::new().stands_for("codex", "echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"agent_message\",\"text\":\"Done.\"}}'; echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1}}'");
    let argv = |call: usize, mode: &[&str]| {
        let output = test.tool().args(["as-claude", "codex"]).args(mode).args(["-p", "x"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(std::fs::read(test.bin().join(format!("log.{call}"))).unwrap()).unwrap()
    };
    let approves = "--dangerously-bypass-approvals-and-sandbox";
    assert!(argv(1, &[]).contains(approves));
    assert!(argv(2, &["--permission-mode", "bypassPermissions"]).contains(approves));
    for (call, mode) in (3..).zip(["default", "plan", "acceptEdits"]) {
        assert!(!argv(call, &["--permission-mode", mode]).contains(approves), "{mode}");
    }
}

const CODEX_ANSWERS: &str = r#"cat > "$HERE/prompt"; echo '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Done."}}'; echo '{"type":"turn.completed","usage":{"input_tokens":1}}'"#;

#[test]
fn the_variables_of_a_wrapper_mean_what_they_mean_there() {
    let test = Test::new().stands_for("codex", CODEX_ANSWERS);
    let argv = |call: usize, set: &[(&str, &str)], args: &[&str]| {
        let mut command = test.tool();
        command.args(["as-claude", "codex"]).args(args).args(["-p", "x"]).envs(set.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(std::fs::read(test.bin().join(format!("log.{call}"))).unwrap()).unwrap()
    };
    let bypass = "--dangerously-bypass-approvals-and-sandbox";
    let read_only = argv(1, &[("CODEX_MODEL", "gpt-x"), ("CODEX_SANDBOX", "read-only")], &[]);
    assert!(read_only.contains("gpt-x") && read_only.contains("--sandbox") && read_only.contains("read-only"));
    assert!(!read_only.contains(bypass), "{read_only}");
    let full = argv(2, &[("CODEX_SANDBOX", "danger-full-access")], &[]);
    assert!(full.contains(bypass) && !full.contains("--sandbox"), "{full}");
    let flag = argv(3, &[("CODEX_MODEL", "gpt-x")], &["--model", "gpt-y"]);
    assert!(flag.contains("gpt-y") && !flag.contains("gpt-x"), "a flag wins: {flag}");
    let pi = Test::new().stands_for("pi", r#"echo '{"type":"agent_end","messages":[]}'"#);
    let set = [("PI_PROVIDER", "local"), ("PI_MODEL", "m1"), ("PI_THINKING", "high"), ("PI_EXTRA_ARGS", "--a --b")];
    pi.tool().args(["as-claude", "pi", "-p", "x"]).envs(set).output().unwrap();
    let log = std::fs::read_to_string(pi.bin().join("log.1")).unwrap();
    for word in ["--provider", "local", "m1", "high", "--a", "--b"] {
        assert!(log.contains(word), "{word}: {log}");
    }
}

#[test]
fn tool_activity_is_text_where_the_wrapper_is_verbose() {
    let runs = r#"echo '{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"ls","aggregated_output":"a.txt","exit_code":0,"status":"completed"}}'; "#;
    let test = Test::new().stands_for("codex", &format!("{runs}{CODEX_ANSWERS}"));
    let text = |verbose: &str| {
        let output =
            test.tool().args(["as-claude", "codex", "-p", "x"]).env("CODEX_VERBOSE", verbose).output().unwrap();
        let lines = lines(&output.stdout);
        let blocks = lines.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str());
        blocks.collect::<String>()
    };
    assert!(text("1").contains("ls") && text("1").contains("a.txt"), "{}", text("1"));
    assert!(!text("0").contains("a.txt"), "{}", text("0"));
}

#[test]
fn a_review_is_told_how_to_run_its_agents() {
    let test = Test::new().stands_for("codex", CODEX_ANSWERS);
    let prompt = "Start agents with the Task tool. At the end print <<<RALPHEX:REVIEW_DONE>>>.";
    test.tool().args(["as-claude", "codex", "-p", prompt]).output().unwrap();
    let log = std::fs::read_to_string(test.bin().join("log.1")).unwrap();
    assert!(log.contains("features.multi_agent=true"), "{log}");
    let sent = std::fs::read_to_string(test.bin().join("prompt")).unwrap();
    assert!(sent.contains("written for Claude Code") && sent.ends_with(prompt), "{sent}");
}

#[test]
fn copilot_may_ask_while_a_plan_is_made_and_its_message_ends_there() {
    let says = r#"echo '{"type":"assistant.message","data":{"messageId":"1","content":"One thing first.\n<<<RALPHEX:QUESTION>>>\n{\"question\":\"db?\"}\n<<<RALPHEX:END>>>\nI go on without you."}}'; sleep 60"#;
    let test = Test::new().stands_for("copilot", says);
    let prompt = "Use <<<RALPHEX:QUESTION>>>, <<<RALPHEX:PLAN_DRAFT>>> and <<<RALPHEX:PLAN_READY>>>.";
    let start = std::time::Instant::now();
    let output = test.tool().args(["as-claude", "copilot", "-p", prompt]).output().unwrap();
    assert!(start.elapsed() < std::time::Duration::from_secs(30), "it was not stopped");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("RALPHEX:QUESTION") && text.contains("db?") && !text.contains("without you"), "{text}");
    let log = std::fs::read_to_string(test.bin().join("log.1")).unwrap();
    assert!(!log.contains("--no-ask-user"), "{log}");
}

#[test]
fn sigterm_ends_the_whole_tree_at_once() {
    let stubborn = "trap '' TERM INT HUP; (trap '' TERM; sleep 30) & echo $! > \"$HERE/child\"; echo $$ > \"$HERE/self\"; wait; sleep 30";
    let mut times = Vec::new();
    for _ in 0..5 {
        let test = Test::new().stands_for("codex", stubborn);
        let mut child =
            test.tool().args(["as-claude", "codex", "-p", "x"]).stdout(std::process::Stdio::null()).spawn().unwrap();
        let read =
            |name: &str| std::fs::read_to_string(test.bin().join(name)).ok().and_then(|pid| pid.trim().parse().ok());
        let pids: [i32; 2] = loop {
            if let (Some(one), Some(other)) = (read("child"), read("self")) {
                break [one, other];
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let start = std::time::Instant::now();
        let ours = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(ours, rustix::process::Signal::TERM).unwrap();
        let status = child.wait().unwrap();
        times.push(start.elapsed());
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
        for pid in pids {
            // A process that is dead and only not reaped yet is gone.
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let gone = state.is_empty() || state.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z'));
            assert!(gone, "process {pid} is left: {state}");
        }
    }
    // The machine may be busy; it must be able to be quick.
    let best = times.iter().min().unwrap();
    assert!(*best < std::time::Duration::from_millis(100), "{times:?}");
}

#[test]
fn a_reader_that_stalls_does_not_keep_it_from_being_stopped() {
    let flood = "while :; do echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"words\"}}'; done";
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let test = Test::new().stands_for("codex", flood);
        let mut command = test.tool();
        command.args(["as-claude", "codex", "-p", "x"]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        let ours = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(ours, signal).unwrap();
        let start = std::time::Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > std::time::Duration::from_secs(10) {
                child.kill().unwrap();
                panic!("still there after {signal:?}");
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_single_result_needs_no_memory_for_all_that_was_said() {
    let much = "T=$(head -c 1000000 /dev/zero | tr '\\0' x); for i in $(seq 50); do echo \"{\\\"type\\\":\\\"item.completed\\\",\\\"item\\\":{\\\"id\\\":\\\"i$i\\\",\\\"type\\\":\\\"agent_message\\\",\\\"text\\\":\\\"$T\\\"}}\"; done; echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"z\",\"type\":\"agent_message\",\"text\":\"the end\"}}'; echo '{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1}}'";
    for format in ["json", "text"] {
        let test = Test::new().stands_for("codex", much);
        let mut command = test.tool();
        command.args(["as-claude", "codex", "--output-format", format, "-p", "x"]).stdout(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let peak = std::thread::spawn(move || {
            let mut peak = 0;
            while let Ok(text) = std::fs::read_to_string(&status) {
                let Some(line) = text.lines().find(|line| line.starts_with("VmHWM")) else { break };
                peak = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            peak
        });
        let output = child.wait_with_output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("the end"), "{output:?}");
        let peak = peak.join().unwrap();
        assert!(peak > 0 && peak < 48_000, "{format}: {peak} kB");
    }
}

#[test]
fn a_silent_agent_is_known_to_be_alive() {
    let test = Test::new().stands_for("codex", "sleep 11; echo '{\"type\":\"turn.completed\"}'");
    let output = test.tool().args(["as-claude", "codex", "-p", "x"]).output().unwrap();
    let kinds: Vec<String> = lines(&output.stdout).iter().map(|line| line["type"].to_string()).collect();
    assert!(kinds.len() > 2 && kinds.last().unwrap().contains("result"), "{kinds:?}");
}
