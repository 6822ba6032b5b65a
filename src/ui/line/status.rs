//! What is under way, for the live line of a terminal and the heartbeat of a log.

use std::time::{Duration, Instant};

use crate::event::Usage;
use crate::journal::Receipt;
use crate::ui::appearance::KeysGoTo;
use crate::ui::figures;

/// In a log the first silence of this length is worth a line; each further line takes twice as long.
const FIRST_HEARTBEAT: Duration = Duration::from_secs(60);
/// No silence is longer: some machines end a job that says nothing for ten minutes.
const LONGEST_HEARTBEAT: Duration = Duration::from_secs(8 * 60);

#[derive(Debug)]
pub(super) struct Status {
    pub agent: String,
    pub hat: Option<String>,
    pub iteration: u32,
    pub of: u32,
    pub phase: Phase,
    pub max_cost_usd: Option<f64>,
    since: Instant,
    heard: Instant,
    heartbeat: Duration,
    /// What iterations that are over have used.
    spent: Spent,
    /// What the one under way has reported.
    usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing that takes time.
    Between,
    Running,
    /// A wait that is over then.
    Waiting(Instant),
}

#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    tokens: u64,
    usd: Option<f64>,
}

impl Status {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            agent: String::new(),
            hat: None,
            iteration: 0,
            of: 0,
            phase: Phase::Between,
            max_cost_usd: None,
            since: now,
            heard: now,
            heartbeat: FIRST_HEARTBEAT,
            spent: Spent::default(),
            usage: Usage::default(),
        }
    }

    pub(crate) fn heard(&mut self) {
        self.heard = Instant::now();
        self.heartbeat = FIRST_HEARTBEAT;
    }

    pub(crate) fn begin(&mut self, iteration: u32, of: u32, agent: Option<&String>, hat: Option<&String>) {
        (self.iteration, self.of, self.phase, self.since) = (iteration, of, Phase::Running, Instant::now());
        if let Some(agent) = agent {
            self.agent.clone_from(agent);
        }
        self.hat = hat.cloned();
        self.usage = Usage::default();
    }

    /// The agent reported what it used.
    pub(crate) fn used(&mut self, usage: &Usage) {
        self.usage.add(usage);
    }

    /// An iteration is over.
    pub(crate) fn end(&mut self, receipt: &Receipt) {
        self.phase = Phase::Between;
        self.usage = Usage::default();
        self.spent.tokens += receipt.usage.total_or_sum().unwrap_or(0);
        if let Some(usd) = receipt.cost.map(|cost| cost.usd).or(receipt.usage.cost_usd) {
            self.spent.usd = Some(self.spent.usd.unwrap_or(0.0) + usd);
        }
    }

    /// The line of a terminal; none while nothing takes time.
    pub(crate) fn line(&self, between: &str, keys_go_to: fn() -> KeysGoTo) -> Option<String> {
        let parts = match self.phase {
            Phase::Between => return None,
            Phase::Waiting(until) => {
                let left = until.saturating_duration_since(Instant::now()).as_secs();
                let next = format!("iteration {}/{} is next", self.iteration.saturating_add(1).min(self.of), self.of);
                let key = (keys_go_to() == KeysGoTo::Run).then(|| "r retry now".to_owned());
                let waiting = format!("waiting, {} left", figures::duration(left * 1000));
                [Some(waiting), key, Some(next)].into_iter().flatten().collect()
            }
            Phase::Running => {
                let mut parts = vec![format!("iteration {}/{}", self.iteration, self.of), self.agent.clone()];
                parts.extend(self.hat.clone());
                parts.push(seconds(self.since.elapsed()));
                let idle = self.heard.elapsed();
                if idle >= Duration::from_secs(2) {
                    parts.push(format!("idle {}", seconds(idle)));
                }
                parts.extend(self.amounts());
                parts
            }
        };
        Some(parts.join(between))
    }

    /// A line for a log, when the agent has been silent for long.
    pub(crate) fn heartbeat(&mut self, between: &str) -> Option<String> {
        let idle = self.heard.elapsed();
        if self.phase != Phase::Running || idle < self.heartbeat {
            return None;
        }
        self.heartbeat = idle + (self.heartbeat * 2).min(LONGEST_HEARTBEAT);
        let (time, idle) = (seconds(self.since.elapsed()), seconds(idle));
        Some(format!("still at work{between}{time}{between}silent for {idle}"))
    }

    fn amounts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        let tokens = self.spent.tokens + self.usage.total_or_sum().unwrap_or(0);
        if tokens > 0 {
            parts.push(figures::tokens(tokens));
        }
        let usd = match (self.spent.usd, self.usage.cost_usd) {
            (None, None) => None,
            (before, now) => Some(before.unwrap_or(0.0) + now.unwrap_or(0.0)),
        };
        match (usd, self.max_cost_usd) {
            (Some(usd), Some(most)) => parts.push(format!("{} of {}", figures::money(usd), figures::dollars(most))),
            (Some(usd), None) => parts.push(figures::money(usd)),
            (None, _) => {}
        }
        parts
    }
}

fn seconds(duration: Duration) -> String {
    figures::duration(duration.as_secs() * 1000).replace(" ms", "s").replace(".0 s", "s").replace(' ', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(seconds: u64) -> Instant {
        Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn the_line_says_what_a_person_asks() {
        let mut status = Status::new();
        assert_eq!(status.line(" · ", || KeysGoTo::Elsewhere), None, "nothing is under way");
        status.max_cost_usd = Some(5.0);
        let cost = crate::journal::Cost { usd: 0.3, source: crate::journal::CostSource::Reported };
        let usage = Usage { total_tokens: Some(40_000), ..Usage::default() };
        status.end(&Receipt { usage, cost: Some(cost), ..Receipt::default() });
        status.begin(3, 100, Some(&"codex".to_owned()), Some(&"builder".to_owned()));
        status.used(&Usage { total_tokens: Some(1234), cost_usd: Some(0.07), ..Usage::default() });
        (status.since, status.heard) = (ago(252), ago(8));
        let line = "iteration 3/100 · codex · builder · 4m12s · idle 8s · 41k tokens · $0.37 of $5";
        assert_eq!(status.line(" · ", || KeysGoTo::Elsewhere).as_deref(), Some(line));
    }

    #[test]
    fn a_key_is_offered_only_where_it_works() {
        let mut status = Status::new();
        status.begin(3, 100, None, None);
        status.phase = Phase::Waiting(Instant::now() + Duration::from_secs(90));
        let line = |keys_go_to| status.line(" · ", keys_go_to).unwrap();
        assert!(line(|| KeysGoTo::Run).contains(" · r retry now · "));
        assert!(!line(|| KeysGoTo::Elsewhere).contains("retry now"));
    }

    #[test]
    fn a_silent_agent_is_reported_less_and_less_often() {
        let mut status = Status::new();
        status.begin(1, 1, None, None);
        (status.since, status.heard) = (ago(70), ago(61));
        assert_eq!(status.heartbeat(" - ").as_deref(), Some("still at work - 1m10s - silent for 1m01s"));
        assert_eq!(status.heartbeat(" - "), None);
        status.heard = ago(182);
        assert!(status.heartbeat(" - ").is_some());
        assert_eq!(status.heartbeat(" - "), None);
    }
}
