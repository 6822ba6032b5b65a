//! What a batch has decided, as records on disk, and the one fold of them. A record is on disk before anything follows from it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::task::{Task, TaskId};
use crate::journal::disk::{Disk as _, Growing, Make, RealDisk};

/// How a batch was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Start {
    pub batch: String,
    pub ralph: String,
    /// The working directory in which it was started, and the top of its repository.
    pub workspace: PathBuf,
    pub repository: PathBuf,
    /// The branch that the work is merged into, and the commit that a new one starts at.
    pub target: String,
    pub base: String,
    pub source: String,
    pub jobs: usize,
    pub max_cost: Option<f64>,
    pub max_seconds: Option<u64>,
    pub max_failures: Option<u32>,
    pub merge_attempts: u32,
    /// The checks of the batch: command, directory, seconds.
    pub checks: Vec<(String, Option<PathBuf>, u64)>,
    /// More arguments for each run, as they were given to the batch.
    pub run_args: Vec<String>,
    /// Where workers are, when the tasks are not worked on here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<OnFleet>,
}

/// The fleet that works on a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OnFleet {
    /// The address of NATS, without credentials.
    pub address: String,
    /// The repository that workers fetch from and push to.
    pub repo: String,
    /// The label that workers must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Fact {
    BatchStart {
        start: Box<Start>,
    },
    Added {
        task: Box<Task>,
    },
    Started {
        task: TaskId,
        attempt: u32,
    },
    Run {
        task: TaskId,
        run: String,
    },
    /// The run completed; its work waits to be merged.
    Completed {
        task: TaskId,
        tip: String,
        cost_usd: Option<f64>,
    },
    /// It waits, to be started again.
    Again {
        task: TaskId,
        why: String,
        cost_usd: Option<f64>,
    },
    Held {
        agent: String,
        until: Timestamp,
    },
    /// The target is about to be moved to this commit.
    Merging {
        task: TaskId,
        commit: String,
    },
    /// Without a commit it changed nothing.
    Merged {
        task: TaskId,
        commit: Option<String>,
    },
    /// It did not merge: its loop gets this as a prompt.
    Unmerged {
        task: TaskId,
        why: String,
        prompt: String,
        tip: String,
    },
    Stuck {
        task: TaskId,
        why: String,
        cost_usd: Option<f64>,
    },
    Skipped {
        task: TaskId,
    },
    /// Words of a person for the next prompts of a task.
    Hinted {
        task: TaskId,
        words: String,
    },
    /// `None`: the whole batch.
    Paused {
        task: Option<TaskId>,
    },
    Continued {
        task: Option<TaskId>,
    },
    /// Nothing that is not merged is worked on any more.
    Cancelled,
    Retried {
        task: TaskId,
    },
    Resumed,
    BatchEnd {
        exit_code: u8,
        why: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    #[serde(flatten)]
    fact: Fact,
}

impl Line {
    fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Where a task is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    Waiting,
    Running,
    /// Its work is rebased and checked, or waits for that.
    Checking {
        tip: String,
    },
    Merging {
        tip: String,
        commit: String,
    },
    Merged {
        commit: Option<String>,
    },
    Stuck,
    Skipped,
}

impl Stage {
    /// Nothing more happens to it, unless someone says so.
    pub(crate) const fn is_over(&self) -> bool {
        self.satisfies() || matches!(self, Self::Stuck)
    }

    /// Whether tasks that need it may start.
    pub(crate) const fn satisfies(&self) -> bool {
        matches!(self, Self::Merged { .. } | Self::Skipped)
    }
}

/// A task and what has become of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TaskState {
    pub task: Arc<Task>,
    pub stage: Stage,
    pub attempt: u32,
    /// How often its work did not merge.
    pub unmerged: u32,
    pub run: Option<String>,
    pub cost_usd: Option<f64>,
    pub why: Option<String>,
    /// The prompt of the next attempt, and the commit that did not merge.
    pub repair: Option<(String, String)>,
    pub paused: bool,
    /// What a person says about it.
    pub hints: Vec<String>,
}

impl TaskState {
    pub(crate) fn new(task: Task) -> Self {
        Self {
            task: Arc::new(task),
            stage: Stage::Waiting,
            attempt: 0,
            unmerged: 0,
            run: None,
            cost_usd: None,
            why: None,
            repair: None,
            paused: false,
            hints: Vec::new(),
        }
    }
}

/// A batch as far as its records say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Batch {
    pub start: Start,
    pub tasks: Vec<TaskState>,
    pub held: BTreeMap<String, Timestamp>,
    pub paused: bool,
    pub began: Option<Timestamp>,
    pub end: Option<(u8, String)>,
}

impl Batch {
    pub(crate) fn task(&self, id: &TaskId) -> Option<&TaskState> {
        self.tasks.iter().find(|state| state.task.id == *id)
    }

    /// Whether any task was ever started.
    pub(crate) fn began_work(&self) -> bool {
        self.tasks.iter().any(|state| state.attempt > 0)
    }

    /// `ralph/<batch>/<task>`.
    pub(crate) fn branch(&self, id: &TaskId) -> String {
        format!("ralph/{}/{}", self.start.batch, id.in_branch())
    }

    pub(crate) fn cost(&self) -> f64 {
        self.tasks.iter().filter_map(|state| state.cost_usd).sum()
    }

