//! A project of ralph-orchestrator: `ralph.yml` with `cli.backend`, presets with hats, `PROMPT.md`.

use super::support::{Ran, Test};
use super::{says, world};

const WORLD: &str = "001-ralph-orchestrator";

const GEMINI: &str = r#"echo '{"type":"message","role":"assistant","content":"Planned."}'
echo '{"type":"result","status":"success"}'"#;

const CODEX: &str = r#"echo '{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Built."}}'
echo '{"type":"turn.completed"}'"#;

/// A command that changes something in each call and says this.
fn works(test: Test, name: &str, says: &str) -> Test {
    test.stands_for(name, &format!("echo $CALLS > moved-$CALLS\ncp \"$HERE/log.$CALLS\" \"$HERE/{name}.args\"\n{says}"))
}

/// The arguments of the last call of a command.
fn args_of(ran: &Ran, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(ran.test.bin().join(format!("{name}.args"))).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// Its own agent, with these lines under `cli`.
fn custom(lines: &str) -> Ran {
    let config = format!("cli:\n  backend: custom\n  command: my-ai\n  args: [\"--headless\"]\n{lines}");
    works(Test::new().prompt("test").file("ralph.yml", config), "my-ai", "cat > read; echo LOOP_COMPLETE").run()
}

#[test]
fn a_bare_run_takes_the_agents_in_its_order() {
    let test = works(world(WORLD), "kiro-cli", "echo LOOP_COMPLETE");
    let test = works(test, "codex", "echo '{\"type\":\"turn.completed\"}'");
    let ran = test.repository().run().complete();
    assert_eq!(ran.facts("run_start")[0]["agent"], "kiro", "its order is claude, kiro, gemini, codex, amp");
    let notices = ran.notices();
    assert!(notices.contains("do nothing here: `event_loop.idle_timeout_secs`"), "{notices}");
    assert!(notices.contains("see `docs/coming-from.md#ralph-orchestrator`"), "{notices}");
}

#[test]
fn a_resumed_run_keeps_the_agent_that_auto_chose() {
    let test = works(world(WORLD), "kiro-cli", "echo Working.");
    let test = works(test, "codex", "echo '{\"type\":\"turn.completed\"}'");
    let ran = test.repository().args(&["-n", "1"]).run().exits(5);
    let said = says(&ran.test, &["resume", "-n", "2"]);
    let agents: Vec<String> =
        ran.facts("iteration_start").iter().map(|start| start["agent"].as_str().unwrap().to_owned()).collect();
    assert_eq!(agents, ["kiro", "kiro"], "{said}");
}

#[test]
fn its_priorities_and_guardrails_count() {
    let config = "cli:\n  backend: auto\nagent_priority: [codex, acp, kiro]\ncore:\n  specs_dir: specs\n  guardrails:\n    \
                  - \"Tests must pass\"\n";
    let test = works(Test::new().prompt("Do it.").file("ralph.yml", config), "kiro-cli", "echo LOOP_COMPLETE");
    let ran = works(test, "codex", CODEX).args(&["-n", "1"]).run().exits(5);
    assert_eq!(ran.facts("run_start")[0]["agent"], "codex");
    let shown = says(&ran.test, &["run", "Do it.", "--dry-run", "--output", "json"]);
    assert!(shown.contains("Rule: Tests must pass"), "{shown}");
    let ran = Test::new().prompt("x").file("ralph.yml", "cli: {backend: acp}\n").run().exits(2);
    ran.complains("ralph does not use the Agent Client Protocol");
}

#[test]
fn an_omitted_prompt_mode_is_arg() {
    let ran = custom("").complete();
    assert_eq!(args_of(&ran, "my-ai")[0], "--headless");
    assert!(args_of(&ran, "my-ai")[1].starts_with("test\n"));
    assert_eq!(ran.left("read"), "");
    assert_eq!(says(&ran.test, &["config", "get", "cli.prompt_mode"]).trim(), "arg");
    let ran = custom("  prompt_mode: stdin\n").complete();
    assert!(ran.left("read").starts_with("test\n"));
}

#[test]
fn a_prompt_flag_is_never_dropped() {
    let ran = custom("  prompt_flag: --prompt\n").complete();
    assert_eq!(args_of(&ran, "my-ai")[..2], ["--headless", "--prompt"]);
    let config = "agent: custom\ncli:\n  command: my-ai\n  prompt_flag: --prompt\n";
    let test = Test::new().prompt("test").file("ralph.yml", config);
    let ran = works(test, "my-ai", "echo LOOP_COMPLETE").run().complete();
    assert_eq!(args_of(&ran, "my-ai")[0], "--prompt", "in a file of ralph's own too");
    let ran = custom("  prompt_mode: stdin\n  prompt_flag: --prompt\n").complete();
    ran.shows("`cli.prompt_flag` (from");
}

#[test]
fn hats_have_agents_models_and_arguments_of_their_own() {
    let test = works(world(WORLD), "gemini", GEMINI);
    let test = works(test, "codex", CODEX);
    let test = works(test, "kiro-cli", "echo Reviewed.");
    let ran = test.args(&["--config", "presets/relay.yml"]).repository().run().complete().after_iterations(4);
    let iterations = ran.facts("iteration_start");
    let worn: Vec<&str> = iterations.iter().map(|start| start["hat"].as_str().unwrap()).collect();
    assert_eq!(worn, ["planner", "builder", "reviewer", "closer"]);
    let agents: Vec<&str> = iterations.iter().map(|start| start["agent"].as_str().unwrap()).collect();
    assert_eq!(agents, ["gemini", "codex", "kiro", "custom"]);
    let has = |name: &str, words: &[&str]| args_of(&ran, name).windows(words.len()).any(|found| found == words);
    assert!(has("gemini", &["-m", "large"]), "{:?}", args_of(&ran, "gemini"));
    assert!(has("codex", &["model_reasoning_effort=high", "--search"]), "{:?}", args_of(&ran, "codex"));
    assert!(has("kiro-cli", &["--agent", "strict", "--wrap", "never"]), "{:?}", args_of(&ran, "kiro-cli"));
    let closer = ran.left("closer.args");
    assert!(closer.starts_with("--brief\n# Task\n\nAdd a health endpoint"), "{closer}");
}

#[test]
fn a_hat_in_the_command_of_a_repository_is_asked_about() {
    let config =
        "trust: ask\nhats:\n  one:\n    triggers: [task.start]\n    backend: {command: ./agent.sh, args: [a]}\n";
    let ran = Test::new().file("ralph.yml", config).file("agent.sh", "").args(&["--agent", "demo"]).run().exits(2);
    ran.complains("agent.sh");
}

#[test]
fn a_wrong_backend_of_a_hat_points_at_its_place() {
    for backend in ["{args: [a]}", "{type: codex, command: x}", "{command: x, agent: one}", "[codex]"] {
        let config = format!("hats:\n  one:\n    triggers: [task.start]\n    backend: {backend}\n");
        let ran = Test::new().file("ralph.yml", config).args(&["--agent", "demo"]).run().exits(2);
        ran.complains("`hats.one.backend` must be");
    }
}
