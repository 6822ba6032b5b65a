//! A project of bmalph: drivers, `.ralphrc`, status blocks.

use super::support::{Ran, Test};
use super::{edit, says, world};

const BLOCK: &str = r"Done.\n---RALPH_STATUS---\nSTATUS: COMPLETE\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---";

/// A claude that ticks the plan and says this line.
fn with_claude(line: &str) -> Test {
    let version = "[ \"$1\" = --version ] && { echo '2.0.70 (Claude Code)'; exit 0; }";
    let work = "sed -i 's/- \\[ \\]/- [x]/' .ralph/@fix_plan.md; echo $CALLS > moved-$CALLS";
    world("000-bmalph").stands_for("claude", &format!("{version}\n{work}\ncat <<'END'\n{line}\nEND"))
}

fn result(text: &str) -> String {
    format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}","session_id":"s-1"}}"#)
}

/// The words behind a flag of the first call.
fn behind(ran: &Ran, flag: &str) -> Vec<String> {
    let argv = ran.argv(1);
    let at = argv.iter().position(|word| word == flag).unwrap_or_else(|| panic!("no {flag} in {argv:?}"));
    argv[at + 1..].iter().take_while(|word| !word.starts_with("--") && *word != "-p").cloned().collect()
}

#[test]
fn a_bare_run_does_what_its_own_loop_would() {
    let ran = with_claude(&result(BLOCK)).repository().run().complete().after_iterations(2);
    let ran = ran.shows("this is a bmalph project (`.ralph/.ralphrc`): see `docs/coming-from.md#bmalph`");
    assert_eq!(behind(&ran, "--allowedTools"), ["Write", "Read", "Edit", "Bash(git *)", "Bash(npm *)", "Bash(pytest)"]);
    assert!(behind(&ran, "-p")[0].starts_with("# Instructions"), "{:?}", ran.argv(1));
    assert!(behind(&ran, "--append-system-prompt")[0].starts_with("Loop #1. Remaining tasks: 1. Next: Story 1.1"));
    assert_eq!(ran.argv(2)[ran.argv(2).iter().position(|word| word == "--resume").unwrap() + 1], "s-1");
}

#[test]
fn the_driver_is_claude_code_when_nobody_names_one() {
    let test = edit(with_claude(&result(BLOCK)), ".ralph/.ralphrc", "PLATFORM_DRIVER=", "# PLATFORM_DRIVER=");
    let test = edit(test, ".ralph/.ralphrc", "ALLOWED_TOOLS=\"Write,Read,Edit,", "ALLOWED_TOOLS=\"Read,");
    let ran = test.repository().run().complete();
    let ran = ran.shows("driver `.ralph/drivers/claude-code.sh` (from the driver contract)");
    assert_eq!(behind(&ran, "--allowedTools")[0], "Read");
}

#[test]
fn without_any_driver_the_built_in_claude_keeps_to_the_allowed_tools() {
    for rc in ["ALLOWED_TOOLS=\"Read\"\n", "ALLOWED_TOOLS=\"Read\"\nCLAUDE_PERMISSION_MODE=bypassPermissions\n"] {
        let body = format!("echo $CALLS > moved-$CALLS\ncat <<'END'\n{}\nEND", result(BLOCK));
        let test = Test::new().file(".ralphrc", rc).stands_for("claude", &body);
        let ran = test.run().complete().after_iterations(2);
        let ran = ran.shows("no driver file `claude-code`").shows("may use Read");
        assert_eq!(behind(&ran, "--allowedTools"), ["Read"], "{:?}", ran.argv(1));
        assert_eq!(behind(&ran, "--permission-mode"), ["default"]);
        let argv = ran.argv(1).join(" ");
        assert!(!argv.contains("skip-permissions") && !argv.contains("bypass"), "{argv}");
        let said = says(&ran.test, &["doctor"]);
        assert!(said.contains("claude (Claude Code), selected"), "{said}");
        assert!(said.contains("no driver file `claude-code`"), "{said}");
        let shown = says(&ran.test, &["agents", "show", "driver:claude-code"]);
        assert!(shown.contains("--permission-mode default --allowedTools Read"), "{shown}");
    }
}

#[test]
fn the_environment_can_name_the_driver() {
    let body = "echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; echo $CALLS > moved-$CALLS";
    for rc in ["PLATFORM_DRIVER=\"${PLATFORM_DRIVER:-claude-code}\"", "# nobody"] {
        let template = "PLATFORM_DRIVER=\"${PLATFORM_DRIVER:-claude-code}\"";
        let test = edit(world("000-bmalph"), ".ralph/.ralphrc", template, rc).stands_for("codex", body);
        let ran = test.env("PLATFORM_DRIVER", "codex").args(&["-n", "1"]).run();
        ran.shows("driver `.ralph/drivers/codex.sh`");
    }
}

