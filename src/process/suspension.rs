//! Who wants ralph to halt with SIGTSTP: a person at the terminal, or a process of the run itself, which must not.

use std::sync::Once;
use std::sync::atomic::{AtomicI32, Ordering};

/// Who sent the last SIGTSTP; zero for the terminal.
static SENDER: AtomicI32 = AtomicI32::new(0);

/// Notes who sends SIGTSTP from now on.
#[expect(unsafe_code, reason = "a signal handler")]
pub(crate) fn note_sender() {
    static NOTING: Once = Once::new();
    if !cfg!(target_os = "linux") {
        return;
    }
    NOTING.call_once(|| {
        let note = |info: &libc::siginfo_t| {
            // SAFETY: a signal that a process sent has its id; other signals are handled before.
            let sender = if info.si_code <= 0 { unsafe { info.si_pid() } } else { 0 };
            SENDER.store(sender, Ordering::Release);
        };
        // SAFETY: the action only stores a number.
        let _ = unsafe { signal_hook_registry::register_sigaction(libc::SIGTSTP, note) };
    });
}

/// Whether the last SIGTSTP is to be obeyed: the terminal sent it, ralph itself did for a key, or a process that is no part of
/// the run.
pub(crate) fn is_wanted() -> bool {
    let sender = SENDER.load(Ordering::Acquire);
    sender == 0 || !super::is_descendant(sender)
}
