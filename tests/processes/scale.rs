//! Many agents in one process.

use ralph::process::{Exit, start};

use super::support::{patient, processes_with, prompted, real_time, watch};

#[test]
fn two_hundred_agents_at_once_are_each_supervised_in_full() {
    // A duration that no other process sleeps, to find them by: numbers of processes are used again.
    let nap = format!("61.{}", std::process::id());
    real_time(async {
        // Each reads its prompt, leaves one child in its own session, and waits until all others are there.
        let script = format!("cat; (setsid sleep {nap} >/dev/null 2>&1 &); sleep 2; exit 3");
        let local = tokio::task::LocalSet::new();
        let agents: Vec<_> = (0..200)
            .map(|number| {
                let process = start(prompted(&script, format!("prompt {number}\n")), patient()).unwrap();
                local.spawn_local(watch(process))
            })
            .collect();
        local
            .run_until(async {
                for (number, agent) in agents.into_iter().enumerate() {
                    let seen = agent.await.unwrap();
                    let what = format!("{number}: {:?} {:?}", seen.ended, String::from_utf8_lossy(&seen.stderr));
                    assert_eq!((seen.text(), seen.ended.exit), (format!("prompt {number}\n"), Exit::Code(3)), "{what}");
                    assert_eq!(seen.ended.left_behind.len(), 1, "{what}");
                    assert!(seen.ended.survivors.is_empty() && seen.ended.pipes_closed, "{what}");
                }
            })
            .await;
    });
    assert_eq!(processes_with(&nap), Vec::<String>::new());
}
