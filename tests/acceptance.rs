//! The acceptance lines of documents 001 and 004, and the test that holds each. (000, 002 and 003 have theirs in
//! `drivers.rs`, `wrappers.rs` and `scripts.rs`.)

#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

/// What document 001 accepts: given and then, file, test.
const ADAPTERS: &[(&str, &str, &str)] = &[
    (
        "auto: the first available enabled one in the order of priority",
        "tests/agents.rs",
        "auto_takes_the_first_available_in_the_order_of_the_document",
    ),
    ("auto and a disabled one: it is skipped", "tests/agents.rs", "auto_skips_an_agent_that_is_disabled"),
    (
        "auto and none installed: all checked ones are listed with where to get them",
        "tests/agents.rs",
        "with_no_agent_installed_every_checked_one_is_listed_with_its_install_line",
    ),
    (
        "a named one is used whatever auto would take",
        "tests/agents.rs",
        "a_named_agent_is_used_whatever_auto_would_take",
    ),
    (
        "a named one that is not installed is an error",
        "tests/agents.rs",
        "a_named_agent_that_is_not_installed_is_an_error_that_says_so",
    ),
    (
        "custom with stdin: the prompt is written there",
        "tests/agents.rs",
        "a_custom_agent_gets_the_prompt_on_standard_input",
    ),
    (
        "custom with args: they come before the prompt",
        "tests/agents.rs",
        "the_args_of_a_custom_agent_come_before_the_prompt",
    ),
    ("custom without a command is an error", "tests/agents.rs", "a_custom_agent_without_a_command_is_an_error"),
    ("arg with a prompt flag", "tests/agents.rs", "a_prompt_flag_stands_between_the_args_and_the_prompt"),
    ("arg without a flag: the last argument", "tests/agents.rs", "a_prompt_without_a_flag_is_the_last_argument"),
    ("stdin: written to standard input", "tests/agents.rs", "a_custom_agent_gets_the_prompt_on_standard_input"),
    (
        "a timeout: SIGTERM, and the iteration timed out",
        "tests/agents.rs",
        "an_agent_that_takes_longer_than_its_timeout_is_stopped",
    ),
    ("the agent works where ralph was started", "tests/agents.rs", "the_agent_works_where_ralph_was_started"),
    (
        "also with the configuration in a parent directory",
        "tests/agents.rs",
        "a_configuration_in_a_parent_directory_does_not_move_the_agent",
    ),
    (
        "a directory that is gone is an error",
        "tests/agents.rs",
        "a_working_directory_that_is_gone_is_an_error_that_says_so",
    ),
    (
        "on a terminal the working directory is set, too",
        "tests/agents.rs",
        "on_a_terminal_the_agent_works_in_the_same_directory",
    ),
    (
        "claude in a terminal (evidence: it needs none)",
        "tests/agents.rs",
        "claude_works_on_pipes_because_the_evidence_says_that_it_needs_no_terminal",
    ),
    ("a simple tool works on a terminal", "tests/agents.rs", "a_custom_agent_that_knows_no_terminal_works_on_one"),
    ("event tags trigger hats", "tests/judgement.rs", "events_choose_the_hats"),
    ("completion is a configurable promise", "tests/run.rs", "a_configured_marker_is_the_only_one"),
    (
        "full output is logged to .agent/events.jsonl",
        "tests/history.rs",
        "others_get_a_copy_of_what_is_said_and_published",
    ),
];

/// What document 004 wants of the loop, and of its tests.
const TRANSCRIPTS: &[(&str, &str, &str)] = &[
    ("the marker contract stays", "tests/run.rs", "a_marker_completes_the_run"),
    ("a plain agent is not guessed about", "tests/run.rs", "a_plain_agent_gets_no_callouts_that_nobody_could_know"),
    ("RTF1: tags, PLAN, ACTIONS and REPORT appear", "tests/run.rs", "rtf1_tools_usage_and_thinking_make_the_callouts"),
    ("RTF1: valid events", "src/transcript/rtf1_tests.rs", "the_documents_example_comes_out_as_it_stands"),
    (
        "RTF1: other lines are AI",
        "src/transcript/rtf1_tests.rs",
        "other_lines_are_ai_and_a_sentinel_inside_a_line_is_text",
    ),
    (
        "RTF1: invalid JSON and invalid schema are told and shown",
        "src/transcript/rtf1_tests.rs",
        "a_broken_line_is_told_and_shown",
    ),
    (
        "no dollars without the user's own prices",
        "tests/judgement.rs",
        "money_is_computed_from_the_users_prices_or_said_to_be_unknown",
    ),
    ("transcripts are checked by captures", "tests/transcripts.rs", "every_capture_keeps_to_the_facts"),
    ("a user's own adapter", "tests/run.rs", "an_external_adapter_reads_the_output"),
];

#[test]
fn every_acceptance_line_has_its_test() {
    for (line, file, test) in ADAPTERS.iter().chain(TRANSCRIPTS) {
        let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let named = format!("#[test]\nfn {test}()");
        assert!(source.contains(&named), "{line}: no test `{test}` in {file}");
    }
}
