//! When it is done: checks at their moments, checks alone, before and after.

use fake_agent::{Script, says};
use serde_json::json;

use super::DONE;
use crate::support::Test;

#[test]
fn checks_alone_complete_a_run_without_any_marker() {
    let script = Script::new().iteration(says("First.")).iteration(says("Second.").writes_file("good", "yes"));
    let ran = Test::new()
        .repository()
        .agent(script)
        .args(&["--until-checks", "--verify", "test -f good"])
        .run()
        .complete()
        .after_iterations(2)
        .shows("not done yet: `test -f good` failed")
        .shows("all checks passed");
    assert_eq!(ran.facts("run_end")[0]["reason"], "all checks passed");
    let heard = ran.heard(0);
    assert!(heard.contains("done when these commands exit with 0: `test -f good`"), "{heard}");
    assert!(!heard.contains("<promise>"), "the agent need not say anything: {heard}");
    assert!(ran.heard(1).contains("not done yet: these checks failed"), "{}", ran.heard(1));
    let ends = ran.facts("iteration_end");
    assert_eq!((&ends[0]["outcome"], &ends[0]["verified"]), (&json!("ok"), &json!(null)), "nothing was claimed");
    assert_eq!(ends[1]["verified"], json!(true));
}

#[test]
fn checks_alone_obey_limits_and_the_breaker() {
    let test = |script: Script| Test::new().repository().agent(script).args(&["--until-checks", "--verify", "false"]);
    let works = Script::new().counting().iteration(says("More.").appends_to("x", "."));
    test(works).args(&["-n", "2"]).run().exits(5).after_iterations(2);
    let idle = Script::new().counting().iteration(says("Hm."));
    test(idle).args(&["--max-stalled", "2"]).run().exits(6).after_iterations(2);
}

#[test]
fn without_a_check_that_decides_there_is_no_end() {
    for (config, flags) in [
        ("", &["--until-checks"][..]),
        ("until: checks\nverify: [{run: 'true', required: false}]\n", &[]),
        ("until: checks\nverify: [{run: 'true', when: end}]\n", &[]),
    ] {
        let ran = Test::new().file("ralph.yml", config).agent(says(DONE)).args(flags).run().exits(2);
        let ran = ran.complains("no check decides when the run is done").complains("--verify COMMAND");
        assert!(ran.recorded().is_empty(), "nothing was run");
    }
}

#[test]
fn a_check_after_each_iteration_tells_the_agent_and_rejects_a_claim() {
    let script = Script::new()
        .iteration(says("Working."))
        .iteration(says(DONE))
        .iteration(says(DONE).writes_file("good", "yes"));
    let ran = Test::new()
        .file(
            "ralph.yml",
            "verify: [{run: 'test -f good || { echo missing; exit 1; }', name: good, when: iteration}]\n",
        )
        .repository()
        .agent(script)
        .run()
        .complete()
        .after_iterations(3)
        .shows("check after each iteration: `test -f good");
    let asked: Vec<_> = ran.facts("verification").iter().map(|fact| fact["asked"].clone()).collect();
    assert_eq!(asked, [json!("iteration"), json!(null), json!(null)]);
    assert!(ran.heard(1).contains("these checks failed") && ran.heard(1).contains("missing"), "{}", ran.heard(1));
    assert!(ran.heard(2).contains("completion rejected: these checks failed"), "{}", ran.heard(2));
}

#[test]
fn a_check_that_is_not_required_is_shown_and_no_veto() {
    let config = "verify: ['true', {run: 'echo dull; exit 4', name: style, required: false}, {run: no-such-program-x, required: false}]\n";
    let ran = Test::new()
        .file("ralph.yml", config)
        .agent(says(DONE))
        .run()
        .complete()
        .shows("verify style: exit code 4")
        .shows("not required")
        .shows("verified: every required check passed")
        .shows("and all checks passed");
    assert_eq!(ran.facts("verification")[0]["passed"], json!(true));
}

#[test]
fn a_check_at_the_end_can_fail_the_run_and_a_resumed_one_hears_of_it() {
    let config = "verify: [{run: 'test -f late || { echo the end is missing; exit 7; }', name: whole, when: end}]\n";
    let script = Script::new().counting().iteration(says(DONE)).iteration(says(DONE).writes_file("late", ""));
    let ran = Test::new().file("ralph.yml", config).repository().agent(script).run().exits(1).after_iterations(1);
    let ran = ran.shows("the end is missing").shows("failed at the end: `whole`");
    assert_eq!(ran.facts("run_end")[0]["reason"], "a check at the end failed: `whole`: exit code 7");
    let resumed = ran.test.tool().arg("resume").output().unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stdout));
    assert!(ran.heard(1).contains("the end is missing"), "{}", ran.heard(1));
    // A run that ends otherwise does not ask.
    let other = Test::new().file("ralph.yml", config).agent(says("More.")).args(&["-n", "1"]).run().exits(5);
    assert!(other.facts("verification").is_empty());
}

const COUNTS: &str =
    "echo \"test result: FAILED. $(cat passed) passed; $(cat failed) failed; 0 ignored\"; test $(cat failed) = 0";

#[test]
fn the_end_is_compared_with_the_start() {
    let config =
        format!("verify: [{{run: '{COUNTS}', name: tests, baseline: true}}, {{run: 'test -f x', baseline: true}}]\n");
    let work = || says(DONE).writes_file("failed", "0").writes_file("passed", "9").writes_file("x", "");
    let test = || Test::new().file("ralph.yml", &config).file("passed", "0").file("failed", "12").repository();
    let script = Script::new().iteration(says("Hm.")).iteration(work());
    let ran = test().agent(script).run().complete().after_iterations(2);
    let ran = ran.shows("tests: 12 failing → 0 failing").shows("3 tests fewer than at the start");
    let ran = ran.shows("`test -f x`: failing → passing");
    let first = &ran.facts("verification")[0];
    assert_eq!((&first["asked"], &first["iteration"]), (&json!("start"), &json!(0)));
    assert_eq!(first["checks"][0]["counts"], json!({"failed": 12, "run": 12}));
    assert_eq!(ran.facts("verification").len(), 2, "once at the start, once for the claim");
    let shown = ran.test.tool().arg("show").output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("tests: 12 failing → 0 failing") && shown.contains("3 tests fewer"), "{shown}");
    let json = ran.test.tool().args(["show", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["end"]["compared"]["last"][0]["counts"], json!({"failed": 0, "run": 9}));
}

#[test]
fn a_resumed_run_does_not_begin_anew_with_its_baseline() {
    let config = "verify: [{run: 'echo x >> asked; test -f good', baseline: true}]\n";
    let script = Script::new().counting().iteration(says("Hm.")).iteration(says(DONE).writes_file("good", ""));
    let ran = Test::new().file("ralph.yml", config).repository().agent(script).args(&["-n", "1"]).run().exits(5);
    let resumed = ran.test.tool().args(["resume", "-n", "5"]).output().unwrap();
    let said = String::from_utf8_lossy(&resumed.stdout).into_owned();
    assert!(resumed.status.success() && said.contains("failing → passing"), "{said}");
    let asked = std::fs::read_to_string(ran.test.workspace().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 2, "the start and the claim");
}
