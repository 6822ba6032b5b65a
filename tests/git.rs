//! ralph and git: nothing of a repository runs, nothing hides, nothing is left.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use fake_agent::{Script, says};
use rustix::process::Signal;
use support::{Ran, Test, git, run_directory};

const DONE: &str = "<promise>COMPLETE</promise>";

fn prints(test: &Test, args: &[&str]) -> String {
    let output = test.tool().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refuses(test: &Test, args: &[&str]) -> String {
    let output = test.tool().args(args).output().unwrap();
    assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// The command that tells on whoever runs it.
fn trap(test: &Test, name: &str) -> String {
    let script = test.workspace().with_file_name(format!("trap-{name}"));
    let proof = test.workspace().with_file_name(format!("ran-{name}"));
    std::fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", proof.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

fn assert_nothing_ran(test: &Test) {
    let place = test.workspace();
    let ran: Vec<_> = std::fs::read_dir(place.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("ran-"))
        .collect();
    assert!(ran.is_empty(), "git ran {ran:?}");
}

/// Programs in every place where git would start one.
fn plant(test: &Test, repository: &Path) {
    let config = |name: &str, value: &str| git(repository, &["config", name, value]);
    for (key, name) in [
        ("filter.evil.clean", "clean"),
        ("filter.evil.smudge", "smudge"),
        ("filter.other.process", "process"),
        ("core.fsmonitor", "fsmonitor"),
        ("diff.external", "external-diff"),
        ("diff.evil.textconv", "textconv"),
        ("diff.evil.command", "diff-command"),
        ("core.pager", "pager"),
        ("pager.diff", "pager-diff"),
        ("pager.status", "pager-status"),
        ("gpg.program", "gpg"),
        ("credential.helper", "credential"),
        ("core.sshCommand", "ssh"),
        ("core.editor", "editor"),
        ("alias.status", "alias"),
        ("core.askPass", "askpass"),
        ("core.alternateRefsCommand", "alternate-refs"),
    ] {
        config(key, &trap(test, name));
    }
    config("filter.evil.required", "true");
    config("log.showSignature", "true");
    config("status.submoduleSummary", "true");
    config("submodule.recurse", "true");
    config("extensions.partialClone", "origin");
    config("remote.origin.promisor", "true");
    config("remote.origin.url", &format!("ext::{} x", trap(test, "lazy-fetch")));
    config("protocol.ext.allow", "always");
    std::fs::write(repository.join(".git/info/attributes"), "* filter=evil diff=evil\n*.o filter=other\n").unwrap();
    for hook in ["post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc", "post-checkout"] {
        let path = repository.join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        std::fs::copy(trap(test, hook), path).unwrap();
    }
}

#[test]
fn git_runs_nothing_of_the_repository() {
    let script = Script::new()
        .iteration(
            says("One.").writes_file("a.txt", "first\n").writes_file("b.o", "object\n").writes_file("sub/x", "1\n"),
        )
        .iteration(says(DONE).writes_file("a.txt", "second\n").writes_file("sub/x", "2\n"));
    let test = Test::new().file("a.txt", "zero\n").file(".gitattributes", "*.txt filter=evil diff=evil\n").repository();
    let sub = test.workspace().join("sub");
    std::fs::create_dir(&sub).unwrap();
    git(&sub, &["init", "-q"]);
    git(&sub, &["commit", "-q", "--allow-empty", "-m", "first"]);
    plant(&test, &test.workspace());
    plant(&test, &sub);
    let global = test.workspace().with_file_name("home");
    std::fs::create_dir(&global).unwrap();
    let user = format!("[filter \"evil\"]\n\tclean = {0}\n[core]\n\tfsmonitor = {0}\n", trap(&test, "user-filter"));
    std::fs::write(global.join(".gitconfig"), user).unwrap();
    // Variables of git from outside mean another repository, or a program.
    let external = trap(&test, "variable");
    let test = test
        .env("HOME", global.to_str().unwrap())
        .env("GIT_EXTERNAL_DIFF", &external)
        .env("GIT_SSH_COMMAND", &external)
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .env("GIT_CONFIG_VALUE_0", &external)
        .env("GIT_DIR", "/nonexistent")
        .env("GIT_INDEX_FILE", "/nonexistent");
    let ran = test.agent(script).run().complete();
    let test = &ran.test;
    let diff = prints(test, &["diff"]);
    assert!(diff.contains("-zero\n+second") && diff.contains("b/sub/x"), "{diff}");
    assert!(prints(test, &["diff", "-i", "1"]).contains("-zero\n+first"));
    let _ = test.tool().arg("doctor").output().unwrap();
    assert_nothing_ran(test);
    // They are no dummies: git itself runs them.
    git(&test.workspace(), &["add", "a.txt"]);
    assert!(test.workspace().with_file_name("ran-clean").exists());
}

#[test]
fn looking_at_commits_runs_nothing_and_takes_no_option_from_a_file() {
    let script = Script::new().iteration(says(DONE).writes_file("a.txt", "first\n").commits("a"));
    let test = Test::new().repository().agent(script).file("ralph.yml", "journal: {keep_diffs: false}\n");
    let ran = test.run().complete();
    plant(&ran.test, &ran.test.workspace());
    assert!(prints(&ran.test, &["diff"]).contains("+first"));
    assert_nothing_ran(&ran.test);
    // `head_before` of a receipt becomes an argument of git.
    let run = run_directory(&ran.test.workspace()).unwrap();
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let head = ran.facts("iteration_end")[0]["head_before"].as_str().unwrap().to_owned();
    let victim = ran.test.workspace().join("victim");
    std::fs::write(run.join("journal.jsonl"), journal.replace(&head, &format!("--output={}", victim.display())))
        .unwrap();
    let _ = std::fs::remove_file(run.join("summary.json"));
    assert!(refuses(&ran.test, &["diff"]).contains("not an object id"));
    assert!(!victim.exists());
}

#[test]
fn a_work_tree_elsewhere_is_not_copied() {
    let script =
        Script::new().iteration(says("One.").writes_file("a", "1\n")).iteration(says(DONE).writes_file("a", "2\n"));
    let test = Test::new().file("a", "0\n").repository().agent(script);
    let private = test.workspace().with_file_name("private");
    std::fs::create_dir(&private).unwrap();
    std::fs::write(private.join("diary"), "dear diary\n").unwrap();
    git(&test.workspace(), &["config", "core.worktree", private.to_str().unwrap()]);
    let ran = test.run().complete();
    let diff = prints(&ran.test, &["diff"]);
    assert!(diff.contains("-0\n+2") && !diff.contains("diary"), "{diff}");
}

#[test]
fn commits_in_a_nested_repository_are_progress() {
    let test = Test::new().repository();
    let nested = test.workspace().join("nested");
    std::fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    let commit =
        "cd nested && date +%N > x && git add x && git -c user.name=t -c user.email=t@e commit -qm x; cat > /dev/null";
    let ran = test.command(&format!("sh -c '{commit}; echo working'")).args(&["--no-progress", "2", "-n", "4"]).run();
    assert!(ran.exits(5).facts("iteration_end").iter().all(|receipt| receipt["progress"] == true));
}

#[test]
fn the_diff_of_a_run_is_its_net_change_from_the_dirty_start() {
    let script = Script::new()
        .iteration(says("One.").writes_file("a.txt", "first\n").writes_file("gone.txt", "x\n"))
        .iteration(says(DONE).writes_file("a.txt", "second\n"));
    let test =
        Test::new().file("a.txt", "zero\n").repository().file("a.txt", "dirty\n").file("new.txt", "n\n").agent(script);
    let ran = test.run().complete().shows("2 uncommitted files; the run's diff will start from them");
    let diff = prints(&ran.test, &["diff"]);
    assert!(diff.contains("-dirty\n+second") && !diff.contains("first") && !diff.contains("new.txt"), "{diff}");
    assert!(prints(&ran.test, &["diff", "-i", "2"]).contains("-first\n+second"));
    assert!(refuses(&ran.test, &["diff", "2"]).contains("no run has the id `2`"));
    Test::new().repository().agent(says(DONE)).run().complete().does_not_show("uncommitted");
}

fn guarded(test: Test, script: Script) -> Ran {
    test.agent(script).args(&["-n", "1"]).env("RALPH_TEST", "1").file("ralph.yml", "allowed_paths: [PLAN.md]\n").run()
}

#[test]
fn what_is_hidden_from_git_status_is_not_hidden_from_allowed_paths() {
    for hide in [
        "git update-index --assume-unchanged code.txt; echo x >> code.txt",
        "git update-index --skip-worktree code.txt; echo x >> code.txt",
        "echo /evil.txt >> .git/info/exclude; echo x > evil.txt",
        "echo \\* > .gitignore; echo x > evil.txt",
        "git config core.excludesFile $PWD/.git/more; echo evil.txt > .git/more; echo x > evil.txt",
        "git add code.txt; echo x >> code.txt; git update-index --cacheinfo 100644,$(git hash-object -w code.txt),code.txt; git -c user.name=t -c user.email=t@e commit -qm x",
    ] {
        let test = Test::new().file("code.txt", "1\n").file("ralph.yml", "allowed_paths: [PLAN.md]\n").repository();
        let command = format!("sh -c '{hide}; echo plan > PLAN.md; cat > /dev/null; echo \"{DONE}\"'");
        let ran = test.command(&command).args(&["-n", "1"]).run().exits(5);
        assert!(ran.stdout().contains("may change: undo that"), "{hide}\n{}", ran.stdout());
    }
    let ran = guarded(Test::new().repository(), Script::new().iteration(says(DONE).writes_file("PLAN.md", "x")));
    ran.complete();
}

#[test]
fn the_diff_of_a_resumed_run_starts_where_the_run_started() {
    let script = Script::new()
        .iteration(says("One.").writes_file("a.txt", "first\n").writes_file("gone.txt", "x\n"))
        .iteration(says("Two.").writes_file("b.txt", "second\n").writes_file("gone.txt", "y\n"))
        .iteration(says(DONE));
    let test = Test::new().file("a.txt", "zero\n").repository().file("a.txt", "dirty\n").agent(script);
    let ran = test.args(&["-n", "1"]).run().exits(5);
    assert!(prints(&ran.test, &["diff"]).contains("-dirty\n+first"));
    assert!(prints(&ran.test, &["show"]).contains("changed a.txt, gone.txt (+2 -1)"));
    // Stopped again at the limit, and killed before its diff was written.
    let again = ran.test.tool().args(["resume", "-n", "2"]).output().unwrap();
    assert_eq!(again.status.code(), Some(5), "{}", String::from_utf8_lossy(&again.stderr));
    let diff = prints(&ran.test, &["diff"]);
    assert!(
        diff.contains("-dirty\n+first") && diff.contains("+second") && diff.contains("+y") && !diff.contains("+x"),
        "{diff}"
    );
    std::fs::remove_file(run_directory(&ran.test.workspace()).unwrap().join("diffs/run.patch")).unwrap();
    let last = prints(&ran.test, &["resume", "-n", "3"]);
    assert!(last.contains("3 files"), "{last}");
    assert_eq!(prints(&ran.test, &["diff"]), diff);
}

#[test]
fn secrets_do_not_stay_in_snapshots_of_a_killed_run_or_leave_by_diff() {
    const SECRET: &str = "tangerine-moonbeam-77";
    let script = Script::new()
        .iteration(says("One.").writes_file("settings", format!("password={SECRET}\n")).commits("all"))
        .iteration(says("Two begins.").sleeps(30_000));
    let test = Test::new().repository().agent(script).env("MY_SERVICE_PASSWORD", SECRET);
    git(&test.workspace(), &["config", "user.name", "t"]);
    git(&test.workspace(), &["config", "user.email", "t@example.com"]);
    let running = test.start();
    running.until("the second iteration", |running| running.journal().contains("Two begins."));
    running.signal(Signal::KILL);
    let ran = running.wait().dies_by(9);
    let run = run_directory(&ran.test.workspace()).unwrap();
    assert!(run.join("snapshots").exists(), "a killed run cannot clean up");
    assert_eq!(run.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // Without the kept diff git is asked.
    std::fs::remove_dir_all(run.join("diffs")).unwrap();
    let diff = prints(&ran.test, &["diff"]);
    assert!(diff.contains("+password=[redacted:MY_SERVICE_PASSWORD]") && !diff.contains(SECRET), "{diff}");
    prints(&ran.test, &["clean", "--keep", "5"]);
    assert!(!run.join("snapshots").exists(), "`ralph clean` removes what a killed run left");
}

#[test]
fn a_damaged_repository_or_none_at_all_does_not_stop_a_run() {
    let script = || Script::new().iteration(says("One.").writes_file("a", "1")).iteration(says(DONE));
    for damage in ["garbage in .git/HEAD", "pipe at .git/HEAD", ".git is a file", "no git", "objects gone"] {
        let mut test = Test::new().repository().agent(script());
        let place = test.workspace().join(".git");
        match damage {
            "garbage in .git/HEAD" => std::fs::write(place.join("HEAD"), "garbage").unwrap(),
            "pipe at .git/HEAD" => {
                std::fs::remove_file(place.join("HEAD")).unwrap();
                assert!(std::process::Command::new("mkfifo").arg(place.join("HEAD")).status().unwrap().success());
            }
            ".git is a file" => {
                std::fs::remove_dir_all(&place).unwrap();
                std::fs::write(&place, "gitdir: /nonexistent\n").unwrap();
            }
            "objects gone" => std::fs::remove_dir_all(place.join("objects")).unwrap(),
            _ => {
                let bin = test.workspace().with_file_name("bin");
                std::fs::create_dir(&bin).unwrap();
                for name in ["sh", "cat"] {
                    std::os::unix::fs::symlink(Path::new("/bin").join(name), bin.join(name)).unwrap();
                }
                test = test.env("PATH", bin.to_str().unwrap());
            }
        }
        let ran = test.run().complete();
        assert_eq!(ran.facts("iteration_end")[0]["progress"], true, "{damage}");
    }
}

#[test]
fn a_new_repository_outside_of_the_allowed_paths_is_a_veto() {
    let agent = "sh -c 'cat >/dev/null; mkdir n; git init -q n; echo x > n/f; echo LOOP_COMPLETE'";
    let ran = Test::new()
        .file("ralph.yml", "allowed_paths: ['docs/**']\n")
        .repository()
        .command(agent)
        .args(&["-n", "1"])
        .run()
        .exits(5);
    assert!(ran.stdout().contains("`n` changed"), "{}", ran.stdout());
}

#[test]
fn pipes_in_the_place_of_files_that_git_reads_hold_nothing_up() {
    for name in [".gitignore", ".gitattributes", ".git/objects/info/alternates"] {
        for agent in ["echo LOOP_COMPLETE", &format!("rm -f {name}; mkfifo {name}; echo LOOP_COMPLETE")] {
            let test = Test::new().file("a", "a").repository().args(&["-n", "1"]);
            if !agent.contains("mkfifo") {
                let made = std::process::Command::new("mkfifo").arg(test.workspace().join(name)).status();
                assert!(made.unwrap().success());
            }
            let start = std::time::Instant::now();
            let ran = test.command(&format!("sh -c 'cat >/dev/null; {agent}'")).run().complete();
            assert!(start.elapsed() < std::time::Duration::from_secs(30), "{name}: {:?}", start.elapsed());
            ran.shows("is not an ordinary file");
        }
    }
}

#[test]
fn a_unix_signal_ends_a_run_whose_repository_takes_long_to_read() {
    // git waits for it: a rule file below the top is read by git alone.
    let test = Test::new().file("sub/a", "a").repository();
    let made = std::process::Command::new("mkfifo").arg(test.workspace().join("sub/.gitignore")).status();
    assert!(made.unwrap().success());
    let running = test.agent(says(DONE)).start();
    std::thread::sleep(std::time::Duration::from_secs(1));
    let start = std::time::Instant::now();
    running.signal(Signal::TERM);
    running.wait().dies_by(15);
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn an_agent_that_blinds_git_does_not_get_around_allowed_paths() {
    for blind in ["echo \"* working-tree-encoding=UTF-16\" > .gitattributes", "mkfifo .gitattributes"] {
        let test = Test::new().file("a.txt", "a\n").file("ralph.yml", "allowed_paths: [PLAN.md]\n").repository();
        let agent = format!("sh -c 'cat >/dev/null; {blind}; echo evil >> a.txt; echo LOOP_COMPLETE'");
        test.command(&agent).args(&["-n", "1"]).run().exits(5).shows("`allowed_paths` cannot be checked");
    }
}
