//! Agents that insist on a terminal.

use std::time::Duration;

use ralph::process::{Exit, Invocation, Link, Size, StopReason, start};

use super::support::{patient, prompted, real_time, run, shell, wait_for, watch};

fn on_terminal(invocation: Invocation) -> Invocation {
    Invocation { link: Link::Pty(Size { rows: 30, columns: 101 }), ..invocation }
}

#[test]
fn both_streams_are_the_terminal_and_it_has_its_size() {
    let seen = run(on_terminal(shell("test -t 1 && test -t 2 && stty size </dev/tty && echo err >&2")), patient());
    assert_eq!(seen.text(), "30 101\nerr\n");
    assert!(seen.ended.pipes_closed);
}

#[test]
fn the_agent_leads_its_session_and_controls_the_terminal() {
    let seen = run(on_terminal(shell("cut -d' ' -f1,5,6,8 /proc/$$/stat; pwd")), patient());
    let text = seen.text();
    let mut lines = text.lines();
    let fields: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(fields, [fields[0]; 4], "pid, group, session, foreground group");
    assert_eq!(lines.next(), std::env::temp_dir().to_str());
}

#[test]
fn a_prompt_of_any_length_is_typed_and_then_the_input_ends() {
    for prompt in ["short", "line\n", &format!("{}\n", "x".repeat(100_000)), &"no newline ".repeat(9_000)] {
        let seen = run(on_terminal(prompted("test -t 0 && cat | wc -c", prompt)), patient());
        assert_eq!(seen.text().trim(), prompt.len().to_string());
        assert_eq!((seen.ended.exit, seen.ended.stopped), (Exit::Code(0), None));
    }
}

#[test]
fn control_characters_in_a_prompt_are_text() {
    let prompt: Vec<u8> = (0..=31).chain([127, 4]).collect();
    let seen = run(on_terminal(prompted("od -An -v -tu1", &prompt)), patient());
    let numbers: Vec<u8> = seen.text().split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, prompt);
}

#[test]
fn the_prompt_is_not_echoed() {
    let seen = run(on_terminal(prompted("read line; echo got it", "secret\n")), patient());
    assert_eq!(seen.text(), "got it\n");
}

#[test]
fn an_empty_prompt_is_the_end_of_the_input() {
    assert_eq!(run(on_terminal(prompted("wc -c", "")), patient()).text().trim(), "0");
    assert_eq!(run(on_terminal(shell("wc -c")), patient()).text().trim(), "0");
}

#[test]
fn a_new_size_is_announced() {
    real_time(async {
        let script = "trap 'stty size </dev/tty; exit 0' WINCH; echo up; while :; do sleep 0.05; done";
        let mut process = start(on_terminal(shell(script)), patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.resize(Size { rows: 50, columns: 200 }).unwrap();
        assert_eq!(watch(process).await.text(), "50 200\n");
    });
}

#[test]
fn the_end_of_a_terminal_is_no_error_and_loses_nothing() {
    let seen = run(on_terminal(shell("head -c 300000 /dev/zero; exit 5")), patient());
    assert_eq!((seen.stdout.len(), seen.ended.exit), (300_000, Exit::Code(5)));
}

#[test]
fn it_is_stopped_like_any_other() {
    real_time(async {
        let mut process = start(on_terminal(shell("setsid sleep 30 & echo up; sleep 30")), patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.stop(StopReason::Asked);
        let seen = watch(process).await;
        assert_eq!((seen.ended.exit, seen.ended.stopped), (Exit::Signal(15), Some(StopReason::Asked)));
        assert!(seen.took < Duration::from_secs(5), "{:?}", seen.took);
    });
}
