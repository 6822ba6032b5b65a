//! Nothing in the workspace can turn against its user: a hostile repository, a hostile or clumsy agent.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/commands.rs"]
mod commands;
mod support;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use fake_agent::{Script, says};
use support::{Test, run_directory};

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

/// The binary, as an agent would call it.
const RALPH: &str = env!("CARGO_BIN_EXE_ralph");

#[test]
fn a_run_leaves_nothing_of_its_own_in_the_workspace() {
    let ran = Test::new().agent(says(DONE)).run().complete();
    let names: Vec<_> =
        std::fs::read_dir(ran.test.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.is_empty(), "{names:?}");
    let printed = ran.test.tool().arg("path").output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(Path::new(printed.trim_end()), run_directory(&ran.test.workspace()).unwrap());
}

#[test]
fn an_agent_cannot_give_its_own_run_orders_but_may_publish() {
    let agent = format!(
        "sh -c 'cat >/dev/null; for order in pause continue \"stop --now\" retry \"hint x\" \"limit -n 500\"; do \
         {RALPH} $order 2>>refused; env -u RALPH_CONTROL {RALPH} $order 2>>refused; done; \
         (setsid env -i PATH=$PATH RALPH_STATE_DIR=$RALPH_STATE_DIR {RALPH} pause 2>>refused); \
         {RALPH} emit build.done ok && echo LOOP_COMPLETE'"
    );
    let ran = Test::new().command(&agent).args(&["-n", "1"]).run().complete().after_iterations(1);
    let refused = std::fs::read_to_string(ran.test.workspace().join("refused")).unwrap();
    assert_eq!(refused.matches("an agent cannot give its own run orders").count(), 13, "{refused}");
    assert_eq!(ran.facts("control").len(), 0, "no order was taken");
    assert_eq!(ran.facts("published").len(), 1);
}

#[test]
fn an_order_that_was_accepted_survives_kill_9() {
    let script = Script::new().counting().iteration(says("One.").hangs()).iteration(says(DONE));
    let running = Test::new().agent(script).start();
    running.until("it runs", |running| running.journal().contains("One."));
    running.tells(&["hint", "KEEPME"]);
    running.signal(rustix::process::Signal::KILL);
    let test = running.wait().dies_by(9).test;
    let output = test.tool().arg("resume").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let recorded = Script::recorded(&test.workspace().parent().unwrap().join("agent"));
    assert!(
        recorded.iter().any(|start| start.stdin.as_ref().unwrap().contains("a person says: KEEPME")),
        "{recorded:?}"
    );
}

#[test]
fn files_that_never_end_do_not_hold_ralph_up() {
    for name in ["PROMPT.md", "ralph.yml", ".ralphrc", ".ralph/prompts/plan.md"] {
        for kind in ["pipe", "zero"] {
            let test = Test::new().no_prompt();
            let test = if name == "PROMPT.md" { test } else { test.prompt("do it") };
            let test = if name.contains("plan") { test.mode("plan") } else { test };
            let path = test.workspace().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if kind == "pipe" {
                assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            } else {
                symlink("/dev/zero", &path).unwrap();
            }
            let start = Instant::now();
            let ran = test.agent(says(DONE)).args(&["-n", "1"]).run();
            assert!(start.elapsed() < Duration::from_secs(20), "{name} {kind}");
            if name != ".ralphrc" {
                ran.exits(2).complains(name.rsplit('/').next().unwrap());
            }
        }
    }
}

#[test]
fn a_prompt_that_is_a_link_out_of_the_workspace_is_refused_unless_it_was_named() {
    let test = Test::new().no_prompt().agent(says(DONE));
    let outside = test.workspace().parent().unwrap().join("private.md");
    std::fs::write(&outside, "PRIVATE words").unwrap();
    symlink(&outside, test.workspace().join("PROMPT.md")).unwrap();
    let ran = test.run().exits(2).complains("it is a link to").complains("-P FILE");
    assert!(ran.recorded().is_empty());
    let test = Test::new().no_prompt().agent(says(DONE)).args(&["-P", "PROMPT.md"]);
    std::fs::write(test.workspace().parent().unwrap().join("private.md"), "Named words").unwrap();
    symlink("../private.md", test.workspace().join("PROMPT.md")).unwrap();
    assert!(test.run().complete().heard(0).contains("Named words"));
}

