//! Whole runs of the loop with a scripted agent and real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use fake_agent::{Dialect, Script, says, silent, thinks};
use rustix::process::Signal;
use serde_json::json;
use support::Test;

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

#[test]
fn a_marker_completes_the_run() {
    Test::new().agent(says(DONE)).run().complete().after_iterations(1).shows("complete").shows("AI │ All done.");
}

#[test]
fn the_loop_goes_on_until_the_marker() {
    let script = Script::new().iteration(says("One.")).iteration(says("Two.")).iteration(says(DONE));
    Test::new().agent(script).run().complete().after_iterations(3);
}

#[test]
fn the_limit_of_iterations_ends_it_with_5() {
    Test::new().agent(says("More to do.")).args(&["-n", "3"]).run().exits(5).after_iterations(3).shows("limit");
}

#[test]
fn a_failing_last_iteration_at_the_limit_is_a_failure() {
    Test::new().agent(says("Oops.").exits(3)).args(&["-n", "2"]).run().exits(1).after_iterations(2);
}

#[test]
fn five_failures_in_a_row_end_it_with_1() {
    Test::new().agent(says("Oops.").exits(3)).run().exits(1).after_iterations(5).shows("exit code 3");
}

#[test]
fn a_completion_without_a_check_says_that_it_was_not_checked() {
    Test::new().agent(says(DONE)).run().complete().shows("not checked: no `verify` command");
    let checked = Test::new().agent(says(DONE)).args(&["--verify", "true"]).run().complete();
    checked.does_not_show("not checked").shows("and all checks passed");
}

#[test]
fn a_replan_ends_it_with_3() {
    Test::new().agent(says("<promise>REPLAN</promise>")).run().exits(3).after_iterations(1);
}

#[test]
fn a_marker_with_a_bad_exit_code_does_not_count_and_the_agent_is_told() {
    let ran = Test::new().agent(says(DONE).exits(1)).args(&["-n", "2"]).run().exits(1);
    assert!(ran.heard(1).contains("did not count: the iteration failed"));
    assert_eq!(ran.facts("signal")[0]["signal"], "near_miss");
}

#[test]
fn a_near_miss_is_shown_journaled_and_told() {
    let script = Script::new().iteration(says("Status: LOOP_COMPLETE")).iteration(says("LOOP_COMPLETE"));
    let ran = Test::new().agent(script).run().complete().after_iterations(2).shows("`LOOP_COMPLETE` does not count");
    assert_eq!(ran.facts("signal")[0]["signal"], "near_miss");
    assert!(ran.heard(1).contains("LOOP_COMPLETE in your last answer did not count"));
}

#[test]
fn stderr_is_shown_and_never_searched_for_completion() {
    Test::new()
        .agent(says("Working.").complains("LOOP_COMPLETE"))
        .args(&["-n", "1"])
        .run()
        .exits(5)
        .shows("SYS │ LOOP_COMPLETE");
}

#[test]
fn an_agent_that_repeats_its_prompt_is_not_done() {
    Test::new()
        .prompt("Print the last line when done:\n<promise>COMPLETE</promise>")
        .command("cat")
        .args(&["-n", "1"])
        .run()
        .exits(5)
        .shows("of the prompt repeated");
}

#[test]
fn an_empty_answer_is_a_failure() {
    Test::new().agent(silent()).args(&["-n", "1"]).run().exits(1).shows("said nothing");
}

#[test]
fn a_configured_marker_is_the_only_one() {
    let script = Script::new().iteration(says("LOOP_COMPLETE")).iteration(says("ALL GREEN"));
    let ran = Test::new().agent(script).args(&["--completion", "ALL GREEN"]).run().complete().after_iterations(2);
    assert!(ran.heard(0).contains("end your last message with ALL GREEN on a line of its own"));
}

#[test]
fn the_prompt_file_is_read_anew_each_time() {
    let script =
        Script::new().iteration(says("Working.").writes_file("PROMPT.md", "The second words.")).iteration(says(DONE));
    let ran = Test::new().no_prompt().file("PROMPT.md", "The first words.").agent(script).run().complete();
    assert!(ran.heard(0).starts_with("The first words."));
    assert!(ran.heard(1).starts_with("The second words."));
}

