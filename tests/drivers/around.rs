//! What stands around a driver: consent, a dry run, its loop's configuration taken over, a stop, an old bash.

use std::time::{Duration, Instant};

use super::support::Test;
use super::{DONE, with_codex, with_minimal};

#[test]
fn a_dry_run_shows_the_command_that_the_hooks_build() {
    let ran = with_codex(1).args(&["--dry-run"]).run().exits(0);
    let ran = ran
        .shows("not checked, because it would run code of this repository; `ralph doctor --plugins` checks it")
        .shows("the driver contract");
    assert_eq!(ran.calls(), 0, "nothing is started");
    // Who has run it here may see what it builds, until it changes.
    let ran = with_codex(1).run().complete();
    let calls = ran.calls();
    let dry = |ran: &super::support::Ran| {
        let said =
            ran.test.tool().args(["run", "Do the work.", "--agent", "driver:codex", "--dry-run"]).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    };
    let shown = dry(&ran);
    assert!(shown.contains("codex exec --json --sandbox workspace-write") && shown.contains("Do the work."), "{shown}");
    assert_eq!(ran.calls(), calls, "nothing is started");
    let path = ran.test.workspace().join(".ralph/drivers/codex.sh");
    let changed = std::fs::read_to_string(&path).unwrap() + "\ntouch pwned\n";
    std::fs::write(&path, changed).unwrap();
    assert!(dry(&ran).contains("not checked"));
    assert!(!ran.test.workspace().join("pwned").exists());
}

#[test]
fn a_person_at_a_terminal_is_asked_once_and_again_when_the_file_changes() {
    let test = with_minimal("", DONE).file("ralph.yml", "trust: ask\n");
    let state = test.workspace().join("state");
    let test = test.env("XDG_STATE_HOME", state.to_str().unwrap()).env("HOME", state.to_str().unwrap());
    let mut terminal = test.on_terminal(24, 100);
    terminal.until("Run all of it as you? [y/N]");
    terminal.types("y\n");
    let (ran, _) = terminal.wait();
    let test = ran.complete().test;
    let (ran, screen) = test.on_terminal(24, 100).wait();
    assert!(!screen.contains("[y/N]"), "it is remembered:\n{screen}");
    let test = ran.complete().test;
    let path = test.workspace().join("drivers/minimal.sh");
    let changed = std::fs::read_to_string(&path).unwrap() + "\n# changed\n";
    std::fs::write(&path, changed).unwrap();
    let mut terminal = test.on_terminal(24, 100);
    terminal.until("changed: driver `drivers/minimal.sh`");
    terminal.types("n\n");
    terminal.wait().0.exits(2);
}

