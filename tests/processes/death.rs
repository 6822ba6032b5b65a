//! ralph itself dies, and its agents with it.
//!
//! The ralph that dies is this test program again, told by a variable to play it (see [`host`]).

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ralph::process::{MARK, Output, PrivateFile, RUN_ID, capture, protect, start, strays};
use rustix::process::{Pid, Signal, kill_process};

use super::support::{eventually, patient, pids, real_time, runs, shell, watch};

const SCRIPT: &str = "TEST_HOST_SCRIPT";

/// A stand-in for ralph: runs the script as an agent under the guardian until it is killed, or the agent ends.
#[test]
#[ignore = "a process for the other tests, not a test"]
fn host() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    protect(env!("CARGO_BIN_EXE_ralph"));
    real_time(async {
        let mut agent = shell(&script);
        agent.files.extend(
            std::env::var_os("TEST_HOST_FILES")
                .map(|directory| PrivateFile::new(Path::new(&directory), b"prompt").unwrap()),
        );
        agent.env.remove.push("TEST_HOST_*".into());
        if std::env::var_os("TEST_HOST_SMALL").is_some() {
            return drop(capture(agent, Duration::from_secs(60), 1024).await.unwrap());
        }
        let mut process = start(agent, patient()).unwrap();
        loop {
            match process.next().await {
                Output::Bytes { .. } => {}
                // One that was killed is started again, as the loop does.
                Output::Ended(ended) if !ended.exit.success() => process = start(shell(&script), patient()).unwrap(),
                Output::Ended(_) => break,
            }
        }
    });
}

/// Starts a host and waits until its agent has written down `count` numbers of processes.
pub fn start_host(script: &str, file: &Path, count: usize) -> Child {
    let host = host_command(script).spawn().unwrap();
    assert!(eventually(Duration::from_secs(20), || pids(file).len() == count), "{:?}", pids(file));
    host
}

pub fn host_command(script: &str) -> Command {
    fake_terminal::hear_signals();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "death::host", "--ignored", "--nocapture"]);
    command.env(SCRIPT, script).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The guardian of a host, found by its arguments.
pub fn guardian_of(host: u32) -> Option<u32> {
    let wanted = format!("ralph\0guard-agents-of\0{host}\0");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .find(|pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == wanted.as_bytes()))
}

pub fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Writes down the agent, a child, a child in its own session, and a double-forked one.
fn family(file: &Path) -> String {
    let file = file.display();
    let child = format!("sh -c 'trap \"\" TERM HUP; echo $$ >> {file}; exec sleep 60'");
    format!("echo $$ >> {file}; {child} & setsid {child} & (setsid {child} >/dev/null 2>&1 &); wait")
}

fn dies_by(unix_signal: Signal) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&family(&file), &file, 4);
    let guardian = guardian_of(host.id()).expect("no guardian");
    signal(host.id(), unix_signal);
    let gone = eventually(Duration::from_secs(2), || pids(&file).iter().all(|pid| !runs(*pid)));
    host.wait().unwrap();
    assert!(gone, "{:?}", pids(&file).into_iter().filter(|pid| runs(*pid)).collect::<Vec<_>>());
    assert!(eventually(Duration::from_secs(2), || !runs(guardian)), "the guardian outlived its purpose");
}

#[test]
fn a_killed_ralph_takes_the_whole_tree_with_it() {
    dies_by(Signal::KILL);
}

#[test]
fn a_closed_terminal_takes_the_whole_tree_with_it() {
    dies_by(Signal::HUP);
}

#[test]
fn a_halted_ralph_can_be_killed_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&family(&file), &file, 4);
    signal(host.id(), Signal::STOP);
    signal(host.id(), Signal::KILL);
    assert!(eventually(Duration::from_secs(2), || pids(&file).iter().all(|pid| !runs(*pid))));
    host.wait().unwrap();
}

#[test]
fn an_ordinary_end_leaves_no_guardian() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&format!("echo $$ >> {}; sleep 2", file.display()), &file, 1);
    let guardian = guardian_of(host.id()).expect("no guardian");
    assert!(host.wait().unwrap().success());
    assert!(eventually(Duration::from_secs(2), || !runs(guardian)));
}

