//! The scripted agent does what its script says: every later test leans on that.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use fake_agent::{Dialect, Script, Stdin, says, silent, thinks};
use serde_json::{Value, json};

struct Stage {
    directory: tempfile::TempDir,
}

impl Stage {
    fn new(script: &Script) -> Self {
        let directory = tempfile::tempdir().unwrap();
        script.write(directory.path()).unwrap();
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn play(&self, prompt: &str) -> Output {
        self.play_with(prompt, &[])
    }

    fn play_with(&self, prompt: &str, environment: &[(&str, &str)]) -> Output {
        let mut agent = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
            .arg(self.path().join("fake-agent.json"))
            .args(["--model", "x y"])
            .env_remove("RALPH_ITERATION")
            .envs(environment.iter().copied())
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // An agent that never reads may be gone before the prompt is written.
        let _ = agent.stdin.take().unwrap().write_all(prompt.as_bytes());
        agent.wait_with_output().unwrap()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn alive(process: i32) -> bool {
    // A zombie that nobody has reaped yet is dead.
    std::fs::read_to_string(format!("/proc/{process}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

#[test]
fn plays_one_iteration_after_the_other_and_repeats_the_last() {
    let stage = Stage::new(&Script::new().iteration(says("one")).iteration(says("two").exits(3)));
    let played: Vec<_> = (0..3).map(|_| stage.play("")).map(|output| (stdout(&output), output.status.code())).collect();
    let expected = [("one\n", 0), ("two\n", 3), ("two\n", 3)].map(|(text, code)| (text.to_owned(), Some(code)));
    assert_eq!(played, expected);
    assert_eq!(stdout(&stage.play_with("", &[("RALPH_ITERATION", "1")])), "one\n");
}

#[test]
fn records_what_it_was_given() {
    let stage = Stage::new(&Script::from(says("ok")).records_env("WANTED"));
    stage.play_with("do it\n", &[("RALPH_RUN_ID", "r1"), ("WANTED", "yes"), ("OTHER", "no")]);
    let recorded = Script::recorded(stage.path());
    assert_eq!(recorded.len(), 1);
    assert_eq!(recorded[0].arguments, ["--model", "x y"]);
    assert_eq!(recorded[0].stdin.as_deref(), Some("do it\n"));
    assert_eq!(recorded[0].environment.get("RALPH_RUN_ID").map(String::as_str), Some("r1"));
    assert_eq!(recorded[0].environment.get("WANTED").map(String::as_str), Some("yes"));
    assert!(!recorded[0].environment.contains_key("OTHER"));
}

#[test]
fn reads_standard_input_late_or_never() {
    let late = Stage::new(&Script::from(says("first").reads_stdin()).stdin(Stdin::Late));
    late.play("prompt");
    assert_eq!(Script::recorded(late.path())[0].stdin.as_deref(), Some("prompt"));
    let never = Stage::new(&Script::from(says("first")).stdin(Stdin::Never));
    assert_eq!(stdout(&never.play("prompt")), "first\n");
    assert_eq!(Script::recorded(never.path())[0].stdin, None);
}

#[test]
fn every_dialect_carries_the_words_the_tool_and_the_tokens() {
    for dialect in Dialect::ALL {
        let iteration = thinks("hmm")
            .says("I look.")
            .runs_tool("shell", json!({"command": "ls"}))
            .printing("a.txt")
            .fails()
            .uses(1234, 56)
            .says("All done.\nMARK")
            .in_pieces(3);
        let stage = Stage::new(&Script::from(iteration).dialect(dialect).session("s-1"));
        let output = stage.play("prompt");
        assert!(output.status.success(), "{dialect:?}: {output:?}");
        let all = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
        for word in ["I look.", "ls", "a.txt"] {
            assert!(all.contains(word), "{dialect:?} lost `{word}`:\n{all}");
        }
        if !matches!(dialect, Dialect::Plain | Dialect::Rtf1 | Dialect::CodexText) {
            let json: Vec<Value> = stdout(&output)
                .lines()
                .filter(|line| line.starts_with('{'))
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert!(json.len() > 3, "{dialect:?}:\n{all}");
        }
        // Copilot tells no input tokens at all.
        if !matches!(dialect, Dialect::Plain | Dialect::Copilot | Dialect::CodexText) {
            assert!(all.contains("1234"), "{dialect:?} lost the tokens:\n{all}");
        }
    }
}

#[test]
fn a_broken_turn_is_told_in_the_dialect() {
    for dialect in Dialect::ALL {
        let stage = Stage::new(&Script::from(silent().breaks_with_status(429, "slow down")).dialect(dialect));
        let output = stage.play("");
        assert_eq!(output.status.code(), Some(1), "{dialect:?}");
        let all = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
        assert!(all.contains("slow down"), "{dialect:?}:\n{all}");
    }
}

#[test]
fn a_yaml_script_is_read_like_a_json_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script.yml");
    std::fs::write(
        &path,
        "dialect: codex\nsession: abc\niterations:\n  - steps:\n      - say: hello\n      - think: {text: hm, pieces: 2}\n      \
         - tool: {name: shell, input: {command: ls}, status: fail}\n      - no_finish\n    exit: 4\n",
    )
    .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
        .arg(&path)
        .env_remove("RALPH_ITERATION")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let text = stdout(&output);
    assert!(
        text.contains("\"thread_id\":\"abc\"")
            && text.contains("hello")
            && !text.contains("turn.completed")
            && !text.contains("turn.failed"),
        "{text}"
    );
}

#[test]
fn makes_progress_in_its_working_directory() {
    let stage = Stage::new(&silent().writes_file("a.txt", "1\n").appends_to("a.txt", "2\n").commits("progress").into());
    assert!(Command::new("git").args(["init", "--quiet"]).arg(stage.path()).status().unwrap().success());
    assert!(stage.play("").status.success());
    assert_eq!(std::fs::read_to_string(stage.path().join("a.txt")).unwrap(), "1\n2\n");
    let log = Command::new("git").args(["log", "--format=%s"]).current_dir(stage.path()).output().unwrap();
    assert_eq!(stdout(&log), "progress\n");
}

#[test]
fn floods_and_huge_lines_have_the_size_they_were_given() {
    let stage = Stage::new(&silent().floods(1_000_050).prints_a_huge_line(70_000).into());
    let output = stage.play("");
    assert_eq!(output.stdout.len(), 1_000_050 + 1 + 70_000 + 1);
    assert_eq!(output.stdout.split(|&byte| byte == b'\n').map(<[u8]>::len).max(), Some(70_000));
}

#[test]
fn prints_any_bytes_as_they_are() {
    let stage = Stage::new(&silent().prints_bytes(*b"\xff\xfe\0half").into());
    assert_eq!(stage.play("").stdout, b"\xff\xfe\0half");
}

#[test]
fn dies_by_the_signal_it_was_given() {
    let stage = Stage::new(&says("last words").dies_by(9).into());
    let output = stage.play("");
    assert_eq!((output.status.signal(), stdout(&output).as_str()), (Some(9), "last words\n"));
}

#[test]
fn ignores_a_polite_signal_when_told_to() {
    let stage = Stage::new(&silent().ignores_signals().dies_by(15).exits(0).into());
    let begin = Instant::now();
    // `dies_by` waits a second for a death that does not come.
    assert_eq!(stage.play("").status.code(), Some(2));
    assert!(begin.elapsed() >= Duration::from_secs(1));
}

#[test]
fn closing_standard_output_ends_the_pipe_while_the_agent_lives() {
    let stage = Stage::new(&says("bye").closes_stdout().sleeps(1500).into());
    let mut agent = Command::new(env!("CARGO_BIN_EXE_fake-agent"))
        .arg(stage.path().join("fake-agent.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = std::io::read_to_string(agent.stdout.take().unwrap()).unwrap();
    assert_eq!((text.as_str(), agent.try_wait().unwrap()), ("bye\n", None));
    agent.wait().unwrap();
}

#[test]
fn leaves_processes_behind_that_end_by_themselves() {
    use fake_agent::Step;
    let steps = vec![
        Step::Fork { children: 2, milliseconds: 3000 },
        Step::Detach(3000),
        Step::HoldStdout(1000),
        Step::ChildWrites(300),
    ];
    let stage = Stage::new(&fake_agent::Iteration { steps, exit: 0 }.into());
    let begin = Instant::now();
    let text = stdout(&stage.play(""));
    assert!(begin.elapsed() >= Duration::from_millis(900), "a child held the pipe for a second");
    assert!(text.contains("a child still prints, line 2"), "{text}");
    let processes = || Script::process_ids(stage.path());
    while processes().len() < 6 {
        assert!(begin.elapsed() < Duration::from_secs(20), "not all children came up: {:?}", processes());
        std::thread::sleep(Duration::from_millis(20));
    }
    while processes().into_iter().any(alive) {
        assert!(begin.elapsed() < Duration::from_secs(20), "still alive: {:?}", processes());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_library_finds_the_binary() {
    assert_eq!(
        fake_agent::binary().canonicalize().unwrap(),
        Path::new(env!("CARGO_BIN_EXE_fake-agent")).canonicalize().unwrap()
    );
}
