//! The phrase book: each fact of a run is worded here, once, and every view uses these words. Views add layout only.

use std::time::Duration;

use jiff::Timestamp;

use super::figures;
use super::history::{RunDetails, clock};
use super::judged;
use super::model::{IterationState, RunState};
use super::style::{Glyphs, Ink};
use super::text::harmless;
use crate::event::{FailureClass, Known, Status, TodoStatus, denied};
use crate::journal::compared::Compared;
use crate::journal::place::PlaceState;
use crate::journal::summary::{IterationSummary, Said};
use crate::journal::{Asked, Changed, CheckResult, Fact, IterationOutcome, Lines, Outcome, Receipt};
use crate::signals::Signal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Phrase {
    /// What it is about, where a view has room for that.
    pub tag: &'static str,
    pub ink: Ink,
    pub text: String,
}

pub(crate) const fn outcome(outcome: Outcome) -> (&'static str, Ink) {
    match outcome {
        Outcome::Complete => ("complete", Ink::Good),
        Outcome::Failed => ("failed", Ink::Bad),
        Outcome::Human => ("needs a human", Ink::Warn),
        Outcome::AgentUnusable => ("agent not usable", Ink::Bad),
        Outcome::Limit => ("limit reached", Ink::Warn),
        Outcome::NoProgress => ("no progress", Ink::Warn),
        Outcome::RateLimited => ("rate-limited", Ink::Warn),
        Outcome::Interrupted => ("interrupted", Ink::Warn),
    }
}

/// What a run does, or how it ended.
pub(crate) const fn state(state: RunState) -> (&'static str, Ink) {
    match state {
        RunState::Running => ("running", Ink::Agent),
        RunState::Pausing => ("pausing", Ink::Warn),
        RunState::Waiting { .. } => ("waiting", Ink::Warn),
        RunState::Paused => ("paused", Ink::Warn),
        RunState::Unfinished => ("unfinished", Ink::Warn),
        RunState::Ended(how) => outcome(how),
    }
}

/// The same for a list: a run whose newest claim was rejected says so too, and one whose branch is gone says why.
pub(crate) fn state_in_full(run: &RunDetails) -> (String, Ink) {
    let (word, ink) = state(run.state);
    match run.place.as_ref().map(|place| place.state) {
        Some(PlaceState::Merged) => return ("merged".to_owned(), ink),
        Some(PlaceState::Discarded) => return ("discarded".to_owned(), ink),
        _ => {}
    }
    if !run.summary.last_claim_was_rejected() {
        return (word.to_owned(), ink);
    }
    (format!("{word}, rejected"), if ink == Ink::Bad { ink } else { Ink::Warn })
}

/// The same for programs.
pub(crate) fn state_key(now: RunState) -> String {
    state(now).0.replace([' ', '-'], "_")
}

/// The same, with the time that is left of a wait.
pub(crate) fn state_at(now_state: RunState, now: Timestamp) -> String {
    match now_state {
        RunState::Waiting { until } => format!("waiting {}", left(until, now)),
        RunState::Pausing => "pausing after this iteration".to_owned(),
        other => state(other).0.to_owned(),
    }
}

/// The short form of a wait, for a title or the last line of a screen.
pub(crate) fn waiting_until(until: Timestamp) -> String {
    format!("waiting until {}", clock(until))
}

/// How long it is until then, in whole seconds.
pub(crate) fn left(until: Timestamp, now: Timestamp) -> String {
    let left = (until.as_millisecond() - now.as_millisecond()).max(0) / 1000 * 1000;
    figures::duration(u64::try_from(left).unwrap_or(0))
}

/// What the sign of an iteration means.
pub(crate) const fn iteration_state(state: IterationState) -> &'static str {
    match state {
        IterationState::Running => "running",
        IterationState::Ok => "went well; there is more to do",
        IterationState::Complete => "the agent said that everything is done",
        IterationState::Unclear => {
            "look at it: almost said that it is done, asked something, was interrupted, or never ended"
        }
        IterationState::Failed => "failed",
        IterationState::Rejected => "said that everything is done, but a check rejected it",
    }
}

