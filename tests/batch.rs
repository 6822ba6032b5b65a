//! Batches with real git and real processes: order, conflicts, failing checks, and `kill -9` at random moments.
//!
//! `CRASHES=200 cargo test --release --test batch -- --nocapture crashes` kills more often.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const AGENT: &str = r#"#!/bin/sh
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t.invalid GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t.invalid
prompt=$(cat)
case "$prompt" in
*'Run `git merge '*)
    target=$(printf %s "$prompt" | sed -n 's/.*Run `git merge \([^`]*\)`.*/\1/p' | head -n 1)
    # What a killed git left.
    rm -f "$(git rev-parse --git-dir)/index.lock"
    git merge --abort 2>/dev/null
    git merge "$target" >/dev/null 2>&1 || { sed -i '/^[<=>|]/d' shared.txt; git add -A; git commit -qm merge; }
    case "$prompt" in *stubborn*) ;; *) rm -f red-*.txt ;; esac ;;
esac
for word in $prompt; do case "$word" in
write:*) echo "$word" > "${word#write:}.txt" ;;
append:*) grep -q "$word" shared.txt || echo "$word" >> shared.txt ;;
red:*)
    case "$prompt" in *stubborn*) ;; *) rm -f red-*.txt ;; esac
    # Not alike: git would see renames.
    echo "$word" | sha256sum > "red-${word#red:}.txt" ;;
needs:*) test -e "${word#needs:}.txt" || exit 1 ;;
fail) exit 1 ;;
mark:*) touch "$HOME/${word#mark:}" ;;
hold:*) n=0; while [ ! -e "$HOME/${word#hold:}" ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n + 1)); done ;;
keep:*) printf %s "$prompt" > "$HOME/${word#keep:}.prompt" ;;
esac; done
echo "<promise>COMPLETE</promise>"
"#;

struct World {
    directory: tempfile::TempDir,
}

/// A batch that does not outlive its test.
struct Started(Option<std::process::Child>);

impl Started {
    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl World {
    fn new(tasks: &str) -> Self {
        let world = Self {
            directory: tempfile::Builder::new()
                .prefix("batch-")
                .disable_cleanup(std::env::var_os("KEEP").is_some())
                .tempdir()
                .unwrap(),
        };
        std::fs::create_dir(world.work()).unwrap();
        let agent = world.directory.path().join("agent.sh");
        std::fs::write(&agent, AGENT).unwrap();
        Command::new("chmod").arg("+x").arg(&agent).status().unwrap();
        world.git(&["init", "-qb", "main"]);
        world.git(&["config", "user.name", "t"]);
        world.git(&["config", "user.email", "t@t.invalid"]);
        world.write("shared.txt", "line\n");
        world.write("tasks.yml", tasks);
        // At most one red file per result would be a check of the task alone; two together fail on the target.
        world.write(
            "ralph.yml",
            "verify: ['test $(ls | grep -c ^red-) -lt 2']\nevent_loop: {max_consecutive_failures: 1}\n",
        );
        world.git(&["add", "-A"]);
        world.git(&["commit", "-qm", "init"]);
        world
    }

    fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.work().join(name), text).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git").args(args).current_dir(self.work()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
        command.args(args).current_dir(self.work()).env("HOME", self.directory.path());
        command.env("RALPH_STATE_DIR", self.directory.path().join("state")).env_remove("XDG_RUNTIME_DIR");
        command
    }

    fn ralph(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn begin(&self) -> Vec<String> {
        let agent = self.directory.path().join("agent.sh").display().to_string();
        ["batch", "tasks.yml", "-j", "4", "--into", "--agent-cmd", &agent].map(str::to_owned).to_vec()
    }

    fn batch(&self, more: &[&str]) -> Output {
        let begin = self.begin();
        let args: Vec<&str> = begin.iter().map(String::as_str).chain(more.iter().copied()).collect();
        self.ralph(&args)
    }

    fn start(&self) -> Started {
        let begin = self.begin();
        let args: Vec<&str> = begin.iter().map(String::as_str).collect();
        Started(self.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok())
    }

    /// Gives the batch an order, and the answer to it.
    fn order(&self, args: &[&str]) -> String {
        let output = self.ralph(&[&["batch"], args].concat());
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Waits until a task is there.
    fn until(&self, task: &str, wanted: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let output = self.ralph(&["batch", "status", "--json"]);
            if output.status.success() && self.states().contains(&(task.to_owned(), wanted.to_owned())) {
                return;
            }
            assert!(Instant::now() < deadline, "{task} is never {wanted}: {:?}", self.states());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.directory.path().join(name), "").unwrap();
    }

    fn states(&self) -> Vec<(String, String)> {
        let output = self.ralph(&["batch", "status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        status["tasks"].as_array().unwrap().iter().map(|task| (text(&task["id"]), text(&task["state"]))).collect()
    }

    /// The ids of the tasks on the branch, newest first.
    fn trailers(&self) -> Vec<String> {
        let log = self.git(&["log", "--format=%(trailers:key=Ralph-Task,valueonly,separator=)", "main"]);
        log.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Linear, every commit passes the checks, and every task is there at most once.
    fn assert_sound(&self) {
        let parents = self.git(&["log", "--format=%P", "main"]);
        assert!(parents.lines().all(|line| line.split(' ').count() <= 1), "not linear");
        let trailers = self.trailers();
        assert_eq!(trailers.iter().collect::<BTreeSet<_>>().len(), trailers.len(), "merged twice: {trailers:?}");
        for commit in self.git(&["rev-list", "main"]).lines() {
            let files = self.git(&["ls-tree", "--name-only", commit]);
            assert!(files.lines().filter(|name| name.starts_with("red-")).count() < 2, "{commit} is red");
        }
        assert_eq!(self.git(&["status", "--porcelain"]), "");
        // What a merged task wrote is there.
        let files = self.git(&["ls-tree", "--name-only", "main"]);
        for id in trailers.iter().filter(|id| self.tasks().contains(&format!("{{id: {id}, prompt: 'write:"))) {
            let name = id.replace('t', "n") + ".txt";
            assert!(files.lines().any(|file| file == name), "{name} is missing");
        }
    }

    fn tasks(&self) -> String {
        std::fs::read_to_string(self.work().join("tasks.yml")).unwrap()
    }

    /// Processes that still work in the worktrees.
    fn left(&self) -> usize {
        let inside = |entry: std::fs::DirEntry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.directory.path()))
        };
        std::fs::read_dir("/proc").unwrap().flatten().map(inside).filter(|inside| *inside).count()
    }
}

