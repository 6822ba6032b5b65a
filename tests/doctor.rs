//! `ralph doctor` on machines made for the purpose: what it finds wrong, and how its exit code says so.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use support::run_directory;

/// What `claude --help` must show.
const CLAUDE: &str = "-p, --print --output-format --verbose --include-partial-messages --dangerously-skip-permissions --model \
                      --effort --tools --session-id --resume --fork-session";

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["bin", "home", "work"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self(directory)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Installs an agent that says this version and this help.
    fn with(self, name: &str, version: &str, help: &str) -> Self {
        self.script(name, &format!("case \"$*\" in *--version) echo {version};; *--help) echo '{help}';; esac"))
    }

    fn script(self, name: &str, body: &str) -> Self {
        let path = self.at("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        let path = self.at("work").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn ralph(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_ralph"))
            .args(args)
            .current_dir(self.at("work"))
            .env_clear()
            .env("PATH", self.at("bin"))
            .env("HOME", self.at("home"))
            .env("RALPH_STATE_DIR", self.at("state"))
            .output()
            .unwrap()
    }

    /// The exit code, and what was found.
    fn doctor(&self, args: &[&str]) -> (i32, Value) {
        let output = self.ralph(&[&["doctor", "--json"], args].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        let found = serde_json::from_str(&said)
            .unwrap_or_else(|error| panic!("{error}: {said}{}", String::from_utf8_lossy(&output.stderr)));
        (output.status.code().unwrap(), found)
    }
}

/// One check of an agent, as `state: said`.
fn check(found: &Value, agent: &str, what: &str) -> String {
    let agent = found["agents"].as_array().unwrap().iter().find(|one| one["id"] == agent).expect("the agent is there");
    of(&agent["checks"], what)
}

fn of(checks: &Value, what: &str) -> String {
    let check = checks.as_array().unwrap().iter().find(|check| check["what"] == what).expect("it was looked at");
    format!("{}: {}", check["state"].as_str().unwrap(), check["said"].as_str().unwrap())
}

#[test]
fn an_agent_that_has_everything_is_fine() {
    let machine = Machine::new().with("claude", "2.1.100", CLAUDE);
    let (code, found) = machine.doctor(&[]);
    assert_eq!(check(&found, "claude", "version"), "ok: 2.1.100, tested up to 2.1.325");
    assert_eq!(check(&found, "claude", "flags"), "ok: all 12 flags that ralph passes are in `claude --help`");
    assert!(check(&found, "claude", "login").starts_with("note: none found"));
    assert_eq!((code, &found["exit_code"]), (0, &serde_json::json!(0)), "{found:#}");
    assert!(found["not_installed"].as_array().unwrap().contains(&"codex".into()));
}

#[test]
fn a_flag_that_vanished_is_named_and_the_exit_code_tells() {
    let machine = Machine::new().with("claude", "2.1.197", &CLAUDE.replace("--effort", "--effort-level"));
    let (code, found) = machine.doctor(&[]);
    assert_eq!(check(&found, "claude", "flags"), "wrong: `claude --help` does not show `--effort`");
    assert_eq!(code, 4);
    let page = String::from_utf8(machine.ralph(&["doctor"]).stdout).unwrap();
    assert!(page.contains("set the new ones in `adapters.claude.args`"), "{page}");
    assert!(page.ends_with("a run would not work here: fix the selected agent (see above)\n"), "{page}");
}

#[test]
fn what_is_wrong_with_an_agent_that_is_not_taken_does_not_stop_a_run() {
    let machine =
        Machine::new().with("claude", "2.1.197", CLAUDE).with("codex", "0.1.0", "nothing").script("pi", "exit 3");
    let (code, found) = machine.doctor(&[]);
    assert_eq!(check(&found, "codex", "version"), "wrong: 0.1.0 is too old; ralph needs 0.166.0 or newer");
    assert_eq!(check(&found, "pi", "program"), "wrong: its version command failed with exit code 3");
    assert_eq!(code, 0, "{found:#}");
    assert_eq!(machine.doctor(&["codex"]).0, 4, "it matters when it is named");
    let machine = machine.file("ralph.yml", "cli: {backend: pi}\n");
    assert_eq!(machine.doctor(&[]).0, 4, "and when the configuration asks for it");
}

#[test]
fn a_newer_version_is_worth_a_note() {
    let machine = Machine::new().with("claude", "3.0.0", CLAUDE);
    let (code, found) = machine.doctor(&[]);
    assert_eq!(check(&found, "claude", "version"), "note: 3.0.0 is newer than 2.1.325, the newest version tested");
    assert_eq!(code, 0);
}

