//! Numbers as people read them.

use crate::event::Usage;
use crate::journal::{Cost, CostSource};
use crate::plural::ending;

/// `218 ms`, `2.3 s`, `12 s`, `4m12s`, `2h05m`.
pub(crate) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds} ms"),
        1..10 => format!("{}.{} s", seconds, milliseconds % 1000 / 100),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `950`, `41k`, `1.2M`: for where there is little room.
pub(crate) fn about(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// `$0.09`; what is less than half a cent is not nothing.
pub(crate) fn money(usd: f64) -> String {
    if usd > 0.0 && usd < 0.005 { "<$0.01".to_owned() } else { format!("${usd:.2}") }
}

/// What something cost, and how that is known where the agent did not report it.
pub(crate) fn cost(cost: Cost) -> String {
    cost_of(cost, None)
}

/// What was spent, of what may be spent.
pub(crate) fn cost_of(cost: Cost, most: Option<f64>) -> String {
    let of = most.map_or_else(String::new, |most| format!(" of {}", dollars(most)));
    let how = match cost.source {
        CostSource::Reported => "",
        CostSource::Computed => " (computed)",
        CostSource::Estimated => " (estimated)",
        CostSource::Mixed => " (partly computed)",
    };
    format!("{}{of}{how}", money(cost.usd))
}

/// `$0.12`, or `~$0.12` where the agent did not report it: for where there is little room.
pub(crate) fn short_cost(cost: Cost) -> String {
    let about = if cost.source == CostSource::Reported { "" } else { "~" };
    format!("{about}{}", money(cost.usd))
}

/// An amount that a person gave: `$5`, `$2.50`.
fn dollars(usd: f64) -> String {
    if usd.fract() == 0.0 { format!("${usd:.0}") } else { format!("${usd:.2}") }
}

pub(crate) fn plural(number: u64, one: &str) -> String {
    format!("{} {one}{}", count(number), ending(number))
}

/// `1 token`, `41k tokens`: for where there is little room.
pub(crate) fn tokens(number: u64) -> String {
    format!("{} token{}", about(number), ending(number))
}

/// What is known of tokens and money; empty when nothing is. `spent` is what ralph counted.
pub(crate) fn usage(usage: &Usage, spent: Option<Cost>) -> Vec<String> {
    let mut parts = Vec::new();
    match (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) {
        (None, None, None) => {}
        (None, None, Some(total)) => parts.push(plural(total, "token")),
        (prompt, completion, _) => {
            let side = |tokens: Option<u64>, name: &str| tokens.map(|tokens| format!("{} {name}", count(tokens)));
            let sides: Vec<String> = [side(prompt, "in"), side(completion, "out")].into_iter().flatten().collect();
            let cached = usage.cached_tokens.filter(|tokens| *tokens > 0);
            let cached = cached.map_or_else(String::new, |tokens| format!(" ({} cached)", count(tokens)));
            parts.push(format!("tokens {}{cached}", sides.join(", ")));
        }
    }
    parts.extend(spent.or_else(|| usage.cost_usd.map(Cost::reported)).map(cost));
    if let Some(model) = &usage.model {
        parts.push(model.clone());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (milliseconds, text) in [
            (0, "0 ms"),
            (349, "349 ms"),
            (2_349, "2.3 s"),
            (9_999, "9.9 s"),
            (59_000, "59 s"),
            (252_000, "4m12s"),
            (7_500_000, "2h05m"),
        ] {
            assert_eq!(duration(milliseconds), text);
        }
        assert_eq!([count(0), count(999), count(1_000), count(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn money_has_cents_and_nothing_is_not_said() {
        assert_eq!([money(0.0), money(0.001), money(0.087), money(12.5)], ["$0.00", "<$0.01", "$0.09", "$12.50"]);
        let some = Usage { prompt_tokens: Some(5), cached_tokens: Some(0), ..Usage::default() };
        assert_eq!(usage(&some, None), ["tokens 5 in"]);
    }

    #[test]
    fn unknown_is_not_zero() {
        assert!(usage(&Usage::default(), None).is_empty());
        let some = Usage { completion_tokens: Some(5), cost_usd: Some(0.012), ..Usage::default() };
        assert_eq!(usage(&some, None), ["tokens 5 out", "$0.01"]);
    }

    #[test]
    fn a_cost_that_was_not_reported_says_so() {
        for (source, how) in [
            (CostSource::Reported, ""),
            (CostSource::Computed, " (computed)"),
            (CostSource::Estimated, " (estimated)"),
            (CostSource::Mixed, " (partly computed)"),
        ] {
            let spent = Cost { usd: 1.5, source };
            assert_eq!(usage(&Usage::default(), Some(spent)), [format!("$1.50{how}")]);
            assert_eq!(cost_of(spent, Some(5.0)), format!("$1.50 of $5{how}"));
        }
        let both = Cost::reported(1.0).and(Cost { usd: 0.5, source: CostSource::Computed });
        assert_eq!((cost(both), short_cost(both)), ("$1.50 (partly computed)".to_owned(), "~$1.50".to_owned()));
    }
}
