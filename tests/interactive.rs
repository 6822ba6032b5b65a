//! A person at the keys of the agent's own program, in a real terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::time::{Duration, Instant};

use fake_agent::says;
use rustix::process::Signal;
use support::Test;

/// A program for a person: says its prompt, and answers line by line.
const TALKER: &str = r#"#!/bin/sh
trap 'echo "size $(stty size)"' WINCH
trap 'echo "interrupted"' INT
echo "prompt: $*" | head -n 1
stty size
while :; do
    read -r line || continue
    case $line in
    bye) echo "All done."; echo LOOP_COMPLETE; exit 0 ;;
    screen) printf '\033[?1049h\033[?1000h\033[?2004h\033[?25l\033[Hon the second screen' ;;
    *) echo "you said $line" ;;
    esac
done
"#;

fn talking(more: &str) -> Test {
    let test = Test::new().file("talker.sh", TALKER).file("ralph.yml", format!("cli: {{{more}}}\n"));
    let program = test.workspace().join("talker.sh");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let file = format!(
        "id: talker\nname: talker\ncommands: [{}]\ndialect: plain\ninteractive: {{prompt: {{by: argument}}}}\nstop: [{{signal: term, seconds: 2}}]\n",
        program.display()
    );
    test.file(".ralph/agents/talker.yml", file).args(&["-i", "--agent", "talker", "-n", "2"])
}

#[test]
fn the_agents_own_program_has_the_terminal_and_its_words_are_journaled() {
    let mut terminal = talking("idle_timeout_secs: 0").on_terminal(30, 90);
    terminal.until("prompt: Do the work.");
    terminal.until("30 90");
    terminal.types("hello\n");
    terminal.until("you said hello");
    terminal.types("bye\n");
    let (ran, screen) = terminal.wait();
    let ran = ran.exits(0);
    assert!(screen.contains("── complete"), "{screen}");
    assert!(!screen.contains("AI │"), "its words are shown once, by itself: {screen}");
    let words: Vec<String> = ran
        .records()
        .iter()
        .filter(|record| record["tag"] == "AI")
        .map(|record| record["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(words.contains(&"you said hello".to_owned()) && words.contains(&"LOOP_COMPLETE".to_owned()), "{words:?}");
    assert!(String::from_utf8_lossy(&ran.raw("1.stdout")).contains("you said hello\r\n"), "every byte is kept");
    let logs = ran.test.tool().args(["logs"]).output().unwrap();
    assert!(String::from_utf8_lossy(&logs.stdout).contains("│ you said hello"), "{logs:?}");
}

#[test]
fn a_new_size_reaches_the_agent() {
    let mut terminal = talking("idle_timeout_secs: 0").on_terminal(30, 90);
    terminal.until("30 90");
    terminal.resize(40, 120);
    terminal.until("size 40 120");
    terminal.types("bye\n");
    assert!(terminal.wait().1.contains("complete"));
}

#[test]
fn ctrl_c_is_the_agents_and_twice_it_ends_the_run() {
    let mut terminal = talking("idle_timeout_secs: 0").on_terminal(30, 90);
    terminal.until("30 90");
    terminal.types("screen\n");
    terminal.until("on the second screen");
    assert!(!terminal.is_as_before() && !terminal.is_clean(), "the agent has it");
    terminal.types("\u{3}");
    terminal.until("interrupted");
    std::thread::sleep(Duration::from_millis(1200));
    terminal.types("still here\n");
    terminal.until("you said still here");
    terminal.types("\u{3}");
    terminal.types("\u{3}");
    terminal.until("interrupted ──");
    terminal.until("stopped by the user");
    assert!(terminal.is_as_before() && terminal.is_clean(), "{}", terminal.screen());
    terminal.wait().0.dies_by(2);
}

#[test]
fn silence_ends_a_turn_and_the_run_goes_on() {
    let mut terminal = talking("idle_timeout_secs: 1, default_mode: interactive").on_terminal(30, 90);
    terminal.until("iteration 2 of 2");
    terminal.types("bye\n");
    let (ran, screen) = terminal.wait();
    let ends = ran.exits(0).facts("iteration_end");
    assert_eq!(ends[0]["ended"], "the agent was silent: its turn is over", "{screen}");
    assert_eq!((ends[0]["outcome"].as_str(), ends.len()), (Some("ok"), 2));
}

#[test]
fn a_unix_signal_gives_the_terminal_back() {
    let mut terminal = talking("idle_timeout_secs: 0").on_terminal(30, 90);
    terminal.until("30 90");
    terminal.types("screen\n");
    terminal.until("on the second screen");
    terminal.running.signal(Signal::TERM);
    let start = Instant::now();
    while !(terminal.is_as_before() && terminal.is_clean()) {
        assert!(start.elapsed() < Duration::from_secs(20), "{}", terminal.screen());
        std::thread::sleep(Duration::from_millis(10));
    }
    terminal.wait().0.dies_by(15);
}

#[test]
fn a_program_that_ends_by_itself_needs_no_person() {
    let test = Test::new().named_agent(
        "quick",
        says("All done.\n<promise>COMPLETE</promise>"),
        "dialect: plain\ninteractive: {}\n",
    );
    let (ran, screen) = test.args(&["-i", "--agent", "quick"]).on_terminal(24, 80).wait();
    assert!(screen.contains("── complete"), "{screen}");
    ran.exits(0).after_iterations(1);
}

#[test]
fn without_a_terminal_nothing_is_run() {
    talking("idle_timeout_secs: 0").run().exits(2).complains("`--interactive` needs a terminal");
    Test::new().agent(says("x")).args(&["-i"]).run().exits(2).complains("has no interactive mode");
}
