//! Plug-ins written for other loops: bash drivers (`driver_*`), bash agent scripts (`agent_*`) and commands that speak
//! Claude's stream-json. One directory for each contract, and `bash` for what the first two share.
//!
//! A file of the repository is sourced only here, once for a run, and only when a run needs it or a person asked for it.

mod attempt;
pub(crate) mod bash;
pub(crate) mod by_text;
pub(crate) mod conformance;
pub(crate) mod driver;
pub(crate) mod files;
mod loop_config;
pub(crate) mod other_loops;
pub mod script;
pub(crate) mod settings;
pub(crate) mod wrapper;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::agent::{Agent, Contract, Source};
use crate::error::UserError;
use crate::run::plugins::{Loader, Plugin};

/// An agent, and what to tell about it at the start.
pub(crate) struct Chosen {
    pub(crate) agent: Agent,
    /// Where its definition is written.
    pub(crate) source: Option<Source>,
    /// Why this one and no other.
    pub(crate) why: String,
    /// What the user should know.
    pub(crate) notices: Vec<String>,
    /// The plug-in that it is, when that was loaded to learn about it.
    pub(crate) loaded: Option<Loaded>,
}

/// A plug-in whose file was sourced.
pub(crate) enum Loaded {
    Driver(Box<driver::Driver>),
    Script(Box<script::Script>),
}

/// Gives the loop its plug-ins: those that were loaded while the run was planned, by the names of their agents, and others
/// when they are needed.
pub(crate) fn loader(loaded: BTreeMap<String, Loaded>) -> Loader {
    let loaded = RefCell::new(loaded);
    Rc::new(move |next| {
        let ready = loaded.borrow_mut().remove(next.agent.id());
        Box::pin(async move {
            let file = next.agent.plugin.as_ref().ok_or_else(|| UserError::failed("the agent is not a plug-in"))?;
            Ok(match (file.contract, ready) {
                (Contract::Driver, Some(Loaded::Driver(driver))) => {
                    Box::new(driver::in_run::DriverInRun::new(*driver, next, file).await?) as Box<dyn Plugin>
                }
                (Contract::Script, Some(Loaded::Script(script))) => {
                    Box::new(script::in_run::ScriptInRun::new(*script, next, file))
                }
                (Contract::Driver, _) => Box::new(driver::in_run::DriverInRun::load(next, file).await?),
                (Contract::Script, _) => Box::new(script::in_run::ScriptInRun::load(next, file).await?),
            })
        })
    })
}
