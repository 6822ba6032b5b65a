//! A person at the terminal of a run: keys in a wait, answers to questions.

use fake_agent::{Script, says, silent};

use super::DONE;
use super::support::Test;

#[test]
fn a_key_ends_a_wait_and_the_terminal_is_as_it_was() {
    let mut terminal = Test::new().agent(limited_once()).on_terminal(24, 80);
    terminal.until("r retry now");
    terminal.running.until("keys come one by one", |_| !terminal.is_as_before());
    terminal.types("xr");
    terminal.until("complete");
    terminal.running.until("the terminal is given back", |_| terminal.is_as_before());
    let (ran, screen) = terminal.wait();
    ran.complete();
    assert!(!screen.contains("xr"), "what is typed is not shown:\n{screen}");
}

fn limited_once() -> Script {
    Script::new()
        .counting()
        .iteration(silent().complains("Error: 429 Too Many Requests").exits(1))
        .iteration(says(DONE))
}

#[test]
fn a_key_that_does_not_work_is_not_offered() {
    let terminal = Test::new().agent(limited_once()).in_shell("\"$@\" </dev/null", 24, 80);
    terminal.until("waiting, ");
    assert!(!terminal.screen().contains("retry now"), "{}", terminal.screen());
    terminal.running.tells(&["retry"]);
    terminal.wait().0.complete();
}

#[test]
fn in_the_background_no_line_is_drawn_over_and_in_the_foreground_keys_work_again() {
    let shell = "set -m; \"$@\" & until [ -e shown ]; do sleep 0.05; done; echo the shell is here; \
                 until [ -e forward ]; do sleep 0.05; done; fg";
    let mut terminal = Test::new().agent(limited_once()).in_shell(shell, 24, 80);
    let workspace = terminal.running.workspace();
    terminal.running.until("the wait", |running| running.journal().contains("wait_ms"));
    // Longer than a view takes for its next look at the clock.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let quiet = terminal.screen();
    assert!(!quiet.contains("left") && !quiet.contains("retry now"), "{quiet}");
    std::fs::write(workspace.join("shown"), "").unwrap();
    terminal.until("the shell is here");
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(terminal.screen().trim_end().ends_with("the shell is here"), "{}", terminal.screen());
    std::fs::write(workspace.join("forward"), "").unwrap();
    terminal.until("r retry now");
    terminal.running.until("keys come one by one", |_| !terminal.is_as_before());
    terminal.types("r");
    terminal.until("complete");
    let (ran, screen) = terminal.wait();
    ran.complete();
    assert!(screen.contains("the shell is here"), "{screen}");
}

#[test]
fn a_wait_gives_the_terminal_back_when_it_is_interrupted() {
    let limited = silent().complains("Error: 429 Too Many Requests").exits(1);
    let mut terminal = Test::new().agent(limited).on_terminal(24, 80);
    terminal.until("r retry now");
    terminal.types("\u{3}");
    terminal.until("interrupted");
    terminal.running.until("it has ended", |_| terminal.is_as_before());
    terminal.wait().0.dies_by(2);
}

#[test]
fn a_question_is_answered_at_the_terminal() {
    let question = "Hm.\n<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which colour?\"}\n<<<RALPHEX:END>>>";
    let script = || Script::new().counting().iteration(says(question)).iteration(says(DONE));
    let mut terminal = Test::new().agent(script()).on_terminal(24, 80);
    terminal.until("answer (an empty line ends the run)");
    terminal.types("the blue one\n");
    let (ran, _) = terminal.wait();
    let ran = ran.complete();
    assert!(ran.heard(1).contains("a person answers your question: the blue one"), "{}", ran.heard(1));
    // What was typed before it was asked is no answer.
    let early = Script::new().counting().iteration(silent().sleeps(1500).says(question)).iteration(says(DONE));
    let mut terminal = Test::new().agent(early).on_terminal(24, 80);
    terminal.until("iteration 1");
    terminal.types("rm -rf x\n");
    terminal.until("answer (an empty line ends the run)");
    terminal.types("red\n");
    let (ran, _) = terminal.wait();
    let ran = ran.complete();
    assert!(ran.heard(1).contains("a person answers your question: red"), "{}", ran.heard(1));
    // An answer is heard also where no iteration is left.
    let mut terminal = Test::new().agent(script()).args(&["-n", "1"]).on_terminal(24, 80);
    terminal.until("answer (an empty line ends the run)");
    terminal.types("blue\n");
    terminal.wait().0.complete();
    // Nobody there to ask, or nothing said.
    let mut terminal = Test::new().agent(script()).on_terminal(24, 80);
    terminal.until("answer (an empty line ends the run)");
    terminal.types("\n");
    terminal.wait().0.exits(3);
}

#[test]
fn a_run_that_goes_on_after_an_answer_is_interrupted_like_any_other() {
    let question = "Hm.\n<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which colour?\"}\n<<<RALPHEX:END>>>";
    let script = Script::new().counting().iteration(says(question)).iteration(says("Long.").hangs());
    let mut terminal = Test::new().agent(script).on_terminal(24, 80);
    terminal.until("answer (an empty line ends the run)");
    terminal.types("blue\n");
    terminal.running.until("the second iteration", |running| running.recorded().len() == 2);
    terminal.running.until("its words", |running| running.journal().contains("Long."));
    terminal.types("\u{3}");
    let (ran, _) = terminal.wait();
    let ran = ran.dies_by(2);
    assert_eq!(ran.facts("run_end").last().unwrap()["outcome"], "interrupted");
}

#[test]
fn an_agent_cannot_halt_its_own_run() {
    let agent = "sh -c 'cat >/dev/null; kill -TSTP $PPID; sleep 0.5; (setsid env kill -TSTP $PPID); sleep 0.5; echo LOOP_COMPLETE'";
    let (ran, _) = Test::new().command(agent).args(&["-n", "1"]).on_terminal(24, 80).wait();
    ran.complete();
}

#[test]
fn ctrl_s_holds_the_output_and_nothing_else() {
    let flood = "sh -c 'cat >/dev/null; touch begun; seq 1 20000; echo LOOP_COMPLETE'";
    let hold = || {
        let mut terminal = Test::new().command(flood).on_terminal(24, 80);
        terminal.running.until("it floods", |running| running.test.workspace().join("begun").exists());
        terminal.types("\u{13}");
        terminal.running.until("the run is over", |running| running.journal().contains("\"run_end\""));
        terminal
    };
    let mut terminal = hold();
    // The lock is free: the next run does not wait for the terminal of this one.
    let next =
        || terminal.running.test.tool().args(["run", "x", "--agent-cmd", "echo LOOP_COMPLETE"]).output().unwrap();
    terminal.running.until("the next run", |_| next().status.success());
    terminal.types("\u{11}");
    terminal.until("complete");
    assert!(terminal.is_as_before());
    terminal.wait().0.complete();
    // Nobody lets it go on: it ends by itself, after 20 seconds.
    let terminal = hold();
    std::thread::sleep(std::time::Duration::from_secs(2));
    terminal.wait().0.complete();
}
