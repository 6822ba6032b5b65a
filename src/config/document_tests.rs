use std::path::Path;

use super::*;
use crate::config::file::read_text;

/// Every key with another value than its default.
const EVERYTHING: &str = "
agent: codex
cli:
  command: my-ai
  args: ['', '--x', 'a b', '#', 'true']
  extra_args: [--more]
  prompt_mode: arg
  prompt_flag: --prompt
  model: 'gpt: 5'
  effort: '1'
  tools: [Read, 'Bash(git *)']
  pty: true
  default_mode: interactive
  idle_timeout_secs: 5
  permissions: safe
  live: false
  leave_running: true
event_loop:
  prompt_file: notes/P.md
  completion_promise: \"ALL 'GREEN' # now\"
  max_iterations: 7
  max_runtime_seconds: 1h30m
  max_consecutive_failures: 2
  max_cost_usd: 2.5
  starting_event: work.start
verify: [cargo test, {run: 'make \"x\"', name: build, timeout: 90, cwd: sub, when: end, required: false, baseline: true}, {judge: claude, model: m, effort: high, prompt: 'look: here'}]
until: checks
judge: codex
completion: {match: anywhere, also: ['<<<RALPHEX:X>>>'], plan_file: PLAN.md, min_iterations: 2, confirmations: 3}
max_stalled: 0
trust: ask
permission: halt
allowed_paths: [src/**, 'a b']
session: {resume-until: context 60%}
session_expiry: 1h
context_window: 200000
fallback: [amp, demo]
agent_priority: [codex, amp]
core: {guardrails: [be kind]}
rotate: [claude, codex]
commit: iteration
merge: ff
worktree: {dir: ../w, copy: [.env], setup: npm ci}
commands: {log: git log -3}
hooks: {before_run: a, before_iteration: b, after_iteration: c, after_run: d, on_rejected: e, on_wait: f, timeout: 5, on_error: stop}
list_prices: false
pricing: {gpt: {input: 1.5, output: 2, cached: 0.1, cache_write: 0.2}}
hats: {builder: {triggers: [task.start, build.*], publishes: [done], instructions: \"one\\ntwo\", agent: codex, args: [a], model: m, effort: e}, closer: {triggers: [done], agent: {command: closer, args: [b]}}}
transcript: {command: 'my-filter \"a b\"'}
sandbox: {mode: strict, backend: landlock, write: [../shared], read: [/data], hide: [/secret], network: [example.com], env: [NAME], memory: 8G, processes: 2000, open_files: 500, tamper: restore, required: false}
limits: {timeout: 5, idle_timeout: 0, startup_timeout: 1500ms, max_wait: 2, max_line_bytes: 9, max_tokens: 5, calls_per_hour: 6, quota: {5h: 80%, week: 90%}}
notify: {on: [failed], command: 'my-bell \"a b\"', webhook: 'http://localhost/x', terminal: false, slack: 'http://localhost/s', discord: 'http://localhost/d', ntfy: {server: 'http://localhost', topic: t}, telegram: {server: 'http://localhost', token: '1:a', chat: '5'}}
batch: {merge_attempts: 5}
worker: {repos: [https://example.com/*], agents: [codex], sandbox: strict, limits: {max_iterations: 3, max_time: 1h, max_cost: 2}}
journal: {directory: state, raw: exact, compress: false, keep_runs: 9, events_file: .agent/events.jsonl, keep_diffs: false}
adapters:
  codex: {enabled: false, timeout: 9m, command: 'npx x', args: [a], extra_args: [b], permissions: full, env: {A: 'on'}, partial: true}
  amp: {}
";

fn values(settings: &Settings) -> Vec<(&'static str, Json)> {
    settings.layer().rows().into_iter().map(|row| (row.key.path, row.written)).collect()
}

#[test]
fn what_is_printed_is_read_as_the_same_settings() {
    for text in [EVERYTHING, "cli: {}"] {
        let first = read_text(Path::new("/project/ralph.yml"), text).unwrap();
        let settings = first.layer.clone().settle();
        let printed = effective(&settings, &first.adapters);
        let second = read_text(Path::new("/elsewhere/printed.yml"), &printed).unwrap();
        assert_eq!(second.warnings, Vec::<String>::new(), "{printed}");
        assert_eq!(values(&settings), values(&second.layer.settle()), "{printed}");
        let adapters = |adapters: &[(String, Adapter)]| {
            let of = |(name, adapter): &(String, Adapter)| {
                let rows = adapter.rows().into_iter().map(|row| (row.key.path, row.written)).collect::<Vec<_>>();
                (name.clone(), rows)
            };
            adapters.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(adapters(&first.adapters), adapters(&second.adapters), "{printed}");
    }
}

#[test]
fn the_test_above_changes_every_key() {
    let file = read_text(Path::new("ralph.yml"), EVERYTHING).unwrap();
    for row in file.layer.clone().settle().layer().rows() {
        assert_ne!(row.written, (row.key.default)(), "`{}` has its default in the test", row.key.path);
    }
    assert_eq!(file.adapters[0].1.rows().len(), Adapter::KEYS.len());
}

#[test]
fn every_value_is_printed_with_its_origin() {
    let file = read_text(Path::new("ralph.yml"), "event_loop:\n  max_iterations: 7\n").unwrap();
    let printed = effective(&file.layer.settle(), &[]);
    assert!(printed.contains("\n  max_iterations: 7  # ralph.yml:2\n"), "{printed}");
    assert!(
        printed.contains("agent: auto  # default\nagent_priority: []  # default\n\ncli:\n  # command: not set\n"),
        "{printed}"
    );
}

#[test]
fn the_file_to_begin_with_changes_nothing_but_the_agent() {
    let text = template("codex", "found", &Layer::default());
    let file = read_text(Path::new("ralph.yml"), &text).unwrap();
    assert_eq!(file.warnings, Vec::<String>::new(), "{text}");
    let said: Vec<_> = file.layer.rows().into_iter().map(|row| (row.key.path, row.shown)).collect();
    assert_eq!(said, [("agent", "codex".to_owned())]);
    assert!(file.adapters.is_empty());
}

#[test]
fn the_file_to_begin_with_is_still_right_when_every_hash_is_taken_away() {
    let uncommented: String = template("codex", "found", &Layer::default())
        .lines()
        .filter(|line| !line.contains("  # ") || line.starts_with("agent:"))
        .map(|line| match line.trim_start().strip_prefix("# ") {
            // A sentence stays a comment.
            Some(rest) if rest.starts_with(|first: char| first.is_uppercase()) => line.to_owned() + "\n",
            Some(rest) => line.replacen(&format!("# {rest}"), rest, 1) + "\n",
            None => line.to_owned() + "\n",
        })
        .collect();
    let file = read_text(Path::new("ralph.yml"), &uncommented).unwrap();
    assert_eq!(file.warnings, Vec::<String>::new(), "{uncommented}");
}

#[test]
fn what_a_run_keeps_is_read_as_the_same_settings() {
    let first = read_text(Path::new("/project/ralph.yml"), EVERYTHING).unwrap();
    let settings = first.layer.clone().settle();
    let saved = crate::config::Saved::new(&settings, &first.adapters, &|_| false);
    let again = saved.restore(&crate::config::FileLayer::default()).unwrap();
    assert_eq!(values(&again.layer.settle()), values(&settings));
    let adapters = |all: &[(String, crate::config::Adapter)]| -> Vec<String> {
        let mut rows: Vec<String> = all
            .iter()
            .map(|(name, one)| {
                let rows: Vec<_> = one.rows().iter().map(|row| format!("{}={}", row.key.path, row.written)).collect();
                format!("{name}: {rows:?}")
            })
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(adapters(&again.adapters), adapters(&first.adapters));
}
