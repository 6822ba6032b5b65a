//! ralph is killed at random moments of runs with a scripted agent, and behind every change that merge, discard and undo make, and
//! continues until the work is complete.
//!
//! `CRASHES=300 cargo test --test crash` for the long form; `CRASH_SEED=N` for the same moments again.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fake_agent::{Script, says};
use ralph::journal::{Body, Fact, Reader};
use rustix::process::Signal;
use support::{Test, run_directory};

/// An agent that makes three commits.
const COMMITS: &str = "sh -c 'cat >/dev/null; for n in 1 2 3; do echo $n > new$n; echo $n >> a; git add .; \
    git -c user.name=a -c user.email=a@b commit -qm Step$n; done; echo LOOP_COMPLETE'";

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

fn told(directory: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git").args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The base branch gets a commit, so that there is something to rebase.
fn move_base(top: &Path) {
    let tree = told(top, &["rev-parse", "main^{tree}"]);
    let author = ["-c", "user.name=t", "-c", "user.email=t@e"];
    let moved = told(top, &[&author[..], &["commit-tree", "-p", "main", "-m", "Moved", &tree]].concat());
    support::git(top, &["update-ref", "refs/heads/main", &moved]);
}

#[test]
fn merge_discard_and_undo_are_finished_by_repeating_them_wherever_ralph_is_killed() {
    let rounds = number("CRASHES").map_or(1, |crashes| crashes / 10 + 1);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
    let seed = number("CRASH_SEED").unwrap_or_else(|| u64::try_from(time % 1_000_000_007).unwrap()) | 1;
    println!("CRASH_SEED={seed}");
    let mut random = Random(seed);
    for _ in 0..rounds {
        for place in ["--worktree", "--branch"] {
            let test = Test::new().file("a", "a\n").file("b", "b\n").repository().command(COMMITS).args(&[place]);
            let top = test.workspace();
            support::git(&top, &["branch", "-M", "main"]);
            let test = test.run().complete().test;
            move_base(&top);
            killed_until_done(&test, &["merge"], &mut random, seed);
            assert_eq!(told(&top, &["log", "--format=%s", "main"]), "Step3\nStep2\nStep1\nMoved\nBegin", "seed {seed}");
            assert_eq!(told(&top, &["status", "--porcelain"]), "", "seed {seed}");
            assert_eq!(told(&top, &["branch", "--format=%(refname:short)"]), "main", "seed {seed}");
            assert_eq!(told(&top, &["worktree", "list"]).lines().count(), 1, "seed {seed}");
            let before = told(&top, &["rev-parse", "HEAD"]);
            let again = test.tool().args(["run", "More", place, "--agent-cmd", COMMITS]).output().unwrap();
            assert!(again.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&again.stderr));
            killed_until_done(&test, &["discard", "--force"], &mut random, seed);
            assert_eq!(told(&top, &["rev-parse", "HEAD"]), before, "seed {seed}");
            assert_eq!(told(&top, &["status", "--porcelain"]), "", "seed {seed}");
            assert_eq!(told(&top, &["worktree", "list"]).lines().count(), 1, "seed {seed}");
        }
        let test = Test::new().file("a", "a\n").file("b", "b\n").repository().file("b", "changed\n").file("u", "u\n");
        let top = test.workspace();
        let test = test.command(COMMITS).run().complete().test;
        let after = told(&top, &["rev-parse", "HEAD"]);
        killed_until_done(&test, &["undo"], &mut random, seed);
        assert_eq!(told(&top, &["log", "--format=%s"]), "Begin", "seed {seed}");
        assert_eq!(told(&top, &["status", "--porcelain"]), " M b\n?? u", "seed {seed}");
        killed_until_done(&test, &["undo", "--redo"], &mut random, seed);
        assert_eq!(told(&top, &["rev-parse", "HEAD"]), after, "seed {seed}");
        assert_eq!(told(&top, &["status", "--porcelain"]), "", "seed {seed}");
    }
}

/// Kills a command behind its first change, behind its second one, and so on, each time from the same beginning. Repeating it must
/// finish the work every time.
fn killed_at_every_step(test: &Test, args: &[&str], at_least: u32, right: impl Fn(u32)) {
    if !cfg!(debug_assertions) {
        return;
    }
    let top = test.workspace().parent().unwrap().to_owned();
    let copy = |from: &str, to: &str| {
        let _ = std::fs::remove_dir_all(top.join(to));
        let copied = std::process::Command::new("cp").arg("-a").args([top.join(from), top.join(to)]).status().unwrap();
        assert!(copied.success());
    };
    copy("work", "work.begin");
    copy("state", "state.begin");
    for step in 1..200 {
        let killed = test.tool().args(args).env("CRASH_AT_STEP", step.to_string()).output().unwrap();
        let was_killed = killed.status.signal() == Some(9);
        let last = if was_killed { test.tool().args(args).output().unwrap() } else { killed };
        let words = String::from_utf8_lossy(&last.stderr).into_owned();
        assert!(last.status.success(), "{args:?}, killed at step {step}: {words}");
        right(step);
        if !was_killed {
            assert!(step > at_least, "only {step} steps of {args:?}");
            println!("{args:?}: {} steps", step - 1);
            return;
        }
        copy("work.begin", "work");
        copy("state.begin", "state");
    }
    panic!("{args:?} never finished by itself");
}

