//! Files that were written for ralph-orchestrator: the flat keys of its first version mean what they meant, and what ralph
//! does not do is reported in one warning instead of one for each key.

use crate::yaml::{Entry, Value};

/// Flat keys, and the keys whose place they take. They win over those, as they did.
const RENAMED: &[(&str, &str)] = &[
    ("prompt_file", "event_loop.prompt_file"),
    ("completion_promise", "event_loop.completion_promise"),
    ("max_iterations", "event_loop.max_iterations"),
    ("max_runtime", "event_loop.max_runtime_seconds"),
    ("max_cost", "event_loop.max_cost_usd"),
];

/// Other names of keys: `cli.backend` is ralph-orchestrator's, `no_progress` an old one.
pub(crate) const ALIASES: &[(&str, &str)] = &[("cli.backend", "agent"), ("no_progress", "max_stalled")];

/// Keys and whole sections that ralph-orchestrator knows, in one of its versions, and that mean nothing here.
const UNUSED: &[&str] = &[
    "RObot",
    "_suppress_warnings",
    "allow_unsafe_paths",
    "archive_prompts",
    "checkpoint_interval",
    "context_threshold",
    "core.scratchpad",
    "core.specs_dir",
    "dry_run",
    "enable_metrics",
    "event_loop.cancellation_promise",
    "event_loop.checkpoint_interval",
    "event_loop.context_window_tokens",
    "event_loop.cooldown_delay_seconds",
    "event_loop.enforce_hat_scope",
    "event_loop.idle_timeout_secs",
    "event_loop.mutation_score_warn_threshold",
    "event_loop.persistent",
    "event_loop.prompt",
    "event_loop.required_events",
    "event_loop.starting_hat",
    "events",
    "features",
    "git_checkpoint",
    "hooks.defaults",
    "hooks.enabled",
    "hooks.events",
    "iteration_telemetry",
    "max_prompt_size",
    "max_tokens",
    "memories",
    "metrics_interval",
    "output_format",
    "output_preview_length",
    "output_verbosity",
    "project",
    "prompt",
    "prompt_text",
    "retry_delay",
    "show_timestamps",
    "show_token_usage",
    "skills",
    "tasks",
    "tui",
    "verbose",
];

/// The same for each agent, and for each hat.
const UNUSED_INSIDE: &[(&str, &[&str])] = &[
    ("adapters", &["max_retries", "tool_permissions"]),
    (
        "hats",
        &["aggregate", "concurrency", "disallowed_tools", "extra_instructions", "import", "scratchpad", "timeout"],
    ),
];

/// The line that says that a file is ralph-orchestrator's: a flat key, or `cli.backend`.
pub(crate) fn told_by(entries: &[Entry]) -> Option<usize> {
    let backend = |entry: &Entry| match &entry.node.value {
        Value::Map(inner) if entry.key == "cli" => inner.iter().find(|inner| inner.key == "backend").map(line),
        _ => None,
    };
    entries.iter().find_map(|entry| if is_flat(&entry.key) { Some(line(entry)) } else { backend(entry) })
}

const fn line(entry: &Entry) -> usize {
    entry.place.line
}

/// True for the flat keys of ralph-orchestrator's first version.
pub(crate) fn is_flat(path: &str) -> bool {
    RENAMED.iter().any(|(old, _)| *old == path)
}

/// True for keys that have another name.
pub(crate) fn has_alias(path: &str) -> bool {
    ALIASES.iter().any(|(_, key)| *key == path)
}

/// The key that another name of it means.
pub(crate) fn renamed(path: &str) -> Option<&'static str> {
    RENAMED.iter().chain(ALIASES).find(|(old, _)| *old == path).map(|(_, new)| *new)
}

/// Whether ralph-orchestrator knows this key, and ralph does not.
pub(crate) fn is_unused(path: &str) -> bool {
    let inside = |(section, names): &(&str, &[&str])| {
        let mut parts = path.split('.');
        parts.next() == Some(section) && parts.nth(1).is_some_and(|name| names.contains(&name))
    };
    UNUSED.contains(&path) || RENAMED.iter().any(|(old, _)| *old == path) || UNUSED_INSIDE.iter().any(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Adapter, Layer};

    #[test]
    fn what_is_said_to_mean_nothing_means_nothing() {
        let known = UNUSED.iter().filter(|path| Layer::KEYS.iter().any(|key| key.path == **path));
        assert_eq!(known.collect::<Vec<_>>(), Vec::<&&str>::new(), "they are settings now: take them off the list");
        let known = Adapter::KEYS.iter().filter(|key| is_unused(&format!("adapters.codex.{}", key.path)));
        assert_eq!(known.count(), 0);
        assert!(is_unused("adapters.codex.max_retries") && is_unused("hats.builder.timeout"));
        assert!(!is_unused("hats.builder.triggers") && !is_unused("hats"));
    }
}
