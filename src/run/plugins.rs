//! Plug-ins in the loop: what their contracts ask for before and after an iteration. The contracts themselves are in
//! `plugin/`; the loop knows only the trait.
//!
//! A plug-in lives as long as the run. A hook never outlasts Ctrl-C, and nothing that a hook does decides by itself: its
//! findings go into the iteration's report like everything else.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

use super::iteration::{Halt, Inputs, Iteration, record_order};
use super::iteration_result::IterationResult;
use super::prompt::Source;
use super::{Came, Recorder};
use crate::agent::Agent;
use crate::control::Order;
use crate::error::UserError;
use crate::journal::{Fact, Outcome, Raw};
use crate::process;

/// What a plug-in does, as a future that borrows it.
pub(crate) type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;
/// A plug-in that is being loaded.
pub(crate) type Loading<'a> = Doing<'a, Result<Box<dyn Plugin>, UserError>>;
/// Loads the plug-in of an agent.
pub(crate) type Loader = Rc<dyn for<'a> Fn(&'a Upcoming<'_>) -> Loading<'a>>;

/// A plug-in that was loaded. The texts that it returns are shown as notices.
pub(crate) trait Plugin {
    /// Before an iteration: calls its hooks and makes the iteration what the contract says.
    fn prepare<'a>(
        &'a mut self,
        next: &'a Upcoming<'_>,
        iteration: &'a mut Iteration<'_>,
    ) -> Doing<'a, Result<Vec<String>, UserError>>;

    /// After an iteration: what it finds goes into the report and the receipt.
    fn conclude<'a>(
        &'a mut self,
        result: &'a mut IterationResult,
        output: &'a Output,
    ) -> Doing<'a, Result<Vec<String>, UserError>>;

    /// The run is over: its shell ends.
    fn close<'a>(self: Box<Self>, outcome: Outcome, reason: &'a str) -> Doing<'a, ()>
    where
        Self: 'a;
}

/// The same for one kind of plug-in, as plain asynchronous functions.
pub(crate) trait Steps {
    async fn before(&mut self, next: &Upcoming<'_>, iteration: &mut Iteration<'_>) -> Result<Vec<String>, UserError>;
    async fn after(&mut self, result: &mut IterationResult, output: &Output) -> Result<Vec<String>, UserError>;
    async fn end(self, outcome: Outcome, reason: &str);
}

impl<T: Steps> Plugin for T {
    fn prepare<'a>(
        &'a mut self,
        next: &'a Upcoming<'_>,
        iteration: &'a mut Iteration<'_>,
    ) -> Doing<'a, Result<Vec<String>, UserError>> {
        Box::pin(self.before(next, iteration))
    }

    fn conclude<'a>(
        &'a mut self,
        result: &'a mut IterationResult,
        output: &'a Output,
    ) -> Doing<'a, Result<Vec<String>, UserError>> {
        Box::pin(self.after(result, output))
    }

    fn close<'a>(self: Box<Self>, outcome: Outcome, reason: &'a str) -> Doing<'a, ()>
    where
        Self: 'a,
    {
        Box::pin((*self).end(outcome, reason))
    }
}

/// What is known of an iteration before it starts.
pub(crate) struct Upcoming<'a> {
    pub agent: &'a Agent,
    /// Where the user's words come from.
    pub prompt: &'a Source,
    /// The working directory.
    pub workspace: &'a Path,
    /// Variables for the agent.
    pub environment: Vec<(OsString, OsString)>,
    /// A task list, when there is one.
    pub plan_file: Option<PathBuf>,
}

/// The raw output of one iteration.
pub(crate) struct Output {
    pub path: PathBuf,
    /// Where this try of the iteration begins in it.
    pub start: u64,
}

impl Output {
    /// The output of an iteration that has not started.
    pub(crate) fn of(iteration: &Iteration<'_>) -> Self {
        let path = Raw::stdout(&iteration.raw, iteration.number);
        let start = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        Self { path, start }
    }
}

/// The plug-ins of a run, loaded when they are first needed.
pub(super) struct Plugins {
    loader: Loader,
    loaded: BTreeMap<String, Box<dyn Plugin>>,
}

impl Plugins {
    pub(super) fn new(loader: Loader) -> Self {
        Self { loader, loaded: BTreeMap::new() }
    }

    /// Lets the agent's plug-in prepare the iteration. Other agents stay as they are.
    pub(super) async fn prepare(
        &mut self,
        next: Upcoming<'_>,
        iteration: &mut Iteration<'_>,
        recorder: &mut Recorder,
        inputs: Inputs<'_>,
    ) -> Result<(), Halt> {
        if next.agent.plugin.is_none() {
            return Ok(());
        }
        let work = async {
            if !self.loaded.contains_key(next.agent.id()) {
                self.loaded.insert(next.agent.id().to_owned(), (self.loader)(&next).await?);
            }
            match self.loaded.get_mut(next.agent.id()) {
                Some(plugin) => plugin.prepare(&next, iteration).await,
                None => Ok(Vec::new()),
            }
        };
        let notices = unless_interrupted(work, recorder, inputs).await?;
        record_notices(notices, recorder)
    }

    /// Lets the agent's plug-in look at the finished iteration.
    pub(super) async fn conclude(
        &mut self,
        agent: &Agent,
        result: &mut IterationResult,
        output: Output,
        recorder: &mut Recorder,
        inputs: Inputs<'_>,
    ) -> Result<(), Halt> {
        let Some(plugin) = self.loaded.get_mut(agent.id()) else { return Ok(()) };
        let notices = match unless_interrupted(plugin.conclude(result, &output), recorder, inputs).await {
            // The iteration itself is over and counts.
            Err(Halt::OutOfTime) => vec!["stopped the hooks after the iteration: time limit reached".to_owned()],
            result => result?,
        };
        record_notices(notices, recorder)
    }

    pub(super) async fn close(self, outcome: Outcome, reason: &str) {
        for plugin in self.loaded.into_values() {
            plugin.close(outcome, reason).await;
        }
    }
}

/// Works until it is done, or until the user wants out.
async fn unless_interrupted<T>(
    work: impl Future<Output = Result<T, UserError>>,
    recorder: &mut Recorder,
    inputs: Inputs<'_>,
) -> Result<T, Halt> {
    let Inputs { interrupts, inbox, orders, deadline } = inputs;
    let out_of_time = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(work, out_of_time);
    loop {
        tokio::select! {
            biased;
            came = interrupts.next() => match came {
                Came::Suspend => process::suspend_self(),
                Came::Resized | Came::Retry => {}
                Came::Interrupt(interrupt, _) => {
                    let (unix_signal, action) = (interrupt.name(), "left the hooks".to_owned());
                    recorder.fact(Fact::Interrupt { unix_signal, action })?;
                    return Err(Halt::Leave);
                }
            },
            received = inbox.next() => {
                let order = record_order(received, recorder)?;
                if order == (Order::Stop { now: true }) {
                    return Err(Halt::Leave);
                }
                orders.take(order);
            }
            result = &mut work => return result.map_err(Halt::Error),
            () = &mut out_of_time => return Err(Halt::OutOfTime),
        }
    }
}

fn record_notices(notices: Vec<String>, recorder: &mut Recorder) -> Result<(), Halt> {
    notices.into_iter().try_for_each(|message| recorder.fact(Fact::Notice { message })).map_err(Halt::Error)
}