#[test]
fn the_agent_hears_where_the_loop_stands() {
    let script = Script::new().iteration(says("Oops.").exits(9)).iteration(says(DONE)).records_env("RALPH_ITERATION");
    let script = script.records_env("RALPH_RUN_ID").records_env("RALPH_AGENT").records_env("RALPH_WORKSPACE");
    let ran = Test::new().agent(script).args(&["-n", "20"]).run().complete();
    let second = &ran.recorded()[1];
    let heard = ran.heard(1);
    assert!(heard.contains("iteration 2 of at most 20. The last iteration ended with: exit code 9."), "{heard}");
    assert_eq!(second.environment["RALPH_ITERATION"], "2");
    assert_eq!(second.environment["RALPH_AGENT"], "custom");
    assert_eq!(second.environment["RALPH_RUN_ID"], ran.facts("run_start")[0]["run"]);
    assert_eq!(second.environment["RALPH_WORKSPACE"], ran.test.workspace().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn an_agent_does_not_hear_of_the_agent_around_it() {
    let script = Script::new().iteration(says(DONE)).records_env("CLAUDECODE").records_env("CLAUDE_CODE_USE_BEDROCK");
    let test = Test::new().agent(script).env("CLAUDECODE", "1").env("CLAUDE_CODE_USE_BEDROCK", "1");
    let heard = test.run().complete().recorded()[0].environment.clone();
    assert!(!heard.contains_key("CLAUDECODE"));
    assert_eq!(heard["CLAUDE_CODE_USE_BEDROCK"], "1", "what the user has set stays");
}

#[test]
fn json_output_is_the_journal_and_nothing_else() {
    let agent = Script::new().dialect(Dialect::Rtf1).iteration(says(DONE).uses(10, 5));
    let ran = Test::new().agent(agent).args(&["--transcript", "rtf1", "--output", "json"]).run().complete();
    let lines: Vec<serde_json::Value> = ran.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, ran.records());
    assert!(lines.iter().all(|line| ["text", "usage", "meta"].contains(&line["type"].as_str().unwrap())));
    assert_eq!(ran.stderr(), "");
}

#[test]
fn rtf1_tools_usage_and_thinking_make_the_callouts() {
    let iteration = thinks("Plan: look at it first")
        .runs_tool("shell", json!({"cmd": "rg -n authz"}))
        .printing("one\ntwo")
        .runs_tool("shell", json!({"cmd": "false"}))
        .fails()
        .says(DONE)
        .uses(1234, 567);
    let agent = Script::new().dialect(Dialect::Rtf1).iteration(iteration);
    Test::new()
        .agent(agent)
        .args(&["--transcript", "rtf1"])
        .run()
        .complete()
        .shows("THINK │ Plan: look at it first")
        .shows("TOOL │ ✓ shell  rg -n authz")
        .shows("ACTIONS ┃ 2 tools · 1 failed")
        .shows("2 lines)")
        .shows("TOOL │ ✗ shell  false")
        .shows(" REPORT ┃ ✓ ok")
        .shows("tokens 1,234 in, 567 out");
}

#[test]
fn a_plain_agent_gets_no_callouts_that_nobody_could_know() {
    let ran = Test::new().agent(says(DONE)).run().complete();
    ran.does_not_show("PLAN").does_not_show("ACTIONS").does_not_show("REPORT");
}

#[test]
fn every_byte_is_kept_and_every_event_is_in_the_journal() {
    let bytes = b"\xff\x00 binary \x1b[31mred\x1b[0m\r\nlast line without newline".to_vec();
    let ran = Test::new().agent(silent().prints_bytes(bytes.clone()).complains("oh")).args(&["-n", "1"]).run().exits(5);
    assert_eq!(ran.raw("1.stdout"), bytes);
    assert_eq!(ran.raw("1.stderr"), b"oh\n");
    let texts: Vec<String> =
        ran.records().iter().filter_map(|record| record["text"].as_str().map(str::to_owned)).collect();
    assert!(texts.contains(&"\u{fffd}\0 binary red".to_owned()), "{texts:?}");
    assert!(texts.contains(&"last line without newline".to_owned()));
    assert!(texts.contains(&"oh".to_owned()));
}

#[test]
fn an_escape_sequence_never_reaches_the_terminal() {
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2Jwords \u{202e}backwards\u{9b}31m\u{8}";
    let ran =
        Test::new().agent(silent().prints_raw(format!("{hostile}\n"))).args(&["-n", "1"]).run().exits(5).shows("words");
    assert!(!ran.stdout().contains(['\u{1b}', '\u{7}', '\u{8}', '\u{202e}', '\u{9b}']), "{:?}", ran.stdout());
}

#[test]
fn a_prompt_comes_from_standard_input() {
    let ran = Test::new().no_prompt().args(&["-"]).stdin("Words from the pipe.").agent(says(DONE)).run().complete();
    assert!(ran.heard(0).starts_with("Words from the pipe."));
}

#[test]
fn the_prompt_as_an_argument_of_a_custom_agent() {
    let script = Script::new().iteration(says(DONE));
    let test = Test::new();
    let command = script.command(&test.workspace()).unwrap();
    let argv = shlex::split(&command).unwrap();
    let yaml = format!(
        "cli:\n  backend: custom\n  command: {}\n  args: {}\n  prompt_mode: arg\n  prompt_flag: -p\n",
        json!(argv[0]),
        json!(argv[1..]),
    );
    let ran = test.file("ralph.yml", yaml).prompt("test").run().complete();
    let recorded = Script::recorded(&ran.test.workspace());
    let args = &recorded[0].arguments;
    assert_eq!(args[args.len() - 2], "-p");
    assert!(args[args.len() - 1].starts_with("test\n"));
    assert_eq!(recorded[0].stdin.as_deref(), Some(""));
}

#[test]
fn the_agent_works_where_ralph_was_started_not_where_the_configuration_is() {
    let test = Test::new();
    let command = Script::new().iteration(says(DONE)).command(&test.workspace()).unwrap();
    let argv = shlex::split(&command).unwrap();
    let yaml = format!("cli:\n  backend: custom\n  command: {}\n  args: {}\n", json!(argv[0]), json!(argv[1..]));
    let test = test.file("ralph.yml", yaml).file("src/deep/x", "");
    let below = test.workspace().join("src/deep");
    let status = test.ralph().current_dir(&below).status().unwrap();
    assert!(status.success());
    let recorded = Script::recorded(&test.workspace());
    assert_eq!(recorded[0].directory, below.canonicalize().unwrap());
}

#[test]
fn an_external_adapter_reads_the_output() {
    let filter = "while read -r line; do echo \"@@RALPH@@ {\\\"type\\\":\\\"text\\\",\\\"tag\\\":\\\"AI\\\",\\\"text\\\":\\\"$line\\\"}\"; done";
    let test = Test::new().file("filter.sh", filter).file("ralph.yml", "transcript: {command: sh filter.sh}\n");
    let ran = test.agent(says("Words.\nLOOP_COMPLETE")).run().complete().shows("AI │ Words.").shows("sh filter.sh");
    assert_eq!(ran.raw("1.stdout"), b"Words.\nLOOP_COMPLETE\n");
}

#[test]
fn a_broken_external_adapter_is_a_failure_and_loses_no_byte() {
    let ran = Test::new().args(&["--transcript-cmd", "false"]).agent(says(DONE)).run().exits(4);
    assert_eq!(ran.raw("1.stdout"), format!("{DONE}\n").as_bytes());
    let ran = ran.shows("the transcript command `false` ended with exit code 1");
    assert_eq!(ran.facts("iteration_end")[0]["outcome"], "failed");
}

#[test]
fn a_reader_that_leaves_ends_the_view_and_not_the_run() {
    let running =
        Test::new().agent(Script::new().iteration(says("More.")).iteration(says(DONE))).args(&["--output", "json"]);
    let mut child = running.ralph().spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    let end =
        std::fs::read_to_string(support::run_directory(&running.workspace()).unwrap().join("journal.jsonl")).unwrap();
    assert!(end.contains("run_end"));
}

#[test]
fn a_second_run_in_the_directory_learns_of_the_first() {
    let first = Test::new().agent(says("Wait.").hangs()).start();
    first.until("the agent runs", |run| run.journal().contains("Wait."));
    let mut second = first.test.ralph();
    let second = second.output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(
        message.contains("another run is active in") && message.contains(&format!("process {}", first.pid())),
        "{message}"
    );
    first.signal(Signal::TERM);
    first.wait().dies_by(15);
}

#[test]
fn ctrl_c_asks_the_agent_and_dies_truly_by_the_signal() {
    let run = Test::new().agent(says("Working.").hangs()).start();
    run.until("the agent runs", |run| run.journal().contains("Working."));
    run.signal(Signal::INT);
    let ran = run.wait().dies_by(2).shows("interrupted").shows("SIGINT: asked the agent to stop");
    assert_eq!(ran.facts("run_end")[0]["exit_code"], 130);
}

#[test]
fn the_second_ctrl_c_kills_an_agent_that_does_not_listen() {
    let run = Test::new().agent(says("Working.").ignores_signals().says("Deaf.").hangs()).start();
    run.until("the agent is deaf", |run| run.journal().contains("Deaf."));
    run.signal(Signal::INT);
    run.until("it was asked", |run| run.journal().contains("asked the agent"));
    run.signal(Signal::INT);
    let ran = run.wait().dies_by(2).shows("killed the agent");
    assert!(ran.facts("iteration_end")[0]["ended"].as_str().unwrap().contains("stopped"));
}

#[test]
fn a_closed_terminal_stops_the_run_like_a_signal() {
    let run = Test::new().agent(says("Working.").hangs()).start();
    run.until("the agent runs", |run| run.journal().contains("Working."));
    run.signal(Signal::HUP);
    run.wait().dies_by(1);
}

#[test]
fn under_nohup_a_run_survives_its_terminal() {
    let waits = "echo Working.; while [ ! -e go ]; do sleep 0.05; done; echo '<promise>COMPLETE</promise>'";
    let run = Test::new().file("waits.sh", waits).command("sh waits.sh").start_ignoring("HUP");
    run.until("the agent runs", |run| run.journal().contains("Working."));
    run.signal(Signal::HUP);
    run.signal(Signal::HUP);
    std::fs::write(run.workspace().join("go"), "").unwrap();
    run.wait().complete().does_not_show("SIGHUP");
    // What asks it to end is heard as ever, also where a script started it with `&`, which ignores Ctrl-C.
    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2)] {
        let run = Test::new().agent(says("Working.").hangs()).start_ignoring("HUP INT");
        run.until("the agent runs", |run| run.journal().contains("Working."));
        run.signal(signal);
        run.wait().dies_by(number);
    }
}

