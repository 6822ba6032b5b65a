//! Conformance with the driver contract (document 000), sentence by sentence, through the whole program.
//!
//! [`SENTENCES`] maps what the document says to the test that holds it. Command lines are golden in
//! `src/plugin/driver/tests.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "drivers/around.rs"]
mod around;
#[path = "support/commands.rs"]
mod commands;
mod support;

use support::Test;

/// What the document says, and which test holds it.
const SENTENCES: &[(&str, &str)] = &[
    (
        "PLATFORM_DRIVER defaults to claude-code and can be overridden via .ralphrc",
        "the_configuration_chooses_the_driver",
    ),
    (
        "after sourcing: driver_valid_tools, driver_cli_binary, driver_display_name",
        "hooks_are_called_in_the_documented_order",
    ),
    ("file naming convention: ${PLATFORM_DRIVER}.sh", "a_name_that_has_no_file_is_told_with_those_that_there_are"),
    ("data is returned via stdout, booleans via exit status", "hooks_are_called_in_the_documented_order"),
    ("omitting any required hook breaks the loop", "missing_hooks_are_named_before_anything_runs"),
    (
        "driver_build_command gets prompt file, loop context and session id",
        "the_three_arguments_are_what_the_contract_says",
    ),
    ("driver_build_command returns 1 on failure", "a_failing_hook_ends_the_run_with_its_name_and_words"),
    (
        "CLAUDE_OUTPUT_FORMAT, CLAUDE_PERMISSION_MODE, CLAUDE_ALLOWED_TOOLS, CLAUDE_USE_CONTINUE are read",
        "values_of_the_configuration_reach_the_hooks_and_are_never_run",
    ),
    ("driver_supports_tool_allowlist, default false", "the_allowlist_is_checked_against_the_drivers_tools"),
    (
        "driver_permission_denial_help is printed when a denial is detected",
        "a_denial_that_halts_shows_the_drivers_help",
    ),
    ("driver_supports_sessions, if not defined assumed true", "a_minimal_driver_runs_with_the_documented_defaults"),
    ("driver_supports_live_output, if not defined assumed true", "a_minimal_driver_runs_with_the_documented_defaults"),
    (
        "driver_prepare_live_command transforms CLAUDE_CMD_ARGS into LIVE_CMD_ARGS",
        "live_output_is_shown_through_the_drivers_filter",
    ),
    ("driver_stream_filter is a jq filter for displayable text", "live_output_is_shown_through_the_drivers_filter"),
    ("driver_stream_filter, if not defined: empty", "a_minimal_driver_runs_with_the_documented_defaults"),
    ("driver_extract_session_id_from_output is tried first", "the_session_goes_on_by_the_documented_chain"),
    ("driver_fallback_session_id is the last resort", "the_session_goes_on_by_the_documented_chain"),
    (
        "if all steps fail no session is saved and the next iteration starts fresh",
        "without_an_id_the_next_iteration_is_fresh",
    ),
    ("driver_min_version and driver_check_available are for doctors", "agents_lists_drivers_with_what_is_wrong"),
    ("RALPHRC_FILE and DRIVER_DISPLAY_NAME are read by the denial help", "a_denial_that_halts_shows_the_drivers_help"),
];

/// A codex that says a line, and a status block from the given call on.
fn codex(done_from: u32) -> String {
    format!(
        r#"DONE=false; [ $CALLS -ge {done_from} ] && DONE=true
echo '{{"type":"thread.started","thread_id":"th-1"}}'
echo '{{"type":"turn.started"}}'
echo "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"step $CALLS\\n---RALPH_STATUS---\\nEXIT_SIGNAL: $DONE\\n---END_RALPH_STATUS---\"}}}}"
echo '{{"type":"turn.completed","usage":{{"input_tokens":5,"output_tokens":2}}}}'
echo $CALLS > moved-$CALLS"#
    )
}

fn with_codex(done_from: u32) -> Test {
    Test::new()
        .fixture("drivers/codex.sh", ".ralph/drivers/codex.sh")
        .stands_for("codex", &codex(done_from))
        .args(&["--agent", "driver:codex"])
}

