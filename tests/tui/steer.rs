//! `ralph run --tui`: the run under way, steered from inside.

use std::os::unix::process::ExitStatusExt as _;

use fake_agent::{Script, says};

use super::pty::Screen;
use super::support::{Test, run_directory};

fn start(test: &Test) -> Screen {
    let mut command = test.ralph();
    command.arg("--tui");
    Screen::start(command, 100, 30)
}

fn journal(test: &Test) -> String {
    let run = run_directory(&test.workspace()).unwrap();
    std::fs::read_to_string(run.join("journal.jsonl")).unwrap()
}

const DONE: &str = "Good.\n<promise>COMPLETE</promise>";

#[test]
fn a_run_stays_on_the_screen_until_it_was_read() {
    let test = Test::new().agent(says("Working on it.").says(DONE));
    let mut screen = start(&test);
    screen.shows("complete");
    screen.shows("the run is over");
    let tool = test.tool().args(["runs"]).output().unwrap();
    assert!(String::from_utf8_lossy(&tool.stdout).contains("complete"), "the directory is free again");
    screen.keys("q");
    let (status, text) = screen.ends();
    assert_eq!(status.code(), Some(0));
    assert!(text.contains("complete") && text.contains("details: `ralph show"), "{text}");
}

#[test]
fn orders_reach_the_run() {
    let script = Script::new().iteration(says("One.").sleeps(5_000)).iteration(says(DONE));
    let test = Test::new().agent(script);
    let mut screen = start(&test);
    screen.shows("One.");
    screen.keys("i");
    screen.shows("hint: ");
    screen.keys("look at the tests\r");
    screen.shows("the next iteration gets your hint");
    screen.keys("l50\r");
    screen.shows("the new limit applies from now on");
    screen.keys("p");
    screen.shows("pausing after this iteration");
    screen.shows("paused");
    screen.until("paused in the header", |text| text.lines().next().unwrap_or_default().contains("paused"));
    screen.keys("p");
    screen.until("complete", |text| text.lines().next().unwrap_or_default().contains("complete"));
    screen.keys("q");
    assert_eq!(screen.ends().0.code(), Some(0));
    let journal = journal(&test);
    for told in ["\"hint\",\"words\":\"look at the tests\"", "\"limit\",\"max_iterations\":50", "\"continue\""] {
        assert!(journal.contains(told), "{told}");
    }
    let recorded = Script::recorded(&test.workspace().parent().unwrap().join("agent"));
    assert!(recorded[1].stdin.as_ref().unwrap().contains("a person says: look at the tests"));
}

#[test]
fn leaving_a_run_under_way_asks_what_becomes_of_it() {
    let test = Test::new().agent(says("Thinking.").hangs());
    let mut screen = start(&test);
    screen.shows("Thinking.");
    screen.keys("q");
    screen.shows("d detach: show lines");
    screen.keys("\u{1b}");
    screen.hides("d detach: show lines");
    screen.keys("S");
    screen.shows("stop the agent now?");
    screen.keys("y");
    screen.until("interrupted", |text| text.lines().next().unwrap_or_default().contains("interrupted"));
    screen.keys("q");
    let (status, text) = screen.ends();
    assert_eq!(status.code(), Some(130), "{text}");
}

#[test]
fn a_question_about_a_running_run_ends_with_it() {
    let test = Test::new().agent(says("Thinking.").sleeps(2_000).says(DONE));
    let mut screen = start(&test);
    screen.shows("Thinking.");
    screen.keys("q");
    screen.shows("d detach: show lines");
    screen.until("complete", |text| text.lines().next().unwrap_or_default().contains("complete"));
    screen.hides("d detach: show lines");
    screen.keys("q");
    assert_eq!(screen.ends().0.code(), Some(0));
}

#[test]
fn a_run_goes_on_as_lines_when_its_screen_is_left() {
    let script = Script::new().iteration(says("One.").sleeps(1_500)).iteration(says(DONE));
    let test = Test::new().agent(script);
    let mut screen = start(&test);
    screen.shows("One.");
    screen.keys("qd");
    let (status, text) = screen.ends();
    assert_eq!(status.code(), Some(0));
    assert!(text.contains("iteration 2 of 100") && text.contains("complete"), "{text}");
}

#[test]
fn ctrl_c_and_sigterm_stop_the_agent_and_give_the_terminal_back() {
    for (by_key, number) in [(true, libc::SIGINT), (false, libc::SIGTERM)] {
        let test = Test::new().agent(says("Thinking.").hangs());
        let mut screen = start(&test);
        screen.shows("Thinking.");
        if by_key {
            screen.keys("\u{3}");
        } else {
            screen.signal(rustix::process::Signal::TERM);
        }
        let (status, text) = screen.ends();
        assert_eq!(status.signal(), Some(number), "{text}");
        assert!(text.contains("interrupted"), "{text}");
    }
}

