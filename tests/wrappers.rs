//! Conformance with the contract of commands that speak Claude (document 002, and what its loop does today), sentence by
//! sentence, through the whole program.
//!
//! [`SENTENCES`] maps what is said to the test that holds it.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/commands.rs"]
mod commands;
mod support;

use support::{Ran, Test};

/// What the document says, and which test holds it.
const SENTENCES: &[(&str, &str)] = &[
    ("claude_command and claude_args replace Claude Code", "the_configuration_of_its_own_loop_names_a_wrapper"),
    ("the command gets its args, then -p and the prompt", "the_args_come_before_the_prompt"),
    ("the default args are split and stand before -p", "the_args_come_before_the_prompt"),
    ("an empty claude_args keeps the default", "the_configuration_of_its_own_loop_names_a_wrapper"),
    (
        "today: the prompt on standard input, with --print",
        "a_wrapper_that_takes_its_prompt_on_standard_input_is_found_out",
    ),
    ("content_block_delta: streaming text", "every_form_of_text_is_heard"),
    ("assistant: a full message", "every_form_of_text_is_heard"),
    ("message_stop: a final message", "every_form_of_text_is_heard"),
    ("result: a string or an object with output", "every_form_of_text_is_heard"),
    ("the minimum is content_block_delta and a result", "the_minimal_template_is_an_agent"),
    ("signals in the text of deltas or of the result are detected", "every_form_of_text_is_heard"),
    ("a signal may be split over deltas", "a_signal_that_is_split_over_deltas_is_seen"),
    ("signals must come in the agent's own words", "a_signal_that_is_only_quoted_does_not_count"),
    (
        "COMPLETED, and today ALL_TASKS_DONE, REVIEW_DONE, CODEX_REVIEW_DONE, PLAN_READY",
        "every_signal_of_success_completes",
    ),
    ("FAILED, and today TASK_FAILED", "a_failed_task_is_tried_again_and_then_ends_the_run_with_its_reason"),
    ("QUESTION and PLAN_DRAFT up to END", "a_question_and_a_draft_end_the_run_with_their_text"),
    ("wrappers ignore unknown flags", "the_minimal_template_is_an_agent"),
    ("the Gemini example", "the_examples_of_the_document_run"),
    ("the Ollama example", "the_examples_of_the_document_run"),
    ("the OpenRouter example", "the_examples_of_the_document_run"),
    ("events are shown as they become available", "words_are_shown_as_they_come"),
    ("a wrapper may exit with a non-zero code", "a_wrapper_that_fails_is_a_failure"),
    ("a wrapper may tell an error in a result", "a_wrapper_that_fails_is_a_failure"),
    ("each line is an object; others are kept", "lines_that_are_no_events_lose_nothing"),
    ("error and limit patterns", "limits_and_errors_in_words_count_where_the_run_failed"),
    ("patterns in prose are no failure", "limits_and_errors_in_prose_mean_nothing"),
];

#[test]
fn every_sentence_of_the_document_has_its_test() {
    let source = include_str!("wrappers.rs");
    for (sentence, test) in SENTENCES {
        assert!(source.contains(&format!("fn {test}()")), "{sentence}: no test `{test}`");
    }
}

/// The document's minimal template; `your-tool` stands on `PATH`.
const TEMPLATE: &str = r#"#!/usr/bin/env bash
set -euo pipefail
prompt=""
while [[ $# -gt 0 ]]; do
    case "$1" in
        -p) prompt="${2:-}"; shift; shift 2>/dev/null || true ;;
        *)  shift ;; # ignore unknown flags
    esac
done
if [[ -z "$prompt" ]]; then
    echo "error: no prompt provided (-p flag required)" >&2
    exit 1
fi
@TOOL@ | while IFS= read -r line; do
    jq -cn --arg text "$line" \
        '{type: "content_block_delta", delta: {type: "text_delta", text: ($text + "\n")}}'
done
echo '{"type":"result","result":""}'
"#;

/// The one of the document that asks over the network.
const OPENROUTER: &str = r#"#!/usr/bin/env bash
set -euo pipefail
prompt=""
while [[ $# -gt 0 ]]; do
    case "$1" in
        -p) prompt="$2"; shift 2 ;;
        *)  shift ;;
    esac
