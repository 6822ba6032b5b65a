//! Arguments of the commands that other programs call.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::ViewArgs;

/// `ralph jq-service`.
#[derive(Debug, Args)]
pub(crate) struct JqService {
    /// How it is asked.
    #[arg(value_enum)]
    pub mode: JqMode,

    /// The arguments of the tool.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<String>,
}

/// How the jq service is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JqMode {
    /// Framed calls on standard input.
    Serve,
    /// One call, like the tool itself.
    Run,
    /// Each line of standard input by itself; one that is no JSON is passed over.
    Each,
    /// The same; one that is no JSON is shown as it is.
    Lines,
}

/// `ralph as-claude`.
#[derive(Debug, Args)]
#[command(
    after_help = "A link to ralph named `AGENT-as-claude` does the same. Flags that Claude Code does not have are ignored; \
`--text-only` prints tool activity as lines of text."
)]
pub(crate) struct AsClaude {
    /// The agent that does the work.
    #[arg(value_name = "AGENT")]
    pub agent: String,

    /// Claude Code's arguments: `-p PROMPT`, `--print` with the prompt on standard input, `--model`, `--effort`,
    /// `--resume`, `--session-id`, `--append-system-prompt`, `--allowedTools`, `--output-format`, `--include-partial-messages`.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// `ralph translate`.
#[derive(Debug, Args)]
pub(crate) struct Translate {
    /// The file to read [default: stdin].
    #[arg(value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Format of the input: `claude`, `codex`, `gemini`, `qwen`, `opencode`, `copilot`, `cursor`, `amp`, `cline`, `pi`,
    /// `goose`, `droid`, `kiro`, `aider`, `plain`, `rtf1`, or `auto` to detect it from the first lines.
    #[arg(long, value_name = "DIALECT")]
    pub from: String,

    /// What to write.
    #[arg(long, value_enum, default_value_t = To::Json)]
    pub to: To,

    /// The agent's exit code, if known.
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub exit_code: Option<i32>,

    /// The file with the agent's stderr.
    #[arg(long, value_name = "FILE")]
    pub stderr: Option<PathBuf>,

    /// The file with the prompt that was sent, to recognise its echo.
    #[arg(long, value_name = "FILE")]
    pub prompt: Option<PathBuf>,

    /// Show each input line with its events.
    #[arg(long, conflicts_with = "to")]
    pub explain: bool,

    /// How it looks with `--to text`.
    #[command(flatten)]
    pub view: ViewArgs,
}

/// What `ralph translate` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    /// Canonical events as JSON lines.
    Json,
    /// The same behind RTF1's sentinel.
    Rtf1,
    /// What the line view shows.
    Text,
    /// Claude's stream-json.
    Claude,
}
