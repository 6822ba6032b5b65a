//! Four clocks, each with its own reason, all of which can stand still.

use std::time::{Duration, Instant};

use ralph::process::{Clocks, Exit, Output, StopReason, start};

use super::support::{patient, real_time, run, run_paused, shell, wait_for, watch};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn no_byte_within_the_start_up_time_stops_it() {
    let clocks = Clocks { startup: Some(Duration::from_secs(60)), idle: Some(HOUR), ..Clocks::default() };
    let seen = run_paused(shell("exec sleep 100"), clocks);
    assert_eq!(seen.ended.stopped, Some(StopReason::Startup));
    assert!(seen.ended.active >= Duration::from_secs(60), "{:?}", seen.ended.active);
}

#[test]
fn silence_after_the_first_byte_is_idleness() {
    let clocks = Clocks { startup: Some(HOUR), idle: Some(Duration::from_secs(600)), ..Clocks::default() };
    let seen = run_paused(shell("echo hello; exec sleep 100"), clocks);
    // On a clock that jumps the greeting may come late, but it comes before the start-up hour is over.
    assert_eq!(seen.ended.stopped, Some(StopReason::Idle));
    assert_eq!(seen.text(), "hello\n");
    assert!(seen.ended.stopped_after >= Duration::from_secs(600), "{:?}", seen.ended);
}

#[test]
fn without_a_start_up_limit_idleness_counts_from_the_start() {
    let clocks = Clocks { idle: Some(Duration::from_secs(600)), ..Clocks::default() };
    assert_eq!(run_paused(shell("exec sleep 100"), clocks).ended.stopped, Some(StopReason::Idle));
}

#[test]
fn a_silent_tree_that_works_is_not_idle() {
    // The work is done by a grandchild; the agent itself only waits.
    let clocks =
        Clocks { idle: Some(Duration::from_millis(1500)), total: Some(Duration::from_secs(5)), ..Clocks::default() };
    let seen = run(shell("echo hello; (while :; do :; done) & wait"), clocks);
    assert_eq!(seen.ended.stopped, Some(StopReason::Total));
}

#[test]
fn bytes_keep_it_from_being_idle() {
    let clocks = Clocks { idle: Some(Duration::from_secs(2)), ..patient() };
    let seen = run(shell("for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done"), clocks);
    assert_eq!((seen.ended.stopped, seen.ended.exit), (None, Exit::Code(0)));
}

#[test]
fn the_whole_time_is_limited_even_under_a_flood() {
    let clocks = Clocks { total: Some(Duration::from_millis(500)), ..Clocks::default() };
    let seen = run(shell("exec yes"), clocks);
    assert_eq!(seen.ended.stopped, Some(StopReason::Total));
    assert!(seen.took < Duration::from_secs(10), "{:?}", seen.took);
}

#[test]
fn after_its_last_word_it_has_five_seconds() {
    let clocks = Clocks { idle: Some(HOUR), ..Clocks::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut process = start(shell("echo result; exec sleep 100"), clocks).unwrap();
        wait_for(&mut process, "result").await;
        process.turn_ended();
        let said = tokio::time::Instant::now();
        let seen = watch(process).await;
        assert_eq!(seen.ended.stopped, Some(StopReason::AfterEnd));
        let grace = said.elapsed();
        assert!(grace >= Duration::from_secs(5) && grace < Duration::from_secs(15), "{grace:?}");
    });
}

#[test]
fn one_that_ends_within_the_grace_was_not_stopped() {
    real_time(async {
        let mut process = start(shell("echo result; sleep 0.3; echo bye"), patient()).unwrap();
        wait_for(&mut process, "result").await;
        process.turn_ended();
        let seen = watch(process).await;
        assert_eq!((seen.ended.stopped, seen.text().as_str()), (None, "bye\n"));
    });
}

#[test]
fn a_pause_halts_the_agent_and_all_clocks() {
    real_time(async {
        let clocks = Clocks { total: Some(Duration::from_secs(2)), ..Clocks::default() };
        let mut process = start(shell("while :; do echo tick; sleep 0.05; done"), clocks).unwrap();
        wait_for(&mut process, "tick").await;
        process.pause();
        // What was on its way may still come; then there must be silence.
        let quiet = Duration::from_millis(500);
        while tokio::time::timeout(quiet, process.next()).await.is_ok() {}
        let silent = tokio::time::timeout(Duration::from_secs(2), process.next()).await;
        assert!(silent.is_err(), "heard while paused: {silent:?}");
        process.resume();
        let resumed = Instant::now();
        let seen = watch(process).await;
        assert!(seen.text().contains("tick"));
        assert_eq!(seen.ended.stopped, Some(StopReason::Total));
        // More than two seconds had passed before; none of them counted.
        assert!(resumed.elapsed() > Duration::from_millis(500), "{:?}", resumed.elapsed());
        assert!(seen.ended.active < Duration::from_millis(2900), "{:?}", seen.ended.active);
    });
}

#[test]
fn a_call_that_is_dropped_loses_nothing() {
    real_time(async {
        let mut process = start(shell("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.02; done"), patient()).unwrap();
        let mut seen = Vec::new();
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep(Duration::from_millis(3)) => {}
                output = process.next() => match output {
                    Output::Bytes { bytes, .. } => seen.extend_from_slice(bytes),
                    Output::Ended(_) => break,
                },
            }
        }
        assert_eq!(String::from_utf8(seen).unwrap(), "1\n2\n3\n4\n5\n6\n7\n8\n");
    });
}
