//! What is under way, for the live line of a terminal and the heartbeat of a log.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::event::Usage;
use crate::journal::{Activity, Cost};
use crate::ui::appearance::KeysGoTo;
use crate::ui::figures;
use crate::ui::model::Model;
use crate::ui::text::{cut, harmless};
use crate::ui::words;

/// In a log the first silence of this length is worth a line; each further line takes twice as long.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(60);
/// No silence is longer: some machines end a job that says nothing for ten minutes.
const LONGEST_HEARTBEAT: Duration = Duration::from_secs(8 * 60);

/// More of what a tool does is not said in a log.
const LONGEST_TOOL: usize = 60;

#[derive(Debug)]
pub(super) struct StatusLine {
    /// The agent of the iteration before.
    agent: String,
    since: Instant,
    heard: Instant,
    heartbeat: Duration,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { agent: String::new(), since: now, heard: now, heartbeat: FIRST_HEARTBEAT }
    }

    pub(crate) fn heard(&mut self) {
        self.heard = Instant::now();
        self.heartbeat = FIRST_HEARTBEAT;
    }

    /// An agent begins; says which one worked before.
    pub(crate) fn begin(&mut self, agent: &str) -> String {
        self.since = Instant::now();
        std::mem::replace(&mut self.agent, agent.to_owned())
    }

    /// The line of a terminal; none while nothing takes time.
    pub(crate) fn line(&self, model: &Model, between: &str, keys_go_to: fn() -> KeysGoTo) -> Option<String> {
        let run = &model.run;
        let parts = if run.activity == Activity::Paused && run.end.is_none() {
            let last = run.iterations.last().map_or(0, |tried| tried.iteration);
            vec!["paused".to_owned(), format!("iteration {last}/{} is over", run.max_iterations)]
        } else if let (Activity::Waiting { until, .. }, None) = (&run.activity, &run.end) {
            let last = run.iterations.last().map_or(0, |tried| tried.iteration);
            let next = last.saturating_add(1).min(run.max_iterations);
            let key = (keys_go_to() == KeysGoTo::Run).then(|| "r retry now".to_owned());
            let waiting = format!("waiting, {} left", words::left(*until, Timestamp::now()));
            let next = format!("iteration {next}/{} is next", run.max_iterations);
            [Some(waiting), key, Some(next)].into_iter().flatten().collect()
        } else {
            let tried = model.under_way()?;
            let mut parts = vec![format!("iteration {}/{}", tried.iteration, run.max_iterations)];
            parts.push(run.newest_agent().to_owned());
            parts.extend(tried.hat.as_deref().map(str::to_owned));
            parts.push(seconds(self.since.elapsed()));
            let idle = self.heard.elapsed();
            // A tool that runs is shown with its time: the agent waits for it.
            if idle >= Duration::from_secs(2) && model.iteration.calls.running().next().is_none() {
                parts.push(format!("idle {}", seconds(idle)));
            }
            parts.extend(amounts(model));
            if run.activity == Activity::Pausing {
                parts.push("pausing after this iteration".to_owned());
            }
            parts
        };
        Some(parts.join(between))
    }

    /// A line for a log, when the agent has been silent for long.
    pub(crate) fn heartbeat(&mut self, model: &Model, between: &str) -> Option<String> {
        let idle = self.heard.elapsed();
        if model.under_way().is_none() || idle < self.heartbeat {
            return None;
        }
        self.heartbeat = idle + (self.heartbeat * 2).min(LONGEST_HEARTBEAT);
        let (time, idle) = (seconds(self.since.elapsed()), seconds(idle));
        if let Some(call) = model.iteration.calls.running().last() {
            let tool = harmless(&format!("{} {}", call.name, call.argument));
            return Some(format!(
                "still at work{between}{time}{between}running {} for {idle}",
                cut(&tool, LONGEST_TOOL)
            ));
        }
        Some(format!("still at work{between}{time}{between}silent for {idle}"))
    }
}