#[test]
fn a_resumed_run_keeps_its_driver() {
    let body = "echo '{\"type\":\"thread.started\",\"thread_id\":\"t\"}'; echo $CALLS > moved-$CALLS";
    let rc = "PLATFORM_DRIVER=codex";
    let template = "PLATFORM_DRIVER=\"${PLATFORM_DRIVER:-claude-code}\"";
    let test = edit(world("000-bmalph"), ".ralph/.ralphrc", template, rc).stands_for("codex", body);
    let ran = test.args(&["-n", "1"]).run();
    assert_eq!(ran.calls(), 1);
    let said = says(&ran.test, &["resume", "-n", "2"]);
    assert_eq!(ran.argv(2)[..3], ["exec", "--json", "--sandbox"], "{said}");
}

#[test]
fn completion_is_believed_in_every_shape_of_its_analyser() {
    for line in [
        format!(r#"{{"result":"{BLOCK}","sessionId":"s-1"}}"#),
        r#"{"status":"COMPLETE","exit_signal":true,"summary":"Done."}"#.to_owned(),
        format!(r#"[{{"type":"system","subtype":"init","session_id":"s"}},{}]"#, result(BLOCK)),
        format!("{{\n  \"result\": \"{BLOCK}\",\n  \"sessionId\": \"s-1\"\n}}"),
    ] {
        with_claude(&line).run().complete().after_iterations(2);
    }
    let updated = format!(
        r#"{{"type":"message.updated","message":{{"role":"assistant","parts":[{{"type":"text","text":"{BLOCK}"}}]}}}}"#
    );
    let body =
        format!("sed -i 's/\\[ \\]/[x]/' .ralph/@fix_plan.md; echo $CALLS > moved-$CALLS\ncat <<'END'\n{updated}\nEND");
    world("000-bmalph").stands_for("opencode", &body).env("PLATFORM_DRIVER", "opencode").run().complete();
}

#[test]
fn a_denial_names_the_command_and_the_help_keeps_its_lines() {
    let line = result("I could not.").replace(
        "\"session_id\"",
        r#""permission_denials":[{"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"npm install"}}],"session_id""#,
    );
    let help = "driver_permission_denial_help() {\n    echo \"1. Edit $RALPHRC_FILE\"\n    echo '2. Start again'\n}\n";
    let test = with_claude(&line);
    let fixture = std::fs::read_to_string(test.workspace().join(".ralph/drivers/claude-code.sh")).unwrap();
    let test = test.file(".ralph/drivers/claude-code.sh", fixture + help);
    let rc = std::fs::read_to_string(test.workspace().join(".ralph/.ralphrc")).unwrap();
    let ran = test.file(".ralph/.ralphrc", rc + "PERMISSION_DENIAL_MODE=halt\n").run().exits(4);
    let shown = ran.stdout();
    assert!(shown.contains("Bash(npm install)") && !shown.contains('␊'), "{shown}");
    for line in ["1. Edit .ralph/.ralphrc", "2. Start again"] {
        assert!(shown.lines().any(|one| one.ends_with(line)), "{shown}");
    }
    assert_eq!(ran.facts("iteration_end")[0]["denied"][0], "Bash(npm install)");
    let told = says(&ran.test, &["show"]);
    assert!(
        told.contains("Bash(npm install)") && told.contains("1. Edit") && told.contains("2. Start again"),
        "{told}"
    );
}

#[test]
fn an_agent_without_sessions_gets_the_loop_context_too() {
    let test = world("000-bmalph").stands_for("copilot", "echo working; echo $CALLS > moved-$CALLS");
    let ran = test.env("PLATFORM_DRIVER", "copilot").args(&["-n", "2"]).run().exits(5);
    assert!(behind(&ran, "-s").is_empty());
    assert!(ran.argv(1).last().unwrap().starts_with("Loop #1. Remaining tasks: 1."), "{:?}", ran.argv(1));
    let second = ran.argv(2);
    assert!(second.last().unwrap().contains("Previous: working"), "{second:?}");
}

#[test]
fn an_empty_answer_is_a_failure_as_with_any_agent() {
    for line in ["", r#"{"type":"system","subtype":"init","session_id":"s"}"#] {
        let ran = with_claude(line).args(&["-n", "1"]).run().exits(1);
        assert_eq!(ran.facts("iteration_end")[0]["outcome"], "failed");
    }
}

#[test]
fn a_filter_that_shows_nothing_gives_way_to_ralphs_own_view() {
    let event = r#"{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"Half of it works."}}"#;
    let body = format!("echo $CALLS > moved-$CALLS\ncat <<'END'\n{event}\nEND");
    let test = world("000-bmalph").stands_for("opencode", &body).env("PLATFORM_DRIVER", "opencode");
    let ran = test.args(&["-n", "2"]).run();
    assert_eq!(ran.stdout().matches("Half of it works.").count(), 2, "{}", ran.stdout());
    assert!(ran.notices().contains("`driver_stream_filter` showed nothing of the answer"), "{}", ran.notices());
}

#[test]
fn keys_that_are_not_honoured_are_named() {
    let test = with_claude(&result(BLOCK));
    let rc = std::fs::read_to_string(test.workspace().join(".ralph/.ralphrc")).unwrap();
    let test = test.file(".ralph/.ralphrc", rc + "REVIEW_MODE=enhanced\nWRITE_TIMEOUT_MINUTES=8\n");
    let ran = test.run().complete();
    assert!(
        ran.notices().contains("`.ralph/.ralphrc`: ralph ignores `REVIEW_MODE`, `WRITE_TIMEOUT_MINUTES`"),
        "{}",
        ran.notices()
    );
}

#[test]
fn a_file_without_hooks_is_not_offered() {
    let test = world("000-bmalph").env("PLATFORM_DRIVER", "nosuch");
    let ran = test.run().exits(2).complains("there are: claude-code, codex, copilot, cursor, opencode");
    assert!(!ran.stderr().contains("wrapper") && !says(&ran.test, &["agents"]).contains("cursor-agent-wrapper"));
}

#[test]
fn the_doctor_examines_what_a_run_would_use() {
    let test = with_claude(&result(BLOCK));
    let trace = test.workspace().join("ran");
    let test = edit(test, ".ralph/drivers/claude-code.sh", "driver_name() {", "touch ran\ndriver_name() {");
    let said = says(&test, &["doctor"]);
    assert!(said.contains("claude-code (driver `.ralph/drivers/claude-code.sh`), selected"), "{said}");
    assert!(said.contains("its text has all required functions"), "{said}");
    assert!(said.contains("note   version   `claude` is 2.0.70; the driver needs 2.0.76 or newer"), "{said}");
    assert!(said.contains("`ralph doctor --plugins` checks it"), "{said}");
    assert!(said.contains("this is a bmalph project"), "{said}");
    assert!(!trace.exists(), "looking runs nothing");
    assert!(says(&test, &["agents"]).contains("a run here uses `driver:claude-code` (from .ralph/.ralphrc:4)"));
    let one = says(&test, &["doctor", "driver:codex"]);
    assert!(one.contains("its command `codex` was not found") && !one.contains("claude-code"), "{one}");
    let shown = says(&test, &["agents", "show", "driver:claude-code"]);
    assert!(shown.contains("at least    2.0.76") && shown.contains("commands    claude"), "{shown}");
    assert!(says(&test, &["agents", "show", "claude-code"]).contains("2.0.76"));
    let said = says(&test, &["doctor", "--plugins"]);
    assert!(trace.exists() && said.contains("`driver_check_available`: its command can be used"), "{said}");
    // It ran now, so that looking may run it again.
    assert!(says(&test, &["doctor", "claude-code"]).contains("it loads; all five required hooks"));
    let shown = says(&test, &["agents", "show", "driver:claude-code"]);
    assert!(shown.contains("--allowedTools Write Read Edit"), "{shown}");
}

#[test]
fn looking_starts_no_program_that_a_driver_names_by_its_path() {
    let test = with_claude(&result(BLOCK));
    let bin = test.bin().join("elsewhere");
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy(test.bin().join("claude"), bin.join("claude")).unwrap();
    let named = format!("driver_cli_binary() {{ echo \"{}\"; }}", bin.join("claude").display());
    let test = edit(test, ".ralph/drivers/claude-code.sh", "driver_cli_binary() { echo \"claude\"; }", &named);
    std::fs::remove_file(test.bin().join("claude")).unwrap();
    let said = says(&test, &["doctor"]);
    assert!(said.contains("elsewhere/claude` is `") && said.contains("the driver needs 2.0.76 or newer"), "{said}");
    assert!(!test.bin().join("calls").exists(), "it was started: {said}");
}

#[test]
fn a_new_configuration_keeps_the_driver() {
    let test = with_claude(&result(BLOCK));
    assert!(says(&test, &["init"]).contains("agent `driver:claude-code` (from .ralph/.ralphrc:4)"));
    let ran = test.run().complete();
    ran.shows("driver `.ralph/drivers/claude-code.sh`");
}

#[test]
fn the_configuration_is_shown_as_a_run_would_use_it() {
    let test = with_claude(&result(BLOCK));
    let get = |key: &str| says(&test, &["config", "get", key, "--json"]);
    let expected = [
        ("cli.backend", "driver:claude-code", ".ralph/.ralphrc:4"),
        ("limits.calls_per_hour", "100", ".ralph/.ralphrc:9"),
        ("cli.tools", "Bash(git *)", ".ralph/.ralphrc:13"),
        ("completion.confirmations", "2", "the driver contract"),
    ];
    for (key, value, origin) in expected {
        let said = get(key);
        assert!(said.contains(value) && said.contains(origin), "{key}: {said}");
    }
    let dry: serde_json::Value = serde_json::from_str(&says(&test, &["run", "--dry-run", "--output", "json"])).unwrap();
    let config: serde_json::Value = serde_json::from_str(&says(&test, &["config", "--json"])).unwrap();
    for (key, value) in dry["settings"].as_object().unwrap() {
        assert_eq!(value, &config[key], "{key}");
    }
}