/// A minimal driver with more in it, and a command that says that it is done.
fn with_minimal(extra: &str, body: &str) -> Test {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drivers/minimal.sh");
    let text = std::fs::read_to_string(fixture).unwrap();
    Test::new()
        .file("drivers/minimal.sh", text + extra)
        .stands_for("minimal-cli", body)
        .args(&["--agent", "driver:minimal"])
}

const DONE: &str = "echo All done.; echo '<promise>COMPLETE</promise>'; echo $CALLS > moved-$CALLS";

#[test]
fn every_sentence_of_the_document_has_its_test() {
    let source = include_str!("drivers.rs");
    for (sentence, test) in SENTENCES {
        assert!(source.contains(&format!("fn {test}()")), "{sentence}: no test `{test}`");
    }
}

#[test]
fn a_driver_runs_until_its_status_block_confirms_twice() {
    let ran = with_codex(2).run().complete().after_iterations(3);
    let ran = ran.shows("agent `codex`: driver `.ralph/drivers/codex.sh`").shows("EXIT_SIGNAL: true");
    assert_eq!(ran.argv(1), ["exec", "--json", "--sandbox", "workspace-write", "Loop #1. \n\nDo the work."]);
    let second = ran.argv(2);
    assert_eq!(second[..6], ["exec", "--json", "--sandbox", "workspace-write", "resume", "th-1"]);
    assert!(
        second[6].starts_with("Loop #2. Session continued")
            && second[6].ends_with("Previous: step 1. \n\nDo the work.")
    );
    let status: serde_json::Value = serde_json::from_str(&ran.left(".ralph/status.json")).unwrap();
    assert_eq!((&status["status"], &status["loop_count"]), (&"completed".into(), &3.into()));
    assert_eq!(ran.left(".ralph/.claude_session_id"), "", "a session whose work is done is not left behind");
}

#[test]
fn a_claim_that_is_taken_back_begins_again() {
    let body = codex(1).replace("DONE=false; [ $CALLS -ge 1 ] && DONE=true", "DONE=true; [ $CALLS = 2 ] && DONE=false");
    let test = Test::new().fixture("drivers/codex.sh", "drivers/codex.sh").stands_for("codex", &body);
    test.args(&["--agent", "driver:codex"]).run().complete().after_iterations(4);
}

#[test]
fn an_explicit_false_beats_a_promise() {
    let body = codex(99).replace("step $CALLS", "<promise>COMPLETE</promise>");
    let test = Test::new().fixture("drivers/codex.sh", "drivers/codex.sh").stands_for("codex", &body);
    test.args(&["--agent", "driver:codex", "-n", "2"]).run().exits(5);
}

#[test]
fn open_items_of_the_plan_veto_a_claim() {
    let plan = "- [x] one\n- [ ] two\n";
    let ran = with_codex(1).file(".ralph/@fix_plan.md", plan).args(&["-n", "3"]).run().exits(5);
    assert!(ran.argv(1)[4].starts_with("Loop #1. Remaining tasks: 1. Next: two. "), "{:?}", ran.argv(1));
}

#[test]
fn the_configuration_chooses_the_driver() {
    let named = |rc: &str| {
        Test::new().fixture("drivers/codex.sh", "drivers/codex.sh").stands_for("codex", &codex(1)).file(".ralphrc", rc)
    };
    let ran = named("PLATFORM_DRIVER=codex\nNOSUCH=1\n").run().complete();
    let ran = ran.shows("driver `drivers/codex.sh` (from .ralphrc:1)");
    assert!(ran.notices().contains("`.ralphrc`: line 2 was skipped: unknown key `NOSUCH`"), "{}", ran.notices());
    named("PLATFORM_DRIVER=\"${PLATFORM_DRIVER:-none}\"\n").env("PLATFORM_DRIVER", "codex").run().complete();
    // A flag beats it, and so does `ralph.yml`.
    let ran = named("PLATFORM_DRIVER=codex\n").args(&["--agent", "demo"]).no_prompt().run();
    assert_eq!(ran.calls(), 0);
    named("PLATFORM_DRIVER=../codex\n").run().exits(2).complains("is not a name of a driver");
}

