//! Conformance with the contract of agent scripts (document 003), sentence by sentence, through the whole program.
//!
//! [`SENTENCES`] maps what the document says to the test that holds it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/commands.rs"]
mod commands;
mod support;

use std::time::{Duration, Instant};

use support::{Ran, Test};

/// What the document says, and which test holds it.
const SENTENCES: &[(&str, &str)] = &[
    ("agent scripts live in agents/ and are named {agent_name}.sh", "the_configuration_chooses_the_script"),
    ("the active agent is selected by AGENT in config", "the_configuration_chooses_the_script"),
    ("if the script does not exist, ralph exits with an error", "what_is_missing_is_named_before_the_first_call"),
    ("agent_invoke gets the prompt file; its stdout is captured", "a_script_runs_until_its_response_says_complete"),
    ("agent stderr is not redirected", "standard_error_reaches_the_user"),
    ("agent_extract_response is used for completion and replan", "the_response_alone_decides"),
    ("malformed lines are skipped", "broken_lines_and_a_last_line_without_end_lose_nothing"),
    ("agent_format_display reads raw output and writes text for people", "the_display_of_the_script_is_shown"),
    ("the display is line by line, as it comes", "the_display_shows_lines_as_they_come"),
    ("AGENT_CLI validates that the agent is installed", "what_is_missing_is_named_before_the_first_call"),
    ("optional functions are skipped when they are not defined", "a_script_runs_until_its_response_says_complete"),
    (
        "agent_pre_iteration is called before each invocation",
        "hooks_are_called_in_the_documented_order_and_share_one_shell",
    ),
    (
        "agent_post_iteration is called after each, regardless of success",
        "hooks_are_called_in_the_documented_order_and_share_one_shell",
    ),
    ("hooks may call log", "hooks_are_called_in_the_documented_order_and_share_one_shell"),
    ("the agent CLI accepts a prompt via stdin", "a_script_runs_until_its_response_says_complete"),
];

/// A line of an agent that prints stream-json.
fn says(text: &str) -> String {
    format!(
        r#"echo "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}""#
    )
}

/// The script of the fixtures with more in it, and an agent that does this.
fn with(extra: &str, body: &str) -> Test {
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scripts/streams.sh");
    let text = std::fs::read_to_string(fixture).unwrap();
    let body = format!("cat > \"$HERE/heard.$CALLS\"\n{body}\necho $CALLS > moved-$CALLS");
    Test::new()
        .file("agents/streams.sh", text + extra)
        .stands_for("streams", &body)
        .args(&["--agent", "script:streams"])
}

fn heard(ran: &Ran, call: usize) -> String {
    std::fs::read_to_string(ran.test.bin().join(format!("heard.{call}"))).unwrap()
}

fn complete() -> String {
    says("All done. <promise>COMPLETE</promise>")
}

#[test]
fn every_sentence_of_the_document_has_its_test() {
    let source = include_str!("scripts.rs");
    for (sentence, test) in SENTENCES {
        assert!(source.contains(&format!("fn {test}()")), "{sentence}: no test `{test}`");
    }
}

#[test]
fn a_script_runs_until_its_response_says_complete() {
    let body = format!("if [ $CALLS = 1 ]; then {}; else {}; fi", says("step 1"), complete());
    let ran = with("", &body).run().complete().after_iterations(2);
    let ran = ran.shows("agent `streams`: script `agents/streams.sh`");
    assert_eq!(ran.argv(1), ["-x", "--json"]);
    assert!(heard(&ran, 1).starts_with("Do the work."));
}

#[test]
fn the_configuration_chooses_the_script() {
    let config = "# Ralph configuration\nSPECS_DIR=\"docs\"\nDEFAULT_MAX_ITERATIONS=2   # small\nAGENT=\"streams\"\n";
    let fixture =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scripts/streams.sh")).unwrap();
    for (place, config_place) in [(".ralph/agents/streams.sh", ".ralph/config"), ("agents/streams.sh", "config")] {
        let test = Test::new().file(place, &fixture).file(config_place, config);
        let ran = test.stands_for("streams", &says("not yet")).run().exits(5).after_iterations(2);
        ran.shows(&format!("script `{place}` (from {config_place}:4)"));
    }
    let test = Test::new().file("agents/streams.sh", &fixture).file("config", "AGENT=nosuch\n");
    test.run().exits(2).complains("no script `nosuch`").complains("there are: streams");
}

#[test]
fn what_is_missing_is_named_before_the_first_call() {
    for (extra, expected) in [
        (
            "unset -f agent_extract_response agent_invoke",
            "script `agents/streams.sh` lacks agent_invoke, agent_extract_response",
        ),
        ("unset AGENT_CLI", "does not set `AGENT_CLI`"),
        ("AGENT_CLI=no-such-agent", "the command of script `agents/streams.sh` was not found: `no-such-agent`"),
        ("set -u; echo \"$NOPE\"", "NOPE: unbound variable"),
    ] {
        let ran = with(extra, &complete()).run().exits(4).complains(expected);
        assert_eq!(ran.calls(), 0);
    }
    Test::new().args(&["--agent", "script:nosuch"]).run().exits(2).complains("no script `nosuch`");
}

