//! Logins, limits, waits and what resume makes of them.

use std::time::{Duration, Instant};

use fake_agent::{Script, says, silent};
use rustix::process::Signal;
use serde_json::json;

use super::support::Test;
use super::{DONE, claude};

const REFUSED: &str = "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"max_retries\":10,\
                       \"retry_delay_ms\":500,\"error_status\":401,\"error\":\"authentication_failed\"}\n";
const OWN: &str = "dialect: claude\nauth: {login: 'run `own login`'}\n";

#[test]
fn a_refused_login_ends_the_run_at_once_and_says_what_to_do() {
    let script = || claude(Script::new().iteration(silent().prints_raw(REFUSED).hangs()));
    let start = Instant::now();
    let test = Test::new().named_agent("own", script(), OWN).args(&["--agent", "own"]);
    let ran = test.run().exits(4).after_iterations(1).shows("the login was refused").shows("run `own login`");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(ran.facts("iteration_end")[0]["class"], "auth");
    let test = Test::new().named_agent("own", script(), OWN).named_agent("other", says(DONE), "dialect: plain\n");
    test.args(&["--agent", "own", "--fallback", "other"]).run().complete().shows("`other` takes over");
}

#[test]
fn a_login_that_worked_before_is_given_up_at_the_second_refusal() {
    let once = claude(Script::new().iteration(says("Working.").prints_raw(REFUSED).sleeps(300).says(DONE)));
    Test::new().named_agent("own", once, OWN).args(&["--agent", "own"]).run().complete();
    let twice = claude(Script::new().iteration(says("Working.").prints_raw(REFUSED).prints_raw(REFUSED).hangs()));
    Test::new().named_agent("own", twice, OWN).args(&["--agent", "own"]).run().exits(4);
}

#[test]
fn a_limit_that_is_already_passed_refuses_to_resume() {
    let script = claude(Script::new().counting().iteration(says("More.").uses(900_000, 100_000).appends_to("x", ".")));
    let ran = Test::new()
        .file("ralph.yml", "pricing:\n  big: {input: 2, output: 10}\n")
        .agent(script)
        .args(&["--transcript", "claude", "-n", "2"])
        .run()
        .exits(5);
    for (limit, message) in
        [(["--max-cost", "1"], "limit reached: $1.00"), (["--max-tokens", "5"], "limit reached: 5 tokens")]
    {
        let output = ran.test.tool().args(["resume", "-n", "9"]).args(limit).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(message) && said.contains("raise the limit"), "{said}");
    }
    assert_eq!(ran.recorded().len(), 2, "no iteration was started");
}

#[test]
fn a_retry_neither_spends_the_allowed_wait_nor_makes_the_next_wait_longer() {
    let limited = silent().complains("Error: 429 Too Many Requests").exits(1);
    let script = Script::new()
        .counting()
        .iteration(limited.clone())
        .iteration(limited.clone())
        .iteration(limited)
        .iteration(says(DONE));
    let running = Test::new().file("ralph.yml", "limits: {max_wait: 400s}\n").agent(script).start();
    for wait in 1..=3 {
        running.until("it waits", |running| running.journal().matches("\"verdict\":\"wait\"").count() == wait);
        running.tells(&["retry"]);
    }
    let ran = running.wait().complete();
    let waits: Vec<_> = ran.facts("decision").iter().filter_map(|fact| fact["wait_ms"].as_u64()).collect();
    assert_eq!(waits, [300_000, 300_000, 300_000]);
}

