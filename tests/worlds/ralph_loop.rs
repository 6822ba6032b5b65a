//! A project of ralph-loop: agent scripts, `config`, prompts with variables.

use super::support::{Ran, Test};
use super::{edit, says, world};

const PLAN: &str = "# Plan\nPlan Type: gap-driven\n\n## Notes\nKeep it small.\n\n### Task 1: Tables\n**Status:** complete\n\n\
                    ### Task 2: Login\n**Status:** planned\n";

/// An amp that keeps its prompts, and does this when it works.
fn with_amp(body: &str) -> Test {
    let calls = "[ \"$1\" = usage ] && exit 0\nWORKED=$(($(cat \"$HERE/worked\" 2>/dev/null || echo 0) + 1))\n\
                 echo $WORKED > \"$HERE/worked\"; cat > \"$HERE/prompt.$WORKED\"";
    world("003-ralph-loop").stands_for("amp", &format!("{calls}\n{body}\necho $WORKED > moved-$WORKED"))
}

fn text(words: &str) -> String {
    format!(r#"echo '{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{words}"}}]}}}}'"#)
}

fn worked(ran: &Ran) -> u32 {
    std::fs::read_to_string(ran.test.bin().join("worked")).unwrap_or_default().trim().parse().unwrap_or(0)
}

fn prompt(ran: &Ran, call: u32) -> String {
    std::fs::read_to_string(ran.test.bin().join(format!("prompt.{call}"))).unwrap()
}

const COMPLETE: &str = "All done. <promise>COMPLETE</promise>";

#[test]
fn planning_needs_no_goal() {
    let ran = with_amp(&text(COMPLETE)).repository().mode("plan").run().complete().after_iterations(1);
    let ran = ran.shows("this is a ralph-loop project (`.ralph/config`): see `docs/coming-from.md#ralph-loop`");
    let sent = prompt(&ran, 1);
    assert!(sent.starts_with("You are in Ralph plan mode. Compare `specs/` with the code"), "{sent}");
    assert!(sent.contains("`.ralph/implementation_plan.md`") && !sent.contains("${"), "{sent}");
    let shown = says(&ran.test, &["plan", "--dry-run", "--output", "json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["prompt"]["sent"].as_str().unwrap().trim_end(), sent.trim_end(), "a dry run shows what is sent");
    let start = &ran.facts("run_start")[0];
    assert_eq!(start["max_iterations"], 10, "from its own config");
    with_amp(&text(COMPLETE)).mode("plan").prompt("make it fast").run().exits(2).complains("takes no goal here");
}

#[test]
fn a_bare_run_says_which_modes_have_a_prompt() {
    with_amp("").run().exits(2).complains("this project has its own prompts: use `ralph plan` or `ralph build`");
}

#[test]
fn building_takes_the_number_of_iterations_and_shows_the_plan() {
    with_amp("").mode("build").run().exits(2).complains("no plan `").complains("ralph plan");
    let test = with_amp(&text("One task done.")).file(".ralph/implementation_plan.md", PLAN).mode("build").prompt("2");
    let ran = test.run().exits(5).after_iterations(2);
    let sent = prompt(&ran, 2);
    assert!(sent.starts_with("You are in Ralph build mode."), "{sent}");
    assert!(
        sent.contains("## Plan header\n\n# Plan\nPlan Type: gap-driven\n\n## Notes\nKeep it small.\n\n## Tasks"),
        "{sent}"
    );
    assert!(sent.contains("  10:### Task 2: Login\n  **Status:** planned"), "{sent}");
    let process = PLAN.replace("gap-driven", "process");
    let ran = with_amp(&text(COMPLETE)).file(".ralph/implementation_plan.md", process).mode("build").run().complete();
    let sent = prompt(&ran, 1);
    assert!(
        sent.contains("process plan. Your task:\n\n### Task 2: Login\n**Status:** planned\n\nAround it:"),
        "{sent}"
    );
    assert!(sent.contains("### Task 1: Tables\n**Status:** complete"), "{sent}");
}

#[test]
fn a_resumed_run_keeps_its_mode() {
    let test = with_amp(&text("One task done.")).file(".ralph/implementation_plan.md", PLAN).mode("build").prompt("1");
    let ran = test.run().exits(5);
    let said = says(&ran.test, &["resume", "-n", "2"]);
    assert!(prompt(&ran, 2).starts_with("You are in Ralph build mode."), "{said}");
}

#[test]
fn a_failed_iteration_is_retried_by_itself() {
    let ran = with_amp("exit 7").args(&["-n", "1"]).prompt("Do it.").run().exits(1);
    assert_eq!(worked(&ran), 3, "one try and two retries");
    assert_eq!(ran.facts("run_end")[0]["iterations"], 1);
    let ran = ran.shows("retry 2 of 2");
    drop(ran);
    let once = format!("if [ $WORKED = 1 ]; then exit 7; fi; {}", text(COMPLETE));
    let ran = with_amp(&once).args(&["-n", "1"]).prompt("Do it.").run().complete();
    assert_eq!(worked(&ran), 2);
    let empty = with_amp("echo '{\"type\":\"system\"}'").args(&["-n", "1"]).prompt("Do it.").run().exits(1);
    assert_eq!(worked(&empty), 3, "an empty response is a failed try");
}

#[test]
fn a_negated_or_quoted_marker_is_not_done() {
    let done = |words: &str| {
        let code = with_amp(&text(words)).args(&["-n", "1"]).prompt("Do it.").run().output.status.code();
        assert!([Some(0), Some(5)].contains(&code), "{words}: {code:?}");
        code == Some(0)
    };
    assert!(done(r"All done. <promise>COMPLETE</promise>\nHave a nice day."));
    assert!(done(r"<promise>COMPLETE</promise>\nOne more remark"));
    assert!(!done("I will not output <promise>COMPLETE</promise> yet"));
    assert!(!done(r"> <promise>COMPLETE</promise>\n\nThat is what I would say."));
    assert!(!done(r"It says `<promise>COMPLETE</promise>` when all is done."));
}

#[test]
fn standard_error_is_shown_whole_and_as_it_comes() {
    let body = format!(
        "for i in $(seq 40); do echo \"warning $i\" >&2; done; touch said; until [ -e go-on ]; do sleep 0.05; done; {}",
        text(COMPLETE)
    );
    let running = with_amp(&body).prompt("Do it.").start();
    running.until("standard error is recorded", |running| running.journal().contains("warning 40"));
    std::fs::write(running.workspace().join("go-on"), "").unwrap();
    let ran = running.wait().complete();
    let shown = ran.stdout();
    assert!((1..=40).all(|i| shown.lines().any(|line| line.ends_with(&format!("warning {i}")))), "{shown}");
}

#[test]
fn the_doctor_and_the_configuration_know_the_script() {
    let test = edit(with_amp(""), ".ralph/agents/amp.sh", "AGENT_CLI=", "touch ran\nAGENT_CLI=");
    let said = says(&test, &["doctor"]);
    assert!(said.contains("amp (script `.ralph/agents/amp.sh`), selected"), "{said}");
    assert!(said.contains("its command `amp` is `") && said.contains("not checked"), "{said}");
    assert!(!test.workspace().join("ran").exists());
    let shown = says(&test, &["agents", "show", "script:codex"]);
    assert!(shown.contains("commands    codex") && shown.contains("`codex` was not found"), "{shown}");
    let config = says(&test, &["config"]);
    let line =
        |key: &str| config.lines().find(|line| line.trim_start().starts_with(key)).unwrap_or_default().to_owned();
    assert!(line("agent:").contains("script:amp") && line("agent:").contains(".ralph/config:12"), "{config}");
    assert!(line("max_iterations:").contains("10") && line("max_iterations:").contains(".ralph/config:8"), "{config}");
}