done
[[ -z "$prompt" ]] && exit 1
OPENROUTER_MODEL="${OPENROUTER_MODEL:-anthropic/claude-sonnet-4}"
response=$(curl -s http://127.0.0.1/api/v1/chat/completions \
    -H "Authorization: Bearer $OPENROUTER_API_KEY" \
    -H "Content-Type: application/json" \
    -d "$(jq -cn --arg model "$OPENROUTER_MODEL" --arg prompt "$prompt" '{
        model: $model,
        messages: [{role: "user", content: $prompt}]
    }')")
text=$(echo "$response" | jq -r '.choices[0].message.content // empty')
if [[ -n "$text" ]]; then
    jq -cn --arg text "$text" \
        '{type: "content_block_delta", delta: {type: "text_delta", text: ($text + "\n")}}'
fi
echo '{"type":"result","result":""}'
"#;

/// Takes its prompt on standard input only, as today's callers give it.
const BY_STDIN: &str = r#"#!/bin/sh
case "$*" in *--print*) ;; *) echo "error: no prompt on standard input" >&2; exit 1 ;; esac
cat > heard
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"<<<RALPHEX:ALL_TASKS_DONE>>>"}]}}'
echo '{"type":"result","result":{"output":""}}'
"#;

fn wrapper(text: &str) -> Test {
    let test = Test::new().file("wrap.sh", text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(test.workspace().join("wrap.sh"), mode).unwrap();
    test
}

fn started(text: &str) -> Test {
    wrapper(text).args(&["--claude-command", "./wrap.sh"])
}

/// A wrapper that prints these lines and ends.
fn printing(lines: &[&str], exit: i32) -> Test {
    let text = lines.iter().fold(String::new(), |text, line| text + "cat <<'LINE'\n" + line + "\nLINE\n");
    started(&format!("#!/bin/sh\n{text}exit {exit}\n"))
}

fn delta(text: &str) -> String {
    serde_json::json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}).to_string()
}

const RESULT: &str = r#"{"type":"result","result":""}"#;

fn heard(ran: &Ran) -> String {
    std::fs::read_to_string(ran.test.workspace().join("heard")).unwrap()
}

