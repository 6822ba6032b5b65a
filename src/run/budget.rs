//! What a run has spent: tokens, money, calls. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::event::Usage;
use crate::journal::{Cost, CostSource};
use crate::plural::plural;

/// Calls are counted over this long.
const WINDOW: Duration = Duration::from_secs(3600);

/// Tokens and money, as far as anybody says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spent {
    pub tokens: u64,
    pub usd: f64,
    /// Iterations whose tokens are unknown.
    pub uncounted: u32,
    /// Iterations whose cost is unknown.
    pub unpriced: u32,
    pub iterations: u32,
    /// Some of the money is the agent's word.
    pub reported: bool,
    /// Some of the money was computed from the user's prices.
    pub computed: bool,
    /// Some of the money was estimated from list prices.
    pub estimated: bool,
}

impl Spent {
    /// What one iteration spent.
    pub(crate) fn of(usage: &Usage, cost: Option<Cost>) -> Self {
        let tokens = usage.total_or_sum();
        Self {
            tokens: tokens.unwrap_or(0),
            usd: cost.map_or(0.0, |cost| cost.usd),
            uncounted: u32::from(tokens.is_none()),
            unpriced: u32::from(cost.is_none()),
            iterations: 1,
            reported: cost.is_some_and(|cost| cost.source == CostSource::Reported),
            computed: cost.is_some_and(|cost| cost.source == CostSource::Computed),
            estimated: cost.is_some_and(|cost| cost.source == CostSource::Estimated),
        }
    }

    /// What a judge spent. It is no iteration: averages stay what they are.
    pub(crate) fn of_judge(usage: &Usage, cost: Option<Cost>) -> Self {
        Self { iterations: 0, uncounted: 0, unpriced: 0, ..Self::of(usage, cost) }
    }

    #[must_use]
    pub(crate) fn and(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            usd: self.usd + more.usd,
            uncounted: self.uncounted + more.uncounted,
            unpriced: self.unpriced + more.unpriced,
            iterations: self.iterations + more.iterations,
            reported: self.reported || more.reported,
            computed: self.computed || more.computed,
            estimated: self.estimated || more.estimated,
        }
    }

    /// The money and how it is known; `None` when it is unknown.
    pub(crate) const fn cost(&self) -> Option<Cost> {
        let source = match (self.reported, self.computed, self.estimated) {
            (false, false, false) => return None,
            (true, false, false) => CostSource::Reported,
            (false, true, false) => CostSource::Computed,
            (false, false, true) => CostSource::Estimated,
            _ => CostSource::Mixed,
        };
        Some(Cost { usd: self.usd, source })
    }

    /// The limit that is reached, in words.
    pub(crate) fn over(&self, max_tokens: Option<u64>, max_cost_usd: Option<f64>) -> Option<String> {
        if let Some(most) = max_tokens.filter(|&most| self.tokens >= most) {
            return Some(format!("limit reached: {} ({} used)", plural(most, "token"), self.tokens));
        }
        let most = max_cost_usd.filter(|&most| self.usd >= most)?;
        Some(format!("limit reached: ${most:.2} (${:.2} spent)", self.usd))
    }

    /// What the next iteration may add beyond a limit, by the average so far, in words.
    pub(crate) fn expected_overshoot(&self, max_tokens: Option<u64>, max_cost_usd: Option<f64>) -> Option<String> {
        let counted = u64::from(self.iterations - self.uncounted.min(self.iterations));
        if let Some(most) = max_tokens
            && let Some(average) = self.tokens.checked_div(counted)
            && self.tokens + average > most
        {
            let over = self.tokens + average - most;
            return Some(format!(
                "{} of {most} tokens used; the next iteration needs about {average} and may pass the limit by {over}",
                self.tokens
            ));
        }
        let priced = f64::from(self.iterations - self.unpriced.min(self.iterations));
        let most = max_cost_usd.filter(|_| priced > 0.0)?;
        let average = self.usd / priced;
        let over = self.usd + average - most;
        (over > 0.0).then(|| {
            format!(
                "${:.2} of ${most:.2} spent; the next iteration costs about ${average:.2} and may pass the limit by ${over:.2}",
                self.usd
            )
        })
    }
}