/// What an iteration came to, in a word or two, for a list.
pub(crate) fn iteration_word(tried: &IterationSummary, alive: bool) -> (&'static str, Ink) {
    match (IterationState::of(tried, alive), tried.ended.map(|ended| ended.outcome)) {
        (IterationState::Running, _) => ("running", Ink::Agent),
        (IterationState::Ok, _) => ("ok", Ink::Good),
        (IterationState::Complete, _) => ("complete", Ink::Good),
        (IterationState::Failed, _)
            if tried.ended.is_some_and(|ended| ended.class == Some(FailureClass::RateLimit)) =>
        {
            ("limited", Ink::Warn)
        }
        (IterationState::Failed, _) => ("failed", Ink::Bad),
        (IterationState::Rejected, _) => ("rejected", Ink::Warn),
        (IterationState::Unclear, Some(IterationOutcome::Interrupted)) => ("interrupted", Ink::Warn),
        (IterationState::Unclear, None) => ("unfinished", Ink::Warn),
        (IterationState::Unclear, Some(_)) if tried.said == Some(Said::NearMiss) => ("almost complete", Ink::Warn),
        (IterationState::Unclear, Some(_)) => ("needs a look", Ink::Warn),
    }
}

/// The mark of a tool call; without a status it is running.
pub(crate) const fn tool_mark(status: Option<Status>, glyphs: &Glyphs) -> (&'static str, Ink) {
    match status {
        Some(Status::Ok) => (glyphs.ok, Ink::Good),
        Some(Status::Fail) => (glyphs.fail, Ink::Bad),
        Some(Status::Unknown) => (glyphs.unknown, Ink::Warn),
        None => (glyphs.start, Ink::None),
    }
}

/// The mark of an item of a plan; where there are no signs, a word.
pub(crate) const fn plan_mark(status: TodoStatus, glyphs: &Glyphs) -> (&'static str, Ink) {
    match status {
        TodoStatus::Done if glyphs.are_words() => ("done:", Ink::Good),
        TodoStatus::InProgress if glyphs.are_words() => ("in progress:", Ink::Strong),
        TodoStatus::Cancelled if glyphs.are_words() => ("cancelled:", Ink::Dim),
        TodoStatus::Pending if glyphs.are_words() => ("to do:", Ink::None),
        TodoStatus::Done => (glyphs.ok, Ink::Good),
        TodoStatus::InProgress => (glyphs.start, Ink::Strong),
        TodoStatus::Cancelled => (glyphs.fail, Ink::Dim),
        TodoStatus::Pending => (glyphs.dot, Ink::None),
    }
}

/// The mark of a check.
pub(crate) const fn check_mark(passed: bool, glyphs: &Glyphs) -> (&'static str, Ink) {
    if passed { (glyphs.ok, Ink::Good) } else { (glyphs.fail, Ink::Bad) }
}

/// How an iteration ended, behind its sign: `✗ rejected`.
pub(crate) fn signed(outcome: IterationOutcome, words: &str, glyphs: &Glyphs) -> String {
    let sign = match outcome {
        IterationOutcome::Ok => glyphs.ok,
        IterationOutcome::Failed | IterationOutcome::Rejected => glyphs.fail,
        IterationOutcome::Interrupted => glyphs.unknown,
    };
    // A sign that is a word would say it twice.
    if sign.chars().all(char::is_alphabetic) { words.to_owned() } else { format!("{sign} {words}") }
}

/// What an edit does: `+14 -3`.
pub(crate) fn lines_changed(added: usize, removed: usize, glyphs: &Glyphs) -> String {
    if glyphs.are_words() { format!("{added} added, {removed} removed") } else { format!("+{added} -{removed}") }
}

/// True for a notice that only says what the user asked for.
pub(crate) fn is_information(message: &str) -> bool {
    const SAID: [&str; 13] = [
        "completion check: ",
        "check after each iteration: ",
        "check at the end: ",
        "`hooks.",
        "notifications: ",
        "transcript command: ",
        "branch: ",
        "worktree: ",
        "resumed after ",
        "phase `",
        "`commands.",
        "judge: ",
        "sandbox: ",
    ];
    SAID.iter().any(|said| message.starts_with(said))
}

/// The hats that received an event.
pub(crate) fn receivers(hats: &[String]) -> (String, Ink) {
    if hats.is_empty() { ("no hat".to_owned(), Ink::Warn) } else { (hats.join(", "), Ink::Agent) }
}

