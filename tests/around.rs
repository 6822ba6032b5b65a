//! What a user puts around the agent: variables and commands in the prompt, hooks, agents that take turns, quotas.

#![allow(clippy::unwrap_used)]

#[path = "support/commands.rs"]
mod commands;
mod support;

use serde_json::Value;
use support::Test;

/// An agent that keeps its prompts, changes something each time, and is done in the third call.
const THIRD: &str =
    "sh -c 'n=$(ls prompt.* 2>/dev/null | wc -l); cat > prompt.$n; [ $n = 2 ] && echo LOOP_COMPLETE || echo Working.'";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn variables_and_commands_are_filled_before_each_iteration() {
    let prompt = "# Fix it\n{{iteration}}/{{max_iterations}} on {{branch}}: {{goal}}\nLast: {{last_result}}\n{{plan}}\n\
                  Log: {{commands.log}}\nUnknown: {{other}} {{commands.none}}\n";
    let config = "commands:\n  log: echo seen $RALPH_ITERATION; echo also\n  unused: touch ran\nevent_loop: {max_iterations: 5}\n";
    let test = Test::new().file("ralph.yml", config).file("PLAN.md", "- [ ] one\n").repository();
    support::git(&test.workspace(), &["branch", "-M", "trunk"]);
    let ran = test.prompt(prompt).command(THIRD).run().complete().after_iterations(3);
    let first = ran.left("prompt.0");
    assert!(
        first.starts_with("# Fix it\n1/5 on trunk: Fix it\nLast: none yet\n- [ ] one\n\nLog: seen 1\nalso\n"),
        "{first}"
    );
    assert!(first.contains("Unknown: {{other}} {{commands.none}}\n"), "{first}");
    let last = ran.left("prompt.2");
    assert!(last.contains("3/5 on trunk") && last.contains("Last: exit code 0\n") && last.contains("seen 3"), "{last}");
    let notices = ran.notices();
    assert!(
        notices.contains("`commands.log` for the prompt: `echo seen $RALPH_ITERATION; echo also` (from"),
        "{notices}"
    );
    assert_eq!(notices.matches("`{{other}}` in").count(), 1, "{notices}");
    assert!(!ran.test.workspace().join("ran").exists(), "a command that the prompt does not name is not run");
}

#[test]
fn a_command_that_fails_says_so_in_the_prompt() {
    let test = Test::new().file("ralph.yml", "commands: {log: 'echo no >&2; exit 3'}\n").prompt("{{commands.log}}");
    let ran = test.command(THIRD).run().complete();
    assert!(ran.left("prompt.0").starts_with("no\n(exit code 3)\n"), "{}", ran.left("prompt.0"));
}

#[test]
fn hooks_get_what_happened_and_run_at_their_moments() {
    let hook = |name: &str| format!("cat >> {name}.log; echo {name} >> order");
    let keys = ["before_run", "before_iteration", "after_iteration", "after_run", "on_rejected"];
    let hooks: Vec<String> = keys.iter().map(|key| format!("  {key}: '{}'\n", hook(key))).collect();
    let hooks = hooks.concat();
    let config = format!("verify: [test -e prompt.2]\nhooks:\n{hooks}");
    let agent = "sh -c 'n=$(ls prompt.* 2>/dev/null | wc -l); cat > prompt.$n; echo LOOP_COMPLETE'";
    let ran =
        Test::new().file("ralph.yml", config).prompt("Do it.").command(agent).run().complete().after_iterations(3);
    let iteration = "before_iteration\nafter_iteration\n";
    let rejected = format!("{iteration}on_rejected\n");
    assert_eq!(ran.left("order"), format!("before_run\n{rejected}{rejected}{iteration}after_run\n"));
    assert_eq!(lines(&ran.left("before_run.log"))[0]["kind"], "run_start");
    assert_eq!(lines(&ran.left("before_iteration.log"))[2]["iteration"], 3);
    assert_eq!(lines(&ran.left("on_rejected.log"))[0]["outcome"], "rejected");
    assert_eq!(lines(&ran.left("after_run.log"))[0]["outcome"], "complete");
    assert!(ran.notices().contains("`hooks.before_run`: `cat >> before_run.log"), "{}", ran.notices());
}

