//! Commands of the user at fixed moments of a run. Each gets what happened as JSON on standard input. Exit code 0 continues,
//! 10 skips what follows, anything else is an error, which `hooks.on_error` judges.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::configured::{self, CommandEnd};
use super::coordinator::{Looping, milliseconds};
use super::{Interrupts, Recorder};
use crate::error::UserError;
use crate::git::{By, Effort};
use crate::journal::{Fact, Outcome, Receipt};
use crate::plural::plural;

/// The exit code of a hook that skips what follows.
const SKIP: i32 = 10;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HookMoment {
    BeforeRun,
    BeforeIteration,
    AfterIteration,
    AfterRun,
    OnRejected,
    OnWait,
}

impl HookMoment {
    /// Its key in the configuration.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::BeforeRun => "hooks.before_run",
            Self::BeforeIteration => "hooks.before_iteration",
            Self::AfterIteration => "hooks.after_iteration",
            Self::AfterRun => "hooks.after_run",
            Self::OnRejected => "hooks.on_rejected",
            Self::OnWait => "hooks.on_wait",
        }
    }

    /// Whether there is something that exit code 10 can skip.
    const fn can_skip(self) -> bool {
        matches!(self, Self::BeforeIteration | Self::AfterIteration | Self::OnWait)
    }
}

/// What a failed hook does to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The run continues with a warning.
    #[default]
    Warn,
    /// The run stops as failed.
    Stop,
}

/// All hooks of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks {
    pub commands: BTreeMap<HookMoment, Vec<String>>,
    pub timeout: Duration,
    pub on_error: OnError,
}

/// What follows from a hook.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookEnd {
    Continue,
    Skip,
    RunOver((Outcome, String)),
}

impl Looping<'_> {
    /// Runs the hook of a moment, if there is one.
    pub(super) async fn hook(
        &mut self,
        moment: HookMoment,
        record: Value,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<HookEnd, UserError> {
        let plan = self.plan;
        let Some(argv) = plan.hooks.commands.get(&moment) else { return Ok(HookEnd::Continue) };
        let mut record = record;
        recorder.redactor().clean_value(&mut record);
        let mut input = record.to_string();
        input.push('\n');
        let timeout = self.time_left().map_or(plan.hooks.timeout, |left| left.min(plan.hooks.timeout));
        let environment = self.run_environment();
        let end =
            configured::run(argv, Some(input.into_bytes()), timeout, &plan.workspace, &environment, interrupts).await;
        // What a hook changed is not the agent's work.
        if moment != HookMoment::AfterRun {
            self.snapshots.take(By::Checks, false, Effort::Touched).await;
        }
        let why = match end {
            CommandEnd::Ran { code: 0, .. } => return Ok(HookEnd::Continue),
            CommandEnd::Ran { code: SKIP, .. } if moment.can_skip() => return Ok(HookEnd::Skip),
            CommandEnd::Interrupted => {
                return Ok(HookEnd::RunOver((Outcome::Interrupted, "stopped by the user".to_owned())));
            }
            CommandEnd::Ran { code, stderr, .. } => match stderr.trim().lines().last() {
                Some(last) => format!("exit code {code}: {last}"),
                None => format!("exit code {code}"),
            },
            CommandEnd::Broken(why) => why,
        };
        let message = format!("`{}` failed: {why}", moment.key());
        match plan.hooks.on_error {
            OnError::Warn => {
                recorder.fact(Fact::Notice { message })?;
                Ok(HookEnd::Continue)
            }
            OnError::Stop => Ok(HookEnd::RunOver((Outcome::Failed, message))),
        }
    }

    /// The hook before an iteration. A skipped iteration counts, so that the run ends some time.
    pub(super) async fn before_iteration(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<HookEnd, UserError> {
        let (number, most) = (self.memory.state.iterations + 1, self.policy().max_iterations);
        let record = json!({
            "kind": "before_iteration", "iteration": number, "max_iterations": most, "last_result": self.memory.last,
        });
        let end = self.hook(HookMoment::BeforeIteration, record, recorder, interrupts).await?;
        if end == HookEnd::Skip {
            let message = format!("iteration {number} skipped by `{}`", HookMoment::BeforeIteration.key());
            recorder.fact(Fact::Notice { message })?;
            self.memory.state.iterations = number;
            if number >= most {
                let reason = format!("limit reached: {}", plural(most, "iteration"));
                return Ok(HookEnd::RunOver((Outcome::Limit, reason)));
            }
        }
        Ok(end)
    }

    /// The hook after an iteration, before its checks.
    pub(super) async fn after_iteration(
        &mut self,
        receipt: &Receipt,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<HookEnd, UserError> {
        let end = Fact::IterationEnd { receipt: Box::new(receipt.clone()) };
        let record = serde_json::to_value(&end).unwrap_or_default();
        self.hook(HookMoment::AfterIteration, record, recorder, interrupts).await
    }

    /// The hook before a wait: how long the wait still is.
    pub(super) async fn before_wait(
        &mut self,
        wait: Duration,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<Result<Duration, (Outcome, String)>, UserError> {
        if wait.is_zero() {
            return Ok(Ok(wait));
        }
        let record = json!({"kind": "wait", "wait_ms": milliseconds(wait), "last_result": self.memory.last});
        Ok(match self.hook(HookMoment::OnWait, record, recorder, interrupts).await? {
            HookEnd::Continue => Ok(wait),
            HookEnd::Skip => Ok(Duration::ZERO),
            HookEnd::RunOver(end) => Err(end),
        })
    }
}