/// What the run has used so far, with what the iteration under way has reported.
fn amounts(model: &Model) -> Vec<String> {
    let now = model.iteration.usage.as_ref();
    let tokens = model.run.tokens().unwrap_or(0) + now.and_then(Usage::total_or_sum).unwrap_or(0);
    let cost = [model.run.cost(), now.and_then(|usage| usage.cost_usd).map(Cost::reported)];
    let cost = cost.into_iter().flatten().reduce(Cost::and);
    let mut parts = Vec::new();
    if tokens > 0 {
        parts.push(figures::tokens(tokens));
    }
    parts.extend(cost.map(|cost| figures::cost_of(cost, model.run.max_cost_usd)));
    parts
}

fn seconds(duration: Duration) -> String {
    figures::duration(duration.as_secs() * 1000).replace(" ms", "s").replace(".0 s", "s").replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Stream};
    use crate::journal::{Body, Cost, CostSource, Fact, Receipt, Record};

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    fn apply(model: &mut Model, fact: Fact) {
        model.apply(&Record { seq: 0, at: Timestamp::now(), body: Body::Loop(fact) });
    }

    fn start(iteration: u32, with_agent: Option<&str>, with_hat: Option<&str>) -> Fact {
        let mut fact = Fact::iteration_start(iteration, 100);
        if let Fact::IterationStart { agent, hat, .. } = &mut fact {
            (*agent, *hat) = (with_agent.map(str::to_owned), with_hat.map(str::to_owned));
        }
        fact
    }

    #[test]
    fn the_line_says_what_a_person_asks() {
        let (mut status, mut model) = (StatusLine::new(), Model::new());
        assert_eq!(status.line(&model, " · ", || KeysGoTo::Elsewhere), None, "nothing is under way");
        model.run.max_cost_usd = Some(5.0);
        apply(&mut model, start(2, Some("codex"), None));
        let cost = Cost { usd: 0.3, source: CostSource::Reported };
        let usage = Usage { total_tokens: Some(40_000), ..Usage::default() };
        let receipt = Receipt { usage, cost: Some(cost), ..Receipt::default() };
        apply(&mut model, Fact::IterationEnd { receipt: Box::new(receipt) });
        assert_eq!(status.line(&model, " · ", || KeysGoTo::Elsewhere), None, "nothing is under way");
        apply(&mut model, start(3, Some("codex"), Some("builder")));
        let usage = Usage { total_tokens: Some(1234), cost_usd: Some(0.07), ..Usage::default() };
        let body = Body::Agent { iteration: 3, from: Stream::Stdout, event: Event::Usage { usage } };
        model.apply(&Record { seq: 0, at: Timestamp::now(), body });
        (status.since, status.heard) = (ago(252), ago(8));
        let line = "iteration 3/100 · codex · builder · 4m12s · idle 8s · 41k tokens · $0.37 of $5";
        assert_eq!(status.line(&model, " · ", || KeysGoTo::Elsewhere).as_deref(), Some(line));
    }

    #[test]
    fn a_key_is_offered_only_where_it_works() {
        let (status, mut model) = (StatusLine::new(), Model::new());
        apply(&mut model, start(3, None, None));
        let (verdict, reason) = ("wait".to_owned(), "rate limit".to_owned());
        apply(&mut model, Fact::Decision { verdict, reason, wait_ms: Some(90_000), outcome: None, memory: None });
        let line = |keys_go_to| status.line(&model, " · ", keys_go_to).unwrap();
        assert!(line(|| KeysGoTo::Run).contains(" · r retry now · iteration 4/100 is next"));
        assert!(!line(|| KeysGoTo::Elsewhere).contains("retry now"));
    }

    #[test]
    fn a_silent_agent_is_reported_less_and_less_often() {
        let (mut status, mut model) = (StatusLine::new(), Model::new());
        apply(&mut model, start(1, None, None));
        (status.since, status.heard) = (ago(70), ago(61));
        assert_eq!(status.heartbeat(&model, " - ").as_deref(), Some("still at work - 1m10s - silent for 1m01s"));
        assert_eq!(status.heartbeat(&model, " - "), None);
        status.heard = ago(182);
        assert!(status.heartbeat(&model, " - ").is_some());
        assert_eq!(status.heartbeat(&model, " - "), None);
    }
}
