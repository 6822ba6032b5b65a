//! The stop ladder, and what is left when the agent itself has ended.

use std::time::{Duration, Instant};

use ralph::process::{Clocks, Exit, Output, StopReason, UnixSignal, start};

use super::support::{
    eventually, exists, ladder, patient, pids, real_time, run, run_paused, runs, shell, wait_for, watch,
};

#[test]
fn the_first_step_is_a_request_that_can_be_answered() {
    let mut invocation = shell("trap 'echo cleaned up; exit 7' INT; echo up; while :; do sleep 0.05; done");
    invocation.stop = ladder(&[UnixSignal::Int, UnixSignal::Term], Duration::from_secs(20));
    real_time(async {
        let mut process = start(invocation, patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.stop(StopReason::Asked);
        process.stop(StopReason::Idle);
        let seen = watch(process).await;
        assert_eq!(seen.text(), "cleaned up\n");
        assert_eq!((seen.ended.exit, seen.ended.stopped), (Exit::Code(7), Some(StopReason::Asked)));
    });
}

#[test]
fn the_steps_follow_each_other_until_one_works() {
    let mut invocation = shell("trap 'echo no' INT; trap '' HUP; echo up; while :; do sleep 0.05; done");
    invocation.stop = ladder(&[UnixSignal::Int, UnixSignal::Hup, UnixSignal::Term], Duration::from_millis(500));
    real_time(async {
        let mut process = start(invocation, patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.stop(StopReason::Asked);
        let seen = watch(process).await;
        assert_eq!((seen.text().as_str(), seen.ended.exit), ("no\n", Exit::Signal(15)));
        assert!(seen.took >= Duration::from_secs(1), "{:?}", seen.took);
    });
}

#[test]
fn one_that_ignores_everything_is_killed() {
    let mut invocation = shell("trap '' INT TERM HUP QUIT; while :; do sleep 1; done");
    invocation.stop = ladder(&[UnixSignal::Int, UnixSignal::Term], Duration::from_secs(300));
    let seen = run_paused(invocation, Clocks { total: Some(Duration::from_secs(3600)), ..Clocks::default() });
    assert_eq!((seen.ended.exit, seen.ended.stopped), (Exit::Signal(9), Some(StopReason::Total)));
    assert!(seen.ended.survivors.is_empty());
}

#[test]
fn output_is_read_while_the_ladder_is_climbed() {
    // More than a pipe holds: without a reader the agent could not finish its last words.
    let mut invocation = shell("trap 'head -c 3000000 /dev/zero; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    invocation.stop = ladder(&[UnixSignal::Term], Duration::from_secs(30));
    real_time(async {
        let mut process = start(invocation, patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.stop(StopReason::Asked);
        let seen = watch(process).await;
        assert_eq!((seen.stdout.len(), seen.ended.exit), (3_000_000, Exit::Code(0)));
    });
}

#[test]
fn a_halted_agent_hears_the_request_too() {
    real_time(async {
        let mut process = start(shell("echo up; kill -STOP $$; sleep 30"), patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.stop(StopReason::Asked);
        let seen = watch(process).await;
        assert_eq!(seen.ended.exit, Exit::Signal(15));
        assert!(seen.took < Duration::from_secs(4), "{:?}", seen.took);
    });
}

#[test]
fn kill_does_not_ask() {
    real_time(async {
        let mut process =
            start(shell("trap 'exit 0' TERM INT; echo up; while :; do sleep 0.05; done"), patient()).unwrap();
        wait_for(&mut process, "up").await;
        process.kill();
        assert_eq!(watch(process).await.ended.exit, Exit::Signal(9));
    });
}

#[test]
fn the_tool_of_an_agent_that_dies_of_the_request_dies_too() {
    // The agent ends on TERM, its tool in another session does not hear it: as Claude and OpenCode do.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("setsid sh -c 'trap \"\" TERM; echo $$ >> {0}; sleep 30' & echo up; wait", file.display());
    real_time(async {
        let mut process = start(shell(&script), patient()).unwrap();
        wait_for(&mut process, "up").await;
        assert!(eventually(Duration::from_secs(10), || pids(&file).len() == 1));
        process.stop(StopReason::Asked);
        let seen = watch(process).await;
        assert_eq!(seen.ended.exit, Exit::Signal(15));
        assert!(!exists(pids(&file)[0]));
    });
}

#[test]
fn a_grandchild_that_holds_the_pipe_does_not_hold_the_loop() {
    let seen = run(shell("sleep 30 & echo done"), patient());
    assert_eq!((seen.text().as_str(), seen.ended.exit, seen.ended.stopped), ("done\n", Exit::Code(0), None));
    assert_eq!(seen.ended.left_behind.len(), 1, "{:?}", seen.ended);
    assert!(seen.ended.left_behind[0].command.contains("sleep 30"), "{:?}", seen.ended);
    assert!(!exists(seen.ended.left_behind[0].pid));
    assert!(seen.ended.pipes_closed, "the holder is dead, so the output has ended");
    assert!(seen.took >= Duration::from_millis(200) && seen.took < Duration::from_secs(5), "{:?}", seen.took);
}

#[test]
fn what_a_left_child_writes_during_the_drain_arrives() {
    let seen = run(shell("(sleep 0.05; echo late) & echo done"), patient());
    assert_eq!(seen.text(), "done\nlate\n");
    assert!(seen.ended.left_behind.is_empty(), "{:?}", seen.ended);
}

#[test]
fn one_that_is_to_be_left_running_is_left_running() {
    let mut invocation = shell("sleep 30 & echo done");
    invocation.leave_running = true;
    let seen = run(invocation, patient());
    let pid = seen.ended.left_behind[0].pid;
    assert!(runs(pid) && !seen.ended.pipes_closed);
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_double_forked_child_in_its_own_session_is_swept() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!(
        "(setsid sh -c 'echo $$ >> {0}; exec sleep 30' >/dev/null 2>&1 &); sleep 0.3; echo done",
        file.display()
    );
    let seen = run(shell(&script), patient());
    assert_eq!(seen.text(), "done\n");
    assert_eq!(seen.ended.left_behind.len(), 1, "{:?}", seen.ended);
    assert_eq!(pids(&file), [seen.ended.left_behind[0].pid]);
    assert!(!exists(seen.ended.left_behind[0].pid));
}

#[test]
fn a_child_that_has_dropped_its_environment_is_swept_with_its_parents() {
    let script = "setsid env -i sh -c 'sleep 30; true' >/dev/null 2>&1 & echo up; wait";
    real_time(async {
        let mut process = start(shell(script), patient()).unwrap();
        wait_for(&mut process, "up").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let session = children_of(process.pid());
        assert_eq!(session.len(), 1);
        process.stop(StopReason::Asked);
        watch(process).await;
        assert!(session.iter().all(|pid| !exists(*pid)));
    });
}

#[test]
fn a_neighbour_is_never_touched() {
    // Another agent of the same process, and a child that is no agent at all.
    let mut stranger = std::process::Command::new("sleep").arg("30").spawn().unwrap();
    real_time(async {
        let mut neighbour = start(shell("(setsid sleep 30 &); echo up; sleep 30"), patient()).unwrap();
        wait_for(&mut neighbour, "up").await;
        let seen = run_here("(setsid sleep 30 >/dev/null 2>&1 &); sleep 0.2").await;
        assert_eq!(seen.ended.left_behind.len(), 1, "{:?}", seen.ended);
        assert!(runs(neighbour.pid()) && runs(stranger.id()));
        neighbour.kill();
        let seen = watch(neighbour).await;
        assert!(seen.ended.survivors.is_empty());
    });
    assert!(runs(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_hundred_processes_are_gone_soon() {
    let script = "i=0; while [ $i -lt 33 ]; do (setsid sh -c 'sleep 30 & sleep 30 & wait' >/dev/null 2>&1 &); i=$((i+1)); done; echo up; sleep 30";
    real_time(async {
        let mut process = start(shell(script), patient()).unwrap();
        wait_for(&mut process, "up").await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let began = Instant::now();
        process.kill();
        let seen = watch(process).await;
        assert!(seen.ended.survivors.is_empty());
        // The benchmark has the true figure; this bound only catches a wait that was forgotten.
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}

#[test]
fn a_dropped_handle_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script = format!("setsid sh -c 'echo $$ >> {0}; sleep 30' & echo $$ >> {0}; echo up; wait", file.display());
    real_time(async {
        let mut process = start(shell(&script), patient()).unwrap();
        wait_for(&mut process, "up").await;
        assert!(eventually(Duration::from_secs(10), || pids(&file).len() == 2));
    });
    assert!(eventually(Duration::from_secs(5), || pids(&file).iter().all(|pid| !exists(*pid))), "{:?}", pids(&file));
}

#[test]
fn after_the_end_comes_the_end_again() {
    real_time(async {
        let mut process = start(shell("exit 4"), patient()).unwrap();
        let Output::Ended(first) = process.next().await else { panic!("no output was written") };
        let Output::Ended(second) = process.next().await else { panic!("no output was written") };
        assert_eq!((first.exit, &first), (Exit::Code(4), &second));
    });
}

#[test]
fn death_by_a_signal_is_told_from_an_exit_code() {
    assert_eq!(run(shell("kill -SEGV $$"), patient()).ended.exit, Exit::Signal(11));
    assert_eq!(run(shell("exit 139"), patient()).ended.exit, Exit::Code(139));
}

async fn run_here(script: &str) -> super::support::Seen {
    watch(start(shell(script), patient()).unwrap()).await
}

fn children_of(parent: u32) -> Vec<u32> {
    let numbers =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
                stat.rsplit(')').next().unwrap().split_whitespace().nth(1) == Some(&parent.to_string())
            })
        })
        .collect()
}

#[test]
fn an_orphan_that_has_dropped_everything_is_swept() {
    // No parents, no group, no session, no environment, no descriptors: a daemon by the book.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let daemon =
        format!("env -i setsid sh -c 'echo $$ >> {}; exec sleep 30' </dev/null >/dev/null 2>&1", file.display());
    let seen = run(shell(&format!("({daemon} &); sleep 0.3")), patient());
    assert_eq!(seen.ended.left_behind.len(), 1, "{:?}", seen.ended);
    assert!(!exists(pids(&file)[0]));
}

#[test]
fn orphans_that_die_during_a_run_do_not_stay_as_zombies() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let orphan = format!("setsid sh -c 'echo $$ >> {}' >/dev/null 2>&1", file.display());
    let script = format!("i=0; while [ $i -lt 20 ]; do ({orphan} &); i=$((i+1)); done; echo up; sleep 60");
    real_time(async {
        let mut process = start(shell(&script), patient()).unwrap();
        wait_for(&mut process, "up").await;
        assert!(eventually(Duration::from_secs(10), || pids(&file).len() == 20));
        // The next look at the table is at most some seconds away.
        let gone = async {
            while pids(&file).iter().any(|pid| exists(*pid)) {
                let _ = tokio::time::timeout(Duration::from_millis(100), process.next()).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.expect("zombies are left");
    });
}

#[test]
fn an_exit_code_is_not_lost_when_the_kill_comes_too_late() {
    real_time(async {
        let mut process = start(shell("exit 5"), patient()).unwrap();
        // It has ended, but nobody has looked yet.
        assert!(eventually(Duration::from_secs(10), || !runs(process.pid())));
        process.kill();
        assert_eq!(watch(process).await.ended.exit, Exit::Code(5));
    });
}
