//! The panes beside the transcript: each makes rows of what the index, the fold of the iteration or the disk tell.

pub mod agent_screen;
pub mod checks;
pub mod events;
pub mod files;
pub mod help;
pub mod list;
pub mod plan;
pub mod raw;
pub mod tools;
pub mod usage;

/// What is shown of the selected iteration, or of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// What it said and did.
    Transcript,
    /// The agent's own plan.
    Plan,
    /// Its tools and how long they took.
    Tools,
    /// What changed.
    Files,
    /// Events and hats of the run.
    Events,
    /// Tokens, money and time of the run.
    Usage,
    /// What the user's commands said.
    Checks,
    /// What the agent wrote, byte for byte.
    Raw,
    /// The agent's own screen.
    Screen,
}

/// How many panes there are.
pub const COUNT: usize = 9;

impl Pane {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; COUNT] = [
        Self::Transcript,
        Self::Plan,
        Self::Tools,
        Self::Files,
        Self::Events,
        Self::Usage,
        Self::Checks,
        Self::Raw,
        Self::Screen,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transcript => "Transcript",
            Self::Plan => "Plan",
            Self::Tools => "Tools",
            Self::Files => "Files",
            Self::Events => "Events",
            Self::Usage => "Usage",
            Self::Checks => "Checks",
            Self::Raw => "Raw",
            Self::Screen => "Screen",
        }
    }

    /// Its place in the order.
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|pane| *pane == self).unwrap_or(0)
    }
}