/// The user's own price list: model → prices. Names match exactly, or as the longest beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pricing(pub BTreeMap<String, Price>);

/// Prices of one model, in dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    /// Tokens written by the model.
    pub output: f64,
    /// Tokens read from a cache; as `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens written to a cache; as `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// All prices that are known: the user's own, and below them the shipped ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    pub own: Pricing,
    /// The shipped list, read when it is first needed; `None` when it is not to be used.
    pub list: Option<&'static LazyLock<PriceList>>,
}

/// The list prices that ralph ships.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceList {
    /// When the prices were looked up.
    pub date: String,
    pub models: BTreeMap<String, Price>,
}

impl Prices {
    /// What this usage cost: as reported, computed from the user's prices, or estimated from the list. `asked_for` is the
    /// model that the agent was started with; it counts where the agent does not say which model it used.
    pub(crate) fn cost(&self, usage: &Usage, asked_for: Option<&str>) -> Option<Cost> {
        if let Some(usd) = usage.cost_usd {
            return Some(Cost { usd, source: CostSource::Reported });
        }
        let model = usage.model.as_deref().or(asked_for)?;
        let (price, source) = match self.own.of(model) {
            Some(price) => (price, CostSource::Computed),
            None => (self.listed(model)?, CostSource::Estimated),
        };
        Some(Cost { usd: price.of(usage)?, source })
    }

    /// A listed name fits exactly, behind the name of a provider, and before a date or the size of a context.
    fn listed(&self, model: &str) -> Option<Price> {
        let model = model.rsplit('/').next().unwrap_or(model);
        let fits = |name: &str| {
            let rest = model.strip_prefix(name)?;
            let is_date = rest.len() >= 9 && rest[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
            (rest.is_empty() || rest.starts_with('[') || rest.starts_with(['-', '@']) && is_date).then_some(())
        };
        self.list?.models.iter().find(|(name, _)| fits(name).is_some()).map(|(_, price)| *price)
    }
}

impl Price {
    /// What this usage costs at this price; `None` where its tokens are unknown.
    fn of(&self, usage: &Usage) -> Option<f64> {
        let (prompt, completion) = (usage.prompt_tokens?, usage.completion_tokens?);
        let cached = usage.cached_tokens.unwrap_or(0).min(prompt);
        let written = usage.cache_write_tokens.unwrap_or(0).min(prompt - cached);
        let plain = prompt - cached - written;
        let part = |tokens: u64, price: f64| {
            #[expect(clippy::cast_precision_loss, reason = "no one pays for 2^52 tokens")]
            let tokens = tokens as f64;
            tokens * price / 1e6
        };
        let usd = part(plain, self.input)
            + part(cached, self.cached.unwrap_or(self.input))
            + part(written, self.cache_write.unwrap_or(self.input))
            + part(completion, self.output);
        Some(usd)
    }
}

impl Pricing {
    fn of(&self, model: &str) -> Option<Price> {
        let known = self.0.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        known.max_by_key(|(name, _)| name.len()).map(|(_, price)| *price)
    }
}

/// The starts of agents in the last hour, by the wall clock, so that a resumed run still knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Calls(VecDeque<Timestamp>);

impl Calls {
    pub(crate) fn add(&mut self, now: Timestamp) {
        self.0.retain(|&call| age(call, now) < WINDOW);
        self.0.push_back(now);
    }

    /// How long to wait before the next one.
    pub(crate) fn wait(&mut self, most: u32, now: Timestamp) -> Duration {
        self.0.retain(|&call| age(call, now) < WINDOW);
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        match self.0.len().checked_sub(most) {
            Some(first) => WINDOW.saturating_sub(age(self.0[first], now)),
            None => Duration::ZERO,
        }
    }
}

/// How long ago a call was. One in the future, after the clock was set back, is new.
fn age(call: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(call)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt: u64, completion: u64) -> Usage {
        Usage { prompt_tokens: Some(prompt), completion_tokens: Some(completion), ..Usage::default() }
    }

