//! Many agents in one process.

use ralph::process::{Exit, start};

use super::support::{exists, patient, prompted, real_time, watch};

#[test]
fn two_hundred_agents_at_once_are_each_supervised_in_full() {
    real_time(async {
        // Each reads its prompt, leaves one child in its own session, and waits until all others are there.
        let local = tokio::task::LocalSet::new();
        let agents: Vec<_> = (0..200)
            .map(|number| {
                let script = "cat; (setsid sleep 60 >/dev/null 2>&1 &); sleep 2; exit 3";
                let process = start(prompted(script, format!("prompt {number}\n")), patient()).unwrap();
                local.spawn_local(async move { (number, watch(process).await) })
            })
            .collect();
        local
            .run_until(async {
                for agent in agents {
                    let (number, seen) = agent.await.unwrap();
                    assert_eq!((seen.text(), seen.ended.exit), (format!("prompt {number}\n"), Exit::Code(3)));
                    assert_eq!(seen.ended.left_behind.len(), 1, "{number}: {:?}", seen.ended);
                    assert!(seen.ended.left_behind.iter().all(|stray| !exists(stray.pid)));
                    assert!(seen.ended.survivors.is_empty() && seen.ended.pipes_closed);
                }
            })
            .await;
    });
}