    pub(crate) fn see(&mut self, fact: Fact, at: Timestamp) {
        self.began.get_or_insert(at);
        let tasks = &mut self.tasks;
        let mut with = |id: &TaskId, change: &mut dyn FnMut(&mut TaskState)| {
            tasks.iter_mut().filter(|state| state.task.id == *id).for_each(change);
        };
        match fact {
            Fact::BatchStart { start } => self.start = *start,
            Fact::Added { task } => self.tasks.push(TaskState::new(*task)),
            Fact::Started { task, attempt } => with(&task, &mut |state| {
                (state.stage, state.attempt, state.why) = (Stage::Running, attempt, None);
            }),
            Fact::Run { task, run } => with(&task, &mut |state| state.run = Some(run.clone())),
            Fact::Completed { task, tip, cost_usd } => with(&task, &mut |state| {
                state.stage = Stage::Checking { tip: tip.clone() };
                state.cost_usd = cost_usd.or(state.cost_usd);
                state.repair = None;
            }),
            Fact::Again { task, why, cost_usd } => with(&task, &mut |state| {
                (state.stage, state.why) = (Stage::Waiting, Some(why.clone()));
                state.cost_usd = cost_usd.or(state.cost_usd);
            }),
            Fact::Held { agent, until } => drop(self.held.insert(agent, until)),
            Fact::Merging { task, commit } => with(&task, &mut |state| {
                if let Stage::Checking { tip } | Stage::Merging { tip, .. } = state.stage.clone() {
                    state.stage = Stage::Merging { tip, commit: commit.clone() };
                }
            }),
            Fact::Merged { task, commit } => with(&task, &mut |state| {
                state.why = commit.is_none().then(|| "nothing to change".to_owned());
                state.stage = Stage::Merged { commit: commit.clone() };
            }),
            Fact::Unmerged { task, why, prompt, tip } => with(&task, &mut |state| {
                (state.stage, state.why) = (Stage::Waiting, Some(why.clone()));
                state.unmerged += 1;
                state.repair = Some((prompt.clone(), tip.clone()));
            }),
            Fact::Stuck { task, why, cost_usd } => with(&task, &mut |state| {
                (state.stage, state.why) = (Stage::Stuck, Some(why.clone()));
                state.cost_usd = cost_usd.or(state.cost_usd);
            }),
            Fact::Skipped { task } => with(&task, &mut |state| (state.stage, state.why) = (Stage::Skipped, None)),
            Fact::Hinted { task, words } => with(&task, &mut |state| state.hints.push(words.clone())),
            Fact::Paused { task: Some(task) } => with(&task, &mut |state| state.paused = true),
            Fact::Continued { task: Some(task) } => with(&task, &mut |state| state.paused = false),
            Fact::Paused { task: None } => self.paused = true,
            Fact::Continued { task: None } => {
                self.paused = false;
                self.tasks.iter_mut().for_each(|state| state.paused = false);
            }
            Fact::Cancelled => {
                for state in &mut self.tasks {
                    if matches!(state.stage, Stage::Waiting | Stage::Running | Stage::Checking { .. }) {
                        (state.stage, state.why) = (Stage::Skipped, Some("cancelled".to_owned()));
                    }
                }
            }
            Fact::Retried { task } => with(&task, &mut |state| {
                (state.stage, state.why, state.unmerged) = (Stage::Waiting, None, 0);
            }),
            Fact::Resumed => (self.end, self.paused) = (None, false),
            Fact::BatchEnd { exit_code, why } => self.end = Some((exit_code, why)),
        }
    }
}

/// The records of a batch, and what they say.
#[derive(Debug)]
pub(crate) struct Ledger {
    file: Box<dyn Growing>,
    pub batch: Batch,
}

/// Where the records of a batch are.
pub(crate) fn journal(directory: &Path) -> PathBuf {
    directory.join("journal.jsonl")
}

impl Ledger {
    /// Begins the records of a batch. A batch that was killed here has all of its tasks, or does not exist.
    pub(crate) fn create(directory: &Path, facts: impl IntoIterator<Item = Fact>) -> io::Result<Self> {
        let mut bytes = Vec::new();
        for fact in facts {
            bytes.extend(Line { at: Timestamp::now(), fact }.bytes()?);
        }
        RealDisk.replace(&journal(directory), &bytes)?;
        Self::reopen(directory)
    }

    /// Opens the records of a batch that continues. A torn record at the end is cut off.
    pub(crate) fn reopen(directory: &Path) -> io::Result<Self> {
        let (batch, length) = read(&journal(directory))?;
        let mut file = RealDisk.grow(&journal(directory), Make::OpenOrNew)?;
        file.shorten(length)?;
        Ok(Self { file, batch })
    }

    pub(crate) fn record(&mut self, fact: Fact) -> io::Result<()> {
        let line = Line { at: Timestamp::now(), fact };
        self.file.append(&line.bytes()?)?;
        if matches!(line.fact, Fact::Merging { .. } | Fact::Merged { .. } | Fact::Added { .. }) {
            self.file.sync()?;
        }
        self.batch.see(line.fact, line.at);
        Ok(())
    }
}

/// What the records say, and where the last whole one ends.
pub(crate) fn read(path: &Path) -> io::Result<(Batch, u64)> {
    let bytes = std::fs::read(path)?;
    let (mut batch, mut length) = (Batch::default(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.last() != Some(&b'\n') {
            break;
        }
        let Line { at, fact } = serde_json::from_slice(line)?;
        batch.see(fact, at);
        length += line.len() as u64;
    }
    Ok((batch, length))
}