/// What a person can do after a run.
pub(crate) const fn next_step(outcome: Outcome, asked: bool) -> Option<&'static str> {
    match outcome {
        Outcome::Complete | Outcome::AgentUnusable => None,
        Outcome::Human if asked => Some("answer: `ralph answer \"…\"`"),
        Outcome::Limit => Some("resume with a higher limit: `ralph resume` with `-n`, `--max-time` or `--max-cost`"),
        Outcome::Human | Outcome::Failed | Outcome::NoProgress | Outcome::RateLimited | Outcome::Interrupted => {
            Some("resume: `ralph resume`")
        }
    }
}

/// True for a rejection that repeats what a check or a judge has just said: `completion rejected: `cargo test`: exit code 1`.
fn is_told(reason: &str) -> bool {
    let rest = reason.strip_prefix("completion rejected: `").or_else(|| reason.strip_prefix("not done yet: `"));
    let by_check = rest.and_then(|rest| rest.split_once('`')).is_some_and(|(_, rest)| rest.starts_with(": "));
    by_check || reason.starts_with("completion rejected by the judge")
}

/// True when a run had the prompt of the mode `plan`, which `ralph build` follows.
pub(crate) fn is_plan(prompt: &str) -> bool {
    let source = prompt.split(", with the goal from").next().unwrap_or(prompt);
    source == "built-in prompt `plan`" || source.ends_with("prompts/plan.md")
}

/// What a run changed: `2 files +14 -3 · 1 commit · 1 claim rejected`.
pub(crate) fn changed(changed: &Changed, glyphs: &Glyphs) -> String {
    let Changed { files, added, removed, commits, rejected } = *changed;
    let mut parts = Vec::new();
    if files > 0 {
        let lines = lines_changed(added as usize, removed as usize, glyphs);
        parts.push(format!("{} {lines}", figures::plural(u64::from(files), "file")));
    }
    if commits > 0 {
        parts.push(figures::plural(u64::from(commits), "commit"));
    }
    if rejected > 0 {
        parts.push(format!("{} rejected", figures::plural(u64::from(rejected), "claim")));
    }
    parts.join(&glyphs.between())
}

/// The heading of an iteration, with its hat or agent behind it.
pub(crate) fn iteration_title<'a>(
    number: u32,
    of: u32,
    more: impl IntoIterator<Item = &'a String>,
    dot: &str,
) -> String {
    more.into_iter()
        .fold(format!("iteration {number} of {of}"), |title, more| format!("{title}{dot}{}", harmless(more)))
}

/// How a run begins: the agent and its limits, its command, its prompt.
pub(crate) fn run_start(fact: &Fact, dot: &str) -> Vec<String> {
    let Fact::RunStart { agent, command, transcript, prompt, max_iterations, max_seconds, .. } = fact else {
        return Vec::new();
    };
    let time = max_seconds.map(|seconds| format!(", {}", figures::duration(seconds.saturating_mul(1000))));
    let limits = format!("{}{}", figures::plural(u64::from(*max_iterations), "iteration"), time.unwrap_or_default());
    let words = command.iter().map(|word| shlex::try_quote(word).unwrap_or_else(|_| word.into()));
    vec![
        format!("agent {agent}{dot}transcript {transcript}{dot}at most {limits}"),
        format!("command: {}", words.collect::<Vec<_>>().join(" ")),
        format!("prompt: {prompt}"),
    ]
}

/// The class of a failure in words.
pub(crate) fn class_name(class: FailureClass) -> String {
    class.name().replace('_', " ")
}

/// How an iteration ended.
pub(crate) fn iteration(receipt: &Receipt) -> (String, Ink) {
    let ended = harmless(&receipt.ended);
    match (receipt.outcome, receipt.class) {
        (IterationOutcome::Ok, _) => ("ok".to_owned(), Ink::Good),
        (IterationOutcome::Rejected, _) => ("rejected".to_owned(), Ink::Warn),
        (IterationOutcome::Interrupted, _) => (format!("interrupted: {ended}"), Ink::Warn),
        // The decision to wait, or the end of the run, says which limit it is.
        (IterationOutcome::Failed, Some(FailureClass::RateLimit)) => ("rate-limited".to_owned(), Ink::Warn),
        (IterationOutcome::Failed, Some(FailureClass::Agent) | None) => (format!("failed: {ended}"), Ink::Bad),
        (IterationOutcome::Failed, Some(class)) => (format!("failed ({}): {ended}", class_name(class)), Ink::Bad),
    }
}

