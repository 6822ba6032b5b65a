//! Flags about looks: clap types only.

use clap::{Args, ValueEnum};

/// How text looks.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct AppearanceArgs {
    /// When to use colors. `NO_COLOR` is respected.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,

    /// Use only ASCII characters.
    #[arg(long)]
    pub ascii: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How the line view looks, and how much it shows.
#[derive(Clone, Debug, Args)]
pub(crate) struct ViewArgs {
    /// Colours and signs.
    #[command(flatten)]
    pub appearance: AppearanceArgs,

    /// Plain text for screen readers: no colors, no symbols, nothing redrawn.
    #[arg(long)]
    pub plain: bool,

    /// Show this in full instead of folded.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub show: Vec<Shown>,

    /// Show only how iterations end, and warnings.
    #[arg(short, long, conflicts_with_all = ["show", "verbose"])]
    pub quiet: bool,

    /// Show everything in full.
    #[arg(short, long)]
    pub verbose: bool,
}

/// What is folded unless it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shown {
    /// The agent's reasoning.
    Think,
    /// What tools print and change.
    Tools,
    /// The prompt, where the agent repeats it.
    Prompt,
    /// Output around the agent: warnings, banners, stderr.
    Sys,
}
