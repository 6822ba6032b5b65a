//! Which tasks may start now. Pure.

use std::collections::BTreeSet;

use super::state::{Batch, Stage, TaskState};

/// The tasks to start, by their place in the batch, in the order in which they start. `is_held` says which tasks wait for a rate limit.
pub(crate) fn next(batch: &Batch, jobs: usize, is_held: impl Fn(&TaskState) -> bool) -> Vec<usize> {
    if batch.paused {
        return Vec::new();
    }
    let mut running: Vec<usize> =
        (0..batch.tasks.len()).filter(|&at| batch.tasks[at].stage == Stage::Running).collect();
    let over: BTreeSet<_> =
        batch.tasks.iter().filter(|task| task.stage.satisfies()).map(|task| &task.task.id).collect();
    let ready = |state: &TaskState| state.task.needs.iter().all(|need| over.contains(need));
    let mut waiting: Vec<usize> = (0..batch.tasks.len())
        .filter(|&at| {
            let state = &batch.tasks[at];
            state.stage == Stage::Waiting && !state.paused && ready(state) && !is_held(state)
        })
        .collect();
    // Work that was begun is finished first: others may need it.
    waiting.sort_by_key(|&at| (batch.tasks[at].attempt == 0, -i128::from(batch.tasks[at].task.priority), at));
    let mut starts = Vec::new();
    for at in waiting {
        if running.len() >= jobs {
            break;
        }
        let touches = &batch.tasks[at].task.touches;
        if running.iter().all(|&other| !overlap(touches, &batch.tasks[other].task.touches)) {
            running.push(at);
            starts.push(at);
        }
    }
    starts
}

/// Whether a file can match a pattern of both lists.
pub(crate) fn overlap(some: &[String], others: &[String]) -> bool {
    some.iter().any(|one| others.iter().any(|other| globs_meet(&parts(one), &parts(other))))
}

fn parts(glob: &str) -> Vec<&str> {
    let glob = glob.trim().trim_start_matches("./");
    let mut parts: Vec<&str> = glob.split('/').filter(|part| !part.is_empty()).collect();
    if glob.ends_with('/') {
        parts.push("**");
    }
    parts
}

/// Whether a path can match both. A directory that is named touches everything in it.
fn globs_meet(one: &[&str], other: &[&str]) -> bool {
    match (one, other) {
        ([], _) | (_, []) => true,
        (["**", rest @ ..], _) => globs_meet(rest, other) || globs_meet(one, &other[1..]),
        (_, ["**", rest @ ..]) => globs_meet(one, rest) || globs_meet(&one[1..], other),
        ([first, one @ ..], [second, other @ ..]) => {
            names_meet(first.as_bytes(), second.as_bytes()) && globs_meet(one, other)
        }
    }
}

/// The same for one name with `*` and `?`. Other special characters are taken as "may match", which only delays a task.
fn names_meet(one: &[u8], other: &[u8]) -> bool {
    if one.contains(&b'[') || other.contains(&b'[') || one.contains(&b'{') || other.contains(&b'{') {
        return true;
    }
    match (one, other) {
        ([], []) => true,
        ([b'*', rest @ ..], _) if names_meet(rest, other) => true,
        ([b'*', ..], [_, rest @ ..]) if names_meet(one, rest) => true,
        (_, [b'*', rest @ ..]) if names_meet(one, rest) => true,
        ([_, rest @ ..], [b'*', ..]) if names_meet(rest, other) => true,
        ([a, one @ ..], [b, other @ ..]) if a == b || *a == b'?' || *b == b'?' => names_meet(one, other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::task::{Task, TaskId};

    #[test]
    fn patterns_that_can_match_the_same_file_overlap() {
        for (one, other, meet) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src/**", "src/x/y.rs", true),
            ("src", "src/x.rs", true),
            ("src/", "./src/x.rs", true),
            ("*.md", "docs/a.md", false),
            ("**/*.md", "docs/a.md", true),
            ("a*c", "ab*", true),
            ("a*c", "b*", false),
            ("lib-?.rs", "lib-1.rs", true),
        ] {
            assert_eq!(overlap(&[one.into()], &[other.into()]), meet, "{one} {other}");
            assert_eq!(overlap(&[other.into()], &[one.into()]), meet, "{other} {one}");
        }
    }

    fn stage() -> impl Strategy<Value = Stage> {
        prop_oneof![
            4 => Just(Stage::Waiting),
            2 => Just(Stage::Running),
            1 => Just(Stage::Checking { tip: "t".into() }),
            1 => Just(Stage::Merged { commit: None }),
            1 => Just(Stage::Stuck),
            1 => Just(Stage::Skipped),
        ]
    }

    proptest! {
        #[test]
        fn what_starts_is_allowed_and_nothing_allowed_is_left(
            tasks in prop::collection::vec((stage(), prop::collection::vec(0..20usize, 0..3), prop::collection::vec(0..5u8, 0..2), -3..3i64, any::<bool>(), 0..3u8), 1..20),
            jobs in 1..6usize,
        ) {
            let mut batch = Batch::default();
            for (at, (stage, needs, touches, priority, paused, agent)) in tasks.iter().enumerate() {
                let id = |at: usize| TaskId::new(format!("t{at}")).unwrap();
                let task = Task {
                    id: id(at), title: String::new(), prompt: String::new(), verify: Vec::new(),
                    agent: Some(agent.to_string()), model: None,
                    needs: needs.iter().filter(|&&need| need < at).map(|&need| id(need)).collect(),
                    touches: touches.iter().map(|name| format!("d{name}/**")).collect(),
                    priority: *priority, limits: crate::batch::task::TaskLimits::default(),
                };
                let state = TaskState { stage: stage.clone(), paused: *paused, ..TaskState::new(task) };
                batch.tasks.push(state);
            }
            let held = |state: &TaskState| state.task.agent.as_deref() == Some("0");
            let starts = next(&batch, jobs, held);
            let mut active: Vec<usize> = (0..batch.tasks.len()).filter(|&at| batch.tasks[at].stage == Stage::Running).collect();
            let before = active.len();
            let done = |id: &TaskId| batch.tasks.iter().any(|state| state.task.id == *id && state.stage.satisfies());
            let clash = |at: usize, active: &[usize]| active.iter().any(|&one| overlap(&batch.tasks[at].task.touches, &batch.tasks[one].task.touches));
            let allowed = |at: usize| {
                let state = &batch.tasks[at];
                state.stage == Stage::Waiting && !state.paused && !held(state) && state.task.needs.iter().all(done)
            };
            for &at in &starts {
                prop_assert!(allowed(at) && !clash(at, &active));
                active.push(at);
            }
            prop_assert!(active.len() <= jobs.max(before));
            for at in (0..batch.tasks.len()).filter(|at| allowed(*at) && !starts.contains(at)) {
                prop_assert!(active.len() >= jobs || clash(at, &active));
                for &started in &starts {
                    let (left, went) = (batch.tasks[at].task.priority, batch.tasks[started].task.priority);
                    prop_assert!(left <= went || clash(at, &active), "a lower priority came first");
                }
            }
        }
    }
}