/// What an iteration came to: how it ended, its time, what it used.
pub(crate) fn report(receipt: &Receipt) -> (Vec<String>, Ink) {
    let (ended, ink) = iteration(receipt);
    let mut parts = vec![ended, figures::duration(receipt.duration_ms)];
    parts.extend(figures::usage(&receipt.usage, receipt.cost).iter().map(|part| harmless(part)));
    (parts, ink)
}

pub(crate) fn files_changed(receipt: &Receipt) -> String {
    let lines = receipt.lines.map_or_else(String::new, |lines| format!(" {}", plus_minus(lines)));
    format!("{} changed{lines}", figures::plural(receipt.file_count(), "file"))
}

/// `+14 -3`.
pub(crate) fn plus_minus(Lines { added, removed }: Lines) -> String {
    format!("+{added} -{removed}")
}

/// Processes that an iteration left behind.
pub(crate) fn left_behind(receipt: &Receipt) -> impl Iterator<Item = String> {
    let fate = if receipt.left_running { "is still running" } else { "was stopped" };
    receipt.left_behind.iter().map(move |stray| format!("the agent left a process behind, which {fate}: {stray}"))
}

pub(crate) fn check(check: &CheckResult, between: &str) -> (String, Ink) {
    let CheckResult { name, ended, duration_ms, optional, counts, .. } = check;
    let mut parts = vec![format!("verify {name}: {ended}")];
    parts.extend(counts.map(|counts| format!("{} failing", figures::plural(u64::from(counts.failed), "test"))));
    parts.push(figures::duration(*duration_ms));
    if *optional {
        parts.push("not required".to_owned());
    }
    let ink = match (check.passed, optional) {
        (true, _) => Ink::Good,
        (false, true) => Ink::Warn,
        (false, false) => Ink::Bad,
    };
    (parts.join(between), ink)
}

/// What all checks together say.
pub(crate) fn verification(asked: Asked, passed: bool, checks: &[CheckResult]) -> (String, Ink) {
    let failed = checks.iter().filter(|check| !check.passed && !check.optional);
    let failed = failed.map(|check| format!("`{}`", check.name)).collect::<Vec<_>>().join(", ");
    let every = if checks.iter().all(|check| check.passed) { "every check" } else { "every required check" };
    match asked {
        Asked::Claim if passed => (format!("verified: {every} passed"), Ink::Good),
        Asked::Claim => (format!("completion rejected: {failed} failed"), Ink::Warn),
        Asked::Iteration if passed => (format!("{every} passed"), Ink::Good),
        Asked::Iteration => (format!("not done yet: {failed} failed"), Ink::Warn),
        Asked::End if passed => (format!("{every} at the end passed"), Ink::Good),
        Asked::End => (format!("failed at the end: {failed}"), Ink::Bad),
        Asked::Start => ("these are the checks before the first iteration".to_owned(), Ink::Dim),
    }
}

/// How checks differ from the start of the run.
pub(crate) fn compared(compared: &Compared, glyphs: &Glyphs) -> Vec<(String, Ink)> {
    let pairs = compared.pairs();
    let runners = pairs.iter().filter(|(start, last)| start.counts.is_some() && last.counts.is_some()).count();
    let arrow = glyphs.arrow;
    let mut lines = Vec::new();
    for (start, last) in pairs {
        let name = format!("`{}`", harmless(&last.name));
        let ink = if last.passed { Ink::Good } else { Ink::Bad };
        let (Some(before), Some(now)) = (start.counts, last.counts) else {
            let state = |check: &CheckResult| if check.passed { "passing" } else { "failing" };
            lines.push((format!("{name}: {} {arrow} {}", state(start), state(last)), ink));
            continue;
        };
        let name = if runners == 1 { "tests".to_owned() } else { name };
        lines.push((format!("{name}: {} failing {arrow} {} failing", before.failed, now.failed), ink));
        // A runner that stops at the first failure counts fewer tests for that reason.
        if let (Some(before), Some(now), true) = (before.run, now.run, last.passed)
            && now < before
        {
            let fewer = figures::plural(u64::from(before - now), "test");
            let of = if runners == 1 { String::new() } else { format!("{name}: ") };
            lines.push((format!("{of}{fewer} fewer than at the start"), Ink::Warn));
        }
    }
    lines
}