fn run_on_a_branch(place: &str) -> Test {
    let args = [place, "--verify", "test -f new3"];
    let test = Test::new().file("a", "a\n").file("b", "b\n").repository().command(COMMITS).args(&args);
    support::git(&test.workspace(), &["branch", "-M", "main"]);
    test.run().complete().test
}

fn only_main_is_left(top: &Path, at: &str) {
    assert_eq!(told(top, &["branch", "--format=%(refname:short)"]), "main", "{at}");
    assert_eq!(told(top, &["rev-parse", "--abbrev-ref", "HEAD"]), "main", "{at}");
    assert_eq!(told(top, &["worktree", "list"]).lines().count(), 1, "{at}");
    let left = ["index.lock", "index.ralph", "HEAD.lock", "refs/heads/main.lock", "worktrees"];
    let left: Vec<&&str> = left.iter().filter(|name| top.join(".git").join(name).exists()).collect();
    assert!(left.is_empty(), "{at}: {left:?}");
}

#[test]
fn merge_is_finished_by_repeating_it_at_every_step() {
    for place in ["--worktree", "--branch"] {
        let mut test = run_on_a_branch(place);
        let top = test.workspace();
        move_base(&top);
        let mine = if place == "--worktree" { " M b\n?? mine" } else { "" };
        if place == "--worktree" {
            test = test.file("b", "mine\n").file("mine", "mine\n");
        }
        killed_at_every_step(&test, &["merge"], 10, |step| {
            let at = format!("merge {place}, step {step}");
            assert_eq!(told(&top, &["log", "--format=%s", "main"]), "Step3\nStep2\nStep1\nMoved\nBegin", "{at}");
            assert_eq!(told(&top, &["status", "--porcelain"]), mine, "{at}");
            assert_eq!(told(&top, &["cat-file", "blob", "HEAD:a"]), "a\n1\n2\n3", "{at}");
            only_main_is_left(&top, &at);
        });
    }
}

#[test]
fn discard_is_finished_by_repeating_it_at_every_step() {
    for place in ["--worktree", "--branch"] {
        let test = run_on_a_branch(place).file("late", "late\n");
        let top = test.workspace();
        killed_at_every_step(&test, &["discard", "--force"], 5, |step| {
            let at = format!("discard {place}, step {step}");
            assert_eq!(told(&top, &["log", "--format=%s"]), "Begin", "{at}");
            only_main_is_left(&top, &at);
            if place == "--worktree" {
                // The file is beside the run, in the user's own checkout.
                assert_eq!(told(&top, &["status", "--porcelain"]), "?? late", "{at}");
            } else {
                assert_eq!(told(&top, &["status", "--porcelain"]), "", "{at}");
                let saved = told(&top, &["for-each-ref", "--format=%(refname)", "refs/ralph/undo"]);
                let has_it = |name: &str| told(&top, &["ls-tree", "--name-only", name]).lines().any(|it| it == "late");
                assert!(saved.lines().any(has_it), "{at}: {saved}");
            }
        });
    }
}

#[test]
fn undo_and_redo_are_finished_by_repeating_them_at_every_step() {
    let test = Test::new().file("a", "a\n").file("b", "b\n").repository().file("b", "changed\n").file("u", "u\n");
    let test = test.command(COMMITS).run().complete().test.file("late", "late\n");
    let top = test.workspace();
    let after = told(&top, &["rev-parse", "HEAD"]);
    let undone = |at: &str| {
        assert_eq!(told(&top, &["log", "--format=%s"]), "Begin", "{at}");
        assert_eq!(told(&top, &["status", "--porcelain"]), " M b\n?? u", "{at}");
        assert_eq!(std::fs::read_to_string(top.join("b")).unwrap(), "changed\n", "{at}");
    };
    let redone = |at: &str| {
        assert_eq!(told(&top, &["rev-parse", "HEAD"]), after, "{at}");
        assert_eq!(told(&top, &["status", "--porcelain"]), "?? late", "{at}");
        assert!(!top.join(".git/index.lock").exists(), "{at}");
    };
    killed_at_every_step(&test, &["undo"], 5, |step| {
        let at = format!("undo, step {step}");
        undone(&at);
        let redo = test.tool().args(["undo", "--redo"]).output().unwrap();
        assert!(redo.status.success(), "{at}: {}", String::from_utf8_lossy(&redo.stderr));
        redone(&at);
    });
    let undo = test.tool().arg("undo").output().unwrap();
    assert!(undo.status.success(), "{}", String::from_utf8_lossy(&undo.stderr));
    killed_at_every_step(&test, &["undo", "--redo"], 5, |step| redone(&format!("redo, step {step}")));
}
