//! When to go on, when to wait, when to stop, what to believe: whole runs with real processes and real repositories.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "judgement/gates.rs"]
mod gates;
#[path = "judgement/judge.rs"]
mod judge;
#[path = "judgement/limits.rs"]
mod limits;
#[path = "judgement/safety_net.rs"]
mod safety_net;
#[path = "judgement/steering.rs"]
mod steering;
mod support;
#[path = "judgement/terminal.rs"]
mod terminal;

use fake_agent::{Dialect, Script, Tokens, says, silent};
use rustix::process::Signal;
use serde_json::json;
use support::{Test, git};

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

fn claude(script: Script) -> Script {
    script.dialect(Dialect::Claude).session("s-1").model("big-1")
}

// Done, and proven.

#[test]
fn a_claim_counts_only_when_the_commands_agree() {
    let script = Script::new().iteration(says(DONE)).iteration(says(DONE).writes_file("good", "yes"));
    let ran = Test::new()
        .repository()
        .agent(script)
        .args(&["--verify", "test -f good || { echo the file is missing; exit 3; }", "--verify", "true"])
        .run()
        .complete()
        .after_iterations(2)
        .shows("completion rejected: `")
        .shows("the file is missing")
        .shows("and all checks passed");
    let verifications = ran.facts("verification");
    assert_eq!((&verifications[0]["passed"], &verifications[1]["passed"]), (&json!(false), &json!(true)));
    assert_eq!(verifications[0]["checks"][0]["ended"], "exit code 3");
    let heard = ran.heard(1);
    assert!(heard.contains("these checks failed") && heard.contains("the file is missing"), "{heard}");
    let receipts = ran.facts("iteration_end");
    assert_eq!((&receipts[0]["outcome"], &receipts[1]["outcome"]), (&json!("rejected"), &json!("ok")));
    assert_eq!((&receipts[0]["verified"], &receipts[1]["verified"]), (&json!(false), &json!(true)));
    assert_eq!(receipts[1]["files"], json!(["good"]));
}

#[test]
fn verification_has_a_time_a_place_and_a_name() {
    let config = "verify:\n  - {run: 'pwd; sleep 60', name: slow, timeout: 1s, cwd: sub}\n";
    let ran = Test::new()
        .file("ralph.yml", config)
        .file("sub/x", "")
        .agent(says(DONE))
        .args(&["-n", "1"])
        .run()
        .exits(5)
        .shows("verify slow: timed out after");
    let check = &ran.facts("verification")[0]["checks"][0];
    assert!(check["tail"].as_str().unwrap().trim_end().ends_with("/sub"), "{check}");
}

#[test]
fn a_claim_that_fails_three_times_is_told_loudly() {
    let script = Script::new().counting().iteration(says(DONE).appends_to("x", "."));
    Test::new().agent(script).args(&["--verify", "false", "-n", "3"]).run().exits(5).shows("3 times in a row");
}

#[test]
fn commands_are_not_asked_without_a_claim() {
    let ran = Test::new().agent(says("More.")).args(&["--verify", "touch asked", "-n", "2"]).run().exits(5);
    assert!(!ran.test.workspace().join("asked").exists());
}

#[test]
fn open_items_of_the_plan_veto_a_claim() {
    let script =
        Script::new().iteration(says(DONE)).iteration(says(DONE).writes_file("PLAN.md", "- [x] one\n- [x] two\n"));
    let ran = Test::new()
        .file("PLAN.md", "- [x] one\n```\n- [ ] code\n```\n1. [ ] two\n")
        .agent(script)
        .args(&["--plan-file", "PLAN.md"])
        .run()
        .complete()
        .after_iterations(2);
    assert!(ran.heard(1).contains("one item of `PLAN.md` is open: two"), "{}", ran.heard(1));
}

