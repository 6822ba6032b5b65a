//! The command line: clap types only.

mod appearance;
pub(crate) mod batch;
pub(crate) mod history;
pub(crate) mod phases;
pub(crate) mod place;
mod plumbing;
mod sandbox;
mod serve;
mod setup;
mod steer;
pub(crate) mod worker;

use std::path::PathBuf;
use std::time::Duration;

use crate::config::SessionChoice;
use crate::sandbox::Mode;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::duration;

pub(crate) use appearance::{AppearanceArgs, Colour, Shown, ViewArgs};
pub(crate) use plumbing::{AsClaude, JqMode, JqService, To, Translate};
pub(crate) use sandbox::{Explain, SandboxAction, SandboxArgs};
pub(crate) use serve::Serve;
pub(crate) use setup::{Completions, Config, ConfigAction, Doctor, Init, Man, Notify, Schema, Shell, Subject};
pub(crate) use steer::ModeRun;
pub(crate) use steer::Stop;
pub(crate) use steer::{Emit, Graph, Hats, Limit, Prompt, PromptAction, Words};

/// Runs your coding agent in a loop until your checks say it's done
#[derive(Debug, Parser)]
#[command(name = "ralph", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do; nothing: say what to do next in this directory.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The subcommands. `help.rs` sorts them into groups.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent on a prompt until it is done
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<Run>),
    /// Write a plan for a goal to `PLAN.md` and change nothing else
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Box<ModeRun>),
    /// Build what `PLAN.md` describes, one task per iteration
    #[command(after_help = BUILD_EXAMPLES)]
    Build(Box<ModeRun>),
    /// Review the uncommitted and recent changes; write findings to `REVIEW.md`
    #[command(after_help = REVIEW_EXAMPLES)]
    Review(Box<ModeRun>),
    /// Write a map of this codebase to `CODEBASE.md` and change nothing else
    #[command(after_help = UNDERSTAND_EXAMPLES)]
    Understand(Box<ModeRun>),
    /// Resume a run that was interrupted, killed or stopped at a limit
    Resume(history::Resume),
    /// Answer the question a run stopped with, and resume it
    Answer(history::Answer),
    /// Show what the run in this directory is doing now
    Status(history::Status),
    /// Give the agent a hint in its next iteration
    Hint(Words),
    /// Pause the run after this iteration
    Pause(history::Which),
    /// Continue a paused run
    Continue(history::Which),
    /// Stop the run after this iteration, or now
    Stop(Stop),
    /// Stop waiting for a rate limit and retry now
    Retry(history::Which),
    /// Change a limit of the current run
    Limit(Limit),
    /// List the runs of this directory
    Runs(history::Runs),
    /// Show the result of a run
    Show(history::ShowRun),
    /// Show what a run changed
    Diff(history::Diff),
    /// Print what the agent said and did; `-f` follows a running one
    Logs(history::Logs),
    /// Open a run in the full screen, running or finished
    Tui(history::Tui),
    /// Show all runs on a live page for the browser, and steer them there
    Serve(Serve),
    /// Replay a run in the line view
    Replay(history::Replay),
    /// Show tokens, cost and time by day, agent and model
    Stats(history::Stats),
    /// Export a run as JSON lines, one HTML page or OpenTelemetry spans
    Export(history::Export),
    /// Print the directory of a run
    Path(history::Path),
    /// Remove old runs and abandoned worktrees
    Clean(history::Clean),
    /// Rebase the branch of a run, run the checks and fast-forward the base branch
    Merge(place::MergeRun),
    /// Remove the branch and the worktree of a run
    Discard(place::Discard),
    /// Put files and branch back to how they were before a run or after an iteration
    Undo(place::Undo),
    /// Run many tasks at once, each in its own worktree, and merge what passes
    Batch(Box<batch::Batch>),
    /// List the tasks of a source and check them
    Tasks(batch::Tasks),
    /// Work on the tasks of batches that were submitted to a NATS server
    #[command(after_help = WORKER_EXAMPLES)]
    Worker(worker::Worker),
    /// Write a `ralph.yml` for this project
    Init(Init),
    /// Check that a run would work here: agents, logins, git, disk
    Doctor(Doctor),
    /// List the agents and show which one `auto` picks
    Agents(Agents),
    /// Show every setting and where it comes from
    Config(Config),
    /// Run any command behind the wall that agents get, or explain what the wall does
    #[command(after_help = SANDBOX_EXAMPLES)]
    Sandbox(SandboxArgs),
    /// Send a test notification
    Notify(Notify),
    /// Show the hats of `ralph.yml` as a graph and check them
    Hats(Hats),
    /// Show the prompt that an agent would get
    Prompt(Prompt),
    /// Print shell completions
    Completions(Completions),
    /// Print the manual page, or write all of them to a directory
    Man(Man),
    /// Publish an event, from inside an agent
    Emit(Emit),
    /// Run any agent behind Claude Code's command line
    AsClaude(AsClaude),
    /// Convert raw agent output to canonical events
    Translate(Translate),
    /// Print the JSON schema of `ralph.yml` or of an agent file
    Schema(Schema),
    /// Show help; `--all` lists every command
    Help(Help),
    /// Evaluate jq programs for drivers and agent scripts.
    #[command(hide = true)]
    JqService(JqService),
    /// Run the built-in demo agent: what `ralph run --agent demo` starts.
    #[command(hide = true)]
    DemoAgent,
}