#[test]
fn exit_code_10_skips_what_follows() {
    let skip = "hooks: {before_iteration: 'test $RALPH_ITERATION != 1 || exit 10'}\n";
    let ran = Test::new().file("ralph.yml", skip).prompt("x").command("echo LOOP_COMPLETE").run().complete();
    let ran = ran.shows("iteration 1 skipped by `hooks.before_iteration`");
    assert_eq!(ran.facts("iteration_start")[0]["iteration"], 2);
    let always = "hooks: {before_iteration: 'exit 10 #'}\n";
    let ran = Test::new().file("ralph.yml", always).prompt("x").command("echo LOOP_COMPLETE").args(&["-n", "3"]).run();
    assert_eq!(ran.exits(5).facts("iteration_start").len(), 0, "skipped iterations count");
    let unchecked = "verify: [touch checked]\nhooks: {after_iteration: 'exit 10 #'}\n";
    let ran =
        Test::new().file("ralph.yml", unchecked).prompt("x").command("echo LOOP_COMPLETE").args(&["-n", "1"]).run();
    let ran = ran.exits(5).shows("`hooks.after_iteration` skipped the checks");
    assert!(!ran.test.workspace().join("checked").exists());
}

#[test]
fn a_failed_hook_warns_or_stops() {
    let config = |on_error: &str| format!("hooks: {{before_run: 'echo broken >&2; exit 3', on_error: {on_error}}}\n");
    let ran = Test::new().file("ralph.yml", config("warn")).prompt("x").command("echo LOOP_COMPLETE").run().complete();
    let ran = ran.shows("`hooks.before_run` failed: exit code 3: broken");
    drop(ran);
    let ran = Test::new().file("ralph.yml", config("stop")).prompt("x").command("echo LOOP_COMPLETE").run().exits(1);
    assert_eq!(ran.facts("iteration_start").len(), 0);
    let slow = "hooks: {after_run: sleep 60, timeout: 1}\n";
    let ran = Test::new().file("ralph.yml", slow).prompt("x").command("echo LOOP_COMPLETE").run().complete();
    ran.shows("`hooks.after_run` failed: timeout after 1 s");
}

#[test]
fn a_hook_skips_the_wait_for_a_rate_limit() {
    let limited = r#"{"type":"result","subtype":"error","is_error":true,"api_error_status":429,"result":"API Error: 429 rate limit"}"#;
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"LOOP_COMPLETE"}"#;
    let say = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"LOOP_COMPLETE"}]}}"#;
    let agent = format!(
        "cat >/dev/null; if [ -e limited ]; then echo '{say}'; echo '{done}'; else touch limited; echo '{limited}'; exit 1; fi\n"
    );
    let test = Test::new().file("ralph.yml", "hooks: {on_wait: 'cat > wait.log; exit 10'}\n").file("agent.sh", agent);
    let ran = test.prompt("x").command("sh agent.sh").args(&["--transcript", "claude"]).run().complete();
    assert_eq!(lines(&ran.left("wait.log"))[0]["kind"], "wait");
}

#[test]
fn agents_take_turns() {
    let test = Test::new().file("ralph.yml", "rotate: [codex, gemini]\n").prompt("x");
    let codex = r#"echo $CALLS > c-$CALLS; echo '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Built."}}'; echo '{"type":"turn.completed"}'"#;
    let gemini = r#"echo $CALLS > g-$CALLS; echo '{"type":"message","role":"assistant","content":"Planned."}'; echo '{"type":"result","status":"success"}'"#;
    let ran = test.stands_for("codex", codex).stands_for("gemini", gemini).args(&["-n", "4"]).run().exits(5);
    let agents: Vec<Value> = ran.facts("iteration_start").iter().map(|start| start["agent"].clone()).collect();
    assert_eq!(agents, ["codex", "gemini", "codex", "gemini"]);
}