#[test]
fn a_name_that_has_no_file_is_told_with_those_that_there_are() {
    let test = Test::new().fixture("drivers/codex.sh", "ralph/drivers/codex.sh").args(&["--agent", "driver:nosuch"]);
    test.run().exits(2).complains("no driver `nosuch`").complains("there are: codex");
}

#[test]
fn bare_names_and_paths_find_drivers_after_agent_files() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/drivers/minimal.sh")).unwrap();
    for (place, name) in [
        (".ralph/drivers/own.sh", "own"),
        ("ralph/drivers/own.sh", "own"),
        ("drivers/own.sh", "own"),
        ("elsewhere/x.sh", "elsewhere/x.sh"),
        ("x.sh", "x.sh"),
    ] {
        let test = Test::new().file(place, &text).stands_for("minimal-cli", DONE).args(&["--agent", name]);
        test.run().complete().shows(&format!("driver `{place}`"));
    }
    let neither = Test::new().file("x.sh", "main() { :; }").args(&["--agent", "./x.sh"]);
    neither.run().exits(4).complains("neither a driver").complains("driver_build_command").complains("agent_invoke");
}

#[test]
fn hooks_are_called_in_the_documented_order() {
    let trace = r#"
for name in driver_name driver_display_name driver_cli_binary driver_valid_tools driver_build_command; do
    eval "original_$(declare -f $name)"
    eval "$name() { echo $name >> trace; original_$name \"\$@\"; }"
done
"#;
    let ran = with_minimal(trace, DONE).run().complete();
    let trace = ran.left("trace");
    let calls: Vec<&str> = trace.lines().collect();
    assert_eq!(calls[..3], ["driver_valid_tools", "driver_cli_binary", "driver_display_name"]);
    assert_eq!(calls.iter().filter(|call| **call == "driver_build_command").count(), 2, "once for each iteration");
}

#[test]
fn missing_hooks_are_named_before_anything_runs() {
    let ran = with_minimal("unset -f driver_name driver_cli_binary", DONE).run().exits(4);
    let ran = ran.complains("driver `drivers/minimal.sh` lacks driver_name, driver_cli_binary");
    assert_eq!(ran.calls(), 0);
}

#[test]
fn a_missing_command_is_named_before_anything_runs() {
    let test = Test::new().fixture("drivers/minimal.sh", "drivers/minimal.sh").args(&["--agent", "minimal"]);
    test.run().exits(4).complains("driver `minimal`").complains("`minimal-cli`");
}

#[test]
fn the_three_arguments_are_what_the_contract_says() {
    let note = "driver_build_command() { printf '%s|' \"$1\" \"$2\" \"$3\" >> seen; echo >> seen; CLAUDE_CMD_ARGS=(minimal-cli); }";
    let body = format!("echo '{{\"session_id\":\"s-1\"}}'; {DONE}");
    let ran = with_minimal(note, &body).no_prompt().file("PROMPT.md", "Do it.").run().complete();
    let seen = ran.left("seen");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].ends_with("PROMPT.md|Loop #1. ||"), "{seen}");
    assert!(lines[1].contains("|Loop #2. Session continued") && lines[1].ends_with("|s-1|"), "{seen}");
    let ran = with_minimal(note, &body).args(&["--no-continue"]).run().complete();
    assert!(ran.left("seen").lines().all(|line| line.ends_with("|||")), "{}", ran.left("seen"));
}

#[test]
fn a_failing_hook_ends_the_run_with_its_name_and_words() {
    let test = with_minimal("driver_build_command() { echo 'no luck today' >&2; return 1; }", DONE);
    test.run().exits(4).complains("`drivers/minimal.sh`: `driver_build_command` gave exit status 1: no luck today");
}

