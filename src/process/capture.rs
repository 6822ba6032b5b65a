//! Runs a small command to its end and keeps what it says: for questions such as `git status`.

use std::time::Duration;

use super::supervisor::start_small;
use super::{Clocks, Exit, Invocation, Output, StartError, Stream};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// How it ended; `None` when its time was up.
    pub exit: Option<Exit>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// True when it said more than was kept.
    pub cut: bool,
}

impl Captured {
    /// True when it ended by itself with exit code 0.
    pub const fn success(&self) -> bool {
        matches!(self.exit, Some(Exit::Code(0)))
    }
}

/// Runs a command within a time, and keeps at most `most` bytes of each stream.
pub async fn capture(invocation: Invocation, patience: Duration, most: usize) -> Result<Captured, StartError> {
    let mut process = start_small(invocation, Clocks { total: Some(patience), ..Clocks::default() })?;
    let mut captured = Captured { exit: None, stdout: Vec::new(), stderr: Vec::new(), cut: false };
    loop {
        match process.next().await {
            Output::Bytes { from, bytes } => {
                let said = if from == Stream::Stdout { &mut captured.stdout } else { &mut captured.stderr };
                let kept = bytes.len().min(most.saturating_sub(said.len()));
                said.extend_from_slice(&bytes[..kept]);
                captured.cut |= kept < bytes.len();
            }
            Output::Ended(ended) => {
                captured.exit = ended.stopped.is_none().then_some(ended.exit);
                return Ok(captured);
            }
        }
    }
}
