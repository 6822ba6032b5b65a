use std::time::Duration;

use super::super::StopReason;
use super::{Clocks, Due, LOOK, Stopwatch, Watch};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn watch(clocks: Clocks) -> Watch {
    Watch::new(clocks)
}

#[test]
fn each_clock_has_its_own_reason() {
    let none = Clocks::default();
    let startup = watch(Clocks { startup: Some(seconds(10)), ..none });
    assert_eq!((startup.due(seconds(9)), startup.due(seconds(10))), (None, Some(Due::Stop(StopReason::Startup))));
    let total = watch(Clocks { total: Some(seconds(10)), ..none });
    assert_eq!((total.due(seconds(9)), total.due(seconds(10))), (None, Some(Due::Stop(StopReason::Total))));
    let mut ended = watch(none);
    ended.turn_ended(seconds(100));
    ended.turn_ended(seconds(104));
    assert_eq!((ended.due(seconds(104)), ended.due(seconds(105))), (None, Some(Due::Stop(StopReason::AfterEnd))));
    assert_eq!(watch(none).due(seconds(1_000_000)), None);
}

#[test]
fn a_result_that_was_given_outweighs_the_other_clocks() {
    let mut watch = watch(Clocks { total: Some(seconds(105)), ..Clocks::default() });
    watch.turn_ended(seconds(100));
    assert_eq!(watch.due(seconds(105)), Some(Due::Stop(StopReason::AfterEnd)));
}

#[test]
fn the_first_byte_ends_the_start_up() {
    let mut watch = watch(Clocks { startup: Some(seconds(10)), ..Clocks::default() });
    watch.heard(seconds(3));
    assert_eq!((watch.due(seconds(1000)), watch.deadline()), (None, None));
}

/// Plays a silent agent; `used` is the processor time of its tree at a given moment. Returns when it was stopped, and
/// how often the tree was looked at.
fn play(idle: Duration, until: Duration, used: impl Fn(Duration) -> Duration) -> (Option<Duration>, u32) {
    let mut watch = watch(Clocks { idle: Some(idle), ..Clocks::default() });
    let mut samples = 0;
    while let Some(now) = watch.deadline().filter(|now| *now <= until) {
        match watch.due(now) {
            Some(Due::Stop(why)) => {
                assert_eq!(why, StopReason::Idle);
                return (Some(now), samples);
            }
            Some(Due::Sample) => {
                samples += 1;
                watch.sampled(now, used(now));
                if watch.due(now) == Some(Due::Stop(StopReason::Idle)) {
                    return (Some(now), samples);
                }
            }
            None => panic!("a deadline without a reason at {now:?}"),
        }
    }
    (None, samples)
}

#[test]
fn a_tree_without_work_is_idle_exactly_at_the_limit() {
    for idle in [1, 2, 10, 600, 3600].map(seconds) {
        let (stopped, samples) = play(idle, 3 * idle, |_| seconds(7));
        assert_eq!(stopped, Some(idle), "{idle:?}");
        assert!(samples >= 2 && u64::from(samples) <= idle.as_secs().max(2), "{samples} looks in {idle:?}");
    }
}

#[test]
fn a_tree_that_works_is_never_idle() {
    assert_eq!(play(seconds(600), seconds(86_400), |now| now / 50).0, None);
}

#[test]
fn work_that_ends_leaves_the_whole_limit() {
    let (stopped, _) = play(seconds(600), seconds(86_400), |now| now.min(seconds(1000)));
    let stopped = stopped.expect("it is idle after the work");
    assert!(stopped >= seconds(1600) && stopped <= seconds(1660), "{stopped:?}");
}

#[test]
fn the_timers_of_an_idle_runtime_are_no_work() {
    assert!(play(seconds(600), seconds(86_400), |now| now / 1000).0.is_some());
}

#[test]
fn a_first_look_that_comes_too_late_is_not_the_last() {
    let mut watch = watch(Clocks { idle: Some(seconds(600)), ..Clocks::default() });
    let late = seconds(900);
    assert_eq!(watch.due(late), Some(Due::Sample));
    watch.sampled(late, seconds(50));
    assert_eq!(watch.due(late), None);
    let next = watch.deadline().unwrap();
    assert!(next > late && next <= late + seconds(60), "{next:?}");
}

#[tokio::test(start_paused = true)]
async fn a_paused_stopwatch_stands_still() {
    let mut stopwatch = Stopwatch::start();
    tokio::time::sleep(seconds(3)).await;
    stopwatch.pause();
    tokio::time::sleep(seconds(4)).await;
    assert_eq!(stopwatch.look(), seconds(3));
    stopwatch.resume();
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(stopwatch.look(), seconds(5));
}

#[tokio::test(start_paused = true)]
async fn time_in_which_ralph_did_not_run_does_not_count() {
    let mut stopwatch = Stopwatch::start();
    tokio::time::sleep(seconds(3)).await;
    assert_eq!(stopwatch.look(), seconds(3));
    // The lid was closed for a night.
    tokio::time::advance(seconds(30_000)).await;
    assert_eq!(stopwatch.look(), seconds(3) + LOOK);
}

#[test]
fn silence_counts_whatever_the_tree_does_and_keys_end_it() {
    let second = Duration::from_secs;
    let mut watch = Watch::new(Clocks { silence: Some(second(10)), ..Clocks::default() });
    assert_eq!((watch.deadline(), watch.due(second(9))), (Some(second(10)), None));
    watch.heard(second(5));
    watch.touched(second(8));
    assert_eq!((watch.due(second(17)), watch.due(second(18))), (None, Some(Due::Stop(StopReason::Idle))));
}