    #[test]
    fn a_reported_cost_wins_and_the_rest_is_computed_from_the_users_prices() {
        static LIST: LazyLock<PriceList> = LazyLock::new(|| PriceList {
            date: String::new(),
            models: BTreeMap::from([("gpt-5".to_owned(), Price { input: 2.0, output: 10.0, ..Price::default() })]),
        });
        let price = Price { input: 2.0, output: 10.0, cached: Some(0.2), cache_write: None };
        let pricing = Pricing(BTreeMap::from([("big".to_owned(), price), ("big-mini".to_owned(), Price::default())]));
        let of = |model: &str| Usage {
            model: Some(model.into()),
            cached_tokens: Some(500_000),
            ..usage(1_000_000, 100_000)
        };
        let prices = Prices { own: pricing, list: Some(&LIST) };
        let cost = prices.cost(&of("big-4"), None).unwrap();
        assert!((cost.usd - (1.0 + 0.1 + 1.0)).abs() < 1e-9, "{cost:?}");
        assert_eq!(cost.source, CostSource::Computed);
        assert!(prices.cost(&of("big-mini-2"), None).unwrap().usd.abs() < 1e-9, "the longest name counts");
        assert_eq!(prices.cost(&of("other"), None), None);
        let reported = Usage { cost_usd: Some(0.5), ..of("big-4") };
        assert_eq!(prices.cost(&reported, None), Some(Cost { usd: 0.5, source: CostSource::Reported }));
        let estimated = |model: &str| prices.cost(&of(model), None).map(|cost| cost.source);
        for model in ["gpt-5", "openai/gpt-5", "gpt-5-2026-01-31", "gpt-5[1m]"] {
            assert_eq!(estimated(model), Some(CostSource::Estimated), "{model}");
        }
        for model in ["gpt-5-mini", "gpt-5.5", "gpt-50"] {
            assert_eq!(estimated(model), None, "another model: {model}");
        }
        let unnamed = Usage { model: None, ..of("") };
        assert_eq!(prices.cost(&unnamed, Some("gpt-5")).unwrap().source, CostSource::Estimated);
    }

    #[test]
    fn unknown_is_not_zero() {
        let spent = Spent::of(&Usage::default(), None);
        assert_eq!((spent.uncounted, spent.unpriced, spent.cost()), (1, 1, None));
        assert_eq!(spent.over(Some(1), Some(0.01)), None);
    }

    #[test]
    fn the_expected_overshoot_is_told_before_it_happens() {
        let cost = Some(Cost { usd: 2.0, source: CostSource::Reported });
        let spent = Spent::of(&usage(900, 100), cost).and(Spent::of(&usage(900, 100), cost));
        assert!(spent.expected_overshoot(Some(2500), None).unwrap().contains("by 500"));
        assert_eq!(spent.expected_overshoot(Some(3000), None), None);
        assert!(spent.expected_overshoot(None, Some(5.0)).unwrap().contains("by $1.00"));
        assert!(spent.over(Some(2000), None).is_some());
    }

    #[test]
    fn calls_of_the_last_hour_are_counted() {
        let mut calls = Calls::default();
        let minute = |count: i64| Timestamp::from_second(count * 60).unwrap();
        let minutes = |count: u64| Duration::from_secs(count * 60);
        calls.add(minute(0));
        calls.add(minute(10));
        assert_eq!(calls.wait(3, minute(11)), Duration::ZERO);
        assert_eq!(calls.wait(2, minute(11)), minutes(49));
        let text = serde_json::to_string(&calls).unwrap();
        let mut kept: Calls = serde_json::from_str(&text).unwrap();
        assert_eq!(kept.wait(1, minute(11)), minutes(59), "a resumed run knows them");
        assert_eq!(calls.wait(2, minute(60)), Duration::ZERO);
    }
}