#[test]
fn with_nothing_installed_a_run_would_not_work() {
    let (code, found) = Machine::new().doctor(&[]);
    assert_eq!(check(&found, "auto", "program"), "wrong: no agent found");
    assert_eq!(code, 4);
    let (code, found) = Machine::new().doctor(&["codex"]);
    assert_eq!(check(&found, "codex", "program"), "wrong: `codex` was not found");
    assert_eq!(code, 4);
}

#[test]
fn the_command_that_tells_somebody_is_looked_at() {
    let machine = Machine::new().with("claude", "2.1.100", CLAUDE).script("tell-me", "exit 1");
    let machine = machine.file("ralph.yml", "notify:\n  command: tell-me --loudly\n");
    let (code, found) = machine.doctor(&[]);
    let said = of(&found["machine"], "notify");
    assert!(said.starts_with("ok: ") && said.ends_with("bin/tell-me (`notify.command`)"), "{said}");
    assert_eq!(code, 0);
    let machine = machine.file("ralph.yml", "notify:\n  command: tell-you\n");
    let (code, found) = machine.doctor(&[]);
    let said = of(&found["machine"], "notify");
    assert!(said.starts_with("note: ") && said.contains("`tell-you`") && said.contains("ralph.yml:2"), "{said}");
    assert_eq!(code, 0, "a run would work");
}

#[test]
fn a_custom_command_is_looked_at_too() {
    let machine = Machine::new().script("my-ai", "exit").file("ralph.yml", "cli: {backend: custom, command: my-ai}\n");
    let (code, found) = machine.doctor(&[]);
    assert!(check(&found, "custom", "program").starts_with("ok: "), "{found:#}");
    assert_eq!(code, 0);
    let machine = machine.file("ralph.yml", "cli: {backend: custom, command: your-ai}\n");
    let (code, found) = machine.doctor(&[]);
    assert!(check(&found, "custom", "program").contains("`your-ai`"), "{found:#}");
    assert_eq!(code, 4);
}

#[test]
fn an_agent_that_waits_is_not_waited_for() {
    let machine = Machine::new().with("claude", "2.1.197", CLAUDE).script("amp", "exec /bin/sleep 600");
    let begun = std::time::Instant::now();
    let (_, found) = machine.doctor(&[]);
    assert_eq!(check(&found, "amp", "program"), "wrong: no version within 15 s");
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn the_machine_is_looked_at_and_nothing_is_made() {
    let machine = Machine::new().with("claude", "2.1.197", CLAUDE);
    let (_, found) = machine.doctor(&[]);
    for what in ["config", "git", "terminal", "disk", "processes", "runs"] {
        assert!(!of(&found["machine"], what).starts_with("wrong"), "{found:#}");
    }
    assert!(!machine.at("work/.ralph").exists());
}

#[test]
fn a_run_that_never_ended_is_told() {
    let machine = Machine::new().with("claude", "2.1.197", CLAUDE).script("my-ai", "echo LOOP_COMPLETE");
    let run = || machine.ralph(&["run", "do it", "--agent-cmd", "my-ai"]);
    assert!(run().status.success());
    assert_eq!(of(&machine.doctor(&[]).1["machine"], "runs"), "ok: 1 here, all finished");
    assert!(run().status.success());
    let newest = run_directory(&machine.at("work")).unwrap();
    // As a kill would leave it: a journal without its end, and nothing else.
    let journal = std::fs::read_to_string(newest.join("journal.jsonl")).unwrap();
    let begun: String = journal.split_inclusive('\n').filter(|line| !line.contains("run_end")).collect();
    assert!(begun.len() < journal.len());
    std::fs::remove_dir_all(&newest).unwrap();
    std::fs::create_dir(&newest).unwrap();
    std::fs::write(newest.join("journal.jsonl"), begun).unwrap();
    let (code, found) = machine.doctor(&[]);
    assert!(of(&found["machine"], "runs").starts_with("note: 1 of 2 here did not finish"), "{found:#}");
    assert_eq!(code, 0);
}

#[test]
fn a_place_that_cannot_be_used_is_the_machines_fault() {
    let machine = Machine::new().with("claude", "2.1.197", CLAUDE);
    std::fs::write(machine.at("state"), "a file").unwrap();
    let (code, found) = machine.doctor(&[]);
    assert!(of(&found["machine"], "records").starts_with("wrong: cannot write to"), "{found:#}");
    assert_eq!(code, 1);
}
