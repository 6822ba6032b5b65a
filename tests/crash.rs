//! ralph is killed at random moments of runs with a scripted agent, and goes on until the work is complete.
//!
//! `CRASHES=300 cargo test --test crash` for the long form; `CRASH_SEED=N` for the same moments again.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::time::{Duration, Instant, SystemTime};

use fake_agent::{Script, says};
use ralph::journal::{Body, Fact, Reader};
use rustix::process::Signal;
use support::{Test, run_directory};

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn script() -> Script {
    let work = |name: &str| {
        let mut iteration = says(format!("{name} begins.")).uses(10, 5);
        for step in 0..10 {
            iteration = iteration.says(format!("{name} step {step}.")).sleeps(8);
        }
        iteration
    };
    Script::new()
        .dialect(fake_agent::Dialect::Rtf1)
        .iteration(work("One"))
        .iteration(work("Two"))
        .iteration(work("Three"))
        .iteration(work("Four").says(DONE))
}

#[test]
fn no_finished_iteration_is_lost_or_repeated_wherever_ralph_is_killed() {
    let crashes = number("CRASHES").unwrap_or(6);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let seed = number("CRASH_SEED").unwrap_or_else(|| u64::try_from(time % 1_000_000_007).unwrap()) | 1;
    println!("CRASH_SEED={seed}");
    let mut random = Random(seed);
    let mut done = 0;
    while done < crashes {
        done += one_run(&mut random, seed);
    }
}

/// Kills a run again and again until it comes to its end; says how often.
fn one_run(random: &mut Random, seed: u64) -> u64 {
    let test = Test::new().agent(script()).args(&["--transcript", "rtf1", "-n", "20"]);
    let mut child = test.ralph().spawn().unwrap();
    let mut crashes = 0;
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < Duration::from_secs(120), "seed {seed}: never complete");
        std::thread::sleep(Duration::from_millis(random.below(700)));
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let was_over = child.try_wait().unwrap().is_some();
        if !was_over {
            rustix::process::kill_process(pid, Signal::KILL).unwrap();
            crashes += 1;
        }
        let output = child.wait_with_output().unwrap();
        check(&test, seed);
        if was_over {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            // The run may have been killed behind its last record.
            let over = output.status.success() || words.contains("is complete");
            // It may have been killed before there was anything to go on with.
            let nothing = words.contains("no runs") || words.contains("before its first record");
            assert!(over || nothing, "seed {seed}: {words}");
            if over {
                break;
            }
            return crashes.max(1);
        }
        let mut resume = test.tool();
        resume.arg("resume").stdin(std::process::Stdio::null());
        child = resume.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    }
    let numbers = check(&test, seed);
    assert!(numbers.len() >= 4, "seed {seed}: {numbers:?}");
    crashes.max(1)
}

/// The journal is whole up to its last record, and each iteration ended once, in order. Gives their numbers.
fn check(test: &Test, seed: u64) -> Vec<u32> {
    let Some(run) = run_directory(&test.workspace()) else { return Vec::new() };
    let Ok(mut reader) = Reader::open(&run.join("journal.jsonl"), 0) else { return Vec::new() };
    let (mut next, mut ended) = (0, Vec::new());
    let mut spent = 0;
    while let Some(record) = reader.read().unwrap() {
        let record = record.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(record.seq, next, "seed {seed}: a record is missing or there twice");
        next += 1;
        match record.body {
            Body::Loop(Fact::IterationEnd { receipt }) => {
                spent += receipt.usage.total_or_sum().unwrap_or(0);
                ended.push(receipt.iteration);
            }
            Body::Loop(Fact::RunEnd { usage, .. }) => {
                assert_eq!(usage.total_or_sum(), Some(spent), "seed {seed}: the budget");
            }
            _ => {}
        }
    }
    let expected: Vec<u32> = (1..).take(ended.len()).collect();
    assert_eq!(ended, expected, "seed {seed}");
    ended
}

