//! The command line: clap types only.

mod appearance;
pub(crate) mod history;
mod setup;
mod steer;

use std::path::PathBuf;
use std::time::Duration;

use crate::config::SessionChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::duration;

pub(crate) use appearance::{AppearanceArgs, Colour, Shown, ViewArgs};
pub(crate) use setup::{Completions, Config, ConfigAction, Doctor, Init, Man, Notify, Schema, Shell, Subject};
pub(crate) use steer::ModeRun;
pub(crate) use steer::Stop;
pub(crate) use steer::{Emit, Graph, Hats, Limit, Prompt, PromptAction, Words};

/// Runs a coding agent's command line again and again on one prompt until the work is really done.
#[derive(Debug, Parser)]
#[command(name = "ralph", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes:
  0  complete
  1  the run failed
  2  usage or configuration; nothing was run
  3  the agent asks for a replan or for a human
  4  the agent is not usable: missing, not logged in, not permitted
  5  a limit ended the run: iterations, time, tokens, money
  6  no progress
  7  rate-limited beyond the allowed wait
  128 + N  ended by Unix signal N (130: Ctrl-C)";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an agent on a prompt until it is done.
    Run(Box<Run>),
    /// Write a plan for a goal to `PLAN.md`, and change nothing else
    Plan(Box<ModeRun>),
    /// Build what `PLAN.md` describes, one task an iteration
    Build(Box<ModeRun>),
    /// Write a map of this codebase to `CODEBASE.md`, and change nothing else
    Understand(Box<ModeRun>),
    /// Review the changes here, and write findings to `REVIEW.md`
    Review(Box<ModeRun>),
    /// Tell the agent something in its next iteration
    Hint(Words),
    /// Pause the run after this iteration
    Pause,
    /// Let a paused run go on
    Continue,
    /// Stop the run after this iteration, or now
    Stop(Stop),
    /// End a wait for a rate limit now
    Retry,
    /// Set another limit for the run under way
    Limit(Limit),
    /// Publish an event, from inside an agent
    Emit(Emit),
    /// Draw the hats of `ralph.yml` and check them
    Hats(Hats),
    /// Show the prompt that an agent would get
    Prompt(Prompt),
    /// Answer the question a run ended with, and go on with it
    Answer(history::Answer),
    /// Go on with a run that was interrupted, killed or limited
    Resume(history::Resume),
    /// List the runs of this directory
    Runs(history::Runs),
    /// Print where a run is kept
    Path(history::Path),
    /// Show what a run came to
    Show(history::ShowRun),
    /// Show what an agent said and did, also while it runs
    Logs(history::Logs),
    /// Look at a run on the whole screen, running or finished
    Tui(history::Tui),
    /// Play a run again, through the same view as live
    Replay(history::Replay),
    /// Show what a run, or one of its iterations, changed
    Diff(history::Diff),
    /// Show tokens, cost and time by day, agent and model
    Stats(history::Stats),
    /// Write a run as records, as one HTML page, or as OpenTelemetry spans
    Export(history::Export),
    /// Remove old runs
    Clean(history::Clean),
    /// Show the agents: which are installed, which one `auto` takes
    Agents(Agents),
    /// Look whether a run would work here: agents, flags, logins, git, disk, leftovers
    Doctor(Doctor),
    /// Run any agent as if it were Claude Code, for tools that can only drive that
    AsClaude(AsClaude),
    /// Turn raw agent output into canonical events: a filter
    Translate(Translate),
    /// Send a test notification, as `notify` in `ralph.yml` says
    Notify(Notify),
    /// Show the settings, each with the place it comes from
    Config(Config),
    /// Write a commented `ralph.yml` for the agent that is installed here
    Init(Init),
    /// Print the JSON schema of `ralph.yml` or of an agent file, for editors
    Schema(Schema),
    /// Print the completions of a shell
    Completions(Completions),
    /// Print the manual page, or write all of them to a directory
    Man(Man),
    /// Evaluate jq programs for drivers and agent scripts.
    #[command(hide = true)]
    JqService(JqService),
    /// Play the built-in demo agent: what `ralph run --agent demo` starts.
    #[command(hide = true)]
    DemoAgent,
}

/// `ralph jq-service`.
#[derive(Debug, Args)]
pub struct JqService {
    /// How it is asked.
    #[arg(value_enum)]
    pub mode: JqMode,