/// `ralph help`.
#[derive(Debug, Args)]
pub(crate) struct Help {
    /// The command to explain.
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,

    /// List every command.
    #[arg(long)]
    pub all: bool,
}

/// `ralph run`.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag")]
pub(crate) struct Run {
    /// The prompt. `-` reads it from stdin. Default: `PROMPT.md`, then `.ralph/PROMPT.md`.
    #[arg(value_name = "PROMPT", conflicts_with = "prompt_file")]
    pub words: Vec<String>,

    /// Extra arguments for the agent, after `--`.
    #[arg(last = true, value_name = "AGENT ARGUMENTS")]
    pub agent_args: Vec<String>,

    /// Read the prompt from this file, again before each iteration.
    #[arg(short = 'P', long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,

    /// The agent: a name from `ralph agents`, `driver:NAME`, `script:NAME`, a path of such a file, `auto` (the first one
    /// installed) or `custom` (the command in `ralph.yml`) [default: auto] [env: `RALPH_AGENT`].
    #[arg(short = 'b', long, value_name = "NAME", alias = "backend")]
    pub agent: Option<String>,

    /// The model, passed to the agent as is.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// A command that must exit with 0 before a completion is accepted. Repeatable; replaces `verify` of `ralph.yml`.
    #[arg(long, value_name = "COMMAND")]
    pub verify: Vec<String>,

    /// Maximum iterations [default: 100].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,

    /// Maximum time for the run, such as `90s`, `30m` or `2h` [default: 4h].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<Duration>,

    /// Maximum cost of the run in US dollars, as far as the agent reports it or prices are known.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,

    /// Show the run in the full screen, with keys to look around and steer it.
    #[arg(long, conflicts_with = "output")]
    pub tui: bool,

    /// Show the run on a live page for the browser too, and print its address; see `ralph serve`.
    #[arg(long)]
    pub serve: bool,

    /// Print the address of `--serve` as a QR code.
    #[arg(long, requires = "serve")]
    pub qr: bool,

