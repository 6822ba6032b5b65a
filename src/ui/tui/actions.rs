//! What the view asks of the program around it: the view itself starts no process and writes to no run.

use std::sync::mpsc::Receiver;

use super::Owner;
use crate::control::Order;
use crate::journal::Receipt;

/// What the view cannot do itself.
pub trait Actions: Send {
    /// Gives the run an order; the error says why that failed.
    fn order(&mut self, order: &Order) -> Result<(), String>;

    /// Whether the run is under way.
    fn is_running(&mut self) -> bool;

    /// Does what Ctrl-C does where no view has the keyboard.
    fn interrupt(&mut self);

    /// Halts this process as Ctrl-Z does where no view has the keyboard: by itself, or, while this process plays the run,
    /// together with the agent. It may return before that has happened.
    fn suspend(&mut self, runner: Owner);

    /// The Unix signals that end this process, and before that the view.
    fn ending_signals(&self) -> Vec<i32> {
        vec![libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
    }

    /// Asks what an iteration changed; the answer comes when it is ready.
    fn difference(&mut self, receipt: Receipt) -> Receiver<Result<String, String>>;
}