    /// The arguments of the tool.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// How the jq service is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JqMode {
    /// Framed calls on standard input.
    Serve,
    /// One call, like the tool itself.
    Run,
    /// Each line of standard input by itself; one that is no JSON is passed over.
    Each,
    /// The same; one that is no JSON is shown as it is.
    Lines,
}

/// `ralph run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is one flag")]
pub struct Run {
    /// The prompt, as words; `-` reads it from standard input. Default: the file `PROMPT.md`, then
    /// `.ralph/PROMPT.md`.
    #[arg(value_name = "PROMPT", conflicts_with = "prompt_file")]
    pub words: Vec<String>,

    /// More arguments for the agent, after `--`.
    #[arg(last = true, value_name = "AGENT ARGUMENTS")]
    pub agent_args: Vec<String>,

    /// Read the prompt from this file, anew before each iteration.
    #[arg(short = 'P', long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,

    /// The agent to run: a name that `ralph agents` shows, `driver:NAME`, `script:NAME` or the path of such a file, `auto`
    /// for the first that is installed, or `custom` for the command in `ralph.yml` [default: auto] [env: `RALPH_AGENT`].
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    /// Run this command as the agent; it gets the prompt on standard input.
    #[arg(long, value_name = "COMMAND", conflicts_with = "agent")]
    pub agent_cmd: Option<String>,

    /// Run this command as the agent; it speaks Claude's stream-json, and takes the prompt as Claude Code does.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["agent", "agent_cmd"])]
    pub claude_command: Option<String>,

    /// The model, in the agent's own words.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// How hard the agent thinks, in its own words, such as `low` or `high`.
    #[arg(long, value_name = "EFFORT")]
    pub effort: Option<String>,

    /// The only tools the agent may use, in its own words.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub tools: Vec<String>,

    /// Give the agent a terminal, for agents that insist on one.
    #[arg(long)]
    pub pty: bool,

    /// Run the agent's own interactive program in this terminal, with you at the keys. Ctrl-C goes to the agent; twice within
    /// a second it ends the run.
    #[arg(short, long)]
    pub interactive: bool,

    /// Show what would be run, with which prompt and settings; start nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// What the agent's output is: `auto`, `plain`, `rtf1`, or an agent's name [env: `RALPH_TRANSCRIPT`].
    #[arg(long, value_name = "DIALECT")]
    pub transcript: Option<String>,

    /// Read the agent's output with this command: raw lines in, RTF1 lines out.
    #[arg(long, value_name = "COMMAND", conflicts_with = "transcript")]
    pub transcript_cmd: Option<String>,

    /// The most iterations [default: 100].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,

    /// The most time for the whole run, such as `90s`, `30m` or `2h` [default: 4h].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub max_time: Option<Duration>,

    /// The most time for one iteration [default: 1h].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub timeout: Option<Duration>,

    /// The longest silence of an agent that also uses no CPU [default: 10m].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub idle_timeout: Option<Duration>,

    /// A command that must exit with 0 before a claim to be done counts. Can be given several times.
    #[arg(long, value_name = "COMMAND", help_heading = "When it is done")]
    pub verify: Vec<String>,

    /// A task list whose open items (`- [ ]`) veto a claim to be done.
    #[arg(long, value_name = "FILE", help_heading = "When it is done")]
    pub plan_file: Option<PathBuf>,

    /// A claim to be done before this many iterations does not count.
    #[arg(long, value_name = "N", help_heading = "When it is done")]
    pub min_iterations: Option<u32>,

    /// How many claims to be done in a row make a completion [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "When it is done")]
    pub confirmations: Option<u32>,

    /// The most tokens for the whole run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_tokens: Option<u64>,

    /// The most money for the whole run, in US dollars, as far as the agent tells it or `pricing` gives prices.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,

    /// How many iterations in a row without progress end the run; 0: any number [default: 10].
    #[arg(long, value_name = "N")]
    pub no_progress: Option<u32>,

    /// Whether an iteration goes on with the agent's last session: `fresh`, `resume` or `resume-until: context 60%` [default: fresh].
    #[arg(long, value_name = "HOW", value_parser = session)]
    pub session: Option<SessionChoice>,

    /// Start a fresh session each time, also where the driver contract would go on with the last one.
    #[arg(long, conflicts_with = "session")]
    pub no_continue: bool,

    /// Show a driver's output as it comes, which is what happens anyway where the driver can.
    #[arg(long, conflicts_with = "no_live")]
    pub live: bool,

    /// Use a driver's plain command, and show its output with ralph's own view.
    #[arg(long)]
    pub no_live: bool,

