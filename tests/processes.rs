//! The supervisor against real processes that misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use ralph::process::{Clocks, Ended, Exit, Invocation, Output, Stdin, StopReason, StopStep, Stream, UnixSignal, start};

fn shell(script: &str) -> Invocation {
    let mut invocation = Invocation::new("sh", std::env::temp_dir());
    invocation.args = vec!["-c".into(), script.into()];
    invocation
}

struct Seen {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    ended: Ended,
    took: Duration,
}

fn run(invocation: Invocation, clocks: Clocks) -> Seen {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let began = Instant::now();
        let mut process = start(invocation, clocks).unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        loop {
            match process.next().await {
                Output::Bytes { from: Stream::Stdout, bytes } => stdout.extend_from_slice(bytes),
                Output::Bytes { from: Stream::Stderr, bytes } => stderr.extend_from_slice(bytes),
                Output::Ended(ended) => return Seen { stdout, stderr, ended, took: began.elapsed() },
            }
        }
    })
}

#[test]
fn both_streams_and_the_exit_code_arrive() {
    let seen = run(shell("echo out; echo err >&2; exit 3"), Clocks::default());
    assert_eq!((&seen.stdout[..], &seen.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(seen.ended.exit, Exit::Code(3));
    assert_eq!(seen.ended.stopped, None);
    assert!(seen.ended.pipes_closed);
    assert!(seen.ended.left_behind.is_empty());
}

#[test]
fn fifty_megabytes_go_in_while_output_comes_out() {
    let prompt: Vec<u8> = (0..50_000_000_u32).map(|n| b"abcdefghij\n"[n as usize % 11]).collect();
    let mut invocation = Invocation::new("cat", "/");
    invocation.stdin = Stdin::Bytes(prompt.clone().into());
    let seen = run(invocation, Clocks::default());
    assert!(seen.stdout == prompt, "{} bytes came back", seen.stdout.len());
}

#[test]
fn a_child_that_ignores_its_input_is_no_error() {
    let mut invocation = shell("exec 0<&-; echo fine");
    invocation.stdin = Stdin::Bytes(vec![b'x'; 1_000_000].into());
    let seen = run(invocation, Clocks::default());
    assert_eq!(seen.stdout, b"fine\n");
    assert_eq!(seen.ended.exit, Exit::Code(0));
}

#[test]
fn a_grandchild_that_holds_the_pipe_does_not_hold_the_loop() {
    let seen = run(shell("sleep 30 & echo done"), Clocks::default());
    assert_eq!(seen.stdout, b"done\n");
    assert_eq!(seen.ended.exit, Exit::Code(0));
    assert_eq!(seen.ended.left_behind.len(), 1, "{:?}", seen.ended);
    assert!(seen.took < Duration::from_secs(5), "{:?}", seen.took);
}

#[test]
fn a_silent_agent_is_stopped_for_being_idle() {
    let clocks = Clocks { idle: Some(Duration::from_millis(400)), ..Clocks::default() };
    let seen = run(shell("echo hello; sleep 30"), clocks);
    assert_eq!(seen.ended.stopped, Some(StopReason::Idle));
    assert_eq!(seen.ended.exit, Exit::Signal(15));
}

#[test]
fn one_that_ignores_term_and_int_is_killed() {
    let mut invocation = shell("trap '' TERM INT; echo up; while :; do sleep 1; done");
    let step = |signal| StopStep { signal, grace: Duration::from_millis(100) };
    invocation.stop = vec![step(UnixSignal::Int), step(UnixSignal::Term)];
    let clocks = Clocks { total: Some(Duration::from_millis(300)), ..Clocks::default() };
    let seen = run(invocation, clocks);
    assert_eq!(seen.ended.stopped, Some(StopReason::Total));
    assert_eq!(seen.ended.exit, Exit::Signal(9));
}

#[test]
fn a_double_forked_child_in_its_own_session_is_swept() {
    let seen = run(shell("(setsid sleep 30 >/dev/null 2>&1 &) ; sleep 0.2; echo done"), Clocks::default());
    assert_eq!(seen.ended.left_behind.len(), 1, "{:?}", seen.ended);
    let pid = seen.ended.left_behind[0].pid;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

fn on_terminal(mut invocation: Invocation) -> Invocation {
    invocation.link = ralph::process::Link::Pty(ralph::process::Size { rows: 30, columns: 101 });
    invocation
}

#[test]
fn a_terminal_has_its_size_and_both_streams() {
    let seen =
        run(on_terminal(shell("test -t 1 && test -t 2 && stty size </dev/tty && echo err >&2")), Clocks::default());
    assert_eq!(String::from_utf8_lossy(&seen.stdout), "30 101\nerr\n");
    assert!(seen.ended.pipes_closed);
}

#[test]
fn a_long_line_reaches_an_agent_through_a_terminal_and_then_the_end_of_file() {
    let mut line = vec![b'x'; 100_000];
    line.push(b'\n');
    let mut invocation = on_terminal(shell("test -t 0 && cat | wc -c"));
    invocation.stdin = Stdin::Bytes(line.into());
    let seen = run(invocation, Clocks { total: Some(Duration::from_secs(20)), ..Clocks::default() });
    assert_eq!(String::from_utf8_lossy(&seen.stdout).trim(), "100001");
    assert_eq!(seen.ended.stopped, None);
}
