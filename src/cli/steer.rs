//! Arguments of the commands that steer a run.

use clap::{Args, ValueEnum};

use super::Run;
use super::history::Which;

/// `ralph hint`.
#[derive(Debug, Args)]
pub(crate) struct Words {
    /// The hint.
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,

    /// The run: its id, or at least four characters of it [default: the active run of this directory].
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
}

/// `ralph stop`.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Stop the agent at once instead of waiting for the iteration to end.
    #[arg(long)]
    pub now: bool,

    /// Which run.
    #[command(flatten)]
    pub which: Which,
}

/// `ralph limit`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("limits").args(["max_iterations", "max_cost", "max_time"]).required(true).multiple(true)))]
pub(crate) struct Limit {
    /// New maximum for iterations.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,

    /// New maximum for the cost in US dollars.
    #[arg(long, value_name = "USD", value_parser = super::dollars)]
    pub max_cost: Option<f64>,

    /// New maximum for the time, counted from the start of the run.
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub max_time: Option<std::time::Duration>,

    /// The run: its id, or at least four characters of it [default: the active run of this directory].
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
}

/// `ralph emit`.
#[derive(Debug, Args)]
pub(crate) struct Emit {
    /// The topic, such as `build.done`.
    #[arg(value_name = "TOPIC")]
    pub topic: String,

    /// The payload. `-` reads it from stdin.
    #[arg(value_name = "PAYLOAD")]
    pub payload: Vec<String>,

    /// The payload as JSON. It must be valid.
    #[arg(long, value_name = "JSON", conflicts_with = "payload")]
    pub json: Option<String>,
}

/// `ralph hats`.
#[derive(Debug, Args)]
pub(crate) struct Hats {
    /// How to draw the graph.
    #[arg(long, value_enum, default_value_t = Graph::Text)]
    pub format: Graph,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE")]
    pub config: Option<std::path::PathBuf>,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Graph {
    /// Lines for people.
    Text,
    /// For Mermaid.
    Mermaid,
}

/// `ralph plan`, `build`, `understand` and `review`.
#[derive(Debug, Args)]
pub(crate) struct ModeRun {
    /// Everything else is as for `ralph run`; the prompt is the goal.
    #[command(flatten)]
    pub run: Run,
}

/// `ralph prompt show`.
#[derive(Debug, Args)]
pub(crate) struct Prompt {
    /// What to do.
    #[command(subcommand)]
    pub action: PromptAction,
}

/// The subcommands of `ralph prompt`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PromptAction {
    /// Print the final prompt of a mode
    Show(Box<PromptShow>),
}

/// `ralph prompt show`.
#[derive(Debug, Args)]
pub(crate) struct PromptShow {
    /// The mode: `plan`, `build`, `understand` or `review` [default: the prompt of `ralph run`].
    #[arg(value_name = "MODE")]
    pub mode: Option<String>,

    /// The goal.
    #[arg(value_name = "GOAL")]
    pub goal: Vec<String>,
}
