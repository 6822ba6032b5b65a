//! `ralph undo`: files, index and branch come back exactly, and an undo can be undone.

#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use support::{Test, git};

fn told(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
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

/// Files with their modes, `git status`, the index, and the branches.
type State = (BTreeMap<PathBuf, (u32, Vec<u8>)>, String, String, String);

/// All files with content and mode, what git says of each, and the branch.
fn state(top: &Path) -> State {
    let mut files = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(top).unwrap().to_owned();
            if metadata.is_symlink() {
                files.insert(name, (0, std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()));
            } else if metadata.is_dir() && name != Path::new(".git") {
                waiting.push(path);
            } else if metadata.is_file() {
                files.insert(name, (metadata.permissions().mode() & 0o111, std::fs::read(&path).unwrap()));
            }
        }
    }
    let status = told(top, &["status", "--porcelain=v2", "--branch", "--untracked-files=all", "--ignored"]);
    (files, status, told(top, &["ls-files", "-s"]), told(top, &["for-each-ref", "refs/heads"]))
}

/// One thing that somebody does in a working directory, as a line of shell.
fn deed() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "d/e", "d/f", "ü x", "ignored"]);
    let pair = (name.clone(), name.clone());
    prop_oneof![
        (name.clone(), any::<u16>()).prop_map(|(name, text)| format!("rm -rf '{name}'; echo {text} > '{name}'")),
        name.clone().prop_map(|name| format!("rm -rf '{name}'")),
        pair.prop_map(|(one, other)| format!("mv -f '{one}' '{other}'")),
        name.clone().prop_map(|name| format!("chmod +x '{name}'")),
        name.clone().prop_map(|name| format!("chmod -x '{name}'")),
        name.clone().prop_map(|name| format!("rm -rf '{name}'; ln -s some/where '{name}'")),
        name.clone().prop_map(|name| format!("rm -rf '{name}'; mkdir -p '{name}'; echo in > '{name}/deep'")),
        name.clone().prop_map(|name| format!("git add -A -- '{name}'")),
        name.clone().prop_map(|name| format!("git rm -q --cached -r -- '{name}'")),
        Just("git add -A".to_owned()),
        Just("git commit -qam Some".to_owned()),
        Just("git add -A; git commit -qm All".to_owned()),
        Just("git checkout -q -b other".to_owned()),
    ]
}

fn script(deeds: &[String]) -> String {
    deeds.iter().map(|deed| format!("( mkdir -p d; {deed} ) >/dev/null 2>&1\n")).collect::<Vec<_>>().concat()
}

fn repository() -> Test {
    let test = Test::new().file("a", "a\n").file("b", "b\n").file("d/e", "e\n").file(".gitignore", "ignored\n");
    let test = test.repository();
    for (name, value) in [("user.name", "Tester"), ("user.email", "t@example.com")] {
        git(&test.workspace(), &["config", name, value]);
    }
    test
}

#[test]
fn undo_gives_the_identical_tree_and_redo_the_later_one() {
    let cases = std::env::var("UNDO_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let steps = || prop::collection::vec(deed(), 0..7);
    runner
        .run(&(steps(), steps(), steps()), |(before, one, two)| {
            let test = repository();
            let top = test.workspace();
            let beside = top.parent().unwrap().to_owned();
            let run = |deeds: &[String]| {
                Command::new("sh").arg("-c").arg(script(deeds)).current_dir(&top).status().unwrap();
            };
            run(&before);
            let first = state(&top);
            std::fs::write(beside.join("1"), script(&one)).unwrap();
            std::fs::write(beside.join("2"), script(&two)).unwrap();
            let agent = "sh -c 'cat >/dev/null; if [ -f ../second ]; then sh ../2; echo LOOP_COMPLETE; else touch ../second; sh ../1; \
                         echo One.; fi'";
            let output = ralph(&test, &["run", "Do it", "-n", "2", "--agent-cmd", agent]);
            prop_assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            let last = state(&top);
            // What is ignored is left alone.
            let only = |state: &State| {
                let mut state = state.clone();
                state.0.retain(|path, _| !path.starts_with("ignored"));
                state.1 = state.1.lines().filter(|line| !line.starts_with('!')).collect::<Vec<_>>().join("\n");
                // A branch that the run has made stays.
                state.3 = state.3.lines().filter(|line| !line.ends_with("/other")).collect::<Vec<_>>().join("\n");
                state
            };
            succeeds(&test, &["undo"]);
            prop_assert_eq!(only(&state(&top)), only(&first), "undo");
            succeeds(&test, &["undo", "--redo"]);
            prop_assert_eq!(only(&state(&top)), only(&last), "redo");
            succeeds(&test, &["undo", "--to", "1"]);
            succeeds(&test, &["undo", "--to", "2"]);
            prop_assert_eq!(only(&state(&top)), only(&last), "to the last iteration");
            told(&top, &["fsck", "--no-dangling"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn an_undo_stops_when_somebody_else_has_committed() {
    let agent = "sh -c 'cat >/dev/null; echo x > x; echo LOOP_COMPLETE'";
    let test = repository().command(agent).run().complete().shows("undo: `ralph undo ").test;
    git(&test.workspace(), &["add", "."]);
    git(&test.workspace(), &["commit", "-qm", "Mine"]);
    let output = ralph(&test, &["undo"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(words.contains("someone else has committed since"), "{words}");
    assert!(test.workspace().join("x").exists());
    let said = succeeds(&test, &["undo", "--force"]);
    assert!(
        said.contains("back to before the run: 1 file changed") && said.contains("ignored files were left alone"),
        "{said}"
    );
    assert!(!test.workspace().join("x").exists());
    assert_eq!(told(&test.workspace(), &["log", "--format=%s"]), "Begin");
    assert!(told(&test.workspace(), &["for-each-ref", "refs/ralph/undo"]).contains("refs/ralph/undo/"));
    succeeds(&test, &["undo", "--redo"]);
    assert_eq!(told(&test.workspace(), &["log", "--format=%s"]), "Mine\nBegin");
    assert_eq!(told(&test.workspace(), &["status", "--porcelain"]), "");
}

#[test]
fn files_that_a_filter_converts_are_refused_with_words() {
    let agent = "sh -c 'cat >/dev/null; echo x > a.bin; echo LOOP_COMPLETE'";
    let test = repository().file(".gitattributes", "*.bin filter=lfs\n").file("a.bin", "pointer\n");
    git(&test.workspace(), &["add", "."]);
    git(&test.workspace(), &["commit", "-qm", "Large"]);
    let test = test.command(agent).run().complete().test;
    let output = ralph(&test, &["undo"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("`a.bin` is converted by the filter `lfs`"), "{words}");
    assert_eq!(std::fs::read_to_string(test.workspace().join("a.bin")).unwrap(), "x\n");
}

#[test]
fn a_run_without_states_says_why_it_cannot_be_undone() {
    let agent = "sh -c 'cat >/dev/null; echo x > x; echo LOOP_COMPLETE'";
    let plain = Test::new().command(agent).run().complete().does_not_show("ralph undo").test;
    assert!(String::from_utf8_lossy(&ralph(&plain, &["undo"]).stderr).contains("undo needs a git repository"));
    let off = repository().file("ralph.yml", "journal: {keep_diffs: false}\n").command(agent).run().complete().test;
    let words = String::from_utf8_lossy(&ralph(&off, &["undo"]).stderr).into_owned();
    assert!(words.contains("unless `journal.keep_diffs` is off"), "{words}");
}