    /// Agents that take over while the chosen one is limited or locked out.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub fallback: Vec<String>,

    /// The completion marker, instead of `LOOP_COMPLETE`, `<promise>COMPLETE</promise>` and their kin.
    #[arg(long, value_name = "MARKER")]
    pub completion: Option<String>,

    /// The configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// What to print: lines for people, or records as JSON lines.
    #[arg(long, value_enum, default_value_t = Output::Lines)]
    pub output: Output,

    /// Show the run on the whole screen, with keys to look around and to steer it.
    #[arg(long, conflicts_with = "output")]
    pub tui: bool,

    /// How it looks.
    #[command(flatten)]
    pub view: ViewArgs,
}

const RUN_EXAMPLES: &str = "Examples:
  ralph run --agent demo
  ralph run \"fix the tests\" --agent claude --model opus
  ralph run --dry-run
  ralph run \"fix the tests\" -- --add-dir ../shared
  ralph run \"fix the tests\" --agent-cmd './my-agent.sh'
  ralph run -P PROMPT.md -n 20 --agent-cmd 'python agent.py' --transcript rtf1
  echo \"do it\" | ralph run - --agent demo --output json";

/// `ralph agents`.
#[derive(Debug, Args)]
pub struct Agents {
    /// One agent in full, instead of the table.
    #[command(subcommand)]
    pub action: Option<AgentsAction>,

    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// The configuration file, instead of `ralph.yml` here or in a parent directory.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

/// The subcommands of `ralph agents`.
#[derive(Debug, Subcommand)]
pub enum AgentsAction {
    /// Show one agent: its definition, and its command lines ready to paste
    Show(Show),
    /// Write the skeleton of a driver or an agent script
    New(New),
    /// Put a driver or an agent script through its contract, with a fake command instead of the agent
    Check(Check),
}

/// `ralph agents new`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct New {
    /// A driver: hooks that build a command line; written to `.ralph/drivers/NAME.sh`.
    #[arg(long, value_name = "NAME")]
    pub driver: Option<String>,

    /// An agent script: functions that run the agent; written to `.ralph/agents/NAME.sh`.
    #[arg(long, value_name = "NAME")]
    pub script: Option<String>,
}

/// `ralph agents check`.
#[derive(Debug, Args)]
pub struct Check {
    /// A name, `driver:NAME`, `script:NAME`, or the path of a file.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `ralph agents show`.
#[derive(Debug, Args)]
pub struct Show {
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
pub enum Output {
    /// Lines for people.
    Lines,
    /// Records as JSON lines.
    Json,
}

/// `ralph as-claude`.
#[derive(Debug, Args)]
#[command(
    after_help = "A link called `AGENT-as-claude` to this program does the same. Flags that Claude Code does not have are \
skipped; `--text-only` tells tool activity as lines of progress."
)]
pub struct AsClaude {
    /// The agent that does the work.
    #[arg(value_name = "AGENT")]
    pub agent: String,

    /// What Claude Code would be given: `-p PROMPT`, `--print` with the prompt on standard input, `--model`, `--effort`,
    /// `--resume`, `--session-id`, `--append-system-prompt`, `--allowedTools`, `--output-format`, `--include-partial-messages`.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// `ralph translate`.
#[derive(Debug, Args)]
pub struct Translate {
    /// The file to read [default: standard input].
    #[arg(value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// What the input is: `claude`, `codex`, `gemini`, `qwen`, `opencode`, `copilot`, `cursor`, `amp`, `cline`, `pi`,
    /// `goose`, `droid`, `kiro`, `aider`, `plain`, `rtf1`, or `auto` to see it from the first lines.
    #[arg(long, value_name = "DIALECT")]
    pub from: String,

    /// What to write.
    #[arg(long, value_enum, default_value_t = To::Json)]
    pub to: To,

    /// The agent's exit code, when it is known.
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub exit_code: Option<i32>,

    /// The file with what the agent wrote to standard error.
    #[arg(long, value_name = "FILE")]
    pub stderr: Option<PathBuf>,

    /// The file with the prompt that was sent, so that its echo is recognised.
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,

    /// Show each input line with the events it gave.
    #[arg(long, conflicts_with = "to")]
    pub explain: bool,

    /// How it looks with `--to text`.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// What `ralph translate` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// Canonical events as JSON lines.
    Json,
    /// The same behind RTF1's sentinel.
    Rtf1,
    /// What the line view shows.
    Text,
    /// Claude's stream-json.
    Claude,
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