#[test]
fn shell_completion_prints_only_ids() {
    let ran = Test::new().agent(says(DONE)).run().complete();
    let runs = support::store(&ran.test.workspace()).path().join("runs");
    let evil = runs.join("$(touch pwned)");
    std::fs::create_dir(&evil).unwrap();
    std::fs::write(evil.join("journal.jsonl"), "").unwrap();
    let mut summary =
        std::fs::read_to_string(run_directory(&ran.test.workspace()).unwrap().join("summary.json")).unwrap();
    let id = run_directory(&ran.test.workspace()).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    summary = summary.replace(&id, "$(touch pwned)");
    std::fs::write(runs.join(&id).join("summary.json"), summary).unwrap();
    let said = ran.test.tool().args(["runs", "--ids"]).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), format!("{id}\n"));
}

#[test]
fn an_agent_that_edits_every_file_it_finds_does_not_end_the_run() {
    let agent = "sh -c 'cat >/dev/null; grep -rl . . | xargs sed -i s/a/b/; echo LOOP_COMPLETE'";
    Test::new().file("notes.txt", "a word").command(agent).run().complete();
}

/// Files of a repository that leave a mark as soon as anything of them runs.
fn booby_trapped(configuration: &str) -> Test {
    use std::os::unix::fs::PermissionsExt as _;
    let mark = "touch \"$RALPH_TEST_MARKS/pwned-$(basename \"$0\")\"";
    let program = format!("#!/bin/sh\n{mark}\necho 1.2.3\n");
    let hooks = "driver_name() { :; }\ndriver_display_name() { :; }\ndriver_cli_binary() { echo sh; }\n\
                 driver_valid_tools() { :; }\ndriver_build_command() { :; }\n";
    let functions =
        "AGENT_CLI=sh\nagent_invoke() { :; }\nagent_extract_response() { :; }\nagent_format_display() { :; }\n";
    let test = Test::new()
        .file("drivers/evil.sh", format!("{mark}\n{hooks}"))
        .file(".ralph/agents/evil.sh", format!("{mark}\n{functions}"))
        .file(".ralph/agents/trap.yml", "id: trap\nname: Trap\ndialect: plain\ncommands: [./program]\n")
        .file(
            ".ralph/agents/codex.yml",
            "id: codex\nname: Codex\ndialect: plain\ncommands: [/bin/sh]\nversion: {args: [-c, ./program]}\n",
        )
        .file("PROMPT.md", "Do it.")
        .file("ralph.yml", configuration);
    for name in ["program", "claude", "gemini", "git", "node", "bash", "sh", "codex"] {
        let path = test.workspace().join(name);
        std::fs::write(&path, &program).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    // A program of the user's own whose interpreter is looked up on `PATH`.
    let bin = test.workspace().parent().unwrap().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("amp"), "#!/usr/bin/env node\n").unwrap();
    std::fs::set_permissions(bin.join("amp"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(".:{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let marks = test.workspace().parent().unwrap().join("marks");
    std::fs::create_dir(&marks).unwrap();
    test.env("PATH", &path).env("RALPH_TEST_MARKS", marks.to_str().unwrap())
}

fn marks(test: &Test) -> Vec<String> {
    let marks = std::fs::read_dir(test.workspace().parent().unwrap().join("marks")).unwrap();
    marks.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn looking_never_runs_anything_of_the_repository() {
    let commands: [&[&str]; 16] = [
        &["agents"],
        &["agents", "--json"],
        &["agents", "show", "trap"],
        &["agents", "show", "claude"],
        &["doctor"],
        &["doctor", "trap"],
        &["doctor", "driver:evil"],
        &["config"],
        &["hats"],
        &["runs"],
        &["show"],
        &["logs"],
        &["diff"],
        &["run", "--dry-run"],
        &["completions", "bash"],
        &["--help"],
    ];
    for configuration in [
        "",
        "cli: {backend: 'driver:evil'}\n",
        "cli: {backend: 'script:evil'}\n",
        "cli: {backend: trap}\n",
        "cli: {backend: custom, command: ./program}\nverify: [./program]\nnotify: {command: ./program}\n",
        "cli: {backend: claude}\nadapters: {claude: {command: ./program}, amp: {env: {PATH: '.:/usr/bin:/bin'}}}\n",
        "cli: {backend: amp}\ntranscript: {command: ./program}\nfallback: [trap, 'driver:evil']\n",
    ] {
        let test = booby_trapped(configuration);
        for command in commands {
            let said = test.tool().args(command).output().unwrap();
            assert_eq!(marks(&test), Vec::<String>::new(), "{command:?} with {configuration:?}: {said:?}");
        }
        std::fs::remove_file(test.workspace().join("ralph.yml")).unwrap();
        let said = test.tool().arg("init").output().unwrap();
        assert_eq!(marks(&test), Vec::<String>::new(), "init: {said:?}");
    }
    // The trap works: a run does execute it.
    let test = booby_trapped("cli: {backend: trap}\n");
    let _ = test.tool().args(["run", "-n", "1"]).output().unwrap();
    assert!(!marks(&test).is_empty());
}

#[test]
fn what_was_not_examined_is_said_and_the_doctor_runs_its_checks_when_asked() {
    let test = booby_trapped("cli: {backend: 'driver:evil'}\n");
    let said = test.tool().arg("doctor").output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(
        text.contains("not checked, because it would run code of this repository; `ralph doctor --plugins` checks it"),
        "{text}"
    );
    assert_eq!(said.status.code(), Some(0), "what is not known is not wrong: {text}");
    for shell in ["bash", "sh"] {
        std::fs::remove_file(test.workspace().join(shell)).unwrap();
    }
    let said = test.tool().args(["doctor", "--plugins"]).output().unwrap();
    assert!(marks(&test).iter().any(|mark| mark.starts_with("pwned-ralph-bridge")), "{:?} {said:?}", marks(&test));
}

#[test]
fn trust_lists_everything_that_would_run_in_one_question() {
    let configuration = "trust: ask\ncli: {backend: trap}\nverify: [./check.sh]\nnotify: {command: ./tell}\n\
                         transcript: {command: ./filter}\nfallback: ['driver:evil', claude]\n\
                         adapters: {claude: {command: ./program, env: {LD_PRELOAD: ./evil.so}}}\n";
    let ran = booby_trapped(configuration).args(&["-n", "1"]).run().exits(2);
    for item in [
        "`verify`: `./check.sh`",
        "`notify.command`: `",
        "`transcript.command`: `",
        "agent file `",
        "program `",
        "driver `drivers/evil.sh`",
        "`adapters.claude.command`",
        "`adapters.claude.env`: `LD_PRELOAD`",
    ] {
        assert!(ran.stderr().contains(item), "no {item} in {}", ran.stderr());
    }
    assert_eq!(marks(&ran.test), Vec::<String>::new());
    // What the user says is not the repository's.
    let ran = booby_trapped("trust: ask\n").args(&["--agent-cmd", "/bin/echo LOOP_COMPLETE"]).run();
    ran.complete();
    // A bare name that is found in the workspace is.
    let ran = booby_trapped("trust: ask\n").args(&["--agent-cmd", "program"]).run().exits(2);
    assert!(ran.stderr().contains("new: program `"), "{}", ran.stderr());
}

#[test]
fn a_saved_plan_that_was_changed_needs_consent_again() {
    let test = Test::new().file("ralph.yml", "trust: ask\n").agent(says("One."));
    let ran = test.args(&["-n", "1", "--verify", "touch checked"]).run().exits(5);
    let resume = |count: &str| ran.test.tool().args(["resume", "-n", count]).output().unwrap();
    let resumed = resume("2");
    assert_eq!(resumed.status.code(), Some(5), "the user's own words need no question: {resumed:?}");
    let plan = run_directory(&ran.test.workspace()).unwrap().join("plan.json");
    let text = std::fs::read_to_string(&plan).unwrap();
    for changed in [
        text.replace("touch checked", "touch pwned"),
        text.replace("touch checked", "touch pwned").replace("\"ask\"", "\"always\""),
    ] {
        std::fs::write(&plan, changed).unwrap();
        let resumed = resume("3");
        let said = String::from_utf8_lossy(&resumed.stderr);
        assert_eq!(resumed.status.code(), Some(2), "{said}");
        assert!(said.contains("changed: `verify`: `touch pwned`"), "{said}");
    }
}

#[test]
fn plug_ins_of_another_user_are_ignored() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make files of another user");
        return;
    }
    let test = booby_trapped("");
    std::os::unix::fs::chown(test.workspace().join("drivers/evil.sh"), Some(12345), None).unwrap();
    let said = test.tool().arg("agents").output().unwrap();
    let warned = String::from_utf8(said.stderr).unwrap();
    assert!(warned.contains("evil.sh` belongs to another user and is ignored"), "{warned}");
    let said = test.tool().args(["run", "x", "--agent", "driver:evil"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert_eq!(marks(&test), Vec::<String>::new());
}

/// What a terminal would obey, in the forms that a file or a program can give it.
const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}";

fn is_harmless(what: &str, output: &std::process::Output) {
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(bytes);
        let obeyed = text
            .chars()
            .find(|character| (character.is_control() && !"\n\t".contains(*character)) || *character == '\u{202e}');
        assert_eq!(obeyed, None, "{what}: {text:?}");
    }
}

#[test]
fn nothing_that_ralph_prints_controls_the_terminal() {
    let config = "notify:\n  command: [sh, -c, \"printf '\\\\033]0;owned\\\\007' >&2; exit 1\"]\n";
    let agent = format!("id: evil\nname: \"Evil {}\"\n{}: 1\n", "\\e]0;owned\\a", "\"bad\\e[2Jkey\"");
    let test = Test::new()
        .file("ralph.yml", config)
        .file(".ralph/agents/evil.yml", agent)
        .file(format!(".ralph/agents/{ESCAPES}.yml").as_str(), "id: [")
        .file(format!(".ralph/drivers/{ESCAPES}.sh").as_str(), "driver_name() { :; }")
        .stands_for("codex", "printf '9.9.9\\033]0;owned\\007\\n'");
    let run = |args: &[&str]| test.tool().args(args).output().unwrap();
    for args in
        [&["agents"][..], &["agents", "show", "evil"], &["doctor"], &["config"], &["hats"], &["runs"], &[ESCAPES]]
    {
        is_harmless(&args.join(" "), &run(args));
    }
    for args in [&["run", "-P", ESCAPES][..], &["run", ESCAPES, "--agent", ESCAPES], &["config", "get", ESCAPES]] {
        let output = run(args);
        is_harmless(&args.join(" "), &output);
        assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("owned"), "{args:?}");
    }
    let ran = test.agent(says(DONE)).run();
    is_harmless("run", &ran.output);
    // A damaged journal: what stands in the place of names is shown by every command that looks back.
    let path = run_directory(&ran.test.workspace()).unwrap();
    let journal = std::fs::read_to_string(path.join("journal.jsonl")).unwrap();
    let escaped = "\\u001b]0;owned\\u0007\\u009b31m";
    std::fs::write(path.join("journal.jsonl"), journal.replace("\"agent\":\"", &format!("\"agent\":\"{escaped}")))
        .unwrap();
    std::fs::remove_file(path.join("summary.json")).unwrap();
    for args in [
        &["runs"][..],
        &["show"],
        &["show", "--markdown"],
        &["logs"],
        &["logs", "--output", "json"],
        &["stats"],
        &["diff"],
        &["logs", ESCAPES],
    ] {
        is_harmless(&args.join(" "), &ran.test.tool().args(args).output().unwrap());
    }
}

/// An agent that changes the journal of its own run, which is in the workspace here.
fn meddling(what: &str) -> String {
    format!(
        "sh -c 'cat >/dev/null; sleep 1.2; for journal in state/projects/*/runs/*/journal.jsonl; do {what}; done; sleep 1.2; echo LOOP_COMPLETE'"
    )
}

#[test]
fn the_journal_of_a_running_run_is_watched_and_restored() {
    let removed = "removed or replaced the journal";
    for (what, expected) in [
        ("sed -i s/work/play/ $journal", removed),
        ("rm -r $(dirname $journal)", removed),
        ("rm -r state", removed),
        ("rm -r state; mkdir state; chmod 500 state", removed),
        ("rm $journal; mkfifo $journal", removed),
        ("rm $journal; mkdir -p $journal/sub", removed),
        ("mv $journal away; ln -s $PWD/away $journal", removed),
        ("mv $(dirname $journal) away; ln -s $PWD/away $(dirname $journal)", ""),
        ("echo rubbish >> $journal", "added 8 bytes to the journal"),
        (": > $journal", "bytes off the journal of this run"),
        ("printf XXXX | dd of=$journal bs=1 seek=40 conv=notrunc 2>/dev/null", "overwrote the journal"),
        ("chmod -R 000 $(dirname $journal)", ""),
    ] {
        let test = Test::new().file("ralph.yml", "journal: {directory: state}\n").command(&meddling(what));
        let ran = test.args(&["-n", "1"]).run().complete();
        let journals = std::process::Command::new("sh")
            .args(["-c", "cat state/projects/*/runs/*/journal.jsonl"])
            .current_dir(ran.test.workspace())
            .output()
            .unwrap();
        let text = String::from_utf8(journals.stdout).unwrap();
        assert!(ran.stdout().contains("inside of the workspace"), "{}", ran.stdout());
        assert!(!text.lines().any(|line| line == "rubbish"), "{what}: {text}");
        assert!(text.contains(expected), "{what}: {text}");
        assert!(ran.stdout().contains("details: `ralph show"), "the view follows: {}", ran.stdout());
        assert_eq!(ran.stdout().matches("inside of the workspace").count(), 1, "{what}: {}", ran.stdout());
        let numbers: Vec<_> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "every record, once: {what}: {text}");
        assert!(text.contains("\"run_start\"") && text.contains("\"run_end\""), "{what}: {text}");
    }
}