    /// Put everything the agent starts behind a wall: `workspace`, `strict` or `off` [default: workspace].
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "workspace", value_parser = sandbox_mode)]
    pub sandbox: Option<Mode>,

    /// Show what would run, with which prompt and settings, and start nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where the work happens.
    #[command(flatten, next_help_heading = PLACE)]
    pub place: place::PlaceArgs,

    #[command(flatten, next_help_heading = PHASES)]
    pub phases: phases::Phases,

    /// Run this command as the agent. It gets the prompt on stdin.
    #[arg(long, value_name = "COMMAND", help_heading = AGENT)]
    pub agent_cmd: Option<String>,

    /// Run this command as the agent. It is called like Claude Code and prints Claude's stream-json.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["agent", "agent_cmd"], help_heading = AGENT)]
    pub claude_command: Option<String>,

    /// Reasoning effort, passed to the agent as is, such as `low` or `high`.
    #[arg(long, value_name = "EFFORT", help_heading = AGENT)]
    pub effort: Option<String>,

    /// The only tools the agent may use, passed to the agent as is.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', help_heading = AGENT)]
    pub tools: Vec<String>,

    /// Agents that take over while the chosen one is rate-limited or not logged in.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = AGENT)]
    pub fallback: Vec<String>,

    /// Session of the next iteration: `fresh`, `resume` or `resume-until: context 60%` [default: fresh].
    #[arg(long, value_name = "HOW", value_parser = session, help_heading = AGENT)]
    pub session: Option<SessionChoice>,

    /// Give the agent a terminal, for agents that require one.
    #[arg(long, help_heading = AGENT)]
    pub pty: bool,

    /// Run the agent's own interactive program in this terminal. Ctrl-C goes to the agent; twice within a second ends
    /// the run.
    #[arg(short, long, help_heading = AGENT)]
    pub interactive: bool,

    /// Format of the agent's output: `auto`, `plain`, `rtf1` or an agent's name [env: `RALPH_TRANSCRIPT`].
    #[arg(long, value_name = "DIALECT", help_heading = AGENT)]
    pub transcript: Option<String>,

    /// Convert the agent's output with this command: raw lines in, RTF1 lines out.
    #[arg(long, value_name = "COMMAND", conflicts_with = "transcript", help_heading = AGENT)]
    pub transcript_cmd: Option<String>,

    /// Complete the run when all checks pass after an iteration; the agent need not say that it is done.
    #[arg(long, help_heading = COMPLETION)]
    pub until_checks: bool,

    /// Another agent that must accept a completion. It looks at the work in a fresh session, read-only.
    #[arg(long, value_name = "AGENT", help_heading = COMPLETION)]
    pub judge: Option<String>,

    /// A task list; a completion is rejected while it has open items (`- [ ]`).
    #[arg(long, value_name = "FILE", help_heading = COMPLETION)]
    pub plan_file: Option<PathBuf>,

    /// Reject a completion before this many iterations.
    #[arg(long, value_name = "N", help_heading = COMPLETION)]
    pub min_iterations: Option<u32>,

    /// How many claims in a row are needed [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = COMPLETION)]
    pub confirmations: Option<u32>,

    /// The completion marker, instead of `LOOP_COMPLETE`, `<promise>COMPLETE</promise>` and similar.
    #[arg(long, value_name = "MARKER", alias = "completion-promise", help_heading = COMPLETION)]
    pub completion: Option<String>,

    /// Maximum tokens for the run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = LIMITS)]
    pub max_tokens: Option<u64>,

    /// Do not estimate costs from the list prices that ralph ships.
    #[arg(long, help_heading = LIMITS)]
    pub no_prices: bool,

    /// Stop after this many iterations in a row without a change; 0 turns it off [default: 10].
    #[arg(long, value_name = "N", alias = "no-progress", help_heading = LIMITS)]
    pub max_stalled: Option<u32>,

    /// Maximum time for one iteration [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = LIMITS)]
    pub timeout: Option<Duration>,

    /// Stop an agent that prints nothing and uses no CPU for this long [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = LIMITS)]
    pub idle_timeout: Option<Duration>,

    /// What to print.
    #[arg(long, value_enum, default_value_t = Output::Lines, help_heading = OUTPUT)]
    pub output: Output,

    /// How it looks.
    #[command(flatten, next_help_heading = OUTPUT)]
    pub view: ViewArgs,

    /// Start a fresh session in each iteration, where the driver would resume the last one.
    #[arg(long, conflicts_with = "session", help_heading = DRIVERS, hide = true)]
    pub no_continue: bool,

    /// Show a driver's output as it comes. This is the default where the driver supports it.
    #[arg(long, conflicts_with = "no_live", help_heading = DRIVERS, hide = true)]
    pub live: bool,

    /// Use a driver's plain command and show its output with ralph's own view.
    #[arg(long, help_heading = DRIVERS, hide = true)]
    pub no_live: bool,
}

