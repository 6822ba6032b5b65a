//! Names in NATS: streams, buckets, subjects, keys, headers.

use crate::batch::task::TaskId;

/// Tasks that wait for a worker or are worked on.
pub(crate) const TASKS: &str = "RALPH_TASKS";
/// Journals of runs, as they grow.
pub(crate) const JOURNAL: &str = "RALPH_JOURNAL";
/// Tasks that no worker takes, with the reason.
pub(crate) const DEAD: &str = "RALPH_DEAD";
/// Key-value: state and leases of tasks, orders to their loops.
pub(crate) const STATE: &str = "ralph";
/// Objects: the directories of finished runs.
pub(crate) const RUNS: &str = "ralph_runs";
/// The consumer of tasks that need no label.
pub(crate) const WORKERS: &str = "workers";

pub(crate) const VERSION: &str = "Ralph-Version";
pub(crate) const WHY: &str = "Ralph-Why";
/// How many workers have had the task, in a part of a journal.
pub(crate) const LEASE: &str = "Ralph-Lease";
/// Where in the journal the part begins.
pub(crate) const OFFSET: &str = "Ralph-Offset";
/// The run that the part belongs to.
pub(crate) const RUN: &str = "Ralph-Run";

/// A task's id as one token of a subject or key: a dot would begin another token, and `=` is in no id.
pub(crate) fn token(task: &TaskId) -> String {
    task.as_str().replace('.', "=2E")
}

/// The id that a token was made from.
pub(crate) fn task_of(token: &str) -> Option<TaskId> {
    TaskId::new(token.replace("=2E", "."))
}

/// A label: letters, digits, `-` and `_`.
pub(crate) fn is_label(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Where a task is published. A label is one more token, so that each label has a consumer of its own.
pub(crate) fn task_subject(batch: &str, task: &TaskId, label: Option<&str>) -> String {
    let label = label.map(|label| format!(".{label}")).unwrap_or_default();
    format!("ralph.tasks.{batch}.{}{label}", token(task))
}

/// Batch and task of a subject.
pub(crate) fn of_subject(subject: &str) -> Option<(&str, TaskId)> {
    let mut tokens = subject.split('.').skip(2);
    let batch = tokens.next()?;
    Some((batch, task_of(tokens.next()?)?))
}

/// The consumer for a label, and what it gets.
pub(crate) fn consumer(label: Option<&str>) -> (String, String) {
    match label {
        None => (WORKERS.to_owned(), "ralph.tasks.*.*".to_owned()),
        Some(label) => (format!("{WORKERS}-{label}"), format!("ralph.tasks.*.*.{label}")),
    }
}

pub(crate) fn journal_subject(batch: &str, task: &TaskId) -> String {
    format!("ralph.journal.{batch}.{}", token(task))
}

pub(crate) fn dead_subject(subject: &str) -> String {
    format!("ralph.dead.{}", subject.strip_prefix("ralph.tasks.").unwrap_or(subject))
}

/// The key of a task's state and lease.
pub(crate) fn state_key(batch: &str, task: &TaskId) -> String {
    format!("state.{batch}.{}", token(task))
}

/// The key of the orders to a task's loop.
pub(crate) fn orders_key(batch: &str, task: &TaskId) -> String {
    format!("orders.{batch}.{}", token(task))
}

/// The object with the directory of a task's run.
pub(crate) fn run_object(batch: &str, task: &TaskId) -> String {
    format!("{batch}.{}.tar.zst", token(task))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_one_token_and_comes_back() {
        for id in ["a", "a.b", "a..b", "0._-", "x.lock", &"z.".repeat(40)] {
            let task = TaskId::new(id).unwrap();
            let token = token(&task);
            assert!(!token.contains(['.', '*', '>', ' ']), "{token}");
            assert_eq!(task_of(&token), Some(task.clone()));
            let subject = task_subject("20261118-1", &task, Some("gpu"));
            assert_eq!(of_subject(&subject), Some(("20261118-1", task)));
            assert_eq!(subject.split('.').count(), 5);
        }
        for label in ["", "a.b", "*", ">", "a b"] {
            assert!(!is_label(label), "{label}");
        }
    }
}