#[test]
fn tasks_are_merged_in_order_and_a_conflict_goes_back_to_its_loop() {
    let world = World::new(
        "tasks:
  - {id: late, prompt: 'needs:a write:late', needs: [a]}
  - {id: a, prompt: 'write:a'}
  - {id: c1, prompt: 'append:one'}
  - {id: c2, prompt: 'append:two'}
  - {id: r1, prompt: 'red:r1'}
  - {id: r2, prompt: 'red:r2'}
  - {id: 'x..y.lock', title: \"\\e[31m $(touch pwned)\", prompt: '--evil write:x'}
",
    );
    let output = world.batch(&[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    world.assert_sound();
    let order = world.trailers();
    let place = |id: &str| order.iter().position(|one| one == id).unwrap();
    assert_eq!(order.len(), 7);
    assert!(place("late") < place("a"), "newest first: {order:?}");
    assert!(said.contains("did not merge: conflict with `main` in shared.txt"), "{said}");
    assert!(said.contains("did not merge: check failed on top of `main`"), "{said}");
    let shared = std::fs::read_to_string(world.work().join("shared.txt")).unwrap();
    assert!(shared.contains("append:one") && shared.contains("append:two"), "{shared}");
    assert!(!world.work().join("pwned").exists());
    assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(world.git(&["branch", "--list", "ralph/*"]), "");
}

#[test]
fn what_cannot_merge_is_stuck_and_its_branch_stays() {
    let world = World::new(
        "tasks:
  - {id: r1, prompt: 'red:r1 stubborn'}
  - {id: r2, prompt: 'red:r2 stubborn'}
  - {id: bad, prompt: fail}
  - {id: after, prompt: 'write:x', needs: [bad]}
",
    );
    let output = world.batch(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    world.assert_sound();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // The resumed loop meets the same check in its own worktree, and gives up there.
    assert_eq!(said.matches("its loop is resumed").count(), 1, "{said}");
    assert!(said.contains("needs bad, which is not merged"), "{said}");
    let stuck = world.states().iter().filter(|(_, state)| state == "stuck").count();
    assert_eq!((stuck, world.trailers().len()), (3, 1));
    assert!(!world.git(&["branch", "--list", "ralph/*/bad"]).is_empty());
    assert_eq!(world.ralph(&["batch", "skip", "bad"]).status.code(), Some(0));
    world.ralph(&["batch", "retry", "after"]);
    assert!(world.states().contains(&("after".to_owned(), "merged".to_owned())));
}

#[test]
fn bad_tasks_start_nothing_and_limits_end_the_batch() {
    let world = World::new("tasks:\n  - {id: a, prompt: x, needs: [b]}\n");
    let output = world.batch(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tasks.yml:2:5: task `a` needs `b`"));
    assert_eq!(world.git(&["branch"]), "* main");
    let world = World::new("tasks:\n  - {id: a, prompt: fail}\n  - {id: b, prompt: 'write:b', needs: [a]}\n");
    assert_eq!(world.batch(&["--max-failures", "1"]).status.code(), Some(5));
    assert_eq!(world.trailers().len(), 0);
}

#[test]
fn a_batch_is_steered_while_it_runs() {
    let world = World::new(
        "tasks:
  - {id: a, prompt: 'mark:a-works hold:go write:a'}
  - {id: b, prompt: 'keep:b write:b', needs: [a]}
  - {id: c, prompt: 'hold:never write:c'}
  - {id: d, prompt: 'write:d', needs: [b]}
",
    );
    std::fs::write(world.work().join("more.yml"), "tasks: [{id: e, prompt: 'write:e', needs: []}]\n").unwrap();
    let batch = world.start();
    world.until("a", "running");
    world.until("c", "running");
    // A run that is paused before its first iteration does nothing.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !world.directory.path().join("a-works").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(world.order(&["hint", "b", "use", "tabs"]), "b gets your hint with its next iteration\n");
    let refused = world.ralph(&["batch", "hint", "nobody", "x"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the batch has no task `nobody`"));
    world.order(&["pause", "d"]);
    world.order(&["pause"]);
    world.touch("go");
    world.until("a", "checking");
    std::thread::sleep(Duration::from_millis(700));
    world.until("a", "checking");
    world.until("b", "paused");
    world.order(&["continue"]);
    world.order(&["pause", "d"]);
    world.until("b", "merged");
    let prompt = std::fs::read_to_string(world.directory.path().join("b.prompt")).unwrap();
    assert!(prompt.contains("A person says: use tabs"), "{prompt}");
    world.until("d", "paused");
    world.order(&["continue", "d"]);
    world.order(&["add", "more.yml"]);
    world.until("e", "merged");
    world.order(&["skip", "c"]);
    let output = batch.output();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("4 of 5 merged into `main`: all tasks are merged or skipped"), "{said}");
    let none = world.ralph(&["batch", "pause"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("the batch is not running"));
    assert_eq!(world.left(), 0);
}

#[test]
fn a_batch_that_was_stopped_or_cancelled_can_be_taken_up_again() {
    use std::os::unix::process::ExitStatusExt as _;
    let world = World::new("tasks: [{id: a, prompt: 'hold:go write:a'}, {id: b, prompt: 'hold:go write:b'}]\n");
    let batch = world.start();
    world.until("a", "running");
    world.until("b", "running");
    // Each run has a socket by now.
    std::thread::sleep(Duration::from_millis(500));
    world.order(&["cancel"]);
    let output = batch.output();
    assert_eq!(output.status.signal(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(world.states(), [("a".into(), "skipped".into()), ("b".into(), "skipped".into())]);
    assert_eq!(world.left(), 0, "everything is stopped");
    world.touch("go");
    let output = world.ralph(&["batch", "retry", "a"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(world.trailers(), ["a"]);
    world.assert_sound();
}

#[test]
fn crashes_lose_nothing_and_do_nothing_twice() {
    let crashes: u32 = std::env::var("CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut seed = u64::from(std::process::id());
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut left = crashes;
    while left > 0 {
        let mut tasks = "tasks:\n".to_owned();
        for number in 0..30 {
            let prompt = match number % 10 {
                0 => format!("append:n{number}"),
                1 => format!("red:n{number}"),
                2 => "fail".to_owned(),
                _ => format!("write:n{number}"),
            };
            let _ = writeln!(tasks, "  - {{id: t{number}, prompt: '{prompt}'}}");
        }
        let world = World::new(&tasks);
        let mut args = world.begin();
        loop {
            let mut child = world
                .command(&args.iter().map(String::as_str).collect::<Vec<_>>())
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(world.directory.path().join("stderr")).unwrap())
                .spawn()
                .unwrap();
            if left > 0 {
                std::thread::sleep(Duration::from_millis(200 + random(1200)));
                let pid = child.id();
                let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
                let children: Vec<&str> = children.split_whitespace().collect();
                let victim = match random(2) {
                    0 if !children.is_empty() => {
                        children[usize::try_from(random(children.len() as u64)).unwrap()].to_owned()
                    }
                    _ => pid.to_string(),
                };
                let _ = Command::new("kill").args(["-9", &victim]).stderr(Stdio::null()).status();
                left -= 1;
            }
            let ended = child.wait().unwrap();
            // One that was killed before it was there starts again.
            let is_there = world.ralph(&["batch", "status"]).status.success();
            args = if is_there { ["batch", "resume"].map(str::to_owned).to_vec() } else { world.begin() };
            if ended.code().is_some_and(|code| code < 2) {
                break;
            }
            let said = std::fs::read_to_string(world.directory.path().join("stderr")).unwrap();
            assert!(ended.code() != Some(2) || !is_there, "{said}");
        }
        world.assert_sound();
        let states = world.states();
        let count = |wanted: &str| states.iter().filter(|(_, state)| state == wanted).count();
        let report = String::from_utf8(world.ralph(&["batch", "status"]).stdout).unwrap();
        assert_eq!((count("merged"), count("stuck")), (27, 3), "{}\n{report}", world.directory.path().display());
        assert_eq!(world.trailers().len(), 27, "a commit for each merged task");
        let deadline = Instant::now() + Duration::from_secs(5);
        while world.left() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(world.left(), 0, "processes are left");
        assert_eq!(world.git(&["worktree", "list"]).lines().count(), 1 + 3, "worktrees of merged tasks are left");
    }
}
