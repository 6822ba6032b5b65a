//! Flags about looks: clap types only.

use clap::{Args, ValueEnum};

/// How text looks.
#[derive(Clone, Copy, Debug, Args)]
pub struct AppearanceArgs {
    /// When to use colours. `NO_COLOR` is respected.
    #[arg(long, value_enum, default_value_t = Colour::Auto, value_name = "WHEN")]
    pub color: Colour,

    /// Use no characters beyond ASCII for the view's own signs.
    #[arg(long)]
    pub ascii: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How the line view looks, and how much it shows.
#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// Colours and signs.
    #[command(flatten)]
    pub appearance: AppearanceArgs,

    /// Words and line ends, and nothing else: no colours, no signs, nothing drawn twice. For screen readers.
    #[arg(long)]
    pub plain: bool,

    /// Show this in full, instead of folded.
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub show: Vec<Shown>,

    /// Show only how iterations end, and what somebody should know.
    #[arg(short, long, conflicts_with_all = ["show", "verbose"])]
    pub quiet: bool,

    /// Show everything in full.
    #[arg(short, long)]
    pub verbose: bool,
}

/// What is folded unless it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// The agent's reasoning.
    Think,
    /// What tools print and change.
    Tools,
    /// The prompt, where the agent repeats it.
    Prompt,
    /// What is said around the agent: warnings, banners, standard error.
    Sys,
}
