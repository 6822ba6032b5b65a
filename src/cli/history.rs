//! The arguments of the commands that look at runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{AppearanceArgs, Output, ViewArgs};

/// Which run: by its id, with or without `--run`.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The run: its id, or at least four characters of it [default: the newest run of this directory].
    #[arg(value_name = "ID")]
    id: Option<String>,

    /// The same as ID.
    #[arg(long, value_name = "ID", conflicts_with = "id")]
    run: Option<String>,
}

impl Which {
    /// This run.
    pub(crate) const fn one(id: Option<String>) -> Self {
        Self { id, run: None }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref().or(self.run.as_deref())
    }
}

/// `ralph runs`.
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// Show the runs of all projects, not only of this directory.
    #[arg(short, long)]
    pub all: bool,

    /// Maximum runs to show, newest first.
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Print the ids alone, for completions.
    #[arg(long, hide = true, conflicts_with = "json")]
    pub ids: bool,
}

/// `ralph status`.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Which run.
    #[command(flatten)]
    pub which: Which,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `ralph show`.
#[derive(Debug, Args)]
pub(crate) struct ShowRun {
    /// Which run.
    #[command(flatten)]
    pub which: Which,

    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,

    /// Print Markdown, for a pull request.
    #[arg(long)]
    pub markdown: bool,

    /// How it looks.
    #[command(flatten)]
    pub appearance: AppearanceArgs,
}

/// `ralph logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Which run.
    #[command(flatten)]
    pub which: Which,

    /// Follow the run until it ends.
    #[arg(short, long)]
    pub follow: bool,

    /// Only this iteration.
    #[arg(short, long, value_name = "N")]
    pub iteration: Option<u32>,

    /// Print the agent's output byte for byte (secrets are redacted).
    #[arg(long, conflicts_with_all = ["follow", "tag", "tool", "output"])]
    pub raw: bool,

    /// Only text with this tag: `AI`, `THINK`, `SYS`, `TOOL`, `PROMPT` or `USER`.
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,

    /// Only this tool.
    #[arg(long, value_name = "NAME", conflicts_with = "tag")]
    pub tool: Option<String>,

    /// What to print.
    #[arg(long, value_enum, default_value_t = Output::Lines)]
    pub output: Output,

    /// How it looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// `ralph tui`.
#[derive(Debug, Args)]
pub(crate) struct Tui {
    /// Which run.
    #[command(flatten)]
    pub which: Which,

    /// List all runs of this machine, and open one of them.
    #[arg(short, long)]
    pub all: bool,

    /// How it looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// `ralph replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub which: Which,

    /// Keep the pauses of the run, at this speed: `1x`, `10x`. No pause is longer than two seconds [default: no pauses].
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub speed: Option<f64>,

    /// Parse the agent's raw output again with this version of ralph.
    #[arg(long)]
    pub with_adapter: bool,

    /// What to print.
    #[arg(long, value_enum, default_value_t = Output::Lines)]
    pub output: Output,

    /// How it looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.trim_end_matches(['x', 'X']).parse::<f64>().ok();
    factor
        .filter(|factor| *factor > 0.0 && factor.is_finite())
        .ok_or_else(|| "expected a factor such as `10x`".to_owned())
}

/// `ralph diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub which: Which,

    /// Only this iteration [default: the net change of the whole run].
    #[arg(short, long, value_name = "N")]
    pub iteration: Option<u32>,
}

/// `ralph stats`.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Print JSON.
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print CSV, one line per day, agent and model.
    #[arg(long)]
    pub csv: bool,

    /// How it looks.
    #[command(flatten)]
    pub appearance: AppearanceArgs,
}

/// `ralph clean`.
#[derive(Debug, Args)]
#[command(after_help = CLEAN_EXAMPLES)]
pub(crate) struct Clean {
    /// Remove completed runs that ended longer ago than this, such as `30d` or `12h`.
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub older_than: Option<jiff::SignedDuration>,

    /// Keep the newest N runs.
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,

    /// Keep the newest runs that fit into this size, such as `500M` or `2G`.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,

    /// Also remove runs that could be resumed: interrupted, failed, stopped or killed.
    #[arg(long)]
    pub all: bool,

    /// Remove worktrees of this repository that belong to no run any more. Their branches stay.
    #[arg(long)]
    pub worktrees: bool,

    /// Show what would be removed and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
}

const CLEAN_EXAMPLES: &str = "Examples:
  ralph clean --older-than 30d --dry-run
  ralph clean --keep 20
  ralph clean --max-size 1G
  ralph clean --worktrees --dry-run";

fn age(text: &str) -> Result<jiff::SignedDuration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.trim().parse::<i64>().ok());
    let duration = match days {
        Some(days) => days.checked_mul(24).map(jiff::SignedDuration::from_hours),
        None => text.parse().ok(),
    };
    duration
        .filter(|duration| !duration.is_negative())
        .ok_or_else(|| "expected a time such as `30d` or `12h`".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => (&text[..at], unit.to_ascii_uppercase()),
        _ => (text, ' '),
    };
    let factor: u64 = match unit {
        ' ' => 1,
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        'T' => 1 << 40,
        _ => return Err("expected a size such as `500M` or `2G`".to_owned()),
    };
    let number: u64 = number.trim().parse().map_err(|_| "expected a size such as `500M` or `2G`".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

/// `ralph export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    pub which: Which,

    /// The format.
    #[arg(long, value_enum, required_unless_present = "html")]
    pub to: Option<Form>,

    /// The same as `--to html`: the page of `ralph serve` in one file, with the run inside.
    #[arg(long, conflicts_with = "to")]
    pub html: bool,

    /// The file to write [default: stdout].
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Send spans to a collector, such as `http://localhost:4318`.
    #[arg(long, value_name = "URL", conflicts_with = "file")]
    pub endpoint: Option<String>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The records, as they are in the journal.
    Jsonl,
    /// One self-contained HTML page.
    Html,
    /// OpenTelemetry spans as OTLP JSON, with the conventions for generative AI.
    Otlp,
}

/// `ralph answer`: words, then as `ralph resume`.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The answer.
    #[arg(value_name = "WORDS", required = true)]
    pub words: Vec<String>,

    /// The run: its id, or at least four characters of it [default: the newest run of this directory].
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,

    /// Show the run in the full screen, with keys to look around and steer it.
    #[arg(long)]
    pub tui: bool,

    /// How it looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// `ralph resume`.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub which: Which,

    /// Continue even a completed run, with its limits of iterations and time once more, and give the agent the text of this file.
    #[arg(long, value_name = "FILE", hide = true, num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "a flag with or without a value")]
    pub again: Option<Option<PathBuf>>,

    /// Resume although the working directory is no longer as the run left it.
    #[arg(long)]
    pub force: bool,

    /// New maximum for iterations, counted over the whole run; with `--phases`, over each phase.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,

    /// New maximum for the time, counted over the whole run.
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    pub max_time: Option<std::time::Duration>,

    /// New maximum for the cost in US dollars, counted over the whole run.
    #[arg(long, value_name = "USD", value_parser = super::dollars)]
    pub max_cost: Option<f64>,

    /// New maximum for tokens, counted over the whole run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,

    /// What to print.
    #[arg(long, value_enum, default_value_t = Output::Lines)]
    pub output: Output,

    /// Show the run in the full screen, with keys to look around and steer it.
    #[arg(long, conflicts_with = "output")]
    pub tui: bool,

    /// How it looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// `ralph path`.
#[derive(Debug, Args)]
pub(crate) struct Path {
    #[command(flatten)]
    pub which: Which,
}