#[test]
fn what_an_agent_plants_among_the_files_of_its_run_is_neither_followed_nor_fatal() {
    for plant in [
        "ln -s $PWD/victim $run/raw/2.stdout",
        "ln $PWD/victim $run/raw/2.stdout",
        "mkfifo $run/raw/2.stdout",
        "mkdir $run/raw/2.stderr",
        "ln -s $PWD/victim $run/prompts/2.md",
        "ln -s $PWD/victim $run/prompts/2.md.new",
        "ln -s $PWD/victim $run/summary.json.new",
        "rm -r $run/raw; ln -s $PWD/private $run/raw",
        "rm -r $run/raw; echo file > $run/raw",
        "rm -r $run/raw $run/prompts",
        "rm -r $run; ln -s $PWD/private $run",
        "rm -r state",
        "chmod -R a-w state",
        "echo {} > $run/plan.json",
        "rm $run/plan.json; ln -s $PWD/victim $run/plan.json",
        "grep -rl working . | xargs sed -i s/working/sleeping/",
    ] {
        let agent = format!(
            "sh -c 'cat >/dev/null; echo working; [ $RALPH_ITERATION = 1 ] || exit 0; for run in state/projects/*/runs/*; do {plant}; done'"
        );
        let test = Test::new().repository().file("ralph.yml", "journal: {directory: state}\n");
        let test = test.file("victim", "precious\n").file("private/kept", "kept\n").command(&agent);
        let ran = test.args(&["-n", "3"]).run();
        let victim = std::fs::read_to_string(ran.test.workspace().join("victim")).unwrap();
        assert!(victim.starts_with("precious") || plant.contains("sed"), "{plant}: {victim}");
        assert_eq!(victim.lines().count(), 1, "{plant}: {victim}");
        let private = std::fs::read_dir(ran.test.workspace().join("private")).unwrap().count();
        assert_eq!(private, 1, "nothing was written through the link: {plant}");
        let ran = ran.exits(5);
        let resumed = ran.test.tool().args(["resume", "-n", "4"]).output().unwrap();
        let said = String::from_utf8_lossy(&resumed.stdout);
        assert_eq!(resumed.status.code(), Some(5), "{plant}: {said} {}", String::from_utf8_lossy(&resumed.stderr));
        let is_loud = ran.stdout().contains("another process");
        assert!(is_loud || plant.contains(".new") || plant.contains("a-w"), "{plant}: {}", ran.stdout());
    }
}

