//! Another agent judges a claim: accepted, rejected, without a verdict, and never with a hand in the work.

use fake_agent::{Dialect, Iteration, Script, Tokens, says, silent};
use serde_json::{Value, json};

use super::DONE;
use crate::support::{Ran, Test, git};

const ACCEPT: &str = r#"{"verdict":"accept","findings":[],"criteria":[]}"#;
const READS: &str = "dialect: plain\narguments: {read_only: [--look-only]}\nprompt: {by: stdin}\n";

fn rejects(finding: &str) -> Iteration {
    says(format!("I looked.\n```json\n{}\n```", json!({"verdict": "reject", "findings": [finding], "criteria": []})))
}

/// The worker claims at once and in every iteration; each time it also changes something.
fn worker() -> Script {
    Script::new().counting().iteration(says(DONE).appends_to("work.txt", "more\n"))
}

fn judged_by(judge: Script) -> Test {
    Test::new().named_agent("judge", judge, READS).repository().agent(worker()).args(&["--judge", "judge"])
}

fn shown(ran: &Ran, args: &[&str]) -> String {
    let output = ran.test.tool().args(args).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_judge_that_accepts_completes_the_run() {
    let ran = judged_by(Script::new().records_env("RALPH_CONTROL").records_env("RALPH_AGENT").iteration(says(ACCEPT)))
        .args(&["--verify", "test -f work.txt"])
        .run()
        .complete()
        .after_iterations(1)
        .shows("judge: `judge`, read-only (from `--judge`)")
        .shows("judge judge: accepted");
    let reason = ran.facts("run_end")[0]["reason"].clone();
    assert_eq!(
        reason,
        "the agent said `<promise>COMPLETE</promise>`, all checks passed, and the judge `judge` accepted it"
    );
    let asked = &ran.test.recorded_by("judge")[0];
    assert_eq!(asked.arguments.last().map(String::as_str), Some("--look-only"), "{asked:?}");
    let told = asked.stdin.clone().unwrap();
    for part in ["Do the work.", "- `test -f work.txt`: exit code 0", "+more", "\"verdict\": \"accept\" | \"reject\""] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(asked.environment["RALPH_AGENT"], "judge");
    assert!(!asked.environment.contains_key("RALPH_CONTROL"), "it cannot steer the run: {asked:?}");
    let judged = &ran.facts("judged")[0];
    assert_eq!((&judged["verdict"], &judged["agent"]), (&json!("accept"), &json!("judge")));
    let json: Value = serde_json::from_str(&shown(&ran, &["show", "--json"])).unwrap();
    assert_eq!(json["iterations"][0]["judgements"][0]["verdict"], "accept");
}

#[test]
fn findings_go_into_the_next_prompt() {
    let judge =
        Script::new().counting().iteration(rejects("`work.txt` has one line, two are needed")).iteration(says(ACCEPT));
    let ran = judged_by(judge)
        .run()
        .complete()
        .after_iterations(2)
        .shows("judge judge: rejected")
        .shows("finding: `work.txt` has one line");
    let heard = ran.heard(1);
    assert!(heard.contains("completion rejected by the judge `judge`") && heard.contains("two are needed"), "{heard}");
    assert_eq!(ran.facts("iteration_end")[0]["outcome"], "rejected");
    let reason = ran.facts("decision")[0]["reason"].clone();
    assert_eq!(reason, "completion rejected by the judge `judge`: `work.txt` has one line, two are needed");
}

#[test]
fn a_judge_is_asked_only_when_the_checks_pass() {
    let ran = judged_by(Script::new().iteration(says(ACCEPT))).args(&["--verify", "false", "-n", "2"]).run().exits(5);
    assert!(ran.test.recorded_by("judge").is_empty() && ran.facts("judge_start").is_empty());
    let judge = Script::new().iteration(says(ACCEPT));
    let ran = judged_by(judge).args(&["--confirmations", "2"]).run().complete().after_iterations(2);
    assert_eq!(ran.test.recorded_by("judge").len(), 1, "the last confirmation is enough");
}

#[test]
fn without_a_valid_answer_a_person_is_needed() {
    for answer in
        [says("Looks good to me."), silent().complains("Error: no credit").exits(1), says("{\"verdict\":\"yes\"}")]
    {
        let ran = judged_by(Script::new().iteration(answer)).run().exits(3).after_iterations(1);
        let reason = ran.facts("run_end")[0]["reason"].as_str().unwrap().to_owned();
        assert!(reason.starts_with("the judge `judge` gave no verdict: "), "{reason}");
        let judged = ran.facts("judged");
        assert_eq!(judged.len(), 2, "it is asked once more");
        assert!(judged.iter().all(|judged| judged["verdict"] == "none"), "{judged:?}");
    }
    let slip = Script::new().counting().iteration(says("Fine!")).iteration(says(ACCEPT));
    judged_by(slip).run().complete().shows("no verdict: its last message is not the JSON").shows("once more");
}

#[test]
fn what_a_judge_changes_is_undone_and_named() {
    let meddles = says(ACCEPT).writes_file("work.txt", "mine\n").writes_file("extra.txt", "x").commits("Judge");
    let judge = Script::new().counting().iteration(meddles).iteration(says(ACCEPT));
    let test = Test::new().named_agent("judge", judge, READS).file("old.txt", "old").repository();
    git(&test.workspace(), &["config", "user.name", "test"]);
    git(&test.workspace(), &["config", "user.email", "test@example.com"]);
    let ran = test.agent(worker()).args(&["--judge", "judge"]).run().complete().after_iterations(1);
    let ran = ran.shows("no verdict: it changed").shows("extra.txt").shows("which was undone");
    let place = ran.test.workspace();
    assert_eq!(std::fs::read_to_string(place.join("work.txt")).unwrap(), "more\n");
    assert!(!place.join("extra.txt").exists());
    let git_says = |args: &[&str]| {
        let output = std::process::Command::new("git").args(args).current_dir(&place).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(git_says(&["log", "--format=%s"]).trim(), "Begin", "its commit is gone too");
    assert!(git_says(&["status", "--porcelain"]).contains("?? work.txt"));
    let judged = &ran.facts("judged")[0];
    assert_eq!(judged["verdict"], "none", "whatever it said");
    let saved = judged["saved"].as_str().unwrap();
    assert_eq!(git_says(&["show", &format!("{saved}:extra.txt")]), "x", "nothing is lost");
    assert_eq!(ran.facts("iteration_end")[0]["files"], json!(["work.txt"]), "it is not the agent's work");
}

#[test]
fn outside_of_git_a_change_is_named_and_stops_the_run() {
    let judge = Script::new().iteration(says(ACCEPT).writes_file("extra.txt", "x"));
    let test = Test::new().named_agent("judge", judge, READS).agent(worker()).args(&["--judge", "judge"]);
    let ran = test.run().exits(3).shows("no git repository: what it changes cannot be undone");
    let reason = ran.facts("run_end")[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("it changed `extra.txt`, which was not undone: there is no git repository"), "{reason}");
    assert_eq!(ran.facts("judged").len(), 1, "nobody judges what a judge has changed");
}

#[test]
fn the_same_rejection_three_times_needs_a_person() {
    let judge = Script::new()
        .counting()
        .iteration(rejects("The parser crashes on an empty file"))
        .iteration(rejects("The flag `--json` is not documented in the README"))
        .iteration(rejects("The flag `--json` is still not documented in the README"))
        .iteration(rejects("the flag --json is not documented in the README."));
    let ran = judged_by(judge).run().exits(3).after_iterations(4);
    let reason = ran.facts("run_end")[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("the judge `judge` rejected the same thing 3 times in a row: "), "{reason}");
}

#[test]
fn every_judge_must_accept_and_each_has_its_own_count() {
    let config = "verify: [{judge: kind}, {judge: strict}]\n";
    let strict = Script::new().counting().iteration(rejects("A test for the empty file is missing"));
    let test = Test::new()
        .named_agent("kind", Script::new().counting().iteration(says(ACCEPT)), READS)
        .named_agent("strict", strict, READS)
        .file("ralph.yml", config)
        .repository();
    let ran = test.agent(worker()).run().exits(3).after_iterations(3);
    let reason = ran.facts("run_end")[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("the judge `strict` rejected the same thing 3 times in a row"), "{reason}");
    assert_eq!(ran.test.recorded_by("kind").len(), 3);
}

#[test]
fn each_acceptance_criterion_gets_a_verdict() {
    let criteria = |first: &str| {
        let verdict = if first == "accept" { "accept" } else { "reject" };
        let answer = json!({"verdict": verdict, "findings": [], "criteria": [
            {"text": "It is fast", "verdict": first}, {"text": "It is documented", "verdict": "accept"}]});
        says(answer.to_string())
    };
    let judge = Script::new().counting().iteration(criteria("reject")).iteration(criteria("accept"));
    let ran = judged_by(judge)
        .file("PLAN.md", "# Plan\n- [x] work\n## Acceptance\n- [x] It is documented\n")
        .prompt("Do it.\n\n## Acceptance\n- [ ] It is fast\n")
        .args(&["--plan-file", "PLAN.md"])
        .run()
        .complete()
        .after_iterations(2)
        .shows("not met: It is fast")
        .shows("met: It is documented");
    let told = ran.test.recorded_by("judge")[0].stdin.clone().unwrap();
    assert!(told.contains("1. It is fast\n2. It is documented\n") && told.contains("The plan `PLAN.md`"), "{told}");
    assert!(ran.heard(1).contains("- not met: It is fast"), "{}", ran.heard(1));
    let text = shown(&ran, &["show"]);
    assert!(text.contains("not met: It is fast") && text.contains("met: It is documented"), "{text}");
    let json: Value = serde_json::from_str(&shown(&ran, &["show", "--json"])).unwrap();
    let criteria = &json["iterations"][1]["judgements"][0]["criteria"];
    assert_eq!(criteria[0], json!({"text": "It is fast", "verdict": "accept"}));
    // An answer that leaves one out is none.
    let silent = Script::new().iteration(says(ACCEPT));
    judged_by(silent)
        .prompt("Do it.\n## Acceptance\n- [ ] It is fast\n")
        .run()
        .exits(3)
        .shows("says nothing of the criterion");
}

#[test]
fn what_a_judge_spends_counts() {
    let tokens = || Tokens { input: 1_000_000, output: 0, ..Tokens::default() };
    let judge =
        || Script::new().dialect(Dialect::Codex).counting().iteration(rejects("One line is missing").reports(tokens()));
    let more = "dialect: codex\narguments: {model: [-m, '{model}'], read_only: []}\nprompt: {by: stdin}\n";
    let config =
        "pricing: {dear: {input: 2, output: 10}}\nverify: [{judge: judge, model: dear, prompt: Count the lines.}]\n";
    let test =
        || Test::new().named_agent("judge", judge(), more).file("ralph.yml", config).repository().agent(worker());
    let ran = test().args(&["--max-cost", "3"]).run().exits(5).after_iterations(2);
    let ran = ran.shows("limit reached: $3.00 ($4.00 spent)");
    assert_eq!(ran.facts("run_end")[0]["cost"]["usd"], json!(4.0));
    assert_eq!(ran.facts("judged")[0]["cost"], json!({"usd": 2.0, "source": "computed"}));
    let asked = &ran.test.recorded_by("judge")[0];
    assert!(
        asked.stdin.as_ref().unwrap().contains("Count the lines.") && asked.arguments.contains(&"dear".to_owned()),
        "{asked:?}"
    );
    assert!(shown(&ran, &["show"]).contains("$4.00 (computed)"), "{}", shown(&ran, &["show"]));
    let stats = shown(&ran, &["stats", "--csv"]);
    assert!(stats.lines().any(|line| line.contains(",judge,") && line.contains(",0,2000000,4,")), "{stats}");
    test().args(&["--max-tokens", "1500000"]).run().exits(5).after_iterations(2).shows("2000000 used");
}

#[test]
fn an_agent_without_a_read_only_mode_cannot_judge() {
    let test = Test::new().named_agent("writer", Script::new().iteration(says(ACCEPT)), "dialect: plain\n");
    let ran = test.agent(worker()).args(&["--judge", "writer"]).run().exits(2);
    let ran = ran.complains("agent `writer` cannot judge: ralph knows no read-only mode of it (from `--judge`)");
    assert!(ran.recorded().is_empty());
    Test::new().agent(worker()).args(&["--judge", "demo"]).run().exits(2).complains("cannot judge");
    Test::new().agent(worker()).args(&["--judge", "no-such-agent"]).run().exits(2).complains("no-such-agent");
}

#[test]
fn checks_alone_and_a_judge_work_together() {
    let judge = Script::new().counting().iteration(rejects("Only one line")).iteration(says(ACCEPT));
    let quiet = Script::new().counting().iteration(says("Working.").appends_to("work.txt", "more\n"));
    let ran = Test::new()
        .named_agent("judge", judge, READS)
        .repository()
        .agent(quiet)
        .args(&["--judge", "judge", "--until-checks", "--verify", "test -f work.txt"])
        .run()
        .complete()
        .after_iterations(2);
    assert_eq!(ran.facts("run_end")[0]["reason"], "all checks passed, and the judge `judge` accepted it");
}

#[test]
fn a_judge_that_is_interrupted_says_nothing() {
    let judge = Script::new().iteration(says(ACCEPT).hangs());
    let running = judged_by(judge).start();
    running.until("the judge works", |running| running.journal().contains("\"kind\":\"judge_start\""));
    running.tells(&["stop", "--now"]);
    let ran = running.wait();
    let end = &ran.facts("run_end")[0];
    assert_eq!(end["outcome"], "interrupted", "{end}");
}

#[test]
fn a_judge_of_another_vendor_sees_no_secret() {
    let key = "sk-ant-api03-aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789-aBcDeFgAA";
    let leaks = Script::new().iteration(says(DONE).writes_file("config.txt", format!("key = {key}\n")));
    let judge = Script::new().iteration(says(ACCEPT));
    let test = Test::new().named_agent("judge", judge, READS).repository().agent(leaks);
    let ran = test.args(&["--judge", "judge"]).run().complete();
    let told = ran.test.recorded_by("judge")[0].stdin.clone().unwrap();
    assert!(told.contains("+key = ") && !told.contains(key), "{told}");
}