#[test]
fn a_question_is_answered_inside_and_the_run_goes_on() {
    let question = "Hm.\n<<<RALPHEX:QUESTION>>>\n{\"question\":\"Which colour?\"}\n<<<RALPHEX:END>>>";
    let test = Test::new().agent(Script::new().counting().iteration(says(question)).iteration(says(DONE)));
    let mut screen = start(&test);
    screen.shows("question: Which colour?");
    screen.keys("a");
    screen.shows("answer: ");
    screen.keys("the blue one\r");
    screen.until("complete", |text| text.lines().next().unwrap_or_default().contains("complete"));
    screen.keys("q");
    assert_eq!(screen.ends().0.code(), Some(0));
    let recorded = Script::recorded(&test.workspace().parent().unwrap().join("agent"));
    assert!(recorded[1].stdin.as_ref().unwrap().contains("the blue one"));
}

#[test]
fn files_have_their_difference_committed_or_not() {
    let script = Script::new()
        .iteration(says("One.").writes_file("greet.sh", "echo Hello\n").commits("Mend it"))
        .iteration(says("Two.").writes_file("greet.sh", "echo Hello again\n").says(DONE));
    let test = Test::new().file("greet.sh", "echo Helo\n").repository().agent(script);
    let mut screen = start(&test);
    screen.until("complete", |text| text.lines().next().unwrap_or_default().contains("complete"));
    screen.keys("4");
    screen.shows("greet.sh  +1 -1");
    screen.keys("jjjj\r");
    screen.shows("+echo Hello again");
    screen.keys("[");
    screen.shows("Mend it");
    screen.shows("greet.sh  +1 -1");
    screen.keys("jjjj\r");
    screen.shows("-echo Helo");
    screen.keys("q");
    screen.ends();
}

/// Presses Ctrl-Z, waits until the program has halted, and lets it go on.
#[cfg(target_os = "linux")]
fn halt_and_go_on(screen: &mut Screen) {
    screen.keys("\u{1a}");
    let state = |screen: &Screen| {
        let pid = screen.pid().as_raw_nonzero();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().chars().next().unwrap()
    };
    screen.until("a terminal that was given back", |_| {
        state(screen) == 'T' && screen.seen(|seen| !seen.parser.screen().alternate_screen())
    });
    screen.signal(rustix::process::Signal::CONT);
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_z_halts_at_once_when_the_run_is_over() {
    let test = Test::new().agent(says(DONE));
    let mut screen = start(&test);
    screen.until("complete", |text| text.lines().next().unwrap_or_default().contains("complete"));
    for _ in 0..2 {
        let start = std::time::Instant::now();
        halt_and_go_on(&mut screen);
        screen.until("the view again", |text| text.contains("the run is over"));
        assert!(screen.seen(|seen| seen.parser.screen().alternate_screen()));
        // Before, nobody listened, and the view stood still for five seconds.
        assert!(start.elapsed() < std::time::Duration::from_secs(4), "{:?}", start.elapsed());
    }
    screen.keys("q");
    assert_eq!(screen.ends().0.code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_z_halts_and_the_view_comes_back() {
    let test = Test::new().agent(says("Thinking.").hangs());
    let mut screen = start(&test);
    screen.shows("Thinking.");
    halt_and_go_on(&mut screen);
    screen.until("the view again", |text| text.contains("Thinking."));
    assert!(screen.seen(|seen| seen.parser.screen().alternate_screen()));
    screen.keys("Sy");
    screen.until("interrupted", |text| text.lines().next().unwrap_or_default().contains("interrupted"));
    screen.keys("q");
    screen.ends();
}

#[test]
fn another_terminal_sees_the_same_run() {
    let test = Test::new().agent(says("Thinking.").hangs());
    let running = test.start();
    running.until("the agent speaks", |running| running.journal().contains("Thinking."));
    let mut command = running.test.tool();
    command.arg("tui");
    let mut screen = Screen::start(command, 80, 24);
    screen.shows("Thinking.");
    screen.shows("running");
    screen.keys("q");
    assert_eq!(screen.ends().0.code(), Some(0), "looking does not end it");
    let mut command = running.test.tool();
    command.arg("tui");
    let mut screen = Screen::start(command, 80, 24);
    screen.shows("running");
    screen.keys("Sy");
    screen.until("interrupted", |text| text.lines().next().unwrap_or_default().contains("interrupted"));
    screen.keys("q");
    screen.ends();
    running.wait();
}