#[test]
fn values_of_the_configuration_reach_the_hooks_and_are_never_run() {
    let note = r#"driver_build_command() {
        echo "$CLAUDE_OUTPUT_FORMAT|$CLAUDE_PERMISSION_MODE|$CLAUDE_ALLOWED_TOOLS|$CLAUDE_USE_CONTINUE|$RALPHRC_FILE|$DRIVER_DISPLAY_NAME|$CLAUDE_CODE_CMD|$PROJECT_NAME" > seen
        CLAUDE_CMD_ARGS=(minimal-cli); }"#;
    let rc = "CLAUDE_OUTPUT_FORMAT=text\nCLAUDE_PERMISSION_MODE=plan\nALLOWED_TOOLS=\"Read,Bash(git *)\"\n\
              SESSION_CONTINUITY=false\nPROJECT_NAME=\"a;touch was-here & $HOME\"\nPROMPT_FILE=`touch was-here`\n";
    let ran = with_minimal(note, DONE).file(".ralph/.ralphrc", rc).args(&["--no-live"]).run().complete();
    assert_eq!(
        ran.left("seen").trim(),
        "text|plan|Read,Bash(git *)|false|.ralph/.ralphrc|Minimal|minimal-cli|a;touch was-here & $HOME"
    );
    assert!(!ran.test.workspace().join("was-here").exists());
    let ran = with_minimal(note, DONE).env("ALLOWED_TOOLS", "Edit").file(".ralphrc", rc).run().complete();
    assert!(ran.left("seen").starts_with("json|plan|Edit|"), "live output is never text: {}", ran.left("seen"));
    with_minimal(note, DONE).file(".ralphrc", "CLAUDE_PERMISSION_MODE=yolo\n").run().exits(2).complains("yolo");
}

#[test]
fn a_minimal_driver_runs_with_the_documented_defaults() {
    let ran = with_minimal("", DONE).run().complete().shows("All done.");
    assert_eq!(ran.argv(1)[0], "--prompt");
    assert_eq!(ran.argv(1)[2..4], ["--output-format", "json"]);
}

#[test]
fn live_output_is_shown_through_the_drivers_filter() {
    let event = |text: &str| {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}}}"#
        )
    };
    let body = format!(
        "echo '{}'\necho '{}'\necho 'no json at all'\necho '{{\"type\":5'\necho '{}'\necho '{}'\necho $CALLS > moved-$CALLS",
        event("Hello "),
        event("there"),
        event(" again"),
        r#"{"type":"result","subtype":"success","is_error":false,"result":"<promise>COMPLETE</promise>","session_id":"s-1"}"#
    );
    let with_claude = |flags: &[&str]| {
        Test::new()
            .fixture("drivers/claude-code.sh", "drivers/claude-code.sh")
            .stands_for("claude", &body)
            .args(&["--agent", "driver:claude-code", "-n", "1"])
            .args(flags)
            .run()
    };
    let ran = with_claude(&[]);
    assert!(ran.displayed().contains("Hello thereno json at all"), "{:?}", ran.displayed());
    let argv = ran.argv(1);
    assert_eq!(argv[..2], ["--output-format", "stream-json"]);
    assert_eq!(argv[argv.len() - 2..], ["--verbose", "--include-partial-messages"]);
    let ran = with_claude(&["--no-live"]);
    assert_eq!((ran.displayed().as_str(), &ran.argv(1)[1]), ("", &"json".to_owned()));
}

#[test]
fn a_bad_filter_never_ends_the_run() {
    for filter in [".[", "nosuch(1)", "error(\"x\")", "def f: f; f", "input"] {
        let extra = format!("driver_stream_filter() {{ echo '{filter}'; }}");
        let body = "echo '{\"a\":1}'; echo '<promise>COMPLETE</promise>'; echo $CALLS > moved-$CALLS";
        let ran = with_minimal(&extra, body).args(&["--confirmations", "1"]).run().complete();
        assert_eq!(ran.calls(), 1, "{filter}");
    }
}

#[test]
fn the_session_goes_on_by_the_documented_chain() {
    let own = "driver_extract_session_id_from_output() { [ -s \"$1\" ] && echo own-id; }";
    let last = "driver_fallback_session_id() { echo last-id; }";
    for (extra, said, expected) in
        [(own, "{\"session_id\":\"s\"}", "own-id"), (last, "{\"session_id\":\"s\"}", "s"), (last, "nothing", "last-id")]
    {
        let body = format!("echo '{said}'; {DONE}");
        let ran = with_minimal(extra, &body).run().complete();
        let argv = ran.argv(2);
        let at = argv.iter().position(|word| word == "--session").expect("a session");
        assert_eq!(argv[at + 1], expected);
        assert!(!ran.argv(1).contains(&"--session".to_owned()));
    }
}

