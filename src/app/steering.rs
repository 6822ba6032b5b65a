//! What the full screen cannot do itself: orders to a run, and differences. Orders take the same way as `ralph hint`.

use std::sync::mpsc::{Receiver, channel};

use super::difference;
use crate::cli::ViewArgs;
use crate::cli::history::Answer;
use crate::control::{Order, send};
use crate::error::io_reason;
use crate::journal::{Lock, Receipt, RunDirectory, Store};
use crate::process;
use crate::ui::tui::{Actions, Owner};

/// `ralph answer` in the full screen, for an answer that was given there.
pub(crate) fn answered(words: String, run: String, view: &ViewArgs) -> Answer {
    Answer { words: vec![words], run: Some(run), tui: true, view: view.clone() }
}

/// What the view cannot do itself. Orders go the same way as `ralph hint`.
pub(crate) struct Steering {
    directory: RunDirectory,
    store: Store,
}

impl Steering {
    pub(crate) fn new(store: &Store, directory: &RunDirectory) -> Self {
        Self { directory: directory.clone(), store: store.clone() }
    }
}

/// The Unix signals that end a full screen.
pub(crate) fn ending_signals() -> Vec<i32> {
    process::end_like_sigterm();
    let all = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().chain(process::ending_signals());
    all.filter(|signal| !process::ignores(*signal)).collect()
}

impl Actions for Steering {
    fn ending_signals(&self) -> Vec<i32> {
        ending_signals()
    }

    fn order(&mut self, order: &Order) -> Result<(), String> {
        let holder = Lock::holder(&self.store).filter(|holder| holder.run == self.directory.id);
        let socket = holder.and_then(|holder| holder.control).ok_or("the run is not active")?;
        send(&socket, order).map_err(|error| format!("the run did not accept the order: {}", io_reason(&error)))
    }

    fn is_running(&mut self) -> bool {
        Lock::holder(&self.store).is_some_and(|holder| holder.run == self.directory.id)
    }

    fn interrupt(&mut self) {
        // The run takes it as if the terminal had sent it.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }

    fn suspend(&mut self, player: Owner) {
        match player {
            // The run halts its agent and then this process.
            Owner::This => {
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP);
            }
            Owner::Another => process::suspend_self(),
        }
    }

    fn difference(&mut self, receipt: Receipt) -> Receiver<Result<String, String>> {
        let (sender, receiver) = channel();
        let run = self.directory.clone();
        // Git may take its time. Whoever asked may be gone when it has answered.
        let asked = std::thread::Builder::new().name("git".into()).spawn(move || {
            process::protect(process::own_program());
            let _ = sender.send(difference::of_iterations(&run, &[&receipt]).map_err(|error| error.message));
        });
        drop(asked);
        receiver
    }
}
