//! Whole runs behind the wall: everything that comes from the repository is inside, ralph is outside, and what the wall
//! refuses or finds changed is said.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::path::Path;
use std::process::Command;

use support::{Test, git};

const DONE: &str = "echo 'All done.'; echo '<promise>COMPLETE</promise>'";
const BACKENDS: [&str; 2] = ["landlock", "bubblewrap"];

/// A directory that no rule allows to be changed.
fn outside() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("outside").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Backends that this machine has.
fn backends() -> impl Iterator<Item = &'static str> {
    let explained = Command::new(env!("CARGO_BIN_EXE_ralph")).args(["sandbox", "explain"]).output().unwrap();
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    BACKENDS.into_iter().filter(move |backend| match *backend {
        "landlock" => text.contains("Landlock version"),
        _ => text.contains("bubblewrap (`"),
    })
}

fn agent(script: &str) -> Test {
    Test::new().file("agent.sh", script).command("sh agent.sh")
}

fn settings(backend: &str, more: &str) -> String {
    format!("sandbox: {{mode: workspace, backend: {backend}{more}}}\n")
}

#[test]
fn the_agent_and_the_checks_are_inside_and_ralph_is_not() {
    for backend in backends() {
        let place = outside();
        let file = place.path().join("file");
        let touch = format!("touch {}", file.display());
        let ran = agent(&format!("cat > /dev/null; {touch}; echo work > work; {DONE}"))
            .file("ralph.yml", settings(backend, ""))
            .args(&["--verify", &format!("! {touch}"), "--verify", "test -e work", "--sandbox"])
            .run()
            .complete();
        assert!(!file.exists(), "{backend}");
        assert_eq!(ran.facts("verification")[0]["passed"], true, "{backend}");
        ran.shows("sandbox: workspace");
    }
    // Without the wall, both get out.
    let place = outside();
    let file = place.path().join("file");
    let touch = format!("touch {}", file.display());
    agent(&format!("cat > /dev/null; {DONE}")).args(&["--verify", &touch, "--sandbox=off"]).run().complete();
    assert!(file.exists());
}

#[test]
fn a_denial_is_explained_in_the_view_and_in_the_next_prompt() {
    for backend in backends() {
        let place = outside();
        let script = format!(
            "cat > prompt.$RALPH_ITERATION; touch {}/x; test $RALPH_ITERATION = 2 && {{ {DONE}; }}; true",
            place.path().display()
        );
        let ran = agent(&script).file("ralph.yml", settings(backend, "")).args(&["-n", "2"]).run().complete();
        let said = format!(
            "does not let the agent change `{}/x` (outside the workspace); `sandbox.write` would allow it",
            place.path().display()
        );
        let ran = ran.shows("does not let the agent change");
        let refused = ran.facts("sandbox");
        assert_eq!(refused[0]["event"], "refused_file", "{backend}");
        assert!(refused[0]["message"].as_str().unwrap().contains(&said), "{backend}: {refused:?}");
        let first = std::fs::read_to_string(ran.test.workspace().join("prompt.1")).unwrap();
        let second = std::fs::read_to_string(ran.test.workspace().join("prompt.2")).unwrap();
        assert!(first.contains("You work in a sandbox") && !first.contains("does not let"), "{first}");
        assert!(second.contains("does not let the agent change"), "{second}");
    }
}

#[test]
fn tampering_is_reported_restored_or_ends_the_run() {
    let hook = "cat > /dev/null; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; ";
    let run = |tamper: &str| {
        let yml = settings("landlock", &format!(", tamper: {tamper}"));
        agent(&format!("{hook}{DONE}")).repository().file("ralph.yml", yml).run()
    };
    let ran = run("warn").complete().shows("TAMPERING: the agent added").shows("pre-commit");
    assert_eq!(ran.facts("sandbox")[0]["event"], "tampered");
    let ran = run("restore").complete().shows("it was restored");
    assert!(!ran.test.workspace().join(".git/hooks/pre-commit").exists());
    run("stop").exits(1).shows("the run stops");
}

#[test]
fn an_event_is_published_from_inside() {
    for backend in backends() {
        let ralph = env!("CARGO_BIN_EXE_ralph");
        let script = format!("cat > /dev/null; {ralph} emit build.done 'it works' || exit 1; {DONE}");
        let ran = agent(&script).file("ralph.yml", settings(backend, "")).run().complete();
        assert_eq!(ran.facts("published")[0]["topic"], "build.done", "{backend}");
    }
}

#[test]
fn a_refused_host_is_a_record_and_a_line() {
    for backend in backends() {
        let ask = "import os,socket;h,p=os.environ['HTTPS_PROXY'][7:].split(':');s=socket.create_connection((h,int(p)));\
                   s.sendall(b'CONNECT example.com:443 HTTP/1.1\\r\\n\\r\\n');print(s.recv(99).split(b'\\r')[0])";
        let script = format!("cat > /dev/null; /usr/bin/python3 -c \"{ask}\" || exit 1; {DONE}");
        let ran = agent(&script).file("ralph.yml", settings(backend, ", network: [localhost]")).run().complete();
        let ran = ran.shows("sandbox refused example.com:443; add it to `sandbox.network`");
        assert_eq!(ran.facts("sandbox")[0]["event"], "refused_host", "{backend}");
    }
}

