//! SIGSEGV, SIGBUS, SIGILL and SIGFPE tell of a fault in the program, but anybody can send them, too. Sent from outside they
//! end a run like SIGTERM, so that the terminal is restored. A true fault ends the program as before.

use std::sync::OnceLock;

const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// What was done about them before: the runtime of Rust reports an overflow of the stack.
static BEFORE: OnceLock<Vec<libc::sigaction>> = OnceLock::new();

/// Takes those that another process sends for SIGTERM from now on.
#[expect(unsafe_code, reason = "only a C call installs a handler that sees who sent a signal")]
pub(crate) fn end_like_sigterm() {
    // Other systems tell the sender in another way.
    if !cfg!(target_os = "linux") {
        return;
    }
    BEFORE.get_or_init(|| {
        let install = |number: &i32| {
            // SAFETY: plain C calls with valid arguments; the handler only makes calls that are allowed in one.
            unsafe {
                let (mut action, mut before): (libc::sigaction, libc::sigaction) =
                    (std::mem::zeroed(), std::mem::zeroed());
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                libc::sigaction(*number, std::ptr::null(), &raw mut before);
                libc::sigaction(*number, &raw const action, std::ptr::null_mut());
                before
            }
        };
        FAULTS.iter().map(install).collect()
    });
}

#[expect(unsafe_code, reason = "a signal handler")]
extern "C" fn on_fault(number: i32, info: *const libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info`; `kill` and `sigaction` may be called in a handler.
    unsafe {
        let is_sent = (*info).si_code <= 0;
        if is_sent {
            libc::kill(libc::getpid(), libc::SIGTERM);
            return;
        }
        let default: libc::sigaction = std::mem::zeroed();
        let at = FAULTS.iter().position(|fault| *fault == number);
        let before = at.and_then(|at| BEFORE.get()?.get(at)).unwrap_or(&default);
        // The instruction that failed runs again, and this time the program ends.
        libc::sigaction(number, before, std::ptr::null_mut());
    }
}