#[test]
fn hooks_are_called_in_the_documented_order_and_share_one_shell() {
    let trace = r#"
agent_pre_iteration() { COUNT=$((${COUNT:-0} + 1)); echo "PRE $COUNT" >> trace; return 5; }
agent_post_iteration() { echo "POST $COUNT" >> trace; log "round $COUNT of $AGENT_CLI"; return 7; }
eval "original_$(declare -f agent_invoke)"
agent_invoke() { echo "INVOKE $COUNT" >> trace; COUNT=99; original_agent_invoke "$@"; }
eval "original_$(declare -f agent_extract_response)"
agent_extract_response() { echo "EXTRACT $COUNT" >> trace; original_agent_extract_response "$@"; }
"#;
    let body = format!("if [ $CALLS = 1 ]; then exit 7; else {}; fi", complete());
    let ran = with(trace, &body).run().complete().after_iterations(2);
    let expected = "PRE 1\nINVOKE 1\nPOST 1\nPRE 2\nINVOKE 2\nEXTRACT 2\nPOST 2\n";
    assert_eq!(ran.left("trace"), expected, "no extraction after a failure, and what `agent_invoke` sets is lost");
    assert!(ran.notices().contains("round 1 of streams\nround 2 of streams"), "{}", ran.notices());
    ran.shows("round 2 of streams");
}

#[test]
fn a_hook_that_ends_its_shell_is_told_and_the_run_goes_on() {
    let extra = "agent_pre_iteration() { echo giving up >&2; exit 3; }";
    let ran = with(extra, &complete()).run().complete();
    assert!(
        ran.notices().contains("`agent_pre_iteration` ended its shell with exit status 3: giving up"),
        "{}",
        ran.notices()
    );
}

#[test]
fn hooks_find_the_raw_output_and_the_settings_of_their_loop() {
    let extra =
        "agent_post_iteration() { log \"$(grep -c assistant \"$RALPH_DIR/last_agent_output\") $MODEL $MODE\"; }";
    let ran = with(extra, &complete()).file("config", "MODEL=\"small one\"\n").run().complete();
    assert!(ran.notices().contains("1 small one prompt"), "{}", ran.notices());
}

#[test]
fn standard_error_reaches_the_user() {
    let ran = with("", &format!("echo 'token is old' >&2; {}", complete())).run().complete();
    ran.shows("token is old");
}

#[test]
fn the_response_alone_decides() {
    let thinking = r#"echo "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"thinking\",\"thinking\":\"<promise>COMPLETE</promise>\"}]}}""#;
    let user = r#"echo "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"<promise>COMPLETE</promise>\"}]}}""#;
    let result =
        r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"<promise>COMPLETE</promise>"}'"#;
    let plain = "echo '<promise>COMPLETE</promise>'";
    for elsewhere in [thinking, user, result, plain] {
        let body = format!("{elsewhere}; {}", says("not yet"));
        with("", &body).args(&["-n", "1"]).run().exits(5);
    }
    let early = format!("{}; {}", says("<promise>COMPLETE</promise>"), says("and more words"));
    with("", &early).run().complete();
    with("", &early).file("ralph.yml", "completion: {match: last-line}\n").args(&["-n", "1"]).run().exits(5);
}

#[test]
fn a_wish_for_another_plan_ends_the_run_with_the_command_for_it() {
    let body = says("no way. <promise>REPLAN</promise>");
    let ran =
        with("", &body).file("implementation_plan.md", "# Plan\n**Plan Command:** `ralph plan --process`\n").run();
    let ran = ran.exits(3);
    assert!(ran.notices().contains("run `ralph plan --process`"), "{}", ran.notices());
    let both = format!("{}; {}", body, complete());
    with("", &both).run().complete();
}

#[test]
fn an_empty_response_and_a_failing_agent_are_failed_tries() {
    let empty =
        with("", "echo '{\"type\":\"user\"}'").file("config", "MAX_RETRIES=1\n").run().exits(1).after_iterations(2);
    assert!(empty.stdout().contains("found no response"), "{}", empty.stdout());
    let failing = format!("{}; echo broken pipe of dreams >&2; exit 7", complete());
    let ran = with("", &failing).file("config", "MAX_RETRIES=0\n").run().exits(1).after_iterations(1);
    assert!(ran.stdout().contains("broken pipe of dreams"));
    let stub = "agent_invoke() { echo 'Error: this agent is only a stub' >&2; return 1; }";
    with(stub, "").file("config", "MAX_RETRIES=0\n").run().exits(1).shows("this agent is only a stub");
}

#[test]
fn broken_lines_and_a_last_line_without_end_lose_nothing() {
    let body = format!("echo 'Warning: {{'; echo '{{\"type\":'; printf '%s' \"$({})\"", complete());
    let ran = with("", &body).run().complete().after_iterations(1);
    assert!(ran.displayed().contains("DISPLAYED All done."), "{}", ran.displayed());
}

