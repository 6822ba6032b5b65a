//! Processes that have cut every tie to their agent, and those that run away from the one who ends them.

use std::path::Path;
use std::time::Duration;

use super::death::{guardian_of, host_command, signal, start_host};
use super::support::{eventually, patient, pids, run, runs, shell};
use ralph::process::Containment;
use rustix::process::Signal;

/// A daemon without a mark: it has dropped its parents, its session, its environment and the limit.
fn unmarked(file: &Path) -> String {
    let daemon = format!("echo $$ >> {}; exec sleep 60", file.display());
    format!("(bash -c \"ulimit -S -x 5; exec env -i setsid sh -c '{daemon}'\" </dev/null >/dev/null 2>&1 &)")
}

#[test]
fn an_orphan_without_a_mark_belongs_to_the_agent() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("{}; sleep 0.5", unmarked(&file));
    // A small command has no control group, so that only the adoption of orphans can find it.
    let mut host = host_command(&script).env("TEST_HOST_SMALL", "1").spawn().unwrap();
    assert!(eventually(Duration::from_secs(20), || host.try_wait().unwrap().is_some()));
    let daemon = pids(&file);
    assert_eq!(daemon.len(), 1);
    assert!(!runs(daemon[0]));
}

#[test]
fn another_user_is_no_refuge_from_root() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can become another user");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    std::fs::write(&file, "").unwrap();
    std::process::Command::new("chmod").args(["-R", "777"]).arg(directory.path()).status().unwrap();
    let daemon = format!("(setsid sleep 60 & echo \\$! >> {})", file.display());
    let script = format!("su -s /bin/sh nobody -c \"{daemon}\" </dev/null >/dev/null 2>&1; sleep 0.3");
    let mut host = host_command(&script).env("TEST_HOST_SMALL", "1").spawn().unwrap();
    assert!(eventually(Duration::from_secs(20), || host.try_wait().unwrap().is_some()));
    assert_eq!(pids(&file).len(), 1);
    assert!(!runs(pids(&file)[0]));
}

#[test]
fn an_orphan_without_a_mark_dies_with_a_killed_ralph() {
    if !Containment::of_this_machine().control_group {
        return eprintln!("skipped: control groups are not writable here");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&format!("{}; sleep 60", unmarked(&file)), &file, 1);
    signal(host.id(), Signal::KILL);
    host.wait().unwrap();
    assert!(eventually(Duration::from_secs(3), || !runs(pids(&file)[0])));
}

#[test]
fn a_guardian_that_was_halted_does_not_stay() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&format!("echo $$ >> {}; sleep 1", file.display()), &file, 1);
    let guardian = guardian_of(host.id()).expect("no guardian");
    signal(guardian, Signal::STOP);
    assert!(host.wait().unwrap().success());
    assert!(eventually(Duration::from_secs(3), || !runs(guardian)));
}

#[test]
fn a_halted_guardian_still_ends_the_agents_of_a_killed_ralph() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("(setsid sh -c 'echo $$ >> {}; exec sleep 60' &); sleep 60", file.display());
    let mut host = start_host(&script, &file, 1);
    signal(guardian_of(host.id()).expect("no guardian"), Signal::STOP);
    signal(host.id(), Signal::KILL);
    host.wait().unwrap();
    assert!(eventually(Duration::from_secs(3), || !runs(pids(&file)[0])));
}

/// Forks and exits, again and again, with `step` between. It ends by itself after some seconds, so that a failed test
/// leaves nothing.
fn chain(name: &str, step: &str) -> String {
    format!(
        "perl -e 'use POSIX; $0 = \"{name}\"; my $end = time + 20; while (time < $end) {{ exit if fork; {step} }}' \
         >/dev/null 2>&1; sleep 0.3"
    )
}

fn is_gone(name: &str) -> bool {
    // One look may fall between two links of the chain.
    (0..20).all(|_| {
        std::thread::sleep(Duration::from_millis(5));
        super::support::processes_with(name).is_empty()
    })
}

#[test]
fn a_chain_of_processes_that_fork_and_exit_is_ended_or_named() {
    for (name, step) in [("chain-of-one-session", ""), ("chain-of-sessions", "POSIX::setsid();")] {
        let seen = run(shell(&chain(name, step)), patient());
        assert!(is_gone(name) || !seen.ended.survivors.is_empty(), "{name}: {:?}", seen.ended);
    }
}

#[test]
fn a_chain_is_ended_without_a_control_group() {
    for (name, step) in [("small-chain-of-one-session", ""), ("small-chain-of-sessions", "POSIX::setsid();")] {
        let mut host = host_command(&chain(name, step)).env("TEST_HOST_SMALL", "1").spawn().unwrap();
        assert!(eventually(Duration::from_secs(15), || host.try_wait().unwrap().is_some()));
        assert!(is_gone(name), "{name}");
    }
}