#[test]
fn a_guardian_that_was_killed_has_a_successor_for_the_next_agent() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&family(&file), &file, 4);
    let first = guardian_of(host.id()).expect("no guardian");
    signal(first, Signal::KILL);
    signal(pids(&file)[0], Signal::KILL);
    assert!(eventually(Duration::from_secs(20), || pids(&file).len() == 8), "{:?}", pids(&file));
    let second = guardian_of(host.id()).expect("no successor");
    assert_ne!(first, second);
    signal(host.id(), Signal::KILL);
    assert!(eventually(Duration::from_secs(2), || pids(&file).iter().all(|pid| !runs(*pid))));
    host.wait().unwrap();
}

#[test]
fn an_exit_code_is_known_even_where_the_end_of_children_is_ignored() {
    let ignoring = |program: &str| {
        let mut command = Command::new("env");
        command.arg("--ignore-signal=CHLD").arg(program).stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    // Not every system has such an `env`; bit 16 is SIGCHLD.
    let status = ignoring("cat").arg("/proc/self/status").output().unwrap().stdout;
    let status = String::from_utf8_lossy(&status).into_owned();
    let Some(mask) = status.lines().find_map(|line| line.strip_prefix("SigIgn:")) else { return };
    assert_eq!(u64::from_str_radix(mask.trim(), 16).unwrap() >> 16 & 1, 1);
    // The host starts a failed agent again; one whose status is lost never succeeds.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("echo $$ >> {0}; if [ $(wc -l < {0}) -lt 3 ]; then exit 3; fi", file.display());
    let host = host_command(&script);
    let mut command = ignoring(host.get_program().to_str().unwrap());
    let mut host = command.args(host.get_args()).env(SCRIPT, &script).stdout(Stdio::null()).spawn().unwrap();
    assert!(eventually(Duration::from_secs(20), || host.try_wait().unwrap().is_some()));
    assert_eq!(pids(&file).len(), 3);
}

#[test]
fn a_guardian_shrugs_off_what_ends_other_programs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut host = start_host(&family(&file), &file, 4);
    let guardian = guardian_of(host.id()).expect("no guardian");
    for one in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::TSTP] {
        signal(guardian, one);
    }
    signal(host.id(), Signal::KILL);
    assert!(eventually(Duration::from_secs(2), || pids(&file).iter().all(|pid| !runs(*pid))));
    host.wait().unwrap();
}

#[test]
fn private_files_of_a_killed_ralph_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let file = directory.path().join("pids");
    let mut host = host_command(&format!("echo $$ >> {}; sleep 60", file.display()))
        .env("TEST_HOST_FILES", &files)
        .spawn()
        .unwrap();
    assert!(eventually(Duration::from_secs(20), || pids(&file).len() == 1));
    let count = || std::fs::read_dir(&files).unwrap().count();
    assert_eq!(count(), 1);
    signal(host.id(), Signal::KILL);
    assert!(eventually(Duration::from_secs(2), || count() == 0));
    host.wait().unwrap();
}

#[test]
fn an_agent_outlives_the_thread_that_started_it() {
    // The parent-death signal of Linux is about threads; a pool would take its agents down when it shrinks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let process = std::thread::spawn(move || {
        let _entered = handle.enter();
        start(shell("sleep 0.5; echo alive"), patient()).unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(runtime.block_on(watch(process)).text(), "alive\n");
}

#[test]
fn strays_of_a_dead_run_are_found_by_its_id() {
    // As if left by a run whose guardian was killed with it.
    let run = format!("test-{}", std::process::id());
    let mut stray = Command::new("sleep").arg("30").env(RUN_ID, &run).env(MARK, "0-0-0").spawn().unwrap();
    let found = |alive: bool| -> Vec<_> {
        let all = strays(|id| if id == run { alive } else { true });
        all.into_iter().map(|stray| (stray.run, stray.stray.pid, stray.stray.command)).collect()
    };
    // Between fork and exec it still has our own environment.
    assert!(eventually(Duration::from_secs(5), || !found(false).is_empty()));
    assert_eq!(found(false), [(run.clone(), stray.id(), "sleep 30".to_owned())]);
    assert_eq!(found(true), []);
    stray.kill().unwrap();
    stray.wait().unwrap();
}

#[test]
fn a_run_inside_a_run_keeps_the_outer_mark() {
    let seen = super::support::run(shell(&format!("echo ${MARK}")), patient());
    let outer = std::env::var(MARK).unwrap_or_default();
    let mark = seen.text().trim().to_owned();
    assert!(mark.starts_with(&outer) && mark.len() > outer.len(), "{mark}");
}