#[test]
fn without_an_id_the_next_iteration_is_fresh() {
    let ran = with_minimal("", DONE).run().complete();
    assert!(!ran.argv(2).contains(&"--session".to_owned()), "{:?}", ran.argv(2));
    let none = "driver_supports_sessions() { return 1; }";
    let ran = with_minimal(none, &format!("echo '{{\"session_id\":\"s\"}}'; {DONE}")).run().complete();
    assert!(!ran.argv(2).contains(&"--session".to_owned()), "{:?}", ran.argv(2));
}

#[test]
fn a_session_of_an_earlier_run_goes_on_unless_it_is_old_or_anothers() {
    let earlier = |driver: &str, rc: &str| {
        with_minimal("", DONE)
            .file(".ralph/.claude_session_id", "kept-id")
            .file(".ralph/.ralph_session", format!("{{\"session_id\":\"kept-id\",\"driver\":\"{driver}\"}}"))
            .file(".ralphrc", rc)
    };
    let resumed = |test: Test| test.run().complete().argv(1).contains(&"kept-id".to_owned());
    assert!(resumed(earlier("minimal", "")));
    assert!(!resumed(earlier("codex", "")), "another driver's session");
    assert!(!resumed(earlier("minimal", "").args(&["--no-continue"])));
    assert!(!resumed(earlier("minimal", "SESSION_EXPIRY_HOURS=0\n")), "too old");
}

#[test]
fn the_allowlist_is_checked_against_the_drivers_tools() {
    let claude = |tools: &str| {
        Test::new()
            .fixture("drivers/claude-code.sh", "drivers/claude-code.sh")
            .stands_for("claude", DONE)
            .args(&["--agent", "driver:claude-code", "-n", "1", "--tools", tools])
            .run()
    };
    let ran = claude("Read,Bash(npm test)");
    let argv = ran.argv(1);
    let at = argv.iter().position(|word| word == "--allowedTools").unwrap();
    assert_eq!(argv[at + 1..at + 3], ["Read", "Bash(npm test)"]);
    claude("Read,Teleport").exits(2).complains("Claude Code has no tool `Teleport`").complains("TodoWrite");
    let ran = with_codex(1).args(&["--tools", "anything"]).run().complete();
    assert!(ran.notices().contains("the list of tools is ignored: OpenAI Codex"), "{}", ran.notices());
}

#[test]
fn a_denial_that_halts_shows_the_drivers_help() {
    let help = "driver_permission_denial_help() { echo \"ask $DRIVER_DISPLAY_NAME, see $RALPHRC_FILE\"; }";
    let body = "echo 'Permission denied: the command npm install is blocked'; echo $CALLS > moved-$CALLS";
    let test = |mode: &str| with_minimal(help, body).file(".ralphrc", format!("PERMISSION_DENIAL_MODE={mode}\n"));
    let ran = test("halt").run().exits(4).after_iterations(1);
    assert!(ran.stdout().contains("ask Minimal, see .ralphrc"), "{}", ran.stdout());
    test("continue").args(&["-n", "2"]).run().exits(5).after_iterations(2);
}

#[test]
fn a_prompt_that_does_not_fit_is_told_with_the_limit() {
    let ran = with_codex(1).no_prompt().file("PROMPT.md", "x".repeat(200 * 1024)).run().exits(2);
    let ran = ran.complains("204811 bytes").complains("131071").complains("file");
    assert_eq!(ran.calls(), 0);
}

#[test]
fn ctrl_c_in_a_hook_ends_the_run_at_once() {
    let slow = "driver_build_command() { touch waiting; sleep 60; }";
    let running = with_minimal(slow, DONE).start();
    running.until("the hook waits", |running| running.workspace().join("waiting").exists());
    running.signal(rustix::process::Signal::INT);
    running.wait().dies_by(2);
}

#[test]
fn a_driver_is_loaded_once_in_a_run() {
    let ran = with_minimal("\necho once >> loads\n", DONE).run().complete().after_iterations(2);
    assert_eq!(ran.left("loads"), "once\n");
}