#[test]
fn a_run_stops_at_a_part_of_the_quota() {
    let event = |used: &str, kind: &str, at: &str| {
        format!(
            r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":"allowed","rateLimitType":"{kind}","utilization":{used}{at}}}}}"#
        )
    };
    let say = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Working."}]}}"#;
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"Working."}"#;
    let run = |event: &str, config: &str| {
        let agent = format!("cat >/dev/null; date +%N > moved; echo '{event}'; echo '{say}'; echo '{done}'\n");
        let test = Test::new().file("ralph.yml", config).file("agent.sh", agent).prompt("x");
        test.command("sh agent.sh").args(&["--transcript", "claude", "-n", "2"]).run()
    };
    let limit = "limits: {quota: {5h: 80%, week: 90}}\n";
    let ran = run(&event("0.83", "five_hour", r#","resetsAt":4102444800"#), limit).exits(7);
    let ran = ran.shows("83 % of the 5h quota is used (limit 80 %)");
    let receipt = &ran.facts("iteration_end")[0];
    assert_eq!((&receipt["quota"][0]["window"], &receipt["quota"][0]["used"]), (&"5h".into(), &83.into()));
    drop(ran);
    run(&event("0.83", "seven_day", ""), limit).exits(5);
    run(&event("0.95", "seven_day", ""), limit).exits(7);
    let ran = run(r#"{"type":"system","subtype":"other"}"#, limit).exits(5);
    assert_eq!(ran.notices().matches("has not reported its quota").count(), 1, "{}", ran.notices());
    let wrong = Test::new().file("ralph.yml", "limits: {quota: {5h: 120%}}\n").prompt("x").run().exits(2);
    wrong.complains("must be from `1%` to `100%`");
}

#[test]
fn a_hat_has_permissions_of_its_own() {
    let args = |line: &str| {
        let config = format!("hats:\n  builder:\n    triggers: [task.start]\n    agent: codex\n{line}");
        let test = Test::new().file("ralph.yml", config).prompt("x");
        let test = test.stands_for("codex", "echo '{\"type\":\"turn.completed\"}'");
        let ran = test.args(&["--agent", "demo", "-n", "1"]).run();
        let calls = std::fs::read_dir(ran.test.bin()).unwrap().map(|entry| entry.unwrap().path());
        calls.filter_map(|path| std::fs::read_to_string(path).ok()).collect::<String>()
    };
    let flag = "--dangerously-bypass-approvals-and-sandbox";
    assert!(args("    permissions: full\n").contains(flag));
    assert!(!args("").contains(flag));
}

#[test]
fn codex_can_commit_in_a_worktree_and_cannot_change_its_hooks() {
    let test = Test::new().file("a", "a").repository().prompt("x");
    let test = test.stands_for("codex", "echo '{\"type\":\"turn.completed\"}'");
    let ran = test.args(&["--agent", "codex", "-n", "1", "--worktree"]).run();
    let calls = std::fs::read_dir(ran.test.bin()).unwrap().map(|entry| entry.unwrap().path());
    let args = calls.filter_map(|path| std::fs::read_to_string(path).ok()).collect::<String>().replace('\0', " ");
    let given: Vec<&str> = args.split("--add-dir ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
    let ends = |end: &str| given.iter().any(|path| path.ends_with(end));
    assert!(ends("/.git/objects") && ends("/.git/refs") && ends("/.git/worktrees/x"), "{args}");
    assert!(!ends("/.git") && !ends("/.git/hooks"), "{args}");
}

/// An agent that plays the modes by the words of their prompts.
const MODES: &str = r#"mkdir -p ../bin; cat > ../bin/prompt.txt
if grep -q '^Plan only' ../bin/prompt.txt; then echo '- [ ] make it' > PLAN.md; echo plan >> ../bin/order
elif grep -q '^Review only' ../bin/prompt.txt; then
  echo review >> ../bin/order
  if [ "$(grep -c review ../bin/order)" = 1 ] || [ "$STUCK" = never ]; then echo '- [ ] a.rs:1: wrong' > REVIEW.md; else echo 'Nothing is wrong.' > REVIEW.md; fi
else
  echo build >> ../bin/order; grep -q 'a review left open items' ../bin/prompt.txt && echo asked >> ../bin/order
  sed -i 's/\[ \]/[x]/' PLAN.md
fi
if [ "$(tail -n 1 ../bin/order)" = "$STUCK" ]; then echo Working.; else echo '<promise>COMPLETE</promise>'; fi
"#;

/// What the agent noted outside of the workspace.
fn kept(ran: &support::Ran, name: &str) -> String {
    std::fs::read_to_string(ran.test.bin().join(name)).unwrap()
}

fn order(ran: &support::Ran) -> String {
    kept(ran, "order")
}

#[test]
fn phases_follow_each_other_and_the_review_sends_the_work_back() {
    let test = Test::new().file("agent.sh", MODES).repository().prompt("Make it.").command("sh agent.sh");
    let ran = test.args(&["--phases", "plan,build,review"]).run().complete().after_iterations(5);
    assert_eq!(order(&ran), "plan\nbuild\nreview\nbuild\nasked\nreview\n");
    let notices = ran.notices();
    assert!(notices.contains("phase `build` (2 of 3)\n"), "{notices}");
    assert!(notices.contains("phase `build` (2 of 3): 1 open item in `REVIEW.md`"), "{notices}");
    assert_eq!(ran.facts("run_end").len(), 1);
    let test = Test::new().file("agent.sh", MODES).prompt("x").command("sh agent.sh").args(&["--phases", "plan,ship"]);
    test.run().exits(2).complains("`--phases`: unknown mode `ship`");
}

#[test]
fn a_review_that_is_never_satisfied_does_not_complete_the_run() {
    let test = Test::new().file("agent.sh", MODES).repository().prompt("Make it.").command("sh agent.sh");
    let ran = test.args(&["--phases", "plan,build,review"]).env("STUCK", "never").run().exits(5);
    ran.shows("1 open item left in `REVIEW.md` after 11 reviews").shows("prompt: phases `plan`, `build`, `review`");
}

#[test]
fn a_run_with_phases_is_resumed_in_its_phase() {
    let test = Test::new().file("agent.sh", MODES).repository().prompt("Make it.").command("sh agent.sh");
    let ran = test.args(&["--phases", "plan,build,review", "-n", "2"]).env("STUCK", "build").run().exits(5);
    assert_eq!(order(&ran), "plan\nbuild\nbuild\n", "the limit is that of each phase");
    let mut resume = ran.test.tool();
    let output = resume.args(["resume", "-n", "9"]).env("STUCK", "").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(order(&ran), "plan\nbuild\nbuild\nbuild\nreview\nbuild\nasked\nreview\n");
}

#[test]
fn phases_show_the_users_goal_and_the_limit_of_a_resumed_run_is_that_of_each_phase() {
    let test = Test::new().file("agent.sh", MODES).repository().prompt("# Make it.").command("sh agent.sh");
    let ran = test.args(&["--phases", "plan,build,review", "-n", "2"]).env("STUCK", "build").run().exits(5);
    let runs = ran.test.tool().arg("runs").output().unwrap();
    let runs = String::from_utf8(runs.stdout).unwrap();
    assert!(runs.contains("Make it.") && !runs.contains("Plan only"), "{runs}");
    // Three iterations are over, two of them in this phase: one more is allowed, and no fourth of the run is refused.
    let resume = |limit: &str| ran.test.tool().args(["resume", "-n", limit]).env("STUCK", "build").output().unwrap();
    let refused = resume("2");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && words.contains("-n 4`"), "{words}");
    assert_eq!(resume("3").status.code(), Some(5));
    assert_eq!(order(&ran), "plan\nbuild\nbuild\nbuild\n");
}

#[test]
fn a_rejected_claim_is_the_last_result() {
    let agent = "cat > ../prompt.txt; echo '<promise>COMPLETE</promise>'";
    let test = Test::new().repository().prompt("Before: {{last_result}}").command(agent);
    let ran = test.args(&["--verify", "false", "-n", "2"]).run().exits(5);
    let prompt = std::fs::read_to_string(ran.test.workspace().with_file_name("prompt.txt")).unwrap();
    assert!(prompt.starts_with("Before: completion rejected: `false`: exit code 1"), "{prompt}");
}

#[test]
fn each_phase_has_its_own_agent_and_model() {
    let codex = "cat > ../bin/prompt.txt; echo codex $* >> ../bin/who\necho '- [ ] x' > PLAN.md\n\
                 echo '{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"agent_message\",\"text\":\"<promise>COMPLETE</promise>\"}}'\n\
                 echo '{\"type\":\"turn.completed\"}'";
    let test = Test::new().file("agent.sh", MODES).prompt("Make it.").stands_for("codex", codex);
    let test = test.command("sh agent.sh").args(&[
        "--phases",
        "plan,build",
        "--plan-agent",
        "codex",
        "--plan-model",
        "big:high",
    ]);
    let ran = test.run().complete().after_iterations(2);
    let agents: Vec<Value> = ran.facts("iteration_start").iter().map(|start| start["agent"].clone()).collect();
    assert_eq!(agents, ["codex", "custom"]);
    let who = kept(&ran, "who");
    assert!(who.contains("big") && who.contains("model_reasoning_effort=high"), "{who}");
}

#[test]
fn what_a_hook_writes_is_not_the_agents_progress() {
    let config = "hooks: {after_iteration: 'date +%N >> log', on_rejected: 'date +%N >> log'}\n";
    let test = Test::new().file("ralph.yml", config).file("a", "").repository().prompt("x");
    test.command("echo Working.").args(&["--max-stalled", "2", "-n", "6"]).run().exits(6);
}