#[test]
fn a_test_notification_needs_the_same_consent_as_a_run() {
    let test = Test::new().file("ralph.yml", "trust: ask\nnotify: {command: 'touch pwned'}\n");
    let said = test.tool().args(["notify", "--test"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(!test.workspace().join("pwned").exists());
}

#[test]
fn configured_secrets_are_not_shown() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let config = format!("adapters: {{custom: {{env: {{A_TOKEN: {secret}}}}}}}\n");
    let test = Test::new().file("ralph.yml", config);
    for command in [&["config"][..], &["run", "x", "--agent-cmd", "cat", "--dry-run"]] {
        let said = test.tool().args(command).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success() && !text.contains(secret), "{command:?}: {text}");
    }
}

#[test]
fn a_socket_that_the_agent_removes_is_there_again_in_the_next_iteration() {
    let agent = "sh -c 'cat >/dev/null; [ $RALPH_ITERATION = 1 ] && rm $RALPH_CONTROL || sleep 20'";
    let running = Test::new().command(agent).args(&["-n", "3"]).start();
    running.until("the second iteration", |running| running.journal().matches("iteration_start").count() == 2);
    running.tells(&["stop", "--now"]);
    running.wait().exits(130);
}

#[test]
fn links_that_the_user_made_in_the_state_directory_stay() {
    let ran = Test::new().agent(says(DONE)).run().complete();
    let project = support::store(&ran.test.workspace()).path().to_owned();
    let elsewhere = ran.test.workspace().parent().unwrap().join("elsewhere");
    std::fs::rename(&project, &elsewhere).unwrap();
    symlink(&elsewhere, &project).unwrap();
    let ran = ran.test.run().complete();
    assert!(project.is_symlink());
    let said = ran.test.tool().args(["runs", "--ids"]).output().unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap().lines().count(), 2);
}
