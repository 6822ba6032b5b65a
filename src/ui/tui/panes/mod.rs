//! The panes beside the transcript: each makes rows of what the index, the fold of the iteration or the disk tell.

pub(crate) mod agent_screen;
pub(crate) mod checks;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod help;
pub(crate) mod list;
pub(crate) mod plan;
pub(crate) mod raw;
pub(crate) mod tools;
pub(crate) mod usage;

/// What is shown of the selected iteration, or of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    /// What it said and did.
    Transcript,
    /// The agent's own plan.
    Plan,
    /// Its tools and how long they took.
    Tools,
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
pub(crate) const COUNT: usize = 9;

impl Pane {
    /// All of them, in the order of their keys.
    pub(crate) const ALL: [Self; COUNT] = [
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

    pub(crate) const fn name(self) -> &'static str {
        ["Transcript", "Plan", "Tools", "Files", "Events", "Usage", "Checks", "Raw", "Screen"][self.number()]
    }

    /// Its place in the order.
    pub(crate) const fn number(self) -> usize {
        self as usize
    }
}
