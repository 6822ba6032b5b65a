//! This iteration's share of what a whole session has used, for agents that report the session's total.

use crate::event::Usage;

/// What a total adds to the one before. A total below it counts from zero: the session is another one.
pub(crate) fn share(total: Usage, before: &Usage) -> Usage {
    let same = total.prompt_tokens >= before.prompt_tokens && total.completion_tokens >= before.completion_tokens;
    if !same {
        return total;
    }
    let part = |now: Option<u64>, before: Option<u64>| now.map(|now| now.saturating_sub(before.unwrap_or(0)));
    let cost = total.cost_usd.map(|now| (now - before.cost_usd.unwrap_or(0.0)).max(0.0));
    Usage {
        prompt_tokens: part(total.prompt_tokens, before.prompt_tokens),
        completion_tokens: part(total.completion_tokens, before.completion_tokens),
        total_tokens: part(total.total_tokens, before.total_or_sum()),
        cached_tokens: part(total.cached_tokens, before.cached_tokens),
        cache_write_tokens: part(total.cache_write_tokens, before.cache_write_tokens),
        reasoning_tokens: part(total.reasoning_tokens, before.reasoning_tokens),
        cost_usd: cost,
        model: total.model,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(prompt: u64, completion: u64) -> Usage {
        let (prompt_tokens, completion_tokens) = (Some(prompt), Some(completion));
        Usage { prompt_tokens, completion_tokens, total_tokens: Some(prompt + completion), ..Usage::default() }
    }

    #[test]
    fn only_what_is_new_counts() {
        assert_eq!(share(usage(2100, 22), &usage(1000, 10)), usage(1100, 12));
        assert_eq!(share(usage(2100, 22), &Usage::default()), usage(2100, 22));
        assert_eq!(share(usage(500, 5), &usage(1000, 10)), usage(500, 5), "another session");
    }
}