fn class_of(ran: &Ran) -> String {
    ran.facts("iteration_end")[0]["class"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn the_minimal_template_is_an_agent() {
    let test = started(&TEMPLATE.replace("@TOOL@", "your-tool --prompt \"$prompt\""));
    let test = test.stands_for("your-tool", "printf 'I did it.\\n<<<RALPHEX:COMPLETED>>>\\n'");
    let ran = test.run().complete().after_iterations(1);
    let words = ran.argv(1);
    assert_eq!(words[0], "--prompt");
    assert!(words[1].starts_with("Do the work."), "{words:?}");
}

#[test]
fn the_examples_of_the_document_run() {
    let done = "printf 'I did it.\\n<<<RALPHEX:COMPLETED>>>\\n'; echo noise >&2";
    let gemini = started(&TEMPLATE.replace("@TOOL@", "gemini -p \"$prompt\" 2>/dev/null")).stands_for("gemini", done);
    assert!(gemini.run().complete().argv(1)[1].starts_with("Do the work."));
    let ollama = "ollama run \"${OLLAMA_MODEL:-llama3}\" \"$prompt\" 2>/dev/null";
    let ollama = started(&TEMPLATE.replace("@TOOL@", ollama)).stands_for("ollama", done);
    assert_eq!(ollama.run().complete().argv(1)[..2], ["run", "llama3"]);
    let answer = r#"echo '{"choices":[{"message":{"content":"I did it.\n<<<RALPHEX:COMPLETED>>>"}}]}'"#;
    let openrouter = started(OPENROUTER).env("OPENROUTER_API_KEY", "none").stands_for("curl", answer);
    let sent = openrouter.run().complete().argv(1).pop().unwrap();
    let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
    assert!(sent["messages"][0]["content"].as_str().unwrap().starts_with("Do the work."));
}

#[test]
fn the_args_come_before_the_prompt() {
    let note = "#!/bin/bash\nprintf '%s\\n' \"${@:1:$#-1}\" > args; printf '%s' \"${@: -1}\" > heard\n";
    let text = format!("{note}echo '{}'; echo '{RESULT}'\n", delta("<<<RALPHEX:COMPLETED>>>"));
    let args = |ran: &Ran| std::fs::read_to_string(ran.test.workspace().join("args")).unwrap();
    let ran = started(&text).run().complete();
    assert_eq!(args(&ran), "--dangerously-skip-permissions\n--output-format\nstream-json\n--verbose\n-p\n");
    assert!(heard(&ran).starts_with("Do the work."));
    let config = "cli: {backend: claude-command, command: ./wrap.sh, args: [--mine, 'two words']}\n";
    let ran = wrapper(&text).file("ralph.yml", config).run().complete();
    assert_eq!(args(&ran), "--mine\ntwo words\n-p\n");
}

#[test]
fn a_wrapper_that_takes_its_prompt_on_standard_input_is_found_out() {
    let ran = started(BY_STDIN).run().complete();
    assert!(heard(&ran).starts_with("Do the work."));
    assert_eq!(ran.facts("run_end")[0]["iterations"], 1, "the first try costs nothing");
    let config = "cli: {backend: claude-command, command: ./wrap.sh, prompt_mode: stdin}\n";
    wrapper(BY_STDIN).file("ralph.yml", config).run().complete().after_iterations(1);
}

#[test]
fn the_configuration_of_its_own_loop_names_a_wrapper() {
    let text = format!("#!/bin/sh\necho '{}'; echo '{RESULT}'\n", delta("<<<RALPHEX:COMPLETED>>>"));
    let test = wrapper(&text).file(".ralphex/config", "claude_command = ./wrap.sh\nclaude_args =\n");
    let ran =
        test.run().complete().shows("a command that prints Claude's stream-json").shows("(from .ralphex/config:1)");
    let command = ran.facts("run_start")[0]["command"].to_string();
    assert!(command.contains("--dangerously-skip-permissions"), "{command}");
}

#[test]
fn the_users_own_configuration_of_its_loop_is_read_below_the_projects() {
    let text = format!("#!/bin/sh\necho '{}'; echo '{RESULT}'\n", delta("<<<RALPHEX:COMPLETED>>>"));
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ralphex/config");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "claude_command = no-such-wrapper\nclaude_args = --from-user\n").unwrap();
    let home = home.path().to_str().unwrap();
    let test = wrapper(&text).file(".ralphex/config", "claude_command = ./wrap.sh\n").env("XDG_CONFIG_HOME", home);
    let ran = test.run().complete().shows("(from .ralphex/config:1)");
    let command = ran.facts("run_start")[0]["command"].to_string();
    assert!(command.contains("wrap.sh") && command.contains("--from-user"), "{command}");
    std::fs::write(&path, "claude_command = ./wrap.sh\n").unwrap();
    wrapper(&text).env("XDG_CONFIG_HOME", home).run().complete().shows("ralphex/config:1)");
}

#[test]
fn every_form_of_text_is_heard() {
    let signal = "All is well.\\n<<<RALPHEX:COMPLETED>>>";
    for line in [
        format!(r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{signal}"}}}}"#),
        format!(r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{signal}"}}]}}}}"#),
        format!(r#"{{"type":"message_stop","message":{{"content":[{{"type":"text","text":"{signal}"}}]}}}}"#),
        format!(r#"{{"type":"result","result":"{signal}"}}"#),
        format!(r#"{{"type":"result","result":{{"output":"{signal}"}}}}"#),
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","delta":{{"type":"text_delta","text":"{signal}"}}}}}}"#
        ),
    ] {
        let ran = printing(&[&line, RESULT], 0).run().complete();
        assert_eq!(ran.stdout().matches("All is well.").count(), 1, "once: {line}");
    }
}

#[test]
fn a_signal_that_is_split_over_deltas_is_seen() {
    printing(&[&delta("Done.\n<<<RALPH"), &delta("EX:COMPL"), &delta("ETED>>>\n"), RESULT, RESULT], 0).run().complete();
}

#[test]
fn a_signal_that_is_only_quoted_does_not_count() {
    let quoted = delta("I shall say `<<<RALPHEX:COMPLETED>>>` when it is done.");
    printing(&[&quoted, RESULT], 0).args(&["-n", "1"]).run().exits(5);
}

#[test]
fn every_signal_of_success_completes() {
    for signal in ["COMPLETED", "ALL_TASKS_DONE", "REVIEW_DONE", "CODEX_REVIEW_DONE", "PLAN_READY"] {
        printing(&[&delta(&format!("Done.\n<<<RALPHEX:{signal}>>>")), RESULT], 0).run().complete();
    }
}

#[test]
fn a_failed_task_is_tried_again_and_then_ends_the_run_with_its_reason() {
    for signal in ["FAILED", "TASK_FAILED"] {
        let says = delta(&format!("The tests need a database.\n<<<RALPHEX:{signal}>>>"));
        let twice = "event_loop: {max_consecutive_failures: 2}\n";
        let ran = printing(&[&says, RESULT], 0).file("ralph.yml", twice).run().exits(1);
        assert!(ran.facts("iteration_end").len() > 1, "it is tried again");
        ran.shows("The tests need a database.");
    }
}

#[test]
fn a_question_and_a_draft_end_the_run_with_their_text() {
    let question = "<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which one?\",\"options\":[\"a\",\"b\"]}\n<<<RALPHEX:END>>>";
    printing(&[&delta(question), RESULT], 0).run().exits(3).shows("Which one?");
    let draft = "<<<RALPHEX:PLAN_DRAFT>>>\n# The plan\n- one\n<<<RALPHEX:END>>>";
    printing(&[&delta(draft), RESULT], 0).run().exits(3).shows("# The plan");
}

#[test]
fn words_are_shown_as_they_come() {
    let text = format!("#!/bin/bash\necho '{}'\nsleep 30\n", delta("The first words.\n"));
    let running = started(&text).start();
    running.until("the words are recorded", |running| running.journal().contains("The first words."));
    running.signal(rustix::process::Signal::INT);
    running.wait().dies_by(2).shows("The first words.");
}

#[test]
fn a_wrapper_that_fails_is_a_failure() {
    let done = delta("Done.\n<<<RALPHEX:COMPLETED>>>");
    printing(&[&done], 7).args(&["-n", "1"]).run().exits(1).shows("exit code 7");
    let error = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"result":"the model is gone"}"#;
    printing(&[&done, error], 0).args(&["-n", "1"]).run().exits(1).shows("the model is gone");
}

#[test]
fn a_bare_result_is_no_verdict() {
    let done = delta("Done.\n<<<RALPHEX:COMPLETED>>>");
    printing(&[&done, RESULT], 3).args(&["-n", "1"]).run().exits(1).shows("exit code 3");
    printing(&[RESULT], 0).args(&["-n", "1"]).run().exits(1).shows("said nothing");
    printing(&[&done, RESULT], 0).run().complete();
    // A wrapper that keeps running after its result is stopped, and its words count.
    let lingers = format!("#!/bin/sh\ncat <<'LINE'\n{done}\n{RESULT}\nLINE\nexec sleep 60\n");
    started(&lingers).run().complete();
    // An error in Claude's words is one, and a limit in a wrapper's text counts where the wrapper failed.
    let error = r#"{"type":"result","result":"API Error: 500 Internal server error"}"#;
    for (test, class) in
        [(printing(&[error], 0), "overload"), (printing(&[&delta("You've hit your limit\n"), RESULT], 1), "rate_limit")]
    {
        let running = test.file("ralph.yml", "limits: {max_wait: 0}\n").args(&["-n", "1"]).start();
        running.until("the iteration ended", |running| running.journal().contains("\"kind\":\"iteration_end\""));
        running.signal(rustix::process::Signal::INT);
        assert_eq!(class_of(&running.wait()), class);
    }
}

#[test]
fn a_last_message_without_a_result_is_a_success() {
    let stop = r#"{"type":"message_stop","message":{"content":[{"type":"text","text":"<<<RALPHEX:COMPLETED>>>"}]}}"#;
    printing(&[stop], 0).run().complete();
}

#[test]
fn a_wrapper_that_times_out_in_silence_is_not_started_again_with_the_other_form() {
    let counts = "#!/bin/sh\necho x >> starts\nexec sleep 60\n";
    let ran = started(counts).args(&["-n", "1", "--timeout", "1s"]).run().exits(1);
    assert_eq!(std::fs::read_to_string(ran.test.workspace().join("starts")).unwrap(), "x\n");
}

#[test]
fn lines_that_are_no_events_lose_nothing() {
    let lines =
        ["a plain line", "{\"type\":", "[1,2]", "{\"type\":7}", &delta("Done.\n<<<RALPHEX:COMPLETED>>>"), RESULT];
    let ran = printing(&lines, 0).run().complete().shows("a plain line").shows("{\"type\":");
    assert_eq!(ran.facts("iteration_end")[0]["unparsed"], 4);
}

/// The phrases that its loop looks for, with what they mean.
const PATTERNS: &[(&str, &str)] = &[
    ("You've hit your limit", "rate_limit"),
    ("You've hit your session limit · resets at 11pm (UTC)", "rate_limit"),
    ("You've hit your org's monthly usage limit", "rate_limit"),
    ("You've hit your individual spend limit", "rate_limit"),
    ("You've hit your usage limit", "rate_limit"),
    ("Rate limit exceeded", "rate_limit"),
    ("429 Too Many Requests", "rate_limit"),
    ("insufficient_quota", "rate_limit"),
    ("API Error: 429 {\"type\":\"error\"}", "rate_limit"),
    ("API Error: 401", "auth"),
    ("API Error: 403", "auth"),
    ("Not logged in · Please run /login", "auth"),
    ("Your usage allocation has been disabled by your admin", "auth"),
    ("API Error: 404", "config"),
    ("API Error: 413", "context"),
    ("cannot be launched inside another Claude Code session", "config"),
    ("API Error: 500", "overload"),
    ("API Error: 529", "overload"),
    ("API Error: 502", "overload"),
    ("FYA_TRANSIENT_TIMEOUT", "network"),
];

#[test]
fn limits_and_errors_in_words_count_where_the_run_failed() {
    for (number, (phrase, class)) in PATTERNS.iter().enumerate() {
        // As text of the model, as a plain line, on standard error: each phrase in one of the ways.
        let test = match number % 3 {
            0 => printing(&[&delta(&format!("{phrase}\n"))], 1),
            1 => printing(&[phrase], 1),
            _ => started(&format!("#!/bin/sh\ncat >&2 <<'LINE'\n{phrase}\nLINE\nexit 1\n")),
        };
        let running = test.file("ralph.yml", "limits: {max_wait: 0}\n").args(&["-n", "1"]).start();
        running.until("the iteration ended", |running| running.journal().contains("\"kind\":\"iteration_end\""));
        running.signal(rustix::process::Signal::INT);
        let ran = running.wait();
        assert_eq!(class_of(&ran), *class, "{phrase}\n{}", ran.stdout());
    }
}

#[test]
fn limits_and_errors_in_prose_mean_nothing() {
    for (phrase, _) in PATTERNS {
        let says = delta(&format!("I fixed the message \"{phrase}\" of the client.\n<<<RALPHEX:ALL_TASKS_DONE>>>"));
        printing(&[&says, RESULT], 0).run().complete();
    }
}

#[test]
fn a_refused_login_of_a_command_comes_with_advice() {
    let retry = r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":500,"error_status":401,"error":"authentication_failed"}"#;
    let text = format!("#!/bin/sh\ncat >/dev/null\necho '{retry}'\nsleep 30\n");
    let ran = started(&text).args(&["-n", "3"]).run().exits(4);
    ran.shows("start `./wrap.sh` once and log in, or set the API key that it needs");
    let error = r#"@@RALPH@@ {"type":"meta","meta":{"kind":"error","class":"auth","message":"401"}}"#;
    let test = wrapper(&format!("#!/bin/sh\necho '{error}'\nexit 1\n")).command("./wrap.sh");
    let ran = test.args(&["--transcript", "rtf1", "-n", "3"]).run().exits(4);
    ran.shows("start `./wrap.sh` once and log in, or set the API key that it needs");
}