/// Flags of `ralph run` that only mean something with a driver; the help shows them where a driver is used.
pub(crate) const DRIVER_FLAGS: [&str; 3] = ["no_continue", "live", "no_live"];

const PHASES: &str = "Phases";
const PLACE: &str = "Branch";
const AGENT: &str = "Agent";
const COMPLETION: &str = "Completion";
const LIMITS: &str = "Limits";
const OUTPUT: &str = "Output";
const DRIVERS: &str = "Drivers";

const RUN_EXAMPLES: &str = "Examples:
  ralph run --agent demo                                       try it without an agent
  ralph run \"fix the failing tests\" --verify 'cargo test' --max-cost 5
  ralph run -P PROMPT.md -n 20 --agent codex --model gpt-5
  ralph run --dry-run                                          show what would run
  ralph run \"fix the tests\" -- --add-dir ../shared            extra arguments for the agent
  ralph run \"fix the tests\" --agent-cmd './my-agent.sh'        any command as the agent
  echo \"do it\" | ralph run - --output json                    for scripts";

use sandbox::{EXAMPLES as SANDBOX_EXAMPLES, mode as sandbox_mode};
use worker::EXAMPLES as WORKER_EXAMPLES;

const PLAN_EXAMPLES: &str = "Examples:
  ralph plan \"add a --json flag to every command\"
  ralph plan -P GOAL.md --agent claude
Next: ralph build";

const BUILD_EXAMPLES: &str = "Examples:
  ralph build --verify 'npm test'
  ralph build --plan-file docs/PLAN.md -n 30";

const REVIEW_EXAMPLES: &str = "Examples:
  ralph review
  ralph review \"look at error handling only\" --agent codex";

const UNDERSTAND_EXAMPLES: &str = "Examples:
  ralph understand
  ralph understand \"focus on the storage layer\"";

/// `ralph agents`.
#[derive(Debug, Args)]
pub(crate) struct Agents {
    /// One agent in full.
    #[command(subcommand)]
    pub action: Option<AgentsAction>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// Configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// The subcommands of `ralph agents`.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentsAction {
    /// Show one agent: its definition and its command lines, ready to paste
    Show(Show),
    /// Create a driver or an agent script from a template
    New(New),
    /// Test a driver or an agent script against its contract, with a fake CLI
    Check(Check),
}

/// `ralph agents new`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct New {
    /// A driver: hooks that build a command line. Written to `.ralph/drivers/NAME.sh`.
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,

    /// An agent script: functions that run the agent. Written to `.ralph/agents/NAME.sh`.
    #[arg(long, value_name = "NAME")]
    pub script: Option<String>,
}

/// `ralph agents check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A name, `driver:NAME`, `script:NAME`, or the path of a file.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `ralph agents show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The agent.
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The prompt for the command lines.
    #[arg(value_name = "PROMPT")]
    pub prompt: Vec<String>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What `ralph run` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Lines for people.
    Lines,
    /// Records as JSON lines.
    Json,
}

/// `90`, `90s`, `30m`, `1h30m`.
fn time(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Some(time) if !time.is_zero() => Ok(time),
        Some(_) => Err("must be more than 0".to_owned()),
        None => Err(format!("expected {}", duration::FORM)),
    }
}

/// An amount of money above 0.
fn dollars(text: &str) -> Result<f64, String> {
    let amount: Option<f64> = text.trim_start_matches('$').parse().ok();
    amount
        .filter(|usd| usd.is_finite() && *usd > 0.0)
        .ok_or_else(|| "expected an amount such as `5` or `2.50`".to_owned())
}

fn session(text: &str) -> Result<SessionChoice, String> {
    SessionChoice::parse(text).ok_or_else(|| "expected `fresh`, `resume` or `resume-until: context 60%`".to_owned())
}