/// A record that a newer ralph has written.
pub(crate) fn unknown(kind: &str) -> String {
    format!("unknown record `{kind}`, written by a newer ralph")
}

/// What an agent says about itself, in words; `None` for what views show in another form, or not at all.
pub(crate) fn meta(known: Known) -> Option<(String, Ink)> {
    let after = |text: Option<String>| text.map_or_else(String::new, |text| format!(": {text}"));
    Some(match known {
        Known::Quota(quota) => (format!("{} % of the {} quota is used", quota.used, quota.window), Ink::Dim),
        Known::Todo { .. } | Known::TurnEnd { .. } | Known::Context { .. } => return None,
        Known::Files { changes } => {
            let names = changes.iter().map(|file| match &file.change {
                Some(change) => format!("{change} {}", file.path),
                None => file.path.clone(),
            });
            (names.collect::<Vec<_>>().join("\n"), Ink::Dim)
        }
        Known::Session { id } => (format!("session {id}"), Ink::Dim),
        Known::Model { model } => (format!("model {model}"), Ink::Dim),
        Known::Version { version } => (format!("version {version}"), Ink::Dim),
        Known::Error { class, message, .. } => (format!("{}: {message}", class_name(class)), Ink::Bad),
        Known::Retry { class, attempt, message, .. } => {
            let attempt = attempt.map_or_else(String::new, |attempt| format!(" (try {attempt})"));
            (format!("the agent retries after {}{attempt}{}", class_name(class), after(message)), Ink::Warn)
        }
        Known::Permission { tool, input, message, .. } => {
            (format!("tool `{}` was not permitted{}", denied(&tool, input.as_deref()), after(message)), Ink::Warn)
        }
        Known::Unparsed { line, reason, .. } => {
            let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            (format!("line not understood{reason}: {line}"), Ink::Warn)
        }
        Known::ParseError { message, .. } => (format!("broken RTF1 line: {message}"), Ink::Warn),
        Known::Warning { message } => (message, Ink::Warn),
        Known::Dialect { from, to } => (format!("expected {from}, but the output is {to}: switched"), Ink::Warn),
    })
}

