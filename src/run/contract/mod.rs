//! Drivers and agent scripts in the loop: what their contracts ask for before and after an iteration.
//!
//! The shells live as long as the run. A hook never outlasts Ctrl-C, and nothing a hook does decides by itself: what
//! comes of it goes into the iteration's report like everything else.

mod driver;
mod script;
mod status_file;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::control::Command;
use super::iteration::{Ears, Halt, Iteration, Played, told};
use super::prompt::Source;
use super::{Came, Recorder};
use crate::agent::{Agent, Contract};
use crate::error::UserError;
use crate::journal::{Fact, Outcome, Raw};
use crate::process;
use driver::OfDriver;
use script::OfScript;

/// The drivers and scripts of a run, loaded when they are first needed.
#[derive(Default)]
pub struct Contracts {
    loaded: BTreeMap<String, Loaded>,
}

enum Loaded {
    Driver(Box<OfDriver>),
    Script(Box<OfScript>),
}

/// What an iteration is about to be.
pub struct Stage<'a> {
    /// Who plays it.
    pub agent: &'a Agent,
    /// Where the user's words come from.
    pub prompt: &'a Source,
    /// Variables for the agent.
    pub environment: Vec<(OsString, OsString)>,
    /// A task list, when there is one.
    pub plan_file: Option<PathBuf>,
}

impl Contracts {
    /// Calls what comes before an iteration, and makes the iteration what the contract says. Other agents stay as they
    /// are.
    pub async fn prepare(
        &mut self,
        stage: Stage<'_>,
        iteration: &mut Iteration<'_>,
        recorder: &mut Recorder,
        ears: Ears<'_>,
    ) -> Result<(), Halt> {
        let Some(foreign) = &stage.agent.foreign else { return Ok(()) };
        let work = async {
            if !self.loaded.contains_key(stage.agent.id()) {
                let loaded = match foreign.contract {
                    Contract::Driver => Loaded::Driver(Box::new(OfDriver::load(&stage, iteration.workspace).await?)),
                    Contract::Script => Loaded::Script(Box::new(OfScript::load(&stage, iteration.workspace).await?)),
                };
                self.loaded.insert(stage.agent.id().to_owned(), loaded);
            }
            match self.loaded.get_mut(stage.agent.id()) {
                Some(Loaded::Driver(driver)) => driver.prepare(&stage, iteration).await,
                Some(Loaded::Script(script)) => script.prepare(&stage, iteration).await,
                None => Ok(Vec::new()),
            }
        };
        let notices = unless_interrupted(work, recorder, ears).await?;
        tell(notices, recorder)
    }

    /// Calls what comes after an iteration: what it finds goes into the report and the receipt.
    pub async fn conclude(
        &mut self,
        agent: &Agent,
        played: &mut Played,
        output: Output,
        recorder: &mut Recorder,
        ears: Ears<'_>,
    ) -> Result<(), Halt> {
        let work = async {
            match self.loaded.get_mut(agent.id()) {
                Some(Loaded::Driver(driver)) => driver.conclude(played, &output).await,
                Some(Loaded::Script(script)) => script.conclude(played, &output).await,
                None => Ok(Vec::new()),
            }
        };
        let notices = unless_interrupted(work, recorder, ears).await?;
        tell(notices, recorder)
    }

    /// The run is over: the shells go, and those who watch a status file learn how it ended.
    pub async fn close(self, outcome: Outcome, reason: &str) {
        for loaded in self.loaded.into_values() {
            match loaded {
                Loaded::Driver(driver) => driver.close(outcome, reason).await,
                Loaded::Script(script) => script.close().await,
            }
        }
    }
}

impl Played {
    /// True when the agent ended by itself with exit code 0, which is all that the contracts ask of it.
    fn ended_well(&self) -> bool {
        self.process.exit.success() && self.process.stopped.is_none()
    }

    /// Takes back a failure that the contract does not know.
    fn forgive(&mut self) {
        self.report.failure = None;
        "exit code 0".clone_into(&mut self.report.ended);
        self.receipt.success = true;
        self.receipt.class = None;
        self.receipt.ended.clone_from(&self.report.ended);
    }
}

/// The raw output of one iteration.
pub struct Output {
    /// The file.
    pub path: PathBuf,
    /// Where this try of the iteration begins in it.
    pub start: u64,
}

impl Output {
    /// The output of an iteration that has not begun.
    pub fn of(iteration: &Iteration<'_>) -> Self {
        let path = Raw::stdout(&iteration.raw, iteration.number);
        let start = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        Self { path, start }
    }
}

/// Works until it is done, or until the user wants out.
async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, UserError>>,
    recorder: &mut Recorder,
    ears: Ears<'_>,
) -> Result<T, Halt> {
    let Ears { interrupts, inbox, orders } = ears;
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            came = interrupts.next() => match came {
                Came::Suspend => process::suspend_self(),
                Came::Resized | Came::Retry => {}
                Came::Interrupt(interrupt, _) => {
                    let (unix_signal, action) = (interrupt.name().to_owned(), "left the hooks".to_owned());
                    recorder.fact(Fact::Interrupt { unix_signal, action })?;
                    return Err(Halt::Leave);
                }
            },
            command = inbox.next() => {
                told(&command, recorder)?;
                if command == (Command::Stop { now: true }) {
                    return Err(Halt::Leave);
                }
                orders.take(command);
            }
            result = &mut work => return result.map_err(Halt::Error),
        }
    }
}

fn tell(notices: Vec<String>, recorder: &mut Recorder) -> Result<(), Halt> {
    notices.into_iter().try_for_each(|message| recorder.fact(Fact::Notice { message })).map_err(Halt::Error)
}
