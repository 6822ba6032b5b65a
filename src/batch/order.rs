//! Orders to a batch that is running: the one vocabulary of commands, board and page. They travel as those to a run do (`control/socket.rs`).

use serde::{Deserialize, Serialize};

use super::task::{Task, TaskId};
use crate::control::Orderable;

/// What a person tells a batch. Without a task, the whole batch is meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum BatchOrder {
    Hint {
        task: TaskId,
        words: String,
    },
    Pause {
        task: Option<TaskId>,
    },
    Continue {
        task: Option<TaskId>,
    },
    /// After the current iterations.
    Stop {
        task: Option<TaskId>,
    },
    /// Now, and for good.
    Cancel,
    Retry {
        task: TaskId,
    },
    Skip {
        task: TaskId,
    },
    Add {
        tasks: Vec<Task>,
    },
}

impl Orderable for BatchOrder {}

impl BatchOrder {
    /// What it will do, for the person who gave it.
    pub(crate) fn effect(&self) -> String {
        match self {
            Self::Hint { task, .. } => format!("{task} gets your hint with its next iteration"),
            Self::Pause { task: Some(task) } => format!("{task} pauses after this iteration"),
            Self::Pause { task: None } => {
                "pausing after the current iterations; `ralph batch continue` ends the pause".to_owned()
            }
            Self::Continue { task: Some(task) } => format!("{task} continues"),
            Self::Continue { task: None } => "continuing".to_owned(),
            Self::Stop { task: Some(task) } => format!("{task} stops after this iteration"),
            Self::Stop { task: None } => "stopping after the current iterations".to_owned(),
            Self::Cancel => "cancelled: what is running is stopped, and no other task starts".to_owned(),
            Self::Retry { task } => format!("{task} runs again"),
            Self::Skip { task } => format!("skipped {task}"),
            Self::Add { tasks } => format!("added {}", crate::plural::plural(tasks.len() as u64, "task")),
        }
    }
}