/// What the loop has to say, in words; `None` for what is a heading or a page of its own in every view, or not worth a line.
pub(crate) fn fact(fact: &Fact, at: Timestamp) -> Option<Phrase> {
    let (tag, ink, text) = match fact {
        Fact::RunStart { .. }
        | Fact::IterationStart { .. }
        | Fact::IterationEnd { .. }
        | Fact::RunEnd { .. }
        | Fact::Display { .. } => return None,
        Fact::Signal { signal, .. } => match signal {
            Signal::NearMiss { marker, reason, line } => {
                ("SIGNAL", Ink::Warn, format!("`{marker}` does not count: {reason}\n  {line}"))
            }
            // The agent's own words show it; whether it counts is said by the checks and the report.
            Signal::Complete { .. } => return None,
            Signal::Question { text } => ("ASKS", Ink::Warn, text.clone()),
            Signal::Blocked { reason } => ("SIGNAL", Ink::Warn, format!("blocked: {reason}")),
            Signal::Failed { marker, reason } => ("SIGNAL", Ink::Warn, format!("said `{marker}`: {reason}")),
            Signal::Replan { marker } => ("SIGNAL", Ink::Warn, format!("said `{marker}`")),
        },
        Fact::Decision { reason, wait_ms: Some(wait), .. } => {
            let until = at.checked_add(Duration::from_millis(*wait)).map_or_else(|_| String::new(), clock);
            ("NEXT", Ink::Warn, format!("waiting {}, until {until}: {reason}", figures::duration(*wait)))
        }
        Fact::Decision { reason, .. } if reason.is_empty() || is_told(reason) => return None,
        Fact::Decision { verdict, reason, .. } if verdict == "finish" => ("NEXT", Ink::Dim, format!("end: {reason}")),
        Fact::Decision { reason, .. } => ("NEXT", Ink::Dim, reason.clone()),
        Fact::Verification { asked, passed, checks, .. } => {
            let (verdict, ink) = verification(*asked, *passed, checks);
            let lines = checks.iter().map(|result| check(result, ", ").0.replacen("verify ", "", 1)).chain([verdict]);
            ("VERIFY", ink, lines.collect::<Vec<_>>().join("\n"))
        }
        Fact::JudgeStart { agent, model, attempt, .. } => {
            ("JUDGE", Ink::Agent, judged::start(agent, model.as_deref(), *attempt))
        }
        Fact::Judged { judgement } => {
            let lines = judged::lines(judgement, ", ");
            let ink = lines.first().map_or(Ink::None, |(_, ink)| *ink);
            ("JUDGE", ink, lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n"))
        }
        Fact::Published { event, by, heard_by, .. } => {
            let ink = if heard_by.is_empty() { Ink::Warn } else { Ink::Dim };
            ("EVENT", ink, format!("event {} from {by}, received by {}", event.topic, receivers(heard_by).0))
        }
        Fact::Control { order } => {
            let words = order.words().map_or_else(String::new, |words| format!(": {words}"));
            ("YOU", Ink::Warn, format!("{}{words}", order.name()))
        }
        Fact::Interrupt { unix_signal, action } => ("SYS", Ink::Warn, format!("{unix_signal}: {action}")),
        Fact::Paused => ("SYS", Ink::Warn, "paused; `ralph continue` ends the pause".to_owned()),
        Fact::Notice { message } if is_information(message) => ("SYS", Ink::Dim, message.clone()),
        Fact::Notice { message } | Fact::Sandbox { message, .. } => ("SYS", Ink::Warn, message.clone()),
    };
    Some(Phrase { tag, ink, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::test_counts::TestCounts;

    #[test]
    fn an_interrupted_iteration_did_not_fail() {
        let receipt = Receipt {
            outcome: IterationOutcome::Interrupted,
            class: Some(FailureClass::Agent),
            ended: "stopped by the user".into(),
            ..Receipt::default()
        };
        assert_eq!(iteration(&receipt), ("interrupted: stopped by the user".to_owned(), Ink::Warn));
        let failed = Receipt { outcome: IterationOutcome::Failed, ..receipt };
        assert_eq!(iteration(&failed).1, Ink::Bad);
    }

    #[test]
    fn a_rejected_claim_names_the_check_that_failed() {
        let result = |name: &str, passed| CheckResult { name: name.into(), passed, ..CheckResult::default() };
        let checks = [result("cargo test", false), result("cargo fmt", true)];
        assert_eq!(verification(Asked::Claim, false, &checks).0, "completion rejected: `cargo test` failed");
        assert_eq!(verification(Asked::Iteration, false, &checks).0, "not done yet: `cargo test` failed");
    }

    #[test]
    fn checks_are_compared_with_the_start_of_the_run() {
        let check = |name: &str, passed: bool, counts: Option<(u32, u32)>| CheckResult {
            name: name.into(),
            passed,
            counts: counts.map(|(failed, run)| TestCounts { failed, run: Some(run) }),
            ..CheckResult::default()
        };
        let told = |start: CheckResult, last: CheckResult| {
            let both = Compared { start: vec![start], last: vec![last] };
            compared(&both, &Glyphs::UNICODE).into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        for (start, last, expected) in [
            (
                check("t", false, Some((12, 30))),
                check("t", true, Some((0, 30))),
                &["tests: 12 failing → 0 failing"][..],
            ),
            (
                check("t", false, Some((3, 30))),
                check("t", true, Some((0, 27))),
                &["tests: 3 failing → 0 failing", "3 tests fewer than at the start"],
            ),
            (check("t", true, Some((0, 30))), check("t", false, Some((1, 2))), &["tests: 0 failing → 1 failing"]),
            (check("make test", false, None), check("make test", true, None), &["`make test`: failing → passing"]),
            (check("t", false, None), check("t", true, Some((0, 4))), &["`t`: failing → passing"]),
            (check("t", false, None), check("other", true, None), &[]),
        ] {
            assert_eq!(told(start, last), expected);
        }
    }
}
