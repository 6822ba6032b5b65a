//! Phases: modes that follow each other in one run. The review sends the work back to the build until it finds nothing more.

use super::coordinator::Looping;
use super::decide::LoopState;
use super::hooks::{HookEnd, HookMoment};
use super::iteration::Halt;
use super::memory::Phase;
use super::plugins::Plugins;
use super::sessions::Sessions;
use super::{Interrupts, Plan, Recorder};
use crate::error::UserError;
use crate::journal::{Fact, Outcome};
use crate::plural::plural;
use crate::signals::task_list;
use crate::user_file;

/// Where the review writes what it found.
const REVIEW: &str = "REVIEW.md";

/// How often a review may send the work back.
const MOST_ROUNDS: u32 = 10;

/// What follows a phase that is complete.
enum Next {
    Phase(usize),
    /// The review found something, and the work goes back to this phase.
    Back(usize, usize),
    /// It found something in every round that it had.
    Unfixed(usize),
    Over,
}

impl<'p> Looping<'p> {
    /// Plays one phase after the other; a run without phases is one phase.
    pub(super) async fn all_phases(
        &mut self,
        recorder: &mut Recorder,
        interrupts: &mut Interrupts,
    ) -> Result<(Outcome, String), Halt> {
        let told = serde_json::to_value(self.run_start()).unwrap_or_default();
        if let HookEnd::RunOver((outcome, reason)) =
            self.hook(HookMoment::BeforeRun, told, recorder, interrupts).await?
        {
            return self.settle(outcome, reason, recorder).map_err(Halt::Error);
        }
        self.begin_watching(recorder).await?;
        loop {
            let (outcome, reason) = Box::pin(self.turn(recorder, interrupts)).await?;
            if !self.enter_next_phase(outcome, &reason, recorder).await? {
                return Ok((outcome, reason));
            }
        }
    }

    /// The plan of the phase that a run is in.
    pub(super) fn plan_of_phase(plan: &'p Plan, phase: Phase) -> &'p Plan {
        plan.phases.get(phase.index).map_or(plan, |(_, plan)| plan)
    }

    /// True when the run continues with another phase after this one completes.
    pub(super) fn is_followed(&self) -> bool {
        matches!(self.next(), Next::Phase(_) | Next::Back(..))
    }

    /// Why a run whose last phase is complete is not: the limit of reviews is reached, and the last one found something.
    pub(super) fn left_open(&self) -> Option<String> {
        let Next::Unfixed(open) = self.next() else { return None };
        Some(format!("{} left in `{REVIEW}` after {} reviews", plural(open as u64, "open item"), MOST_ROUNDS + 1))
    }

    /// Where the prompt comes from; a run with phases has several.
    pub(super) fn prompt_name(&self) -> String {
        let name = self.plan.prompt.name();
        let names: Vec<String> = self.whole.phases.iter().map(|(name, _)| format!("`{name}`")).collect();
        match (names.is_empty(), name.split_once(", with ")) {
            (true, _) => name,
            (false, Some((_, goal))) => format!("phases {}, with {goal}", names.join(", ")),
            (false, None) => format!("phases {}", names.join(", ")),
        }
    }

    /// Records how the phase ends, and with the last one the run.
    pub(super) fn settle(
        &mut self,
        outcome: Outcome,
        reason: String,
        recorder: &mut Recorder,
    ) -> Result<(Outcome, String), UserError> {
        let memory = self.remembered();
        let (outcome, reason) = match (outcome, self.left_open()) {
            (Outcome::Complete, Some(open)) => (Outcome::Limit, open),
            unchanged => (unchanged.0, reason),
        };
        let (verdict, settled) = match outcome {
            Outcome::Complete if self.is_followed() => ("again", None),
            outcome => ("finish", Some(outcome)),
        };
        let phase = self.whole.phases.get(self.memory.phase.index).filter(|_| settled.is_none());
        let reason_given =
            phase.map_or_else(|| reason.clone(), |(name, _)| format!("phase `{name}` is complete: {reason}"));
        let verdict = verdict.to_owned();
        let decision = Fact::Decision { verdict, reason: reason_given, wait_ms: None, outcome: settled, memory };
        recorder.fact(decision)?;
        Ok((outcome, reason))
    }

    fn next(&self) -> Next {
        let (phases, phase) = (&self.whole.phases, self.memory.phase);
        let Some((name, _)) = phases.get(phase.index) else { return Next::Over };
        if name == "review" {
            let build = phases.iter().position(|(name, _)| name == "build").filter(|build| *build < phase.index);
            let text = user_file::read_text(&self.plan.workspace.join(REVIEW), user_file::MOST_BYTES);
            let open = task_list::items(&text.unwrap_or_default()).open.len();
            if let Some(build) = build.filter(|_| open > 0) {
                return if phase.rounds < MOST_ROUNDS { Next::Back(build, open) } else { Next::Unfixed(open) };
            }
        }
        if phase.index + 1 < phases.len() { Next::Phase(phase.index + 1) } else { Next::Over }
    }

    /// Moves on to the next phase when one is complete; false when the run is over.
    pub(super) async fn enter_next_phase(
        &mut self,
        outcome: Outcome,
        reason: &str,
        recorder: &mut Recorder,
    ) -> Result<bool, UserError> {
        if outcome != Outcome::Complete {
            return Ok(false);
        }
        let mut rounds = self.memory.phase.rounds;
        let (index, why) = match self.next() {
            Next::Over | Next::Unfixed(_) => return Ok(false),
            Next::Phase(index) => (index, None),
            Next::Back(index, open) => {
                rounds += 1;
                (index, Some(format!("{} in `{REVIEW}`", plural(open as u64, "open item"))))
            }
        };
        let name = &self.whole.phases[index].0;
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let message = format!("phase `{name}` ({} of {}){why}", index + 1, self.whole.phases.len());
        recorder.fact(Fact::Notice { message })?;
        let loader = self.whole.phases[index].1.load_plugin.clone();
        let plugins = std::mem::replace(&mut self.plugins, Plugins::new(loader));
        plugins.close(outcome, reason).await;
        self.memory.phase = Phase { index, start: self.memory.state.iterations, rounds };
        self.plan = Self::plan_of_phase(self.whole, self.memory.phase);
        self.words.clear();
        // Each phase has its own agent, and its own counters; what was spent counts for the run.
        let LoopState { iterations, waited, spent, .. } = self.memory.state;
        self.memory.state = LoopState { iterations, waited, spent, ..LoopState::default() };
        self.memory.sessions = Sessions::default();
        self.memory.board = super::hats::Board::default();
        (self.memory.last, self.memory.verification, self.memory.work) = (None, None, None);
        self.memory.remarks.clear();
        self.memory.other_way.clear();
        self.memory.answered.clear();
        self.memory.forbidden = super::paths::Forbidden::default();
        self.begin_watching(recorder).await?;
        // A phase answers for its own changes only.
        self.phase_began_with = self.snapshots.since_start().await.unwrap_or_default();
        Ok(true)
    }

    /// What the prompt of a build says after a review.
    pub(super) fn review_remark(&self) -> Option<String> {
        let (name, _) = self.whole.phases.get(self.memory.phase.index)?;
        (name == "build" && self.memory.phase.rounds > 0).then(|| {
            format!("a review left open items in `{REVIEW}`. Fix each one (`- [ ]`) and check it off there (`- [x]`).")
        })
    }
}
