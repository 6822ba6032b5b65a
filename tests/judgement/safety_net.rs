//! What protects the user does not fail quietly: checks, keys, modes, and words that are not the agent's.

use fake_agent::{Script, says};

use super::DONE;
use super::support::Test;

const LOG: &str = "printf '%s\\n' '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}' \
                   '{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"LOOP_COMPLETE\"}]}}' \
                   '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"LOOP_COMPLETE\"}'";

#[test]
fn a_check_whose_program_is_missing_is_found_before_the_run() {
    for check in ["no-such-checker-x --all", "./no-such-checker-x"] {
        let ran = Test::new().agent(says(DONE)).args(&["--verify", check]).run().exits(2);
        assert_eq!(ran.recorded().len(), 0, "nothing was run");
        ran.complains("cannot run").complains("no-such-checker-x");
    }
    let test = Test::new().file("ralph.yml", "verify: [no-such-checker-x]\n");
    let output = test.tool().args(["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["machine"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["what"] == "verify" && check["state"] == "wrong"), "{report}");
}

#[test]
fn a_check_that_cannot_run_ends_the_run() {
    let script = || Script::new().iteration(says(DONE));
    for check in ["true && no-such-checker-x", "test -d . && ./not-executable"] {
        let test = Test::new().file("not-executable", "x").agent(script());
        let ran =
            test.args(&["--verify", check]).run().exits(2).after_iterations(1).complains("cannot run (exit code 12");
        assert_eq!(ran.facts("run_end")[0]["exit_code"], 2);
    }
}

#[test]
fn a_misspelt_key_is_an_error() {
    let ran = Test::new().file("ralph.yml", "verifi: [make test]\n").agent(says(DONE)).run().exits(2);
    assert_eq!(ran.recorded().len(), 0);
    ran.complains("unknown key `verifi`, did you mean `verify`?");
    let foreign = "max_iterations: 1\nfeathers: 5\n";
    Test::new().file("ralph.yml", foreign).agent(says(DONE)).run().complete().shows("unknown key `feathers`");
    Test::new().file("ralph.yml", "max_iterations: 1\nlimits: {max_wiat: 5}\n").agent(says(DONE)).run().exits(2);
}

#[test]
fn a_prompt_of_ones_own_keeps_the_limits_of_its_mode() {
    let script = || Script::new().counting().iteration(says("More.").appends_to("oops.rs", "x"));
    let test = || Test::new().file("readme", "x").repository().mode("plan").prompt("A door.").agent(script());
    let ran = test().file(".ralph/prompts/plan.md", "Mine: {{goal}}\n").run().exits(5).after_iterations(5);
    assert!(ran.heard(1).contains("only PLAN.md may change"), "{}", ran.heard(1));
    let own = "---\nevent_loop: {max_iterations: 2}\nallowed_paths: ['**']\n---\nMine: {{goal}}\n";
    let ran = test().file(".ralph/prompts/plan.md", own).run().exits(5).after_iterations(2);
    assert!(!ran.heard(1).contains("may change"), "{}", ran.heard(1));
}

#[test]
fn settings_of_a_mode_are_named_by_what_exists() {
    let wrong = "---\nevent_loop: {max_iterations: many}\n---\nMine\n";
    let ran = Test::new().file(".ralph/prompts/review.md", wrong).mode("review").agent(says(DONE)).run().exits(2);
    ran.complains(".ralph/prompts/review.md:2:");
    let ran = Test::new().file("PLAN.md", "- [x] a\n").mode("build").no_prompt().agent(says(DONE)).run().complete();
    assert!(!ran.stdout().contains("mode build") && !ran.stdout().contains("is empty"), "{}", ran.stdout());
}

#[test]
fn what_follows_two_dashes_goes_to_the_agent() {
    let ran =
        Test::new().named_agent("own", says(DONE), "dialect: plain\n").args(&["--agent", "own", "--", "--foo", "a b"]);
    let ran = ran.run().complete();
    let arguments = &ran.test.recorded_by("own")[0].arguments;
    assert!(arguments.windows(2).any(|pair| pair == ["--foo", "a b"]), "{arguments:?}");
    let test = Test::new().args(&["--agent-cmd", "cat > /dev/null && printf '%s LOOP_COMPLETE\\n'", "--", "Done."]);
    test.run().complete();
}

#[test]
fn an_old_log_that_a_plain_agent_prints_completes_nothing() {
    Test::new().command(&format!("{LOG}; exit 1")).args(&["-n", "1"]).run().exits(1);
    Test::new().command(&format!("{LOG}; echo Now I begin.")).args(&["-n", "1"]).run().exits(5);
    Test::new().command(LOG).args(&["-n", "1"]).run().complete();
}

#[test]
fn words_of_other_programs_are_not_the_agents() {
    for words in ["npm ERR! 429 Too Many Requests", "psql: FATAL: password authentication failed for user x"] {
        let test = Test::new().command(&format!("echo '{words}' >&2; exit 1")).args(&["-n", "1"]);
        let ran = test.run().exits(1);
        assert_eq!(ran.facts("iteration_end")[0]["class"], "agent", "{words}");
    }
    let file = "dialect: plain\nerrors: ['own: ']\n";
    let own = Script::new().iteration(fake_agent::silent().complains("own: not logged in").exits(1));
    Test::new().named_agent("own", own, file).args(&["--agent", "own"]).run().exits(4);
}
