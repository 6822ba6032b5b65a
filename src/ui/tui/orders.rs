//! What the view asks of the program around it: orders to the run, and answers that only a process can give.
//!
//! The view itself starts nothing and writes to no run; whoever opens it lends it these hands.

use std::sync::mpsc::Receiver;

use super::Owner;
use crate::journal::Receipt;

/// What a person wants of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Wait after this iteration.
    Pause,
    /// Go on.
    Continue,
    /// End after this iteration.
    Stop,
    /// End now, with the agent.
    StopNow,
    /// Words for the next iteration.
    Hint(String),
    /// Do not wait any longer.
    Retry,
    /// Another limit, as a person writes it: `200`, `$5`, `2h`.
    Limit(String),
}

/// What the view cannot do itself.
pub trait Hands: Send {
    /// Tells the run; what will happen, or why it cannot be told.
    fn tell(&mut self, order: Order) -> Result<String, String>;

    /// Whether the run is under way.
    fn is_running(&mut self) -> bool;

    /// Does what Ctrl-C does where no view has the keyboard.
    fn interrupt(&mut self);

    /// Halts this process as Ctrl-Z does where no view has the keyboard: by itself, or, while this process plays the run,
    /// together with the agent. It may return before that has happened.
    fn suspend(&mut self, player: Owner);

    /// True for a Unix signal that whoever started this process wants ignored.
    fn ignores(&self, _signal: i32) -> bool {
        false
    }

    /// Asks what an iteration changed; the answer comes when it is ready.
    fn difference(&mut self, receipt: Receipt) -> Receiver<Result<String, String>>;
}
