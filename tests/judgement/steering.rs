//! What people tell a run from elsewhere, and the modes they start it in.

use fake_agent::{Script, says, silent};

use super::DONE;
use super::support::{Test, git};

#[test]
fn a_person_can_speak_to_the_loop_from_elsewhere() {
    let script =
        Script::new().iteration(says("One.").sleeps(1500)).iteration(says("Two.").sleeps(1500)).iteration(says(DONE));
    let running = Test::new().agent(script).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    assert!(running.tells(&["hint", "look", "at x.rs"]).contains("the next iteration gets your hint"));
    running.until("the second begins", |running| running.recorded().len() == 2);
    running.tells(&["pause"]);
    running.until("it is paused", |running| running.journal().contains("\"paused\""));
    running.tells(&["continue"]);
    let ran = running.wait().complete().after_iterations(3);
    assert!(ran.heard(1).contains("a person says: look at x.rs"), "{}", ran.heard(1));
    assert!(!ran.heard(2).contains("look at x.rs"));
}

#[test]
fn a_run_can_be_stopped_from_elsewhere() {
    let running = Test::new().agent(says("One.").sleeps(1000)).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    running.tells(&["stop"]);
    running.wait().exits(130).after_iterations(1).shows("stopped by `ralph stop`");
    let running = Test::new().agent(says("One.").hangs()).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    running.tells(&["stop", "--now"]);
    running.wait().exits(130).after_iterations(1);
}

#[test]
fn a_run_that_was_stopped_in_a_pause_goes_on() {
    let script = Script::new().iteration(says("One.").sleeps(800)).iteration(says(DONE));
    let running = Test::new().agent(script).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    running.tells(&["pause"]);
    running.until("it is paused", |running| running.journal().contains("\"paused\""));
    running.tells(&["stop"]);
    let ran = running.wait().exits(130);
    let output = ran.test.tool().arg("resume").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_stop_is_not_forgotten_in_a_wait_and_a_hint_not_in_a_try_that_does_not_count() {
    let limited = || says("Hm.").sleeps(900).complains("Error: 429 Too Many Requests").exits(1);
    let running = Test::new().agent(limited()).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    running.tells(&["stop"]);
    running.wait().exits(130);
    let script =
        Script::new().counting().iteration(says("One.").sleeps(900)).iteration(limited()).iteration(says(DONE));
    let running = Test::new().agent(script).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    running.tells(&["hint", "HINT88"]);
    running.until("it waits", |running| running.journal().contains("\"verdict\":\"wait\""));
    running.tells(&["retry"]);
    let ran = running.wait().complete();
    assert!(ran.heard(1).contains("HINT88") && ran.heard(2).contains("HINT88"), "{}", ran.heard(2));
}

#[test]
fn an_absurd_wait_is_no_panic() {
    let agent = silent().complains("Error: 429 rate limit exceeded, retry after 999999999999999 seconds").exits(1);
    Test::new().agent(agent).run().exits(7);
}

#[test]
fn a_status_block_means_something_to_drivers_only() {
    let block = "---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---\nNothing is done yet.";
    Test::new().agent(says(block)).args(&["-n", "1"]).run().exits(5);
}

#[test]
fn a_plan_that_is_not_there_vetoes() {
    let ran = Test::new().agent(says(DONE)).args(&["--plan-file", "PLNA.md"]).run().exits(2);
    ran.complains("no plan file `PLNA.md`");
    let test = Test::new().file("PLAN.md", "- [ ] x\n").command("rm -f PLAN.md; echo LOOP_COMPLETE");
    test.args(&["--plan-file", "PLAN.md", "-n", "2"]).run().exits(5).shows("cannot be read");
}

#[test]
fn a_limit_can_be_raised_under_way() {
    let script = Script::new().iteration(says("One.").sleeps(1000)).iteration(says(DONE));
    let running = Test::new().agent(script).args(&["-n", "1"]).start();
    running.until("it runs", |running| running.journal().contains("iteration_start"));
    running.tells(&["limit", "-n", "5"]);
    running.wait().complete().after_iterations(2);
}

#[test]
fn nobody_to_speak_to_is_said() {
    let test = Test::new();
    let output = test.tool().args(["hint", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no run is active in this directory"));
    assert!(!test.workspace().join(".ralph").exists(), "asking creates nothing");
}

// Modes.

#[test]
fn a_mode_may_touch_nothing_but_its_own_paths() {
    let script = Script::new()
        .iteration(says(DONE).writes_file("CODEBASE.md", "map").writes_file("oops.rs", "x").commits("Sneak"))
        .iteration(says(DONE));
    let test = Test::new().file("readme", "x").repository().no_prompt().mode("understand");
    git(&test.workspace(), &["config", "user.name", "test"]);
    git(&test.workspace(), &["config", "user.email", "test@example.com"]);
    let ran = test.agent(script).args(&["-n", "2"]).run().exits(5).shows("`oops.rs` changed, and only");
    assert!(ran.heard(1).contains("`oops.rs` changed, and only CODEBASE.md may change: undo that"), "{}", ran.heard(1));
}

#[test]
fn plan_and_build_share_the_plan() {
    let plan = Script::new().iteration(says("<<<RALPHEX:PLAN_READY>>>").writes_file("PLAN.md", "- [ ] one\n"));
    let ran = Test::new().mode("plan").prompt("Make a door.").agent(plan).run().complete();
    assert!(ran.heard(0).contains("Make a door.") && ran.heard(0).contains("Plan only"), "{}", ran.heard(0));
    let build = Script::new().iteration(says(DONE)).iteration(says(DONE).writes_file("PLAN.md", "- [x] one\n"));
    let test = Test::new().mode("build").no_prompt().file("PLAN.md", "- [ ] one\n");
    test.agent(build).run().complete().after_iterations(2).shows("one item of");
}

#[test]
fn the_prompt_of_a_mode_can_be_seen_and_replaced() {
    let test = Test::new().file(".ralph/prompts/review.md", "---\nno_progress: 2\n---\nMine: {{goal}} {{home}}\n");
    let shown = |args: &[&str]| {
        String::from_utf8(test.tool().args(["prompt", "show"]).args(args).output().unwrap().stdout).unwrap()
    };
    assert!(shown(&["review", "the", "door"]).starts_with("Mine: the door {{home}}\n"), "{}", shown(&["review", "x"]));
    assert!(shown(&["plan", "a house"]).contains("a house"));
    let ran = Test::new()
        .file(".ralph/prompts/review.md", "Mine {{home}}")
        .mode("review")
        .no_prompt()
        .agent(says(DONE))
        .run()
        .complete();
    ran.shows("`{{home}}`");
}

#[test]
fn more_time_reaches_the_iteration_under_way() {
    let script = Script::new().iteration(says("I am at it.").sleeps(4000).says(DONE));
    let running = Test::new().agent(script).args(&["--max-time", "3s"]).start();
    running.until("it is at work", |running| running.journal().contains("I am at it."));
    running.tells(&["limit", "--max-time", "1h"]);
    let ran = running.wait().complete();
    assert_eq!(ran.recorded().len(), 1, "it is not played again");
}
