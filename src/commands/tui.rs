//! `ralph tui`: the full screen on any run of this directory, running or finished.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use super::diff;
use super::find::Here;
use super::looks::looks;
use super::resume;
use super::showing::needs_terminal;
use crate::cli::ViewLooks;
use crate::cli::history::{Answer, Tui};
use crate::duration;
use crate::error::{UserError, io_reason};
use crate::journal::{Lock, Receipt, RunDirectory, Store};
use crate::process;
use crate::run::control::{Command, send};
use crate::ui;
use crate::ui::tui::{self, Hands, Left, Options, Order, Owner, Remote};

/// Shows a run until somebody leaves.
pub fn run(args: &Tui) -> Result<u8, UserError> {
    let here = Here::find()?;
    let directory = here.run(args.id.as_deref())?;
    needs_terminal("ralph tui")?;
    let ui::Looks { palette, glyphs, .. } = looks(args.looks.looks);
    let hands = Box::new(Steering::new(&here.store, &directory));
    let id = directory.id.clone();
    let seen = tui::show(Options { directory, palette, glyphs, owner: Owner::Another, hands }, &Remote::default())
        .map_err(|error| UserError::failed(format!("cannot use the terminal: {}", io_reason(&error))))?;
    match seen.left {
        Left::Closed => Ok(0),
        Left::Signal(number) => process::die_by(number),
        Left::Answered(words) => resume::answer(answered(words, id, &args.looks)),
    }
}

/// `ralph answer` in the full screen, for an answer that was given there.
pub fn answered(words: String, run: String, looks: &ViewLooks) -> Answer {
    Answer { words: vec![words], run: Some(run), tui: true, looks: looks.clone() }
}

/// What the view cannot do itself: orders to a run go the way of `ralph hint` and its kin.
pub struct Steering {
    directory: RunDirectory,
    lock: PathBuf,
}

impl Steering {
    /// Steers a run.
    pub fn new(store: &Store, directory: &RunDirectory) -> Self {
        Self { directory: directory.clone(), lock: store.lock() }
    }
}

impl Hands for Steering {
    fn ignores(&self, signal: i32) -> bool {
        process::ignores(signal)
    }

    fn tell(&mut self, order: Order) -> Result<String, String> {
        let (command, what) = match order {
            Order::Pause => (Command::Pause, "it pauses when this iteration is over"),
            Order::Continue => (Command::Continue, "it goes on"),
            Order::Stop => (Command::Stop { now: false }, "it stops when this iteration is over"),
            Order::StopNow => (Command::Stop { now: true }, "it is being stopped"),
            Order::Hint(words) => (Command::Hint { words }, "the agent hears it in the next iteration"),
            Order::Retry => (Command::Retry, "it waits no longer"),
            Order::Limit(words) => (limit(&words)?, "it holds from the next decision on"),
        };
        send(&self.directory, &command)
            .map_err(|error| format!("cannot write to `{}`: {}", self.directory.path.display(), io_reason(&error)))?;
        Ok(what.to_owned())
    }

    fn is_running(&mut self) -> bool {
        Lock::holder(&self.lock).is_some_and(|holder| holder.run == self.directory.id)
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
            let _ = sender.send(diff::of(&run, &[&receipt]).map_err(|error| error.message));
        });
        drop(asked);
        receiver
    }
}

/// `200`: iterations, `$5`: money, `2h`: time.
fn limit(words: &str) -> Result<Command, String> {
    let words = words.trim();
    let unclear = || format!("`{words}` is no limit: expected iterations (`200`), money (`$5`) or time (`2h`)");
    let (mut max_iterations, mut max_cost_usd, mut max_seconds) = (None, None, None);
    if let Some(usd) = words.strip_prefix('$') {
        max_cost_usd = usd.trim().parse().ok().filter(|usd: &f64| usd.is_finite() && *usd > 0.0);
    } else if let Ok(count) = words.parse() {
        max_iterations = Some(count).filter(|count| *count > 0);
    } else {
        max_seconds = duration::parse(words).map(|time| time.as_secs()).filter(|seconds| *seconds > 0);
    }
    if max_iterations.is_none() && max_cost_usd.is_none() && max_seconds.is_none() {
        return Err(unclear());
    }
    Ok(Command::Limit { max_iterations, max_cost_usd, max_seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_people_write_it() {
        let limit = |words: &str| limit(words).map(|command| command.words().unwrap_or_default());
        assert_eq!(limit("200").as_deref(), Ok("200 iterations"));
        assert_eq!(limit(" $2.50 ").as_deref(), Ok("$2.50"));
        assert_eq!(limit("2h").as_deref(), Ok("7200 s"));
        for wrong in ["0", "$0", "$x", "soon", "", "-3"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
