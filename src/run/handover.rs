//! An iteration with a person at the keys: the agent's own program has the user's terminal.
//!
//! Every key is the agent's, with one exception: Ctrl-C twice within a second is for the run.

use std::future::pending;
use std::time::{Duration, Instant};

use super::{Recorder, Screen};
use crate::terminal::Handover as Terminal;

/// Two presses of Ctrl-C within this time mean the run.
const TWICE: Duration = Duration::from_secs(1);

/// Ctrl-C as a byte, and as the newer forms of keys say it.
const CTRL_C: [&[u8]; 3] = [b"\x03", b"\x1b[99;5u", b"\x1b[27;5;99~"];

/// The user's terminal while the agent has it.
#[derive(Debug)]
pub(super) struct Handover {
    terminal: Terminal,
    presses: Presses,
}

impl Handover {
    /// Hands the terminal over, if it is the agent's; `None` where there is none any more.
    pub(crate) fn begin(screen: Screen, recorder: &Recorder) -> Option<Self> {
        if screen != Screen::Users {
            return None;
        }
        // What was recorded must be on the terminal before someone else has it.
        recorder.settle();
        Some(Self { terminal: Terminal::take()?, presses: Presses::default() })
    }

    /// Shows what the agent draws.
    pub(crate) fn show(handover: &mut Option<Self>, bytes: &[u8]) {
        if let Some(handover) = handover {
            handover.terminal.show(bytes);
        }
    }

    /// True when the terminal should first take what it has.
    pub(crate) fn is_full(handover: Option<&Self>) -> bool {
        handover.is_some_and(|handover| handover.terminal.is_full())
    }

    /// The next keys for the agent; none for Ctrl-C, the second time. Cancel-safe; never, where nothing is handed over.
    pub(crate) async fn next(handover: &mut Option<Self>) -> Option<Vec<u8>> {
        let Some(handover) = handover else { return pending().await };
        let keys = handover.terminal.keys().await;
        handover.presses.see(keys, Instant::now())
    }
}

#[derive(Debug, Default)]
struct Presses {
    last: Option<Instant>,
}

impl Presses {
    /// The keys, unless they mean the run.
    fn see(&mut self, keys: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        let count: usize = CTRL_C.iter().map(|form| memchr::memmem::find_iter(&keys, form).count()).sum();
        let again = self.last.is_some_and(|last| now.duration_since(last) <= TWICE);
        if count > 0 {
            self.last = Some(now);
        }
        if count > 1 || (count == 1 && again) { None } else { Some(keys) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_is_the_agents_and_twice_within_a_second_the_runs() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let mut presses = Presses::default();
        let keys = |keys: &[u8]| Some(keys.to_vec());
        assert_eq!(presses.see(b"\x03".to_vec(), at(0)), keys(b"\x03"));
        assert_eq!(presses.see(b"x".to_vec(), at(500)), keys(b"x"));
        assert_eq!(presses.see(b"\x03".to_vec(), at(1500)), keys(b"\x03"), "too late for the first");
        assert_eq!(presses.see(b"\x1b[99;5u".to_vec(), at(2400)), None);
        assert_eq!(Presses::default().see(b"\x03\x03".to_vec(), at(0)), None);
    }
}