#[test]
fn the_display_of_the_script_is_shown() {
    let tool =
        r#"echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]}}'"#;
    let ran = with("", &format!("{tool}; {}", complete())).run().complete();
    let ran = ran.shows("DISPLAYED All done.").shows("[tool] Bash");
    let records = ran.records();
    let words =
        records.iter().filter(|record| record["text"].as_str().is_some_and(|text| text.starts_with("All done")));
    assert_eq!(words.count(), 1, "the journal has the words as an event too");
    assert!(records.iter().any(|record| record["type"] == "tool_start"), "and the tools");
    assert_eq!(ran.stdout().matches("All done.").count(), 1, "but they are shown once");
}

#[test]
fn the_display_shows_lines_as_they_come() {
    let body = format!("{}; touch said; until [ -e go-on ]; do sleep 0.05; done; {}", says("first words"), complete());
    let running = with("", &body).start();
    running.until("the first line is shown", |running| running.journal().contains("DISPLAYED first words"));
    std::fs::write(running.workspace().join("go-on"), "").unwrap();
    running.wait().complete();
}

#[test]
fn a_display_that_hangs_or_dies_does_not_hold_the_agent_up() {
    for display in ["sleep 600", "return 3", "head -c 1; exec sleep 600"] {
        let extra = format!("agent_format_display() {{ {display}; }}");
        let body = format!("head -c 400000 /dev/zero | tr '\\0' x; echo; {}", complete());
        let start = Instant::now();
        let ran = with(&extra, &body).run().complete();
        assert!(start.elapsed() < Duration::from_secs(40), "{display}");
        assert_eq!(ran.calls(), 1);
    }
}

#[test]
fn prompts_are_filled_in_from_a_closed_list_only() {
    let ran = with("", &complete())
        .file("config", "SPECS_DIR=\"docs/specs\"\n")
        .env("SECRET", "hunter2")
        .prompt("Mode ${MODE}, see $SPECS_DIR; $SECRET ${SECRET} $HOME costs $5")
        .run()
        .complete();
    assert!(
        heard(&ran, 1).starts_with("Mode prompt, see docs/specs; $SECRET ${SECRET} $HOME costs $5"),
        "{}",
        heard(&ran, 1)
    );
}

#[test]
fn a_large_prompt_that_nobody_reads_is_fine() {
    let fixture =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scripts/streams.sh")).unwrap();
    let test = Test::new().file("agents/streams.sh", fixture).stands_for("streams", &complete());
    let test = test.no_prompt().file("PROMPT.md", "x\n".repeat(150_000)).args(&["--agent", "script:streams"]);
    test.run().complete();
}

#[test]
fn a_failure_in_the_middle_of_a_pipe_is_a_failure() {
    let extra = "agent_invoke() { cat \"$1\" | $AGENT_CLI | cat; }";
    let ran = with(extra, &format!("{}; exit 9", complete())).file("config", "MAX_RETRIES=0\n").run().exits(1);
    assert_eq!(ran.calls(), 1);
}

#[test]
fn scripts_work_where_no_jq_is_installed() {
    let test = with("", &format!("echo broken {{; {}", complete()));
    // Only what the scripts need, without jq.
    let tools = test.bin().parent().unwrap().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for name in ["bash", "cat", "sleep", "mktemp", "mkfifo", "rm", "tr", "head", "git"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|path| path.join(name))
            .find(|path| path.exists());
        if let Some(path) = found {
            std::os::unix::fs::symlink(path, tools.join(name)).unwrap();
        }
    }
    let path = format!("{}:{}", test.bin().display(), tools.display());
    let ran = test.env("PATH", &path).run().complete();
    assert!(ran.displayed().contains("DISPLAYED All done."), "{}", ran.displayed());
}

#[test]
fn whole_stream_filters_and_pretty_programs_work_too() {
    let extra = r#"
agent_format_display() { jq --unbuffered -r 'select(.type=="assistant") | "STREAMED " + .message.content[0].text'; }
agent_extract_response() { jq -r 'select(.type=="assistant") | .message.content[].text' "$1" | sed 's/^/  /'; }
"#;
    let ran = with(extra, &complete()).run().complete();
    assert!(ran.displayed().contains("STREAMED All done."), "{}", ran.displayed());
}

#[test]
fn a_new_script_passes_its_check() {
    let test = Test::new();
    assert!(test.ralph_agents(&["new", "--script", "mine"]).status.success());
    let checked = test.ralph_agents(&["check", "script:mine"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let echo = "AGENT_CLI=cat\nagent_invoke() { cat \"$1\"; }\nagent_extract_response() { cat \"$1\"; }\nagent_format_display() { cat; }\n";
    let test = test.file("agents/echo.sh", echo);
    let checked = test.ralph_agents(&["check", "echo"]);
    assert_eq!(checked.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&checked.stdout).contains("a false completion"));
}