#[test]
fn resume_repeats_the_interrupted_iteration_and_never_a_finished_one() {
    let script = Script::new()
        .counting()
        .iteration(says("One."))
        .iteration(says("Two."))
        .iteration(says("Three.").hangs())
        .iteration(says(DONE));
    let running = Test::new().agent(script).start();
    running.until("the third runs", |running| running.journal().contains("Three."));
    running.signal(Signal::INT);
    let ran = running.wait().dies_by(2).after_iterations(3);
    let receipt = &ran.facts("iteration_end")[2];
    assert_eq!((&receipt["outcome"], &receipt["class"]), (&json!("interrupted"), &json!(null)));
    let ran = ran.does_not_show("failed");
    // Resumed, and stopped before the iteration starts: twice.
    for _ in 0..2 {
        let limited = ran.test.tool().args(["resume", "--max-time", "1ms"]).output().unwrap();
        assert_ne!(limited.status.code(), Some(0));
    }
    let output = ran.test.tool().args(["resume", "--max-time", "1h"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("resumed after 2 iterations"), "{said}");
    assert_eq!(ran.facts("run_end").last().unwrap()["iterations"], 3);
}

#[test]
fn calls_an_hour_are_remembered_by_resume() {
    let ran = Test::new()
        .file("ralph.yml", "limits: {calls_per_hour: 2}\n")
        .agent(says("More."))
        .args(&["-n", "2"])
        .run()
        .exits(5);
    let output = ran.test.tool().args(["resume", "-n", "9", "--max-time", "60s"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("limit reached: 2 calls per hour"), "{said}");
    assert_eq!(ran.recorded().len(), 2);
}

#[test]
fn a_startup_limit_applies_to_a_plain_agent_only_when_it_is_set() {
    let slow = || Script::new().iteration(silent().sleeps(2500).says(DONE));
    let test = Test::new().file("ralph.yml", "limits: {startup_timeout: 1s}\n").agent(slow()).args(&["-n", "1"]);
    test.run().exits(1).shows("no output within");
    Test::new().agent(slow()).run().complete();
}

#[test]
fn an_rtf1_error_may_tell_its_reset_in_seconds() {
    let at = jiff::Timestamp::now().as_second() + 100;
    let error = format!(
        "@@RALPH@@ {{\"type\":\"meta\",\"meta\":{{\"kind\":\"error\",\"class\":\"rate_limit\",\"message\":\"full\",\
         \"resets_at\":{at}}}}}\n"
    );
    let ran = Test::new()
        .file("ralph.yml", "limits: {max_wait: 10s}\n")
        .agent(silent().prints_raw(error).exits(1))
        .args(&["--transcript", "rtf1"])
        .run()
        .exits(7);
    let reason = ran.facts("run_end")[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("the limit ends in 2m"), "100 s and a margin of 30 s: {reason}");
    assert!(reason.contains("`limits.max_wait` allows 10s in all"), "{reason}");
}

#[test]
fn an_iteration_limit_after_a_failure_is_a_failure() {
    let ran = Test::new().agent(says("No key.\n<<<RALPHEX:TASK_FAILED>>>")).args(&["-n", "1"]).run().exits(1);
    assert_eq!(ran.facts("iteration_end")[0]["outcome"], "failed");
    Test::new().command("printf '\\n  \\n'").args(&["-n", "1"]).run().exits(1).shows("said nothing");
}

/// A wall clock that runs ahead of the other one by as many seconds as a file says, as after a laptop slept.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time), seconds = 0;
    const char *path = getenv("SLEPT");
    FILE *file = clock == CLOCK_REALTIME && path ? fopen(path, "r") : NULL;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1) time->tv_sec += seconds;
        fclose(file);
    }
    return result;
}
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_wait_ends_by_the_wall_clock_when_the_machine_slept() {
    let limited = r#"@@RALPH@@ {"type":"meta","meta":{"kind":"error","class":"rate_limit","message":"limit","retry_after_ms":3600000}}"#;
    let agent = format!("[ -e limited ] && echo LOOP_COMPLETE && exit\ntouch limited\necho '{limited}'\nexit 1\n");
    let test = Test::new().file("clock.c", CLOCK).file("agent.sh", agent);
    let (library, slept) = (test.workspace().join("clock.so"), test.workspace().join("slept"));
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &test.workspace().join("clock.c")])
        .status();
    assert!(built.unwrap().success());
    let test = test.env("LD_PRELOAD", library.to_str().unwrap()).env("SLEPT", slept.to_str().unwrap());
    let running = test.command("sh agent.sh").args(&["--transcript", "rtf1"]).start();
    running.until("it waits", |running| running.journal().contains("\"wait_ms\":36"));
    // The record comes before the wait begins.
    std::thread::sleep(std::time::Duration::from_secs(1));
    std::fs::write(&slept, "5000").unwrap();
    let start = std::time::Instant::now();
    running.wait().complete();
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}