#[test]
fn claims_may_need_confirmation_and_a_number_of_iterations() {
    Test::new().agent(says(DONE)).args(&["--confirmations", "3"]).run().complete().after_iterations(3);
    Test::new().agent(says(DONE)).args(&["--min-iterations", "2"]).run().complete().after_iterations(2);
    let script = Script::new().iteration(says(DONE)).iteration(says("Hm.")).iteration(says(DONE)).iteration(says(DONE));
    Test::new().agent(script).args(&["--confirmations", "2"]).run().complete().after_iterations(4);
}

#[test]
fn a_real_repository_with_a_failing_test_is_mended_before_it_is_done() {
    let check = "test \"$(sh calc.sh 2 3)\" = 5";
    let script = Script::new()
        .iteration(says(DONE).writes_file("calc.sh", "echo $(($1 * $2))\n").commits("Calculate"))
        .iteration(says(DONE).writes_file("calc.sh", "echo $(($1 + $2))\n").commits("Add instead"));
    let test = Test::new().file("calc.sh", "exit 1\n").repository();
    git(&test.workspace(), &["config", "user.name", "test"]);
    git(&test.workspace(), &["config", "user.email", "test@example.com"]);
    let ran = test.agent(script).args(&["--verify", check]).run().complete().after_iterations(2);
    let receipts = ran.facts("iteration_end");
    assert!(receipts[0]["commits"][0].as_str().unwrap().ends_with(" Calculate"), "{}", receipts[0]);
    assert_eq!(receipts[0]["files"], json!(["calc.sh"]));
    assert_eq!(receipts[0]["head_after"], receipts[1]["head_before"]);
    assert_ne!(receipts[1]["head_before"], receipts[1]["head_after"]);
}

/// A crate of its own, with the real compiler as judge: first it does not compile, then a test fails, then both pass.
#[test]
fn a_real_crate_is_done_when_its_own_tests_say_so() {
    let library = |body: &str| {
        format!(
            "pub fn double(number: u32) -> u32 {{ {body} }}\n#[test]\nfn doubles() {{ assert_eq!(double(4), 8); }}\n"
        )
    };
    let config = "verify:\n  - {name: builds, command: 'rustc --crate-type lib lib.rs -o lib.rlib', timeout: 120s}\n  \
                  - {name: tests, command: 'rustc --test lib.rs -o tests && ./tests', timeout: 120s}\n";
    let script = Script::new()
        .iteration(says(DONE).writes_file("lib.rs", library("number * ")))
        .iteration(says(DONE).writes_file("lib.rs", library("number + 2")))
        .iteration(says(DONE).writes_file("lib.rs", library("number * 2")));
    let test = Test::new().file("lib.rs", "").file(".gitignore", "lib.rlib\ntests\n").repository();
    let ran = test.agent(script).file("ralph.yml", config).run().complete().after_iterations(3);
    assert!(ran.heard(1).contains("expected expression"), "{}", ran.heard(1));
    assert!(ran.heard(2).contains("doubles") && ran.heard(2).contains("FAILED"), "{}", ran.heard(2));
    let passed: Vec<_> = ran.facts("verification").iter().map(|fact| fact["passed"].clone()).collect();
    assert_eq!(passed, [json!(false), json!(false), json!(true)]);
}

// What an agent says to a person.

#[test]
fn a_question_ends_the_run_with_its_text() {
    let question = "Hm.\n<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which colour?\",\"options\":[\"red\",\"blue\"]}\n<<<RALPHEX:END>>>";
    let ran = Test::new().agent(says(question)).run().exits(3).shows("Which colour?").shows("1. red");
    assert!(ran.facts("run_end")[0]["question"].as_str().unwrap().starts_with("Which colour?"));
    let ran = Test::new().agent(says("No access.\n<promise>BLOCKED</promise>")).run().exits(3);
    assert_eq!(ran.facts("run_end")[0]["question"], "No access.");
}

