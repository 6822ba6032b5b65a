//! A run on a branch or in a worktree of its own, and what becomes of it: merge, discard, pull request.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::{Test, git};

const WORK: &str = "sh -c 'cat >/dev/null; echo work > work.txt; git add work.txt; \
    git -c user.name=a -c user.email=a@b commit -qm Work; echo LOOP_COMPLETE'";

fn told(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn repository() -> Test {
    let test = Test::new().file("a.txt", "one\n").file(".gitignore", "ignored\n");
    let test = test.repository();
    git(&test.workspace(), &["branch", "-M", "main"]);
    git(&test.workspace(), &["config", "user.name", "Tester"]);
    git(&test.workspace(), &["config", "user.email", "tester@example.com"]);
    test
}

fn ralph(test: &Test, args: &[&str]) -> Output {
    test.tool().args(args).output().unwrap()
}

#[track_caller]
fn succeeds(test: &Test, args: &[&str]) -> String {
    let output = ralph(test, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn fails(test: &Test, args: &[&str], code: i32) -> String {
    let output = ralph(test, args);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {words}");
    words
}

/// Everything of a checkout that must stay as it is.
fn contents(top: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_owned();
            let skipped = [".git/objects", ".git/refs/heads/ralph", ".git/logs", ".git/worktrees"];
            if skipped.iter().any(|place| name.starts_with(place)) {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

fn worktree(test: &Test) -> PathBuf {
    let json: serde_json::Value = serde_json::from_str(&succeeds(test, &["show", "--json"])).unwrap();
    PathBuf::from(json["place"]["worktree"].as_str().unwrap())
}

#[test]
fn a_worktree_run_leaves_the_checkout_exactly_as_it_is() {
    let test = repository().command(WORK).args(&["--worktree", "--verify", "test -f work.txt"]);
    let before = contents(&test.workspace());
    let ran = test.run().complete().shows("branch: `ralph/do-the-work` (from `main`)").shows("merge: `ralph merge");
    let test = ran.test;
    assert_eq!(contents(&test.workspace()), before);
    let tree = worktree(&test);
    assert!(tree.starts_with(test.workspace().parent().unwrap().join("state/worktrees")), "{tree:?}");
    assert!(tree.ends_with("do-the-work") && tree.join("work.txt").is_file());
    assert_eq!(told(&tree, &["status", "--porcelain"]), "");
    assert_eq!(told(&tree, &["rev-parse", "--abbrev-ref", "HEAD"]), "ralph/do-the-work");
    assert!(succeeds(&test, &["status"]).contains("branch ralph/do-the-work (from main)"));
    assert!(succeeds(&test, &["runs"]).contains("complete"));
    let said = succeeds(&test, &["merge"]);
    assert!(
        said.contains("passed: `test -f work.txt`") && said.contains("merged `ralph/do-the-work` into `main`"),
        "{said}"
    );
    assert_eq!(told(&test.workspace(), &["log", "--format=%s"]), "Work\nBegin");
    assert_eq!(told(&test.workspace(), &["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(test.workspace().join("work.txt")).unwrap(), "work\n");
    assert!(!tree.exists());
    assert_eq!(told(&test.workspace(), &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(told(&test.workspace(), &["worktree", "list"]).lines().count(), 1);
    told(&test.workspace(), &["fsck", "--strict"]);
    assert!(succeeds(&test, &["merge"]).contains("is merged already"));
    assert!(succeeds(&test, &["runs"]).contains("merged"));
}

#[test]
fn several_worktree_runs_of_one_repository_work_at_once() {
    let test = repository();
    let agent = "sh -c 'cat >/dev/null; touch here; n=0; while [ $n -lt 200 ] && [ ! -f ../go ]; do sleep 0.05; n=$((n+1)); done; echo LOOP_COMPLETE'";
    let start = || {
        let mut command = test.tool();
        command.args(["run", "Same goal", "--worktree", "--agent-cmd", agent]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    let state = test.workspace().parent().unwrap().join("state/worktrees");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let place = loop {
        let project = std::fs::read_dir(&state).into_iter().flatten().flatten().next().map(|entry| entry.path());
        let at_work = |path: &PathBuf| {
            std::fs::read_dir(path).unwrap().flatten().filter(|entry| entry.path().join("here").exists()).count()
        };
        match project {
            Some(project) if at_work(&project) == 3 => break project,
            _ => assert!(std::time::Instant::now() < deadline, "not all at work"),
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert!(fails(&test, &["pause"], 2).contains("several worktree runs are active"));
    std::fs::write(place.join("go"), "").unwrap();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let mut names: Vec<String> =
        told(&test.workspace(), &["branch", "--format=%(refname:short)"]).lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["main", "ralph/same-goal", "ralph/same-goal-2", "ralph/same-goal-3"]);
}

#[test]
fn a_dirty_tree_is_refused_unless_its_changes_come_along() {
    for flag in ["--branch", "--worktree"] {
        let test = repository().file("a.txt", "changed\n").file("new.txt", "new\n");
        let words = fails(&test, &["run", "Do it", flag, "--agent-cmd", WORK], 2);
        assert!(words.contains("uncommitted changes: `a.txt`, `new.txt`"), "{words}");
        assert_eq!(told(&test.workspace(), &["branch", "--format=%(refname:short)"]), "main");
        let agent = "sh -c 'cat >/dev/null; cat a.txt new.txt >&2; echo LOOP_COMPLETE'";
        let before = contents(&test.workspace());
        let output = ralph(&test, &["run", "Do it", flag, "--include-changes", "--agent-cmd", agent]);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && shown.contains("changed") && shown.contains("new"), "{shown}");
        if flag == "--worktree" {
            assert_eq!(contents(&test.workspace()), before);
            assert_eq!(told(&worktree(&test), &["status", "--porcelain"]), "M a.txt\n?? new.txt");
        }
    }
}

#[test]
fn untracked_files_are_copied_and_a_setup_command_runs_both_named() {
    let config = "worktree:\n  copy: [ignored]\n  setup: cp ignored made\nverify: ['test -f ignored', 'grep -q secret-of-mine made']\n";
    let test = repository().file("ralph.yml", config).file("ignored", "secret-of-mine\n");
    git(&test.workspace(), &["add", "."]);
    git(&test.workspace(), &["commit", "-qm", "Config"]);
    let output = ralph(&test, &["run", "Do it", "--worktree=here", "--agent-cmd", WORK]);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words}");
    assert!(
        words.contains("copying `ignored`") && words.contains("setting up the worktree: `cp ignored made`"),
        "{words}"
    );
    // `made` is not committed.
    let words = fails(&test, &["merge"], 2);
    assert!(words.contains("1 uncommitted file") && words.contains("`made`"), "{words}");
    std::fs::write(test.workspace().join("ralph.yml"), "worktree: {setup: 'echo no >&2; exit 3'}\n").unwrap();
    git(&test.workspace(), &["commit", "-qam", "Config"]);
    let words = fails(&test, &["run", "Do it", "--worktree=there", "--agent-cmd", WORK], 2);
    assert!(words.contains("`worktree.setup` failed") && words.contains("no"), "{words}");
    assert!(!told(&test.workspace(), &["branch"]).contains("there"), "nothing is left of a run that did not begin");
}

#[test]
fn a_worktree_directory_that_exists_is_refused_and_nothing_is_left() {
    let test = repository();
    succeeds(&test, &["run", "Do it", "--worktree", "--agent-cmd", WORK]);
    let words = fails(&test, &["run", "Do it", "--worktree=do-it", "--agent-cmd", WORK], 2);
    assert!(words.contains("exists already"), "{words}");
    assert_eq!(told(&test.workspace(), &["branch", "--format=%(refname:short)"]), "main\nralph/do-it");
}

#[test]
fn the_end_of_a_run_says_to_commit_what_is_not_committed_before_a_merge() {
    let agent = "sh -c 'cat >/dev/null; echo new > new; echo LOOP_COMPLETE'";
    let ran = repository().command(agent).args(&["--worktree"]).run().complete();
    let ran =
        ran.shows("1 uncommitted file in `").shows(": `new`. Commit or remove them").does_not_show("merge: `ralph");
    let words = ran.test.tool().arg("merge").output().unwrap();
    assert_eq!(words.status.code(), Some(2), "{}", String::from_utf8_lossy(&words.stderr));
    let agent = "sh -c 'cat >/dev/null; echo LOOP_COMPLETE'";
    repository().command(agent).args(&["--worktree"]).run().complete().shows("merge: nothing to merge");
}

#[test]
fn resume_goes_on_in_the_worktree_and_makes_it_again_when_it_is_gone() {
    let agent = "sh -c 'cat >/dev/null; pwd > ../where; echo x >> f; git add f; \
        git -c user.name=a -c user.email=a@b commit -qm Step; echo Step.; [ $(wc -l < f) -ge 3 ] && echo LOOP_COMPLETE; true'";
    let test = repository().command(agent).args(&["--worktree", "-n", "1"]);
    let test = test.run().exits(5).test;
    let tree = worktree(&test);
    std::fs::remove_dir_all(&tree).unwrap();
    let output = ralph(&test, &["resume", "-n", "5"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && shown.contains("the worktree was gone; made again"), "{shown}");
    assert_eq!(std::fs::read_to_string(tree.join("f")).unwrap(), "x\nx\nx\n");
    assert_eq!(std::fs::read_to_string(tree.with_file_name("where")).unwrap().trim(), tree.to_str().unwrap());
    assert_eq!(told(&test.workspace(), &["worktree", "list"]).lines().count(), 2);
    assert!(fails(&test, &["run", "x", "--worktree=ralph/do-the-work", "--agent-cmd", WORK], 2).contains("exists"));
}

#[test]
fn submodules_and_filters_are_refused_with_words_and_a_branch_works() {
    let test =
        repository().file(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n").file("big.bin", "x\n");
    git(&test.workspace(), &["add", "."]);
    git(&test.workspace(), &["commit", "-qm", "Large"]);
    let words = fails(&test, &["run", "Do it", "--worktree", "--agent-cmd", WORK], 2);
    assert!(words.contains("`big.bin` is stored with Git LFS"), "{words}");
    succeeds(&test, &["run", "Do it", "--branch", "--agent-cmd", WORK]);
    succeeds(&test, &["merge"]);
    let test = repository();
    let head = told(&test.workspace(), &["rev-parse", "HEAD"]);
    git(&test.workspace(), &["update-index", "--add", "--cacheinfo", &format!("160000,{head},module")]);
    git(&test.workspace(), &["commit", "-qm", "Submodule"]);
    std::fs::create_dir(test.workspace().join("module")).unwrap();
    let words = fails(&test, &["run", "Do it", "--worktree", "--agent-cmd", WORK], 2);
    assert!(words.contains("`module` is a submodule"), "{words}");
    assert_eq!(told(&test.workspace(), &["branch", "--format=%(refname:short)"]), "main");
}

#[test]
fn a_branch_run_is_merged_and_the_checkout_goes_back_to_the_base_branch() {
    let test = repository().command(WORK).args(&["--branch", "feature/x"]);
    let test = test.run().complete().test;
    assert_eq!(told(&test.workspace(), &["rev-parse", "--abbrev-ref", "HEAD"]), "feature/x");
    // Another commit on main meanwhile: it is rebased.
    let main = told(&test.workspace(), &["commit-tree", "-p", "main", "-m", "Other", "main^{tree}"]);
    git(&test.workspace(), &["update-ref", "refs/heads/main", &main]);
    succeeds(&test, &["merge"]);
    assert_eq!(told(&test.workspace(), &["log", "--format=%s", "main"]), "Work\nOther\nBegin");
    assert_eq!(told(&test.workspace(), &["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    assert_eq!(told(&test.workspace(), &["status", "--porcelain"]), "");
}

/// A finished worktree run whose base branch moved on, with this in `a.txt`.
fn moved_on(a: &str, verify: &str) -> Test {
    let agent = "sh -c 'cat >/dev/null; echo theirs >> a.txt; echo w > w; git add .; \
        git -c user.name=Agent -c user.email=a@b commit -qm One; echo v > v; git add .; \
        git -c user.name=Agent -c user.email=a@b commit -qm Two; echo LOOP_COMPLETE'";
    let test = repository().command(agent).args(&["--worktree", "--verify", verify]).run().complete().test;
    let test = test.file("a.txt", a).file("base", "base\n");
    git(&test.workspace(), &["add", "."]);
    git(&test.workspace(), &["commit", "-qm", "Moved"]);
    test
}

#[test]
fn a_merge_rebases_and_checks_the_result_in_a_worktree_of_its_own() {
    let test = moved_on("one\n", "test -f base || test ! -f ../main-moved");
    let state = test.workspace().parent().unwrap().join("state/worktrees");
    let project = std::fs::read_dir(state).unwrap().next().unwrap().unwrap().path();
    std::fs::write(project.join("main-moved"), "").unwrap();
    succeeds(&test, &["merge"]);
    let log = told(&test.workspace(), &["log", "--format=%s %an %p"]);
    let subjects: Vec<&str> = log.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(subjects, ["Two", "One", "Moved", "Begin"], "{log}");
    assert!(log.lines().next().unwrap().contains("Agent"), "the author stays: {log}");
    assert_eq!(std::fs::read_dir(project).unwrap().count(), 1, "the worktrees are gone");
    assert_eq!(told(&test.workspace(), &["status", "--porcelain"]), "");
    told(&test.workspace(), &["fsck", "--strict"]);
}

#[test]
fn a_conflict_or_a_failing_check_changes_nothing() {
    let conflict = moved_on("two\n", "true");
    let red = moved_on("one\n", "test ! -f base");
    for (test, expected) in
        [(conflict, "does not apply on `main`: `a.txt`; nothing was changed"), (red, "check failed on the result")]
    {
        let tree = worktree(&test);
        let (before, branch) = (contents(&test.workspace()), told(&tree, &["rev-parse", "HEAD"]));
        let words = fails(&test, &["merge"], 1);
        assert!(words.contains(expected), "{words}");
        assert_eq!(contents(&test.workspace()), before);
        assert_eq!(told(&tree, &["rev-parse", "HEAD"]), branch);
        assert_eq!(told(&tree, &["status", "--porcelain"]), "");
        assert_eq!(told(&test.workspace(), &["worktree", "list"]).lines().count(), 2);
    }
}

#[test]
fn local_changes_stay_and_only_those_in_the_way_stop_a_merge() {
    let test = moved_on("one\n", "true").file("a.txt", "mine\n").file("mine", "mine\n");
    let before = contents(&test.workspace());
    let words = fails(&test, &["merge"], 1);
    assert!(words.contains("uncommitted changes in `a.txt`"), "{words}");
    assert_eq!(contents(&test.workspace()), before);
    let test = test.file("a.txt", "one\n").file("base", "changed\n");
    succeeds(&test, &["merge", "--squash"]);
    assert_eq!(told(&test.workspace(), &["status", "--porcelain"]), "M base\n?? mine");
    let message = told(&test.workspace(), &["log", "-1", "--format=%B"]);
    assert!(message.starts_with("Do the work.\n\n- One\n- Two\n\nRalph-Run: "), "{message}");
    assert_eq!(told(&test.workspace(), &["log", "--format=%s"]).lines().count(), 3);
}

#[test]
fn a_completed_run_is_merged_as_the_settings_say() {
    let test = repository().command(WORK).args(&["--worktree", "--merge", "squash"]);
    let ran = test.run().complete().shows("merged `ralph/do-the-work` into `main`");
    assert_eq!(told(&ran.test.workspace(), &["log", "--format=%s"]), "Do the work.\nBegin");
}

#[test]
fn discard_shows_what_would_be_lost_and_needs_force_for_it() {
    let agent = WORK.replace("echo LOOP", "echo u > uncommitted; echo LOOP");
    let test = repository().command(&agent).args(&["--worktree"]).run().complete().test;
    let tree = worktree(&test);
    let output = ralph(&test, &["discard"]);
    let (shown, words) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    assert!(shown.contains("not merged: ") && shown.contains(" Work\n"), "{shown}");
    assert!(shown.contains("not committed: uncommitted"), "{shown}");
    assert!(words.contains("this would lose 1 commit and 1 uncommitted file"), "{words}");
    assert!(tree.exists());
    succeeds(&test, &["discard", "--force"]);
    assert!(!tree.exists());
    assert_eq!(told(&test.workspace(), &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(told(&test.workspace(), &["worktree", "list"]).lines().count(), 1);
    assert!(succeeds(&test, &["discard"]).contains("discarded already"));
    // In the checkout itself: it goes back to the base branch.
    let test = repository().command(WORK).args(&["--branch"]).run().complete().test;
    succeeds(&test, &["discard", "--force"]);
    assert_eq!(told(&test.workspace(), &["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    assert_eq!(told(&test.workspace(), &["status", "--porcelain"]), "");
    assert!(!test.workspace().join("work.txt").exists());
}

#[test]
fn an_iteration_is_committed_without_hooks_signature_secrets_or_files_of_ralph() {
    let agent = "sh -c 'cat >/dev/null; echo x >> f; mkdir -p .ralph d; echo x > .ralph/x; echo x > d/new; \
        echo key = AKIAQ3EGRFYOTQ5JH7XB > secret.txt; chmod +x f; rm -f a.txt; echo LOOP_COMPLETE'";
    let test = repository().file("ralph.yml", "commit: iteration\n").file(".ralph/tracked", "t\n");
    for (name, value) in [("commit.gpgSign", "true"), ("gpg.program", "/nonexistent")] {
        git(&test.workspace(), &["config", name, value]);
    }
    let hook = test.workspace().join(".git/hooks/pre-commit");
    std::fs::write(&hook, "#!/bin/sh\necho ran > ../hook-ran\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    git(&test.workspace(), &["add", "-f", "."]);
    git(&test.workspace(), &["commit", "-q", "--no-verify", "--no-gpg-sign", "-m", "Config"]);
    let ran = test.command(agent).args(&["--worktree"]).prompt("# Fix it").run().complete();
    let ran = ran.shows("not committed: `secret.txt`: it contains a secret");
    let test = ran.test;
    let tree = worktree(&test);
    let message = told(&tree, &["log", "-1", "--format=%B%n%an <%ae>"]);
    assert!(message.starts_with("Fix it (iteration 1)\n\nRalph-Run: 2"), "{message}");
    assert!(
        message.contains("\nRalph-Iteration: 1\n") && message.ends_with("Tester <tester@example.com>"),
        "{message}"
    );
    let names = told(&tree, &["show", "--format=", "--name-status", "--no-renames", "HEAD"]);
    assert_eq!(names, "D\ta.txt\nA\td/new\nA\tf");
    assert_eq!(told(&tree, &["ls-files", "-s", "f"]).split(' ').next(), Some("100755"));
    assert_eq!(told(&tree, &["status", "--porcelain"]), "?? .ralph/x\n?? secret.txt");
    assert!(!tree.with_file_name("hook-ran").exists() && !test.workspace().with_file_name("hook-ran").exists());
    told(&test.workspace(), &["fsck", "--strict"]);
}

#[test]
fn nothing_of_a_hostile_repository_runs() {
    let test = repository();
    let (proof, script) = (test.workspace().with_file_name("ran"), test.workspace().with_file_name("trap"));
    std::fs::write(&script, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", proof.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let trap = script.to_str().unwrap();
    let agent = "sh -c 'cat >/dev/null; echo w > w.txt; echo two > a.txt; echo LOOP_COMPLETE'";
    let test = test.file("ralph.yml", "commit: iteration\n").file(".gitattributes", "*.txt merge=evil diff=evil\n");
    git(&test.workspace(), &["add", "."]);
    git(&test.workspace(), &["commit", "-qm", "Config"]);
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.editor",
        "sequence.editor",
        "core.pager",
        "gpg.program",
        "gpg.ssh.program",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "merge.evil.driver",
        "credential.helper",
        "core.askPass",
        "filter.evil.clean",
        "filter.evil.smudge",
        "core.alternateRefsCommand",
        "rebase.instructionFormat",
        "alias.read-tree",
    ] {
        git(&test.workspace(), &["config", key, trap]);
    }
    for key in ["commit.gpgSign", "tag.gpgSign", "push.gpgSign", "rebase.autoStash", "submodule.recurse"] {
        git(&test.workspace(), &["config", key, "true"]);
    }
    for hook in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-merge",
        "pre-rebase",
        "post-rewrite",
        "pre-auto-gc",
        "pre-push",
    ] {
        std::fs::copy(&script, test.workspace().join(".git/hooks").join(hook)).unwrap();
    }
    let test = test.command(agent).args(&["--worktree"]).run().complete().test;
    // The base moves in the same file: a merge driver would be asked.
    let tree = told(&test.workspace(), &["rev-parse", "HEAD^{tree}"]);
    let commit = told(&test.workspace(), &["commit-tree", "--no-gpg-sign", "-p", "HEAD", "-m", "Moved", &tree]);
    std::fs::write(test.workspace().join(".git/refs/heads/main"), format!("{commit}\n")).unwrap();
    let _ = std::fs::remove_file(&proof);
    succeeds(&test, &["merge"]);
    succeeds(&test, &["run", "Again", "--branch", "--agent-cmd", agent]);
    succeeds(&test, &["undo"]);
    succeeds(&test, &["undo", "--redo"]);
    succeeds(&test, &["discard", "--force"]);
    assert!(!proof.exists(), "{}", std::fs::read_to_string(proof).unwrap());
}

#[test]
fn a_pull_request_is_pushed_and_opened_with_gh_and_repeating_finds_it() {
    let test = repository().command(WORK).args(&["--worktree", "--verify", "test -f work.txt"]);
    let beside = |name: &str| test.workspace().with_file_name(name);
    let (remote, programs, log) = (beside("remote.git"), beside("bin"), beside("gh.log"));
    git(test.workspace().parent().unwrap(), &["init", "-q", "--bare", remote.to_str().unwrap()]);
    git(&test.workspace(), &["remote", "add", "origin", remote.to_str().unwrap()]);
    std::fs::create_dir(&programs).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> '{0}'\n[ \"$2\" = view ] && {{ [ -f '{0}.open' ] && echo http://pr/1; exit; }}\n\
         cat >> '{0}'; touch '{0}.open'; echo http://pr/1\n",
        log.display()
    );
    std::fs::write(programs.join("gh"), script).unwrap();
    std::fs::set_permissions(programs.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let ran = test.env("PATH", &path).args(&["--pr"]).run().complete().shows("pull request: http://pr/1");
    let test = ran.test;
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(
        said.contains("pr create --head ralph/do-the-work --base main --title Do the work. --body-file -"),
        "{said}"
    );
    assert!(said.contains("- [x] `test -f work.txt`") && said.contains("1 iteration"), "{said}");
    assert_eq!(told(&remote, &["log", "-1", "--format=%s", "ralph/do-the-work"]), "Work");
    let again = test.tool().env("PATH", &path).args(["merge", "--pr"]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(std::fs::read_to_string(&log).unwrap().matches("pr create").count(), 1);
    // An agent must not send the work elsewhere.
    git(&test.workspace(), &["remote", "set-url", "origin", "/elsewhere"]);
    assert!(fails(&test, &["merge", "--pr"], 2).contains("the address of `origin` changed"));
}

#[test]
fn abandoned_worktrees_are_found_and_work_in_them_is_kept() {
    let test = repository().command(WORK).args(&["--worktree"]).run().complete().test;
    let tree = worktree(&test);
    assert_eq!(succeeds(&test, &["clean", "--worktrees"]), "no abandoned worktrees\n");
    let run = PathBuf::from(succeeds(&test, &["path"]).trim());
    std::fs::remove_dir_all(run).unwrap();
    std::fs::write(tree.join("mine"), "x").unwrap();
    let said = succeeds(&test, &["clean", "--worktrees"]);
    assert!(said.contains("kept") && said.contains("uncommitted files: `mine`"), "{said}");
    std::fs::remove_file(tree.join("mine")).unwrap();
    assert!(succeeds(&test, &["clean", "--worktrees", "--dry-run"]).starts_with("would remove worktree"));
    assert!(tree.exists());
    let said = succeeds(&test, &["clean", "--worktrees"]);
    assert!(said.contains("(branch `ralph/do-the-work` stays)"), "{said}");
    assert!(!tree.exists());
    assert_eq!(told(&test.workspace(), &["log", "-1", "--format=%s", "ralph/do-the-work"]), "Work");
}

#[test]
fn a_worktree_run_works_behind_the_sandbox_and_is_found_by_its_id() {
    let test = Test::new()
        .file("ralph.yml", "sandbox: {mode: workspace, required: false}\nworktree: {setup: 'echo ready > ready'}\n");
    let test =
        test.file("a", "a\n").repository().command("sh -c 'echo new > new; echo LOOP_COMPLETE'").args(&["--worktree"]);
    let ran = test.run().complete();
    let first = ran.stdout().lines().next().unwrap_or_default().to_owned();
    let id = first.rsplit(' ').next().unwrap_or_default().to_owned();
    for command in ["show", "diff"] {
        let output = ran.test.tool().args([command, &id]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