/// Starts a command again and again, kills it at a random moment, and at last lets it finish.
fn killed_until_done(test: &Test, args: &[&str], random: &mut Random, seed: u64) -> u64 {
    let mut crashes = 0;
    for attempt in 0..8 {
        let mut command = test.tool();
        command.args(args).stdin(std::process::Stdio::null());
        let mut child =
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        if attempt < 7 {
            std::thread::sleep(Duration::from_millis(random.below(160)));
            if child.try_wait().unwrap().is_none() {
                child.kill().unwrap();
                crashes += 1;
            }
        }
        let output = child.wait_with_output().unwrap();
        if output.status.code().is_some() {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "seed {seed}, {args:?}: {words}");
            return crashes;
        }
    }
    crashes
}

fn told(directory: &std::path::Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git").args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn merge_discard_and_undo_are_finished_by_repeating_them_wherever_ralph_is_killed() {
    let rounds = number("CRASHES").map_or(2, |crashes| crashes / 10 + 1);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let seed = number("CRASH_SEED").unwrap_or_else(|| u64::try_from(time % 1_000_000_007).unwrap()) | 1;
    println!("CRASH_SEED={seed}");
    let mut random = Random(seed);
    let agent = "sh -c 'cat >/dev/null; for n in 1 2 3; do echo $n > new$n; echo $n >> a; git add .; \
        git -c user.name=a -c user.email=a@b commit -qm Step$n; done; echo LOOP_COMPLETE'";
    for _ in 0..rounds {
        for place in ["--worktree", "--branch"] {
            let test = Test::new().file("a", "a\n").file("b", "b\n").repository().command(agent).args(&[place]);
            let top = test.workspace();
            support::git(&top, &["branch", "-M", "main"]);
            let test = test.run().complete().test;
            // The base branch moves on, so that there is something to rebase.
            let tree = told(&top, &["rev-parse", "main^{tree}"]);
            let author = ["-c", "user.name=t", "-c", "user.email=t@e"];
            let moved = told(&top, &[&author[..], &["commit-tree", "-p", "main", "-m", "Moved", &tree]].concat());
            support::git(&top, &["update-ref", "refs/heads/main", &moved]);
            killed_until_done(&test, &["merge"], &mut random, seed);
            assert_eq!(told(&top, &["log", "--format=%s", "main"]), "Step3\nStep2\nStep1\nMoved\nBegin", "seed {seed}");
            assert_eq!(told(&top, &["status", "--porcelain"]), "", "seed {seed}");
            assert_eq!(told(&top, &["branch", "--format=%(refname:short)"]), "main", "seed {seed}");
            assert_eq!(told(&top, &["worktree", "list"]).lines().count(), 1, "seed {seed}");
            let before = told(&top, &["rev-parse", "HEAD"]);
            let again = test.tool().args(["run", "More", place, "--agent-cmd", agent]).output().unwrap();
            assert!(again.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&again.stderr));
            killed_until_done(&test, &["discard", "--force"], &mut random, seed);
            assert_eq!(told(&top, &["rev-parse", "HEAD"]), before, "seed {seed}");
            assert_eq!(told(&top, &["status", "--porcelain"]), "", "seed {seed}");
            assert_eq!(told(&top, &["worktree", "list"]).lines().count(), 1, "seed {seed}");
        }
        let test = Test::new().file("a", "a\n").file("b", "b\n").repository().file("b", "changed\n").file("u", "u\n");
        let top = test.workspace();
        let test = test.command(agent).run().complete().test;
        let after = told(&top, &["rev-parse", "HEAD"]);
        killed_until_done(&test, &["undo"], &mut random, seed);
        assert_eq!(told(&top, &["log", "--format=%s"]), "Begin", "seed {seed}");
        assert_eq!(told(&top, &["status", "--porcelain"]), " M b\n?? u", "seed {seed}");
        killed_until_done(&test, &["undo", "--redo"], &mut random, seed);
        assert_eq!(told(&top, &["rev-parse", "HEAD"]), after, "seed {seed}");
        assert_eq!(told(&top, &["status", "--porcelain"]), "", "seed {seed}");
    }
}