#[test]
fn an_answer_goes_on_with_the_run() {
    let script = Script::new().iteration(says("Red or blue?\n<promise>BLOCKED</promise>")).iteration(says(DONE));
    let ran = Test::new().agent(script).run().exits(3);
    let output = ran.test.tool().args(["answer", "blue,", "please"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(ran.heard(1).contains("a person answers your question: blue, please"), "{}", ran.heard(1));
    let again = ran.test.tool().args(["answer", "x"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "it has not asked again");
}

#[test]
fn an_agent_that_gives_up_is_asked_again_and_then_believed() {
    let ran = Test::new()
        .file("ralph.yml", "event_loop: {max_consecutive_failures: 2}\n")
        .agent(says("The key is missing.\n<<<RALPHEX:TASK_FAILED>>>"))
        .run()
        .exits(1)
        .after_iterations(2);
    assert!(ran.facts("run_end")[0]["reason"].as_str().unwrap().contains("The key is missing."));
}

// Limits.

#[test]
fn tokens_end_a_run_after_the_overshoot_was_told() {
    let script = claude(Script::new().counting().iteration(says("More.").uses(400, 100).appends_to("x", ".")));
    Test::new()
        .agent(script)
        .args(&["--transcript", "claude", "--max-tokens", "1200"])
        .run()
        .exits(5)
        .after_iterations(3)
        .shows("and may pass the limit by 300")
        .shows("limit reached: 1200 tokens (1500 used)");
}

#[test]
fn money_is_computed_from_the_users_prices_or_said_to_be_unknown() {
    let iteration = || {
        says("More.").reports(Tokens { input: 1_000_000, output: 100_000, ..Tokens::default() }).appends_to("x", ".")
    };
    let script = || Script::new().dialect(Dialect::Codex).counting().iteration(iteration());
    let args = ["--transcript", "codex", "--max-cost", "5", "-n", "4"];
    let ran = Test::new().agent(script()).args(&args).run().exits(5);
    assert_eq!(ran.facts("run_end")[0]["cost"], json!(null));
    let ran = ran.shows("the cost limit has no effect").after_iterations(4);
    drop(ran);
    let script = claude(Script::new().counting().iteration(says("More.").uses(900_000, 100_000).appends_to("x", ".")));
    let ran = Test::new()
        .file("ralph.yml", "pricing:\n  big: {input: 2, output: 10}\n")
        .agent(script)
        .args(&["--transcript", "claude", "--max-cost", "5"])
        .run()
        .exits(5);
    assert!(ran.facts("run_end")[0]["cost"]["usd"].as_f64().unwrap() >= 5.0);
}

#[test]
fn a_computed_cost_is_shown_as_such_wherever_money_is() {
    let script = || {
        let work = says("More.").reports(Tokens { input: 1_000_000, output: 100_000, ..Tokens::default() });
        Script::new().dialect(Dialect::Codex).counting().iteration(work.appends_to("x", "."))
    };
    let config = "pricing:\n  dear: {input: 2, output: 10}\n";
    // A named agent knows its model from the command line, since the stream does not tell it.
    let more = "dialect: codex\narguments: {model: [-m, \"{model}\"]}\nprompt: {by: stdin}\n";
    let test = Test::new().file("ralph.yml", config).named_agent("priced", script(), more);
    let ran = test.args(&["--agent", "priced", "--model", "dear", "-n", "2"]).run().exits(5);
    assert_eq!(ran.facts("run_end")[0]["cost"]["source"], "computed");
    assert_eq!(ran.stdout().matches("$3.00 (computed)").count(), 2, "each receipt: {}", ran.stdout());
    let ran = ran.shows("$6.00 (computed)");
    for command in [&["show"][..], &["show", "--markdown"], &["runs"], &["status"], &["stats"]] {
        let output = ran.test.tool().args(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).replace('\\', "");
        assert!(said.contains("$6.00 (computed)"), "{command:?}: {said}");
    }
}

#[test]
fn calls_an_hour_are_waited_for_and_not_past_the_time_limit() {
    Test::new()
        .file("ralph.yml", "limits: {calls_per_hour: 2}\n")
        .agent(says("More."))
        .args(&["--max-time", "60s"])
        .run()
        .exits(5)
        .after_iterations(2)
        .shows("limit reached: 2 calls per hour");
}

// Progress.

#[test]
fn nothing_moves_and_the_breaker_opens() {
    let test = Test::new().file("dirty", "before").repository().file("dirty", "already changed");
    let ran = test.agent(says("Thinking.")).args(&["--no-progress", "3"]).run().exits(6).after_iterations(3);
    assert!(ran.heard(1).contains("changed nothing in the working directory"), "{}", ran.heard(1));
    assert_eq!(ran.facts("iteration_end")[2]["progress"], json!(false));
    assert_eq!(ran.facts("run_end")[0]["outcome"], "no_progress");
}

#[test]
fn a_change_closes_the_breaker_again() {
    let script = Script::new()
        .iteration(says("a"))
        .iteration(says("b"))
        .iteration(says("c").writes_file("x", "1"))
        .iteration(says("d"))
        .iteration(says("e"))
        .iteration(says("f"));
    Test::new().repository().agent(script).args(&["--no-progress", "3"]).run().exits(6).after_iterations(6);
    Test::new().agent(says("same")).args(&["--no-progress", "0", "-n", "12"]).run().exits(5).after_iterations(12);
}

#[test]
fn going_back_and_forth_is_no_progress() {
    let script = Script::new()
        .iteration(says("a").writes_file("x", "1"))
        .iteration(says("b").writes_file("x", "2"))
        .iteration(says("a").writes_file("x", "1"))
        .iteration(says("b").writes_file("x", "2"))
        .iteration(says("a").writes_file("x", "1"));
    Test::new().repository().agent(script).args(&["--no-progress", "3"]).run().exits(6).after_iterations(5);
}

#[test]
fn the_same_step_over_and_over_stops_the_iteration() {
    let mut stuck = silent();
    for _ in 0..30 {
        stuck = stuck.says("I look again.").runs_tool("Bash", json!({"command": "ls"})).printing("nothing");
    }
    let script = claude(Script::new().iteration(stuck.hangs()));
    Test::new()
        .agent(script)
        .args(&["--transcript", "claude", "-n", "1"])
        .run()
        .exits(1)
        .shows("did the same step 20 times over");
}

// Permission.

const DENIED: &str = "@@RALPH@@ {\"type\":\"meta\",\"meta\":{\"kind\":\"permission\",\"tool\":\"Bash\"}}\n";

#[test]
fn denials_without_progress_stop_the_run() {
    let script = || Script::new().iteration(says("I may not.").prints_raw(DENIED));
    let test = || Test::new().repository().agent(script()).args(&["--transcript", "rtf1", "-n", "4"]);
    test().run().exits(4).after_iterations(2).shows("Bash denied in 2 iterations");
    test().file("ralph.yml", "permission: halt\n").run().exits(4).after_iterations(1);
    test().file("ralph.yml", "permission: continue\n").run().exits(5).after_iterations(4);
}

// Sessions.

const SESSIONS: &str = "dialect: claude\nsession:\n  resume: {args: [--resume, '{session}']}\n";

#[test]
fn sessions_go_on_only_when_asked() {
    let script = || claude(Script::new().iteration(says("One.")).iteration(says(DONE)));
    let ran = Test::new().named_agent("own", script(), SESSIONS).args(&["--agent", "own"]).run().complete();
    let starts = ran.test.recorded_by("own");
    assert!(starts.iter().all(|start| !start.arguments.iter().any(|word| word == "--resume")), "{starts:?}");
    let ran = Test::new()
        .named_agent("own", script(), SESSIONS)
        .args(&["--agent", "own", "--session", "resume"])
        .run()
        .complete();
    let second = &ran.test.recorded_by("own")[1].arguments;
    assert!(second.windows(2).any(|pair| pair == ["--resume", "s-1"]), "{second:?}");
    assert_eq!(ran.facts("iteration_start")[1]["resumes"], "s-1");
    assert_eq!(ran.facts("iteration_end")[1]["resumed"], json!(true));
}

#[test]
fn a_refused_session_starts_afresh_and_says_so() {
    let script = claude(
        Script::new()
            .counting()
            .iteration(says("One."))
            .iteration(
                silent().complains("No conversation found with session ID s-1").without_terminal_event().exits(1),
            )
            .iteration(says(DONE)),
    );
    let ran = Test::new()
        .named_agent("own", script, SESSIONS)
        .args(&["--agent", "own", "--session", "resume"])
        .run()
        .complete()
        .shows("did not resume its session");
    let starts = ran.test.recorded_by("own");
    assert!(!starts[2].arguments.iter().any(|word| word == "--resume"), "{:?}", starts[2]);
    assert_eq!(ran.facts("run_end")[0]["iterations"], 2, "a refused session is no iteration");
}

#[test]
fn a_session_goes_on_until_its_context_is_as_full_as_it_may_be() {
    let spends = |tokens, text| silent().uses(tokens, 0).says(text);
    let script = claude(
        Script::new()
            .iteration(spends(30_000, "One."))
            .iteration(spends(70_000, "Two."))
            .iteration(spends(10_000, "Three."))
            .iteration(says(DONE)),
    );
    let ran = Test::new()
        .named_agent("own", script, SESSIONS)
        .file("ralph.yml", "session: {resume-until: context 60%}\ncontext_window: 100000\n")
        .args(&["--agent", "own"])
        .run()
        .complete()
        .shows("has used 70 % of its context: the next iteration starts a fresh one");
    let resumed: Vec<_> = ran.facts("iteration_start").iter().map(|start| start["resumes"].clone()).collect();
    assert_eq!(resumed, [json!(null), json!("s-1"), json!(null), json!("s-1")]);
}

#[test]
fn a_context_that_nobody_measures_is_told() {
    let script = claude(Script::new().iteration(says("One.")).iteration(says("Two.")).iteration(says(DONE)));
    let ran = Test::new()
        .named_agent("own", script, SESSIONS)
        .args(&["--agent", "own", "--session", "resume-until: context 60%"])
        .run()
        .complete()
        .shows("`own` does not report how full its context is; its session continues");
    let told = ran.facts("notice").iter().filter(|fact| fact.to_string().contains("its context is")).count();
    assert_eq!(told, 1, "once");
    assert_eq!(ran.facts("iteration_start")[2]["resumes"], "s-1");
}

// Fallback.

#[test]
fn another_agent_takes_over_while_the_first_is_limited() {
    let limited = Script::new().iteration(silent().complains("Error: 429 Too Many Requests").exits(1));
    let other = Script::new().iteration(says("One.")).iteration(says(DONE));
    let ran = Test::new()
        .named_agent("first", limited, "dialect: plain\n")
        .named_agent("second", other, "dialect: plain\n")
        .args(&["--agent", "first", "--fallback", "second"])
        .run()
        .complete()
        .shows("`second` takes over");
    assert_eq!(ran.test.recorded_by("first").len(), 1);
    assert_eq!(ran.test.recorded_by("second").len(), 2);
    assert_eq!(ran.facts("run_end")[0]["iterations"], 2, "the limited try is no iteration");
}

#[test]
fn a_wait_ends_at_once_when_somebody_wants_it() {
    for how in ["signal", "command"] {
        let script = Script::new()
            .counting()
            .iteration(silent().complains("Error: 429 Too Many Requests").exits(1))
            .iteration(says(DONE));
        let running = Test::new().agent(script).start();
        running.until("it waits", |running| running.journal().contains("\"verdict\":\"wait\""));
        if how == "signal" {
            running.signal(Signal::USR1);
        } else {
            running.tells(&["retry"]);
        }
        running.wait().complete();
    }
}

// Hats.

const HATS: &str = "\
hats:
  planner: {triggers: [task.start, build.blocked], publishes: [build.task], instructions: Plan it.}
  builder: {name: Builder, triggers: [build.task], publishes: [build.done], instructions: Build it., default_publishes: build.done}
  reviewer: {triggers: ['build.*'], publishes: [review.done], instructions: Review it.}
";

#[test]
fn events_choose_the_hats() {
    let script = Script::new()
        .iteration(says("Planned.\n<event topic=\"build.task\">make the door</event>"))
        .iteration(says("Built."))
        .iteration(says(DONE))
        .records_env("RALPH_HAT");
    let ran = Test::new().file("ralph.yml", HATS).agent(script).run().complete().after_iterations(3);
    let hats: Vec<_> = ran.recorded().iter().map(|start| start.environment["RALPH_HAT"].clone()).collect();
    assert_eq!(hats, ["planner", "builder", "reviewer"]);
    let heard = ran.heard(1);
    assert!(heard.contains("You wear the hat \"Builder\"") && heard.contains("build.task: make the door"), "{heard}");
    let published = ran.facts("published");
    assert_eq!(published[1]["heard_by"], json!(["builder", "reviewer"]));
    assert_eq!((&published[2]["topic"], &published[2]["by"]), (&json!("build.done"), &json!("builder")));
    assert_eq!(ran.facts("iteration_end")[0]["hat"], "planner");
}

#[test]
fn an_agent_can_publish_with_a_command_and_hears_of_strange_topics() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    let agent = format!(
        "if [ $RALPH_ITERATION = 1 ]; then {ralph} emit build.task 'from the shell'; {ralph} emit strange.thing; echo Planned; else cat > heard; echo LOOP_COMPLETE; fi"
    );
    let ran = Test::new().file("ralph.yml", HATS).command(&agent).run().complete().after_iterations(2);
    let heard = std::fs::read_to_string(ran.test.workspace().join("heard")).unwrap();
    assert!(heard.contains("build.task: from the shell"), "{heard}");
    assert!(heard.contains("published `strange.thing`, which is not in its `publishes`"), "{heard}");
    assert_eq!(ran.facts("published")[2]["heard_by"], json!([]));
}

#[test]
fn a_completion_event_is_a_claim_like_the_marker() {
    const PUBLISHES: &str =
        "hats:\n  builder: {triggers: [task.start], publishes: [LOOP_COMPLETE], instructions: Build.}\n";
    let says_it = says("All of it is built.\n<event topic=\"LOOP_COMPLETE\">done</event>\nBye.");
    let ran = Test::new().file("ralph.yml", PUBLISHES).agent(Script::new().iteration(says_it)).run().complete();
    assert_eq!(ran.facts("run_end")[0]["iterations"], 1);
    // By command, without hats, and subject to the same checks.
    let agent = format!("{} emit LOOP_COMPLETE; echo Working; touch done$RALPH_ITERATION", env!("CARGO_BIN_EXE_ralph"));
    let ran = Test::new().command(&agent).args(&["--verify", "test -e done2"]).run().complete();
    assert_eq!(ran.facts("run_end")[0]["iterations"], 2, "the first claim was rejected");
    let graph = Test::new().file("ralph.yml", PUBLISHES).tool().arg("hats").output().unwrap();
    assert!(graph.status.success(), "{graph:?}");
}

#[test]
fn the_graph_of_hats_is_drawn_and_checked() {
    let test = Test::new().file("ralph.yml", HATS);
    let output = test.tool().arg("hats").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("publishes  build.task -> builder"), "{text}");
    assert!(text.contains("problem: no hat is triggered by `review.done`, which `reviewer` publishes"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    let mermaid = test.tool().args(["hats", "--format", "mermaid"]).output().unwrap();
    assert!(String::from_utf8(mermaid.stdout).unwrap().contains("planner -->|build.task| builder"));
}

#[test]
fn an_agent_that_nobody_knows_is_named_with_the_line_of_its_hat() {
    let file = "cli:\n  backend: demo\nhats:\n  builder:\n    triggers: [build.start]\n    agent: demo\n  reviewer:\n    \
                triggers: [build.done]\n    instructions: |\n      Look at it.\n    agent: nobody\n";
    let output = Test::new().file("ralph.yml", file).run().output;
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("unknown agent `nobody`") && said.contains("ralph.yml:11)"), "{said}");
}