#[test]
fn a_timeout_stops_the_iteration_and_its_marker_does_not_count() {
    let agent = says(DONE).hangs();
    let ran = Test::new().agent(agent).args(&["--timeout", "1s", "-n", "1"]).run().exits(1).shows("timed out");
    assert_eq!(ran.facts("iteration_end")[0]["outcome"], "failed");
}

#[test]
fn the_time_limit_of_the_run_ends_it() {
    let between = Test::new().agent(says("More.").sleeps(600)).args(&["--max-time", "1s"]).run();
    between.exits(5).shows("time limit reached: 1 s").after_iterations(2);
    let within = Test::new().agent(says("More.").hangs()).args(&["--max-time", "1s"]).run();
    within.exits(5).shows("time limit reached: 1 s").after_iterations(1);
}

#[test]
fn an_agent_that_draws_a_screen_is_shown_as_clean_text() {
    let frame = |number| format!("\u{1b}[2K\rworking {number}\u{1b}[1B\r\u{1b}[2Kkeys\u{1b}[1A");
    let frames = (1..30).map(frame).collect::<Vec<_>>().concat();
    let drawn = format!(
        "\u{1b}[?25l\u{1b}[2J\u{1b}[H{frames}\r\u{1b}[JThe work is **done**.\r\n<promise>COMPLETE</promise>\r\n"
    );
    let ran = Test::new().agent(says("").prints_raw(drawn)).args(&["--pty"]).run().complete();
    let ran = ran.shows("AI │ The work is **done**.").does_not_show("working").does_not_show("␛");
    let again = ran.test.tool().args(["replay", "--with-adapter"]).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("AI │ The work is **done**."), "{again:?}");
    assert!(String::from_utf8_lossy(&ran.raw("1.stdout")).contains("working 29"), "the raw file has every byte");
}