#[test]
fn without_the_backend_nothing_runs_unless_that_is_allowed() {
    let no_bwrap = |more: &str| {
        Test::new()
            .file("agent.sh", DONE)
            .command("/bin/sh agent.sh")
            .file("ralph.yml", settings("bubblewrap", more))
            .env("PATH", "/nowhere")
            .run()
    };
    no_bwrap("").exits(2).complains("the sandbox is not available: `bwrap` is not installed");
    no_bwrap(", required: false").complete().shows("WITHOUT A SANDBOX");
}

#[test]
fn the_home_directory_is_refused_as_a_workspace() {
    let test = agent(DONE);
    let home = test.workspace().display().to_string();
    test.env("HOME", &home).args(&["--sandbox"]).run().exits(2).complains("is your home directory");
}

#[test]
fn a_worktree_can_be_committed_in_and_a_forged_git_file_opens_nothing() {
    for backend in backends() {
        let place = outside();
        let main = place.path().join("main");
        std::fs::create_dir(&main).unwrap();
        git(&main, &["init", "-q"]);
        git(&main, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"]);
        let tree = place.path().join("tree");
        git(&main, &["worktree", "add", "-q", &tree.display().to_string()]);
        let sandboxed = |directory: &Path, words: &str| {
            std::fs::write(place.path().join("ralph.yml"), settings(backend, "")).unwrap();
            Command::new(env!("CARGO_BIN_EXE_ralph"))
                .current_dir(directory)
                .args([
                    "sandbox",
                    "--config",
                    &place.path().join("ralph.yml").display().to_string(),
                    "--",
                    "sh",
                    "-c",
                    words,
                ])
                .output()
                .unwrap()
        };
        let commit = "echo x > file && git add file && git -c user.name=a -c user.email=a@b commit -q -m second";
        let output = sandboxed(&tree, commit);
        assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
        // Someone's repository, named by a `.git` file that it does not name back.
        let forged = place.path().join("forged");
        std::fs::create_dir(&forged).unwrap();
        std::fs::write(forged.join(".git"), format!("gitdir: {}/.git\n", main.display())).unwrap();
        let output = sandboxed(&forged, &format!("echo evil > {}/.git/description", main.display()));
        assert!(!output.status.success(), "{backend}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("does not name this work tree"), "{backend}");
    }
}

/// Builds and tests as people run them, behind each backend.
#[test]
fn ordinary_work_goes_on_inside() {
    let place = outside();
    let crate_directory = place.path().join("crate");
    let files = [
        (
            "crate/Cargo.toml",
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[dependencies]\nmemchr = \"2\"\n",
        ),
        (
            "crate/src/lib.rs",
            "#[test]\nfn works() {\n    std::fs::write(std::env::temp_dir().join(\"x\"), \"x\").unwrap();\n    assert_eq!(memchr::memchr(b'b', b\"ab\"), Some(1));\n}\n",
        ),
        (
            "package/package.json",
            "{\"name\": \"small\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node test.js\"}}",
        ),
        (
            "package/test.js",
            "const fs = require('fs'); const os = require('os'); fs.mkdtempSync(os.tmpdir() + '/x'); console.log('ok')",
        ),
        (
            "python/test_small.py",
            "import tempfile, unittest\n\nclass Small(unittest.TestCase):\n    def test_it(self):\n        tempfile.NamedTemporaryFile().close()\n",
        ),
        ("go/go.mod", "module small\n\ngo 1.19\n"),
        ("go/main.go", "package main\n\nfunc main() {}\n"),
    ];
    for (name, text) in files {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let work = [
        ("cargo", "crate", "cargo test --offline -q"),
        ("npm", "package", "npm test --silent"),
        (
            "python3",
            "python",
            "python3 -m unittest -q; python3 -c 'import pytest' 2> /dev/null || exit 0; python3 -m pytest -q",
        ),
        ("go", "go", "go build -o /dev/null . && go vet ."),
        ("git", "crate", "git add -A . && git -c user.name=a -c user.email=a@b commit -q -m work"),
    ];
    for backend in backends() {
        std::fs::write(place.path().join("ralph.yml"), settings(backend, "")).unwrap();
        let _ = std::fs::remove_dir_all(crate_directory.join("target"));
        for (program, directory, words) in work {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
            if !found.status.success() {
                eprintln!("{program} is not here: not tested");
                continue;
            }
            if program == "git" {
                let _ = std::fs::remove_dir_all(crate_directory.join(".git"));
                git(&crate_directory, &["init", "-q"]);
            }
            let output = Command::new(env!("CARGO_BIN_EXE_ralph"))
                .current_dir(place.path().join(directory))
                // Where these tests are built is not in the sandbox.
                .env_remove("CARGO_TARGET_DIR")
                .args(["sandbox", "--config", &place.path().join("ralph.yml").display().to_string()])
                .args(["--", "sh", "-c", words])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{words} behind {backend}: {said}");
        }
    }
}
