//! Choosing an agent and calling it: the acceptance criteria of the adapter document, each under its own name.
//! The agents are small scripts on a `PATH` of their own.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Ran, Test};

/// Agents that are installed on no machine but this one.
struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("bin")).unwrap();
        std::fs::create_dir(directory.path().join("home")).unwrap();
        Self { directory }
    }

    /// Installs a command that says its version, and otherwise notes how it was called and says it is done.
    fn with(self, name: &str) -> Self {
        let notes = self.directory.path().join(name);
        let notes = notes.display();
        self.script(
            name,
            &format!(
                "[ \"$1\" = --version ] && {{ echo 1.2.3; exit; }}\n\
                 printf '%s\\n' \"$@\" > '{notes}.args'\npwd > '{notes}.cwd'\n\
                 [ -t 1 ] && echo terminal > '{notes}.tty'\necho \"$IS_SANDBOX$EXTRA\" > '{notes}.env'\n\
                 [ -t 0 ] || /bin/cat > '{notes}.stdin'\necho LOOP_COMPLETE"
            ),
        )
    }

    fn script(self, name: &str, body: &str) -> Self {
        let path = self.bin().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn bin(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    /// A run on this machine; what the agents say is read as plain text.
    fn test(&self) -> Test {
        let home = self.directory.path().join("home");
        Test::new()
            .env("PATH", self.bin().to_str().unwrap())
            .env("HOME", home.to_str().unwrap())
            .env("XDG_CONFIG_HOME", home.join(".config").to_str().unwrap())
            .args(&["--transcript", "plain", "-n", "1"])
    }

    /// What an agent noted about its call.
    #[track_caller]
    fn noted(&self, name: &str, what: &str) -> String {
        let path = self.directory.path().join(format!("{name}.{what}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn was_called(&self, name: &str) -> bool {
        self.directory.path().join(format!("{name}.args")).exists()
    }
}

#[track_caller]
fn agent_of(ran: &Ran) -> String {
    ran.facts("run_start")[0]["agent"].as_str().unwrap().to_owned()
}

// Auto-detection

#[test]
fn auto_takes_the_first_available_in_the_order_of_the_document_in_a_file_for_it() {
    let machine = Machine::new().with("amp").with("codex").with("gemini").with("opencode");
    let ran = machine.test().file("ralph.yml", "cli:\n  backend: auto\n").run().complete();
    assert_eq!(agent_of(&ran), "gemini");
    assert!(machine.was_called("gemini") && !machine.was_called("codex"));
}

#[test]
fn auto_is_what_happens_when_nothing_is_said() {
    let machine = Machine::new().with("kiro-cli").with("gemini");
    assert_eq!(agent_of(&machine.test().run().complete()), "gemini");
}

#[test]
fn auto_takes_the_other_built_in_agents_after_those_of_the_document() {
    let machine = Machine::new().with("aider").with("droid");
    assert_eq!(agent_of(&machine.test().run().complete()), "droid");
}

#[test]
fn auto_skips_an_agent_that_is_disabled() {
    let machine = Machine::new().with("claude").with("codex");
    let ran = machine.test().file("ralph.yml", "adapters:\n  claude:\n    enabled: false\n").run().complete();
    assert_eq!(agent_of(&ran), "codex");
    assert!(!machine.was_called("claude"));
}

#[test]
fn auto_skips_a_command_that_does_not_return_0() {
    let machine = Machine::new().script("claude", "exit 1").with("amp");
    assert_eq!(agent_of(&machine.test().run().complete()), "amp");
}

#[test]
fn auto_does_not_wait_for_a_later_agent_that_hangs() {
    let machine = Machine::new().with("claude").script("codex", "exec /bin/sleep 600");
    let begun = std::time::Instant::now();
    assert_eq!(agent_of(&machine.test().run().complete()), "claude");
    assert!(begun.elapsed() < std::time::Duration::from_secs(25), "{:?}", begun.elapsed());
}

#[test]
fn with_no_agent_installed_every_checked_one_is_listed_with_its_install_line() {
    let mut ran = Machine::new().test().run().exits(4).complains("no agent found");
    for (name, install) in [
        ("claude", "npm install -g @anthropic-ai/claude-code"),
        ("kiro", "curl -fsSL https://cli.kiro.dev/install | bash"),
        ("gemini", "npm install -g @google/gemini-cli"),
        ("codex", "npm install -g @openai/codex"),
        ("amp", "npm install -g @sourcegraph/amp"),
        ("aider", "python -m pip install aider-chat"),
    ] {
        ran = ran.complains(&format!("{name:<9} not installed; install: {install}"));
    }
    ran.complains("`--agent demo`");
}

// Explicit selection

#[test]
fn a_named_agent_is_used_whatever_auto_would_take() {
    let machine = Machine::new().with("claude").with("gemini");
    let ran = machine.test().file("ralph.yml", "cli:\n  backend: gemini\n").run().complete();
    assert_eq!(agent_of(&ran), "gemini");
    let ran = machine.test().env("RALPH_AGENT", "gemini").run().complete();
    assert_eq!(agent_of(&ran), "gemini");
}

#[test]
fn a_named_agent_that_is_not_installed_is_an_error_that_says_so() {
    let machine = Machine::new().with("claude");
    let test = machine.test().file("ralph.yml", "cli:\n  backend: gemini\n");
    test.run()
        .exits(4)
        .complains("agent `gemini` (Gemini CLI) is not installed: ")
        .complains("`gemini` was not found (from ")
        .complains("install it: `npm install -g @google/gemini-cli`");
    assert!(!machine.was_called("claude"));
}

#[test]
fn a_disabled_agent_can_still_be_named() {
    let machine = Machine::new().with("claude");
    let test = machine.test().file("ralph.yml", "adapters:\n  claude:\n    enabled: false\n");
    assert_eq!(agent_of(&test.args(&["--agent", "claude"]).run().complete()), "claude");
}

// Custom

#[test]
fn a_custom_agent_gets_the_prompt_on_standard_input() {
    let machine = Machine::new().with("my-ai");
    let test = machine
        .test()
        .prompt("test")
        .file("ralph.yml", "cli:\n  backend: custom\n  command: my-ai\n  prompt_mode: stdin\n");
    assert_eq!(agent_of(&test.run().complete()), "custom");
    assert!(machine.noted("my-ai", "stdin").starts_with("test"));
    assert_eq!(machine.noted("my-ai", "args"), "\n");
}

#[test]
fn the_args_of_a_custom_agent_come_before_the_prompt() {
    let machine = Machine::new().with("my-ai");
    let config =
        "cli:\n  backend: custom\n  command: my-ai\n  args: [\"--headless\", \"--json\"]\n  prompt_mode: arg\n";
    machine.test().prompt("test").file("ralph.yml", config).run().complete();
    assert!(machine.noted("my-ai", "args").starts_with("--headless\n--json\ntest"));
}

#[test]
fn a_custom_agent_without_a_command_is_an_error() {
    let test = Machine::new().test().file("ralph.yml", "cli:\n  backend: custom\n");
    test.run().exits(2).complains("the custom agent has no command");
}

// Prompt delivery

#[test]
fn a_prompt_flag_stands_between_the_args_and_the_prompt() {
    let machine = Machine::new().with("my-ai");
    let config = "cli:\n  backend: custom\n  command: my-ai\n  args: [a]\n  prompt_mode: arg\n  prompt_flag: \"-p\"\n";
    machine.test().prompt("test").file("ralph.yml", config).run().complete();
    assert!(machine.noted("my-ai", "args").starts_with("a\n-p\ntest"));
    assert_eq!(machine.noted("my-ai", "stdin"), "", "nothing is on standard input");
}

#[test]
fn a_prompt_without_a_flag_is_the_last_argument() {
    let machine = Machine::new().with("my-ai");
    let config = "cli:\n  backend: custom\n  command: my-ai\n  prompt_mode: arg\n";
    machine.test().prompt("test").file("ralph.yml", config).run().complete();
    assert!(machine.noted("my-ai", "args").starts_with("test"));
}

#[test]
fn a_built_in_agent_gets_its_flags_and_the_prompt_its_own_way() {
    let machine = Machine::new().with("claude").with("aider");
    machine.test().args(&["--agent", "claude", "--tools", "Read,Edit", "--effort", "high"]).run().complete();
    assert!(machine.noted("claude", "stdin").starts_with("Do the work."));
    let args = machine.noted("claude", "args").replace('\n', " ");
    let expected =
        "-p --output-format stream-json --verbose --dangerously-skip-permissions --effort high --tools Read,Edit ";
    assert_eq!(args, expected);
    machine.test().args(&["--agent", "aider", "--model", "some model"]).run().complete();
    let args = machine.noted("aider", "args");
    assert!(args.contains("--yes-always\n--model\nsome model\n--message-file\n/"), "{args}");
    let file = args.lines().last().unwrap();
    assert!(!Path::new(file).exists(), "the prompt file is gone with the agent");
}

// Timeout

#[test]
fn an_agent_that_takes_longer_than_its_timeout_is_stopped() {
    let body = "[ \"$1\" = --version ] && { echo 1.2.3; exit; }\necho working\nexec /bin/sleep 600";
    let machine = Machine::new().script("claude", body);
    let ran = machine.test().file("ralph.yml", "adapters:\n  claude:\n    timeout: 1\n").run().exits(1);
    assert_eq!(agent_of(&ran), "claude");
    let receipt = &ran.facts("iteration_end")[0];
    assert_eq!(receipt["ended"], "timed out after 1 s");
}

// Working directory

/// `ralph run` in a subdirectory of the test's working directory.
fn run_in(test: &Test, directory: &Path) -> std::process::Output {
    let mut command: Command = test.ralph();
    command.current_dir(directory).output().unwrap()
}

#[test]
fn the_agent_works_where_ralph_was_started() {
    let machine = Machine::new().with("claude");
    let test = machine.test().file("src/keep", "");
    let source = test.workspace().join("src").canonicalize().unwrap();
    let output = run_in(&test, &source);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(machine.noted("claude", "cwd").trim_end(), source.to_str().unwrap());
}

#[test]
fn a_configuration_in_a_parent_directory_does_not_move_the_agent() {
    let machine = Machine::new().with("claude").with("codex");
    let test = machine.test().file("ralph.yml", "cli:\n  backend: codex\n").file("src/keep", "");
    let source = test.workspace().join("src").canonicalize().unwrap();
    let output = run_in(&test, &source);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(machine.noted("codex", "cwd").trim_end(), source.to_str().unwrap());
}

#[test]
fn a_working_directory_that_is_gone_is_an_error_that_says_so() {
    let machine = Machine::new().with("claude");
    let gone = machine.directory.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let script = "cd \"$1\" && /bin/rmdir \"$1\" && exec \"$2\" run 'do it' --agent claude";
    let output = Command::new("/bin/sh")
        .args(["-c", script, "sh"])
        .args([gone.as_os_str(), env!("CARGO_BIN_EXE_ralph").as_ref()])
        .env("PATH", machine.bin())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the working directory is gone or not accessible"), "{said}");
}

#[test]
fn on_a_terminal_the_agent_works_in_the_same_directory() {
    let machine = Machine::new().with("claude");
    let test = machine.test().args(&["--pty"]);
    let workspace = test.workspace().canonicalize().unwrap();
    test.run().complete();
    assert_eq!(machine.noted("claude", "tty").trim_end(), "terminal");
    assert_eq!(machine.noted("claude", "cwd").trim_end(), workspace.to_str().unwrap());
}

// Terminal

#[test]
fn a_custom_agent_that_knows_no_terminal_works_on_one() {
    let machine = Machine::new().with("my-ai");
    let config = "cli:\n  backend: custom\n  command: my-ai\n  prompt_mode: arg\n";
    machine.test().file("ralph.yml", config).args(&["--pty"]).run().complete();
    assert_eq!(machine.noted("my-ai", "tty").trim_end(), "terminal");
}

#[test]
fn every_built_in_agent_gets_its_prompt_on_a_terminal() {
    let commands = [
        ("claude", "claude"),
        ("codex", "codex"),
        ("copilot", "copilot"),
        ("cursor", "cursor-agent"),
        ("opencode", "opencode"),
        ("gemini", "gemini"),
        ("amp", "amp"),
        ("kiro", "kiro-cli"),
        ("cline", "cline"),
        ("pi", "pi"),
        ("qwen", "qwen"),
        ("goose", "goose"),
        ("droid", "droid"),
        ("aider", "aider"),
        ("agy", "agy"),
        ("kimi", "kimi"),
        ("kilo", "kilo"),
        ("auggie", "auggie"),
        ("crush", "crush"),
    ];
    for (agent, command) in commands {
        let machine = Machine::new().with(command);
        let start = std::time::Instant::now();
        machine.test().args(&["--agent", agent, "--pty", "--idle-timeout", "9s"]).run().complete();
        assert!(start.elapsed() < std::time::Duration::from_secs(9), "{agent}");
        assert_eq!(machine.noted(command, "tty").trim_end(), "terminal");
        let args = machine.noted(command, "args");
        let file = args.lines().last().unwrap_or_default();
        let given =
            if agent == "aider" { std::path::Path::new(file).is_absolute() } else { args.contains("Do the work.") };
        assert!(given, "{agent}: {args}");
    }
}

#[test]
fn an_agent_that_insists_on_a_terminal_is_answered_with_the_flag() {
    for complaint in
        ["stdin is not a terminal", "Error: Raw mode is not supported on the current process.stdin", "not a tty"]
    {
        let machine = Machine::new()
            .script("my-ai", &format!("[ -t 0 ] || {{ echo '{complaint}' >&2; exit 1; }}\necho LOOP_COMPLETE"));
        let config = "cli:\n  backend: custom\n  command: my-ai\n";
        let ran = machine.test().file("ralph.yml", config).run().exits(1);
        ran.shows("it needs a terminal: try `--pty`");
        machine.test().file("ralph.yml", config).args(&["--pty"]).run().complete();
    }
}

// Permissions

#[test]
fn the_permissions_of_an_agent_are_a_setting() {
    let args = |agent: &str, config: &str| {
        let machine = Machine::new().with(agent);
        machine.test().file("ralph.yml", config).args(&["--agent", agent]).run().complete();
        machine.noted(agent, "args").replace('\n', " ")
    };
    let codex = args("codex", "max_stalled: 3\n");
    assert!(codex.contains("--sandbox workspace-write --add-dir /"), "codex is safe unless told otherwise: {codex}");
    assert!(codex.contains("/work/.git ") && !codex.contains("bypass"), "{codex}");
    let codex = args("codex", "adapters: {codex: {permissions: full}}\n");
    assert!(
        codex.contains("--dangerously-bypass-approvals-and-sandbox") && !codex.contains("--sandbox workspace"),
        "{codex}"
    );
    for (agent, full, safe) in [
        ("claude", "--dangerously-skip-permissions", "--permission-mode acceptEdits"),
        ("gemini", "--approval-mode yolo", "--approval-mode auto_edit"),
        ("droid", "--skip-permissions-unsafe", "--auto medium"),
    ] {
        let is_safe = args(agent, &format!("adapters: {{{agent}: {{permissions: safe}}}}\n"));
        assert!(is_safe.contains(safe) && !is_safe.contains(full), "{agent}: {is_safe}");
        let is_full = args(agent, "max_stalled: 3\n");
        assert!(is_full.contains(full) && !is_full.contains(safe), "{agent}: {is_full}");
    }
}

#[test]
fn an_agent_without_a_safe_mode_is_not_run_in_another() {
    let machine = Machine::new().with("goose");
    let config = "adapters: {goose: {permissions: safe}}\n";
    let ran = machine.test().file("ralph.yml", config).args(&["--agent", "goose"]).run().exits(2);
    ran.complains("agent `goose` has no safe mode");
    assert!(!machine.was_called("goose"));
}

#[test]
fn claude_works_on_pipes_because_the_evidence_says_that_it_needs_no_terminal() {
    let machine = Machine::new().with("claude");
    machine.test().run().complete();
    assert!(!machine.directory.path().join("claude.tty").exists());
}

// Overrides

#[test]
fn command_args_extra_args_and_env_of_any_agent_can_be_replaced() {
    let machine = Machine::new().with("our-codex");
    let config = "adapters:\n  codex:\n    command: our-codex --first\n    args: [run]\n    extra_args: [--more]\n    \
                  env:\n      EXTRA: yes please\n";
    machine.test().file("ralph.yml", config).args(&["--agent", "codex"]).run().complete();
    let args = machine.noted("our-codex", "args");
    assert!(args.starts_with("--first\nrun\n"), "{args}");
    assert!(args.ends_with("--more\n-\n"), "{args}");
    assert!(machine.noted("our-codex", "env").trim_end().ends_with("yes please"));
}

#[test]
fn a_section_for_an_agent_that_nobody_knows_is_told() {
    let machine = Machine::new().with("claude");
    let test = machine.test().file("ralph.yml", "adapters:\n  cluade:\n    enabled: false\n");
    test.run().complete().shows("`adapters.cluade`").shows("did you mean `claude`?");
}

#[test]
fn an_agent_of_the_project_is_known_by_name_and_told() {
    let machine = Machine::new().with("house-ai");
    let house =
        "id: house\nname: House\ncommands: [missing-ai, house-ai]\ndialect: plain\narguments:\n  headless: [--alone]\n";
    let test = machine.test().file(".ralph/agents/house.yml", house).args(&["--agent", "house"]);
    let ran = test.run().complete().shows("agent `house` is defined by");
    assert_eq!(agent_of(&ran), "house");
    assert_eq!(machine.noted("house-ai", "args"), "--alone\n");
}

#[test]
fn an_agent_of_the_user_gives_way_to_the_projects() {
    let machine = Machine::new().with("users-ai").with("projects-ai");
    let of = |command: &str| format!("id: house\nname: House\ncommands: [{command}]\ndialect: plain\n");
    let own = machine.directory.path().join("home/.config/ralph/agents");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("house.yml"), of("users-ai")).unwrap();
    machine.test().args(&["--agent", "house"]).run().complete();
    assert!(machine.was_called("users-ai"));
    let test = machine.test().file(".ralph/agents/house.yml", of("projects-ai"));
    test.args(&["--agent", "house"]).run().complete();
    assert!(machine.was_called("projects-ai"));
}

#[test]
fn a_wish_that_the_agent_has_no_words_for_is_an_error_before_the_start() {
    let machine = Machine::new().with("amp");
    machine
        .test()
        .args(&["--agent", "amp", "--model", "big"])
        .run()
        .exits(2)
        .complains("agent `amp` does not support `--model`");
    assert!(!machine.was_called("amp"));
}

// Looking

#[test]
fn a_dry_run_shows_the_command_and_the_origins_and_starts_nothing() {
    let machine = Machine::new().with("claude");
    let test = machine.test().file("ralph.yml", "event_loop:\n  max_iterations: 7\n").args(&["--dry-run"]);
    let ran = test.run().complete();
    assert!(!machine.was_called("claude"));
    assert!(!ran.test.workspace().join(".ralph").exists(), "not even a journal");
    ran.shows("claude -p --output-format stream-json --verbose --dangerously-skip-permissions")
        .shows("claude (Claude Code), built in")
        .shows("event_loop.max_iterations            1")
        .shows("`-n`")
        .shows("command line, 12 bytes");
}

fn agents(machine: &Machine, args: &[&str]) -> String {
    let home = machine.directory.path().join("home");
    let output = Command::new(env!("CARGO_BIN_EXE_ralph"))
        .arg("agents")
        .args(args)
        .current_dir(&home)
        .env_clear()
        .env("PATH", machine.bin())
        .env("HOME", &home)
        .env("CODEX_API_KEY", "dummy")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_table_tells_what_is_installed_and_what_auto_takes() {
    let machine = Machine::new().with("codex").with("pi").script("gemini", "exit 3");
    let table: serde_json::Value = serde_json::from_str(&agents(&machine, &["--json"])).unwrap();
    let of = |id: &str| table.as_array().unwrap().iter().find(|agent| agent["id"] == id).unwrap();
    assert_eq!(table.as_array().unwrap().len(), 20);
    assert_eq!(of("codex")["version"], "1.2.3");
    assert_eq!(of("codex")["auth"], "seen");
    assert_eq!(of("codex")["auto"]["taken"], true);
    assert_eq!(of("codex")["path"], machine.bin().join("codex").to_str().unwrap());
    assert_eq!(of("pi")["auto"]["reason"], "`codex` is picked first");
    assert_eq!(of("pi")["auth"], "unknown");
    assert_eq!(of("gemini")["state"], "broken");
    assert_eq!(of("claude")["state"], "missing");
    assert_eq!(of("demo")["auto"]["reason"], "only by name");
    let lines = agents(&machine, &[]);
    assert_eq!(lines.lines().take_while(|line| !line.is_empty()).count(), 21, "{lines}");
    assert!(lines.starts_with("AGENT "), "{lines}");
}

#[test]
fn one_agent_is_shown_with_its_command_line_ready_to_paste() {
    let machine = Machine::new().with("codex");
    let page = agents(&machine, &["show", "codex", "it's", "done"]);
    assert!(page.contains("printf %s \"it's done\" | codex exec"), "{page}");
    assert!(page.contains("resume SESSION -"), "{page}");
    let shown: serde_json::Value = serde_json::from_str(&agents(&machine, &["show", "codex", "--json"])).unwrap();
    assert_eq!(shown["definition"]["auth"]["variables"][0], "CODEX_API_KEY");
}

#[test]
fn the_line_that_is_shown_really_works_in_a_shell() {
    let machine = Machine::new().with("codex");
    let shown: serde_json::Value =
        serde_json::from_str(&agents(&machine, &["show", "codex", "--json", "say \"$HOME\" & 'go'"])).unwrap();
    let line = shown["commands"]["new"].as_str().unwrap();
    let output = Command::new("/bin/sh").args(["-c", line]).env("PATH", machine.bin()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(machine.noted("codex", "stdin"), "say \"$HOME\" & 'go'");
}