#[test]
fn a_terminal_is_transparent_to_a_simple_agent() {
    let script = Script::new().iteration(silent().prints_raw("\u{1b}[32mAll done.\u{1b}[0m\nLOOP_COMPLETE\n"));
    let ran = Test::new().agent(script).args(&["--pty"]).run().complete().shows("AI │ All done.");
    assert_eq!(ran.raw("1.stdout"), b"\x1b[32mAll done.\x1b[0m\nLOOP_COMPLETE\n");
    Test::new()
        .command("sh -c 'test -t 1 && stty size && echo LOOP_COMPLETE'")
        .args(&["--pty"])
        .run()
        .complete()
        .shows("24 80");
}

#[test]
fn a_process_may_be_left_running() {
    let test = Test::new().file("ralph.yml", "cli: {leave_running: true}\n");
    let ran = test.agent(says(DONE).detaches_a_process()).run().complete().shows("left a process behind");
    let ids = Script::process_ids(&ran.test.workspace().parent().unwrap().join("agent"));
    let alive = ids.iter().filter_map(|id| rustix::process::Pid::from_raw(*id));
    let alive: Vec<_> = alive.filter(|pid| rustix::process::test_kill_process(*pid).is_ok()).collect();
    assert_eq!(alive.len(), 1, "the one that was detached");
    rustix::process::kill_process(alive[0], Signal::KILL).unwrap();
}

#[test]
fn what_an_agent_leaves_behind_is_stopped_and_named() {
    let ran = Test::new().agent(says(DONE).detaches_a_process()).run().complete().shows("left a process behind");
    let ids = Script::process_ids(&ran.test.workspace().parent().unwrap().join("agent"));
    for id in ids {
        let pid = rustix::process::Pid::from_raw(id).unwrap();
        assert!(rustix::process::test_kill_process(pid).is_err(), "process {id} is still there");
    }
}
