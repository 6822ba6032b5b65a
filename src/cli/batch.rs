//! The arguments of `ralph tasks` and `ralph batch`.

use std::time::Duration;

use clap::{Args, Subcommand};

/// `ralph tasks`.
#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// A tasks file, a directory of Markdown files, a plan, a `prd.json`, or `gh:LABEL` [default: `tasks.yml`, `tasks/`, `prd.json` or `PLAN.md`].
    #[arg(value_name = "SOURCE")]
    pub source: Option<String>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `ralph batch`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Batch {
    #[command(subcommand)]
    pub action: Option<BatchAction>,

    #[command(flatten)]
    pub begin: Begin,
}

/// Starts a batch.
#[derive(Debug, Args)]
#[expect(clippy::option_option, reason = "a flag with or without a value")]
pub(crate) struct Begin {
    /// A tasks file, a directory of Markdown files, a plan, a `prd.json`, or `gh:LABEL` [default: `tasks.yml`, `tasks/`, `prd.json` or `PLAN.md`].
    #[arg(value_name = "SOURCE")]
    pub source: Option<String>,

    /// How many tasks run at once: a number, or `auto`, by cores and memory.
    #[arg(short, long, value_name = "N", default_value = "auto", value_parser = jobs)]
    pub jobs: Jobs,

    /// Merge into the checked-out branch, or the named one, instead of a new branch `ralph/batch/ID`.
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, require_equals = true)]
    pub into: Option<Option<String>>,

    /// Maximum cost of the batch in US dollars.
    #[arg(long, value_name = "USD", value_parser = super::dollars)]
    pub max_cost: Option<f64>,

    /// Maximum time for the batch.
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub max_time: Option<Duration>,

    /// Stop when this many tasks are stuck.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_failures: Option<u32>,

    /// The agent of tasks that name none.
    #[arg(short = 'b', long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Show the tasks on the full screen.
    #[arg(long)]
    pub tui: bool,

    /// Run this command as the agent of tasks that name none. It gets the prompt on stdin.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["agent", "on"])]
    pub agent_cmd: Option<String>,

    /// Have the tasks worked on by the workers (`ralph worker`) at this NATS server, instead of here.
    #[arg(long, value_name = "NATS_URL", requires = "repo")]
    pub on: Option<String>,

    /// The repository that workers fetch from and push branches `ralph/BATCH/TASK` to.
    #[arg(long, value_name = "GIT_URL", requires = "on")]
    pub repo: Option<String>,

    /// Only workers with this label take the tasks.
    #[arg(long, value_name = "LABEL", requires = "on")]
    pub label: Option<String>,
}

impl Begin {
    /// What is passed on to each run.
    pub(crate) fn run_args(&self) -> Vec<String> {
        let agent = self.agent.iter().map(|agent| format!("--agent={agent}"));
        agent.chain(self.agent_cmd.iter().map(|command| format!("--agent-cmd={command}"))).collect()
    }
}

/// How many tasks run at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Jobs {
    Auto,
    Count(usize),
}

/// What an agent needs at least, beside its model on another machine.
const BYTES_OF_AGENT: u64 = 1 << 30;

impl Jobs {
    /// How many are in the queue of a fleet at once; workers take what they have slots for.
    pub(crate) const fn on_fleet(self) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Auto => 10_000,
        }
    }

    pub(crate) fn count(self) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Auto => {
                let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
                let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
                let free = free.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<u64>().ok());
                let by_memory = free.map_or(cores as u64, |kilobytes| kilobytes * 1024 / BYTES_OF_AGENT);
                cores.min(usize::try_from(by_memory).unwrap_or(cores)).max(1)
            }
        }
    }
}

fn jobs(text: &str) -> Result<Jobs, String> {
    match text.parse() {
        Ok(count @ 1..=1000) => Ok(Jobs::Count(count)),
        _ if text == "auto" => Ok(Jobs::Auto),
        _ => Err("expected a number from 1 to 1000, or `auto`".to_owned()),
    }
}

/// What to do with the newest batch of this repository.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchAction {
    /// Show the tasks of the batch and where they are
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,

        /// Show the tasks on the full screen, and open their runs.
        #[arg(long, conflicts_with = "json")]
        tui: bool,
    },
    /// Tell a task something; it gets your words with its next iteration
    Hint {
        /// The id of the task.
        task: String,

        /// The words.
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Pause the batch, or one task, after the current iteration
    Pause {
        /// The id of a task.
        task: Option<String>,
    },
    /// End a pause
    Continue {
        /// The id of a task.
        task: Option<String>,
    },
    /// Stop the batch, or one task, after the current iteration
    Stop {
        /// The id of a task.
        task: Option<String>,
    },
    /// Stop everything now and leave out what is not merged
    Cancel,
    /// Continue a batch that was stopped, interrupted or killed
    Resume {
        /// Show the tasks on the full screen.
        #[arg(long)]
        tui: bool,
    },
    /// Run a stuck or skipped task again
    Retry {
        /// The id of the task.
        task: String,
    },
    /// Leave a task out; tasks that need it may start
    Skip {
        /// The id of the task.
        task: String,
    },
    /// Add the tasks of another source
    Add {
        /// The source.
        source: String,
    },
}