#[test]
fn the_configuration_of_its_loop_becomes_a_file_of_ralphs() {
    let rc = "PLATFORM_DRIVER=codex\nMAX_CALLS_PER_HOUR=7\nCLAUDE_TIMEOUT_MINUTES=9\nSESSION_EXPIRY_HOURS=2\n";
    let test = with_codex(1).file(".ralphrc", rc);
    let said = test.tool().args(["init", "--from"]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let file = std::fs::read_to_string(test.workspace().join("ralph.yml")).unwrap();
    for expected in
        ["agent: driver:codex", "calls_per_hour: 7", ".ralphrc:2", "timeout: ", ".ralphrc:3", "session_expiry: "]
    {
        assert!(file.contains(expected), "no {expected:?} in\n{file}");
    }
    let get = |key: &str| {
        let said = test.tool().args(["config", "get", key]).output().unwrap();
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    assert_eq!((get("limits.calls_per_hour"), get("cli.backend")), ("7".into(), "driver:codex".into()));
    // The file alone is enough to find the driver.
    std::fs::remove_file(test.workspace().join(".ralphrc")).unwrap();
    let ran = test.tool().args(["run", "Do the work.", "-n", "1"]).output().unwrap();
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert!(shown.contains("agent `codex`: driver"), "{shown}");
    let nothing = Test::new().tool().args(["init", "--from"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn the_bridge_says_nothing_that_bash_3_does_not_know() {
    let source = include_str!("../../src/plugin/bash/bridge.sh");
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    for newer in [
        "mapfile",
        "readarray",
        "declare -A",
        "local -A",
        "declare -n",
        "local -n",
        "declare -g",
        "coproc",
        "|&",
        "&>>",
        "${!@}",
        "^^}",
        ",,}",
        "@Q}",
        "BASHPID",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "wait -n",
        "read -N",
        "printf '%(",
        ";;&",
        ";&",
        "globstar",
        "lastpipe",
        "-v ",
        "inherit_errexit",
    ] {
        let found = code.lines().find(|line| line.contains(newer) && !line.contains("printf -v"));
        assert_eq!(found, None, "{newer}");
    }
}

#[test]
fn a_stop_is_heard_inside_a_hook() {
    let slow = "driver_build_command() { echo begun > begun; sleep 30; }";
    let running = with_minimal(slow, DONE).start();
    running.until("the hook runs", |running| running.workspace().join("begun").exists());
    let start = Instant::now();
    running.tells(&["stop", "--now"]);
    let ran = running.wait();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(ran.facts("run_end")[0]["outcome"], "interrupted");
}

#[test]
fn the_session_of_a_call_that_failed_is_not_resumed() {
    let body = r#"case $CALLS in
1) echo '{"type":"thread.started","thread_id":"th-failed"}'
   echo '{"type":"error","message":"unexpected status 503 Service Unavailable"}'
   echo '{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable"}}'
   exit 1;;
*) echo '{"type":"thread.started","thread_id":"th-good"}'
   DONE=false; [ $CALLS -ge 3 ] && DONE=true
   echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"agent_message\",\"text\":\"step\\n---RALPH_STATUS---\\nEXIT_SIGNAL: $DONE\\n---END_RALPH_STATUS---\"}}"
   echo '{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":2}}'
   echo $CALLS > moved-$CALLS;;
esac"#;
    let test = Test::new().fixture("drivers/codex.sh", ".ralph/drivers/codex.sh").stands_for("codex", body);
    let running = test.args(&["--agent", "driver:codex"]).start();
    running.until("it waits to retry", |running| running.journal().contains("\"wait_ms\""));
    running.tells(&["retry"]);
    let ran = running.wait().complete();
    assert_eq!(ran.facts("iteration_end")[0]["class"], "overload");
    let third = ran.argv(3);
    let at = third.iter().position(|word| word == "resume").expect("a resumed session");
    assert_eq!(third[at + 1], "th-good", "{third:?}");
}

/// The largest resident size that a process had while it lived, in kB.
#[cfg(target_os = "linux")]
pub(super) fn peak_of(pid: i32) -> std::thread::JoinHandle<u64> {
    let status = format!("/proc/{pid}/status");
    std::thread::spawn(move || {
        let mut peak = 0;
        while let Ok(text) = std::fs::read_to_string(&status) {
            let Some(line) = text.lines().find(|line| line.starts_with("VmHWM")) else { break };
            peak = line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    })
}

#[cfg(target_os = "linux")]
#[test]
fn the_memory_for_a_drivers_output_does_not_grow_with_it() {
    // Long lines of JSON and of text: those that the hooks and the session id read again from the raw file.
    let flood = "text=$(head -c 1000000 /dev/zero | tr '\\0' x); \
                 for _ in $(seq 12); do echo \"{\\\"type\\\":\\\"x\\\",\\\"text\\\":\\\"$text\\\"}\"; echo \"$text\"; done; \
                 echo '{\"session_id\":\"s-1\"}'";
    let running = with_minimal("", &format!("[ $CALLS = 1 ] && {{ {flood}; }}; {DONE}")).start();
    let peak = peak_of(running.pid());
    let ran = running.wait().complete();
    let peak = peak.join().unwrap();
    assert!(peak > 0 && peak < 150_000, "{peak} kB");
    let argv = ran.argv(2);
    assert!(argv.windows(2).any(|pair| pair == ["--session", "s-1"]), "all of it was read");
}