#[cfg(target_os = "linux")]
#[test]
fn a_flood_on_a_hooks_standard_error_takes_no_memory() {
    let flood = "\ndriver_name() { head -c 200000000 /dev/zero | tr '\\0' x >&2; echo minimal; }\n";
    let running = with_minimal(flood, DONE).start();
    let peak = around::peak_of(running.pid());
    running.wait().complete();
    let peak = peak.join().unwrap();
    assert!(peak > 0 && peak < 60_000, "{peak} kB");
}

#[test]
fn ctrl_c_in_a_hook_after_the_iteration_keeps_its_receipt() {
    let slow = "driver_supports_sessions() { return 0; }\ndriver_extract_session_id_from_output() { touch waiting; sleep 60; }";
    let running = with_minimal(slow, DONE).start();
    running.until("the hook waits", |running| running.workspace().join("waiting").exists());
    running.signal(rustix::process::Signal::INT);
    let ran = running.wait().dies_by(2).after_iterations(1);
    assert_eq!(ran.facts("iteration_end")[0]["outcome"], "ok");
    assert_eq!(ran.facts("run_end")[0]["iterations"], 1);
    let output = ran.test.tool().args(["resume", "-n", "1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("has reached its limit of 1 iteration"), "{output:?}");
}

#[test]
fn a_hook_has_no_more_time_than_the_run() {
    let slow = "driver_build_command() { sleep 60; }";
    let start = std::time::Instant::now();
    with_minimal(slow, DONE).args(&["--max-time", "2s"]).run().exits(5).shows("time limit");
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn agents_lists_drivers_with_what_is_wrong() {
    let test = Test::new()
        .fixture("drivers/claude-code.sh", "drivers/claude-code.sh")
        .file("drivers/broken.sh", "driver_name() { echo broken; }")
        .file(".ralph/agents/odd.sh", "agent_extract_response() { :; }\nexit 3");
    let output = test.ralph_agents(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(row("claude-code").contains("driver") && row("claude-code").contains("drivers/claude-code.sh"), "{text}");
    assert!(row("broken").contains("lacks driver_display_name"), "{text}");
    assert!(row("odd").contains("script") && row("odd").contains("lacks agent_invoke"), "{text}");
    assert!(
        text.contains("not checked, because it would run code of this repository; `ralph doctor --plugins` checks it"),
        "{text}"
    );
    let said = test.tool().args(["doctor", "--plugins"]).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("lacks driver_display_name") && text.contains("exit status 3"), "{text}");
    assert!(text.contains("the driver needs 2.0.76 or newer"), "{text}");
}

#[test]
fn a_new_driver_passes_its_check_and_a_broken_one_does_not() {
    let test = Test::new();
    assert!(test.ralph_agents(&["new", "--driver", "mine"]).status.success());
    let again = test.ralph_agents(&["new", "--driver", "mine"]);
    assert_eq!(again.status.code(), Some(2), "a file is never written over");
    let checked = test.ralph_agents(&["check", "mine"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let test = test.file("drivers/bad.sh", "driver_name() { echo bad; }\ndriver_display_name() { :; }\ndriver_cli_binary() { echo bad; }\ndriver_valid_tools() { :; }\ndriver_build_command() { CLAUDE_CMD_ARGS=(bad); }");
    let checked = test.ralph_agents(&["check", "bad"]);
    assert_eq!(checked.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&checked.stdout).contains("carries neither the prompt nor its path"));
}

#[test]
fn trust_is_asked_for_where_the_user_wants_it() {
    let asks = || with_minimal("", DONE).file("ralph.yml", "trust: ask\n");
    let ran = asks().env("HOME", "/nonexistent").run().exits(2);
    let ran = ran.complains("new: driver `drivers/minimal.sh`").complains("terminal");
    assert_eq!(ran.calls(), 0);
    // The user's own configuration counts, and what it says cannot be undone by the repository.
    let test = with_minimal("touch was-here", DONE)
        .file("ralph.yml", "trust: always\n")
        .file("home/ralph/ralph.yml", "trust: ask\n");
    let home = test.workspace().join("home");
    let test = test.env("XDG_CONFIG_HOME", home.to_str().unwrap());
    let ran = test.run().exits(2);
    assert!(!ran.test.workspace().join("was-here").exists(), "nothing of it ran");
}
