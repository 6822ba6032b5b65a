//! Runs that are over, for people: the table of all runs, one run in full, one run for a pull request.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::appearance::Appearance;
use super::figures;
use super::judged;
use super::model::RunState;
use super::style::{Glyphs, Ink, Palette};
use super::table::{Align, Cell, fit, painted};
use super::text::{cut, harmless, width, wrap};
use super::words;
use crate::journal::place::{Place, PlaceState};
use crate::journal::summary::{IterationSummary, Summary};
use crate::journal::{Cost, Outcome, Receipt};
use crate::local_time;

/// One run with what is shown of it.
#[derive(Clone, Debug)]
pub(crate) struct RunDetails {
    pub summary: Summary,
    pub state: RunState,
    /// The first words of its prompt.
    pub words: String,
    /// The branch and the worktree that it has of its own.
    pub place: Option<Place>,
}

impl RunDetails {
    /// Branch, worktree and what has become of them, for JSON.
    pub(crate) fn place_json(&self) -> serde_json::Value {
        self.place.as_ref().map_or(serde_json::Value::Null, |place| {
            serde_json::json!({
                "branch": place.branch,
                "base": place.base,
                "worktree": place.worktree,
                "state": place.state,
                "pull_request": place.pull_request,
            })
        })
    }

    /// The worktree, while there is one.
    fn open_worktree(&self) -> Option<&std::path::Path> {
        self.place.as_ref().filter(|place| place.state == PlaceState::Open)?.worktree.as_deref()
    }

    /// The same in words.
    fn place_words(&self) -> Option<String> {
        let place = self.place.as_ref()?;
        let base = place.base.as_deref().unwrap_or("HEAD");
        let state = match place.state {
            PlaceState::Open => format!("from {}", harmless(base)),
            PlaceState::Merged => format!("merged into {}", harmless(base)),
            PlaceState::Discarded => "discarded".to_owned(),
        };
        Some(format!("{} ({state})", harmless(&place.branch)))
    }

    /// How long it took, or has taken until now.
    pub(crate) fn duration_ms(&self) -> u64 {
        if self.state.is_alive() { self.summary.elapsed_ms(Timestamp::now()) } else { self.summary.duration_ms() }
    }
}

/// A time as people here read it.
pub(crate) fn local(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "?".to_owned(), |at| at.to_zoned(local_time::zone()).strftime("%Y-%m-%d %H:%M").to_string())
}

/// The time of day where the user is.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_zoned(local_time::zone()).strftime("%H:%M:%S").to_string()
}

fn money(cost: Option<Cost>) -> String {
    cost.map_or_else(|| "-".to_owned(), figures::cost)
}

/// A run in a few lines: what it does or how it ended, what it has used, and the next command to type.
pub(crate) fn status(run: &RunDetails) -> String {
    let RunDetails { summary, state, words, .. } = run;
    let mut text = format!("{}: {}\n", words::state_at(*state, Timestamp::now()), cut(&harmless(words), 70));
    let most = summary.max_iterations;
    let of = if most > 0 { format!(" of {most}") } else { String::new() };
    let (agent, time) = (harmless(&summary.agent), figures::duration(run.duration_ms()));
    let _ = writeln!(text, "  {agent} · iteration {}{of} · {time}", summary.count());
    if let Some(place) = run.place_words() {
        let _ = writeln!(text, "  branch {place}");
    }
    if let Some(worktree) = run.open_worktree() {
        let _ = writeln!(text, "  worktree {}", harmless(&worktree.to_string_lossy()));
    }
    let limit = summary.max_cost_usd.map(|usd| format!("limit {}", figures::money(usd)));
    let spent: Vec<String> = figures::usage(&summary.usage(), summary.cost()).into_iter().chain(limit).collect();
    if !spent.is_empty() {
        let _ = writeln!(text, "  {}", spent.join(" · "));
    }
    if let Some(reason) = last_reason(run).filter(|reason| !reason.is_empty()) {
        let _ = writeln!(text, "  last: {}", cut(&harmless(reason.lines().next().unwrap_or_default()), 72));
    }
    let next: Vec<String> = next_steps(run).iter().map(|step| format!("`ralph {step}`")).collect();
    let watch = if state.is_alive() { "; watch: `ralph tui`" } else { "" };
    let _ = writeln!(text, "next: {}{watch}", next.join(", "));
    text
}

/// The commands that fit the state of a run.
fn next_steps(run: &RunDetails) -> &'static [&'static str] {
    let on_a_branch = run.place.as_ref().is_some_and(|place| place.state == PlaceState::Open);
    match run.state {
        RunState::Paused => &["continue", "stop"],
        RunState::Waiting { .. } => &["retry", "stop"],
        RunState::Running | RunState::Pausing => &["hint \"…\"", "pause", "stop"],
        RunState::Ended(Outcome::Complete) if on_a_branch => &["diff", "merge", "discard"],
        RunState::Ended(Outcome::Complete) => &["show", "diff"],
        RunState::Unfinished | RunState::Ended(_) => &["show", "diff", "resume"],
    }
}

/// What was decided last, and why.
pub(crate) fn last_reason(run: &RunDetails) -> Option<&str> {
    let end = run.summary.end.as_ref().filter(|_| !run.state.is_alive()).map(|end| end.reason.as_str());
    end.or_else(|| run.summary.decisions.last().map(|decision| decision.reason.as_str()))
}

/// The table of runs. Where there is little room, what the id says already gives way first.
pub(crate) fn table(runs: &[RunDetails], columns: usize, palette: Palette) -> String {
    const PROMPT: usize = 50;
    const LEAST_PROMPT: usize = 16;
    use Align::{Left, Right};
    let head = ["RUN", "STARTED", "AGENT", "ITER", "TIME", "COST", "OUTCOME"];
    let mut rows = vec![head.map(|name| Cell { text: name.to_owned(), ink: Ink::Strong }).to_vec()];
    rows.extend(runs.iter().map(|run| {
        let summary = &run.summary;
        let (outcome, ink) = words::state_in_full(run);
        let mut row: Vec<Cell> = [
            harmless(&summary.run),
            local(summary.started),
            harmless(&summary.agent),
            summary.count().to_string(),
            figures::duration(run.duration_ms()),
            money(summary.cost()),
        ]
        .map(Cell::from)
        .to_vec();
        row.push(Cell { text: outcome, ink });
        row
    }));
    // The id begins with the time at which the run was started, and people know a run by its prompt.
    let priced = runs.iter().any(|run| run.summary.cost().is_some());
    let first = if priced { &["STARTED", "AGENT", "TIME"][..] } else { &["STARTED", "COST", "AGENT", "TIME"] };
    fit(&mut rows, first, columns.saturating_sub(LEAST_PROMPT + 2));
    fit(&mut rows, &["COST"], columns);
    let align = |name: &str| if ["ITER", "TIME", "COST"].contains(&name) { Right } else { Left };
    let mut aligned: Vec<Align> = rows[0].iter().map(|cell| align(&cell.text)).collect();
    aligned.push(Left);
    let plain = painted(&aligned, &rows, Palette::Plain);
    let used = plain.iter().map(|line| width(line)).max().unwrap_or(0);
    let room = columns.saturating_sub(used + 2).min(PROMPT);
    if room >= LEAST_PROMPT {
        let prompts = runs.iter().map(|run| Cell { text: cut(&harmless(&run.words), room), ink: Ink::Dim });
        let prompts = std::iter::once(Cell { text: "PROMPT".to_owned(), ink: Ink::Strong }).chain(prompts);
        rows.iter_mut().zip(prompts).for_each(|(row, prompt)| row.push(prompt));
    }
    painted(&aligned, &rows, palette).iter().fold(String::new(), |text, line| text + line + "\n")
}

/// A line behind a margin, broken between words.
fn laid(text: &str, margin: usize, columns: usize) -> String {
    wrap(text, columns.saturating_sub(margin)).join(&format!("\n{}", " ".repeat(margin)))
}

pub(crate) fn full(run: &RunDetails, appearance: &Appearance) -> String {
    let (palette, glyphs, columns) = (appearance.palette, &appearance.glyphs, appearance.columns.count());
    let RunDetails { summary, words, .. } = run;
    let (mut text, outcome) = (String::new(), words::state_in_full(run));
    let dot = glyphs.dot;
    let _ = writeln!(
        text,
        "{} {dot} {}",
        palette.paint(Ink::Strong, &format!("run {}", harmless(&summary.run))),
        palette.paint(outcome.1, &outcome.0)
    );
    let mut facts = vec![
        ("started", local(summary.started)),
        ("agent", format!("{} {dot} transcript {}", harmless(&summary.agent), harmless(&summary.transcript))),
        ("prompt", format!("{} ({})", cut(&harmless(words), 100), harmless(&summary.prompt))),
        ("ralph", harmless(&summary.ralph)),
    ];
    facts.extend(run.place_words().map(|place| ("branch", place)));
    facts.extend(run.open_worktree().map(|path| ("worktree", harmless(&path.to_string_lossy()))));
    if let Some(address) = run.place.as_ref().and_then(|place| place.pull_request.as_deref()) {
        facts.push(("pull", harmless(address)));
    }
    let mut sums = vec![figures::plural(summary.count() as u64, "iteration"), figures::duration(run.duration_ms())];
    sums.extend(figures::usage(&summary.usage(), summary.cost()).iter().map(|part| harmless(part)));
    facts.push(("in all", sums.join(&format!(" {dot} "))));
    if summary.resumed > 0 {
        facts.push(("resumed", figures::plural(u64::from(summary.resumed), "time")));
    }
    if let Some(end) = &summary.end {
        facts.push(("because", harmless(end.reason.lines().next().unwrap_or_default())));
        facts.extend(end.question.iter().map(|question| ("asks", harmless(question))));
    }
    let id = harmless(&summary.run);
    let next = next_steps(run).iter().filter(|step| ["resume", "merge"].contains(step));
    facts.extend(next.map(|step| ("next", format!("`ralph {step} {id}`"))));
    for (name, value) in facts {
        let _ = writeln!(text, "{} {}", palette.paint(Ink::Dim, &format!("{name:>8}")), laid(&value, 9, columns));
    }
    for tried in &summary.iterations {
        text.push('\n');
        iteration(&mut text, tried, run, appearance);
    }
    for (line, ink) in compared(summary, glyphs) {
        let _ = writeln!(text, "\n{}", palette.paint(ink, &laid(&line, 0, columns)));
    }
    // The branch, the worktree and the resume are shown above.
    let told =
        |notice: &&String| !["branch: ", "worktree: ", "resumed after "].iter().any(|said| notice.starts_with(said));
    let notices: Vec<&String> = summary.notices.iter().filter(told).collect();
    if !notices.is_empty() {
        text.push('\n');
    }
    for notice in notices {
        let ink = if words::is_information(notice) { Ink::Dim } else { Ink::Warn };
        let notice = laid(&harmless(notice.lines().next().unwrap_or_default()), 0, columns);
        let _ = writeln!(text, "{}", palette.paint(ink, &notice));
    }
    text
}

fn iteration(text: &mut String, tried: &IterationSummary, run: &RunDetails, appearance: &Appearance) {
    let (palette, glyphs, columns) = (appearance.palette, &appearance.glyphs, appearance.columns.count());
    let title = palette.paint(Ink::Strong, &format!("iteration {}", tried.iteration));
    let Some(receipt) = &tried.receipt else {
        let (word, ink) = words::iteration_word(tried, run.state.is_alive());
        let _ = writeln!(text, "{title} {} {}", glyphs.dot, palette.paint(ink, word));
        return;
    };
    let (ended, ink) = words::iteration(receipt);
    let ended = words::signed(receipt.outcome, &ended, glyphs);
    let _ = writeln!(text, "{title} {} {}", glyphs.dot, palette.paint(ink, &ended));
    let mut parts = vec![figures::duration(receipt.duration_ms)];
    if let Some(hat) = &receipt.hat {
        parts.push(format!("hat {}", harmless(hat)));
    }
    if receipt.tools > 0 {
        let failed =
            if receipt.tools_failed > 0 { format!(", {} failed", receipt.tools_failed) } else { String::new() };
        parts.push(format!("{}{failed}", figures::plural(u64::from(receipt.tools), "tool")));
    }
    parts.extend(figures::usage(&receipt.usage, receipt.cost).iter().map(|part| harmless(part)));
    let _ = writeln!(text, "  {}", laid(&parts.join(&format!(" {} ", glyphs.dot)), 2, columns));
    for line in work(receipt) {
        let _ = writeln!(text, "  {}", laid(&line, 2, columns));
    }
    for check in &tried.checks {
        let (mark, ink) = words::check_mark(check.passed, glyphs);
        let optional = if check.optional { " (not required)" } else { "" };
        let line = format!("{mark} {} {}{optional}", harmless(&check.name), harmless(&check.ended));
        let _ = writeln!(text, "  {}", palette.paint(ink, &laid(line.trim_end(), 2, columns)));
    }
    for (line, ink) in tried.judgements.iter().flat_map(|judgement| judged::lines(judgement, &glyphs.between())) {
        let _ = writeln!(text, "  {}", palette.paint(ink, &laid(&line, 2, columns)));
    }
    for decision in run.summary.decisions.iter().filter(|decision| decision.iteration == tried.iteration) {
        let reason = decision.reason.lines().next().unwrap_or_default();
        // The reason is shown above.
        if !reason.is_empty() && run.summary.end.as_ref().is_none_or(|end| end.reason != decision.reason) {
            let _ = writeln!(text, "  {}", palette.paint(Ink::Dim, &laid(&harmless(reason), 2, columns)));
        }
    }
}

fn compared(summary: &Summary, glyphs: &Glyphs) -> Vec<(String, Ink)> {
    summary.end.as_ref().map(|end| words::compared(&end.compared, glyphs)).unwrap_or_default()
}

/// What an iteration left behind: files and commits.
fn work(receipt: &Receipt) -> Vec<String> {
    let mut lines: Vec<String> = receipt.commits.iter().map(|commit| format!("commit {}", harmless(commit))).collect();
    if !receipt.files.is_empty() {
        let counts = receipt.lines.map_or_else(String::new, |lines| format!(" ({})", words::plus_minus(lines)));
        lines.push(format!("changed {}{counts}", first_files(receipt, harmless)));
    }
    lines
}

/// The first files of an iteration, and how many more there are.
fn first_files(receipt: &Receipt, name: impl Fn(&str) -> String) -> String {
    let names: Vec<String> = receipt.files.iter().take(10).map(|file| name(file)).collect();
    let more = receipt.file_count() - names.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

/// One run as Markdown, for a pull request.
pub(crate) fn markdown(run: &RunDetails) -> String {
    let RunDetails { summary, words, .. } = run;
    let mut text = String::new();
    let _ = writeln!(text, "## ralph run `{}`: {}\n", code(&summary.run), words::state_in_full(run).0);
    let _ = writeln!(text, "> {}\n", escaped(&cut(words, 300)));
    let mut sums = vec![
        format!("agent `{}`", code(&summary.agent)),
        figures::plural(summary.count() as u64, "iteration"),
        figures::duration(run.duration_ms()),
    ];
    sums.extend(figures::usage(&summary.usage(), summary.cost()).iter().map(|part| escaped(part)));
    let _ = writeln!(text, "{}\n", sums.join(" · "));
    if let Some(end) = &summary.end {
        let _ = writeln!(text, "{}\n", escaped(end.reason.lines().next().unwrap_or_default()));
    }
    let _ =
        writeln!(text, "| # | result | time | tools | tokens | cost | changed |\n|---:|---|---:|---:|---:|---:|---|");
    for tried in &summary.iterations {
        let Some(receipt) = &tried.receipt else {
            let word = words::iteration_word(tried, run.state.is_alive()).0;
            let _ = writeln!(text, "| {} | {word} | | | | | |", tried.iteration);
            continue;
        };
        let tokens = receipt.usage.total_or_sum().map_or_else(|| "-".to_owned(), figures::count);
        let cost = receipt.known_cost();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {tokens} | {} | {} |",
            receipt.iteration,
            escaped(&words::iteration(receipt).0),
            figures::duration(receipt.duration_ms),
            receipt.tools,
            money(cost),
            first_files(receipt, |file| format!("`{}`", code(file))),
        );
    }
    let checks: Vec<_> = summary.iterations.last().map(|tried| &tried.checks).into_iter().flatten().collect();
    if !checks.is_empty() {
        let _ = writeln!(text, "\nVerification:\n");
        for check in checks {
            let mark = if check.passed { "x" } else { " " };
            let _ = writeln!(text, "- [{mark}] `{}` {}", code(&check.command), escaped(&check.ended));
        }
    }
    let judgements = summary.iterations.last().map(|tried| &tried.judgements).into_iter().flatten();
    for (line, _) in judgements.flat_map(|judgement| judged::lines(judgement, " · ")) {
        let _ = writeln!(text, "\n{}", escaped(line.trim()));
    }
    for (line, _) in compared(summary, &Glyphs::UNICODE) {
        let _ = writeln!(text, "\n{}", escaped(&line));
    }
    text
}

/// Text that Markdown shows as it is.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for character in harmless(text).chars() {
        if r"\`*_{}[]<>()#|!~@".contains(character) {
            safe.push('\\');
        }
        safe.push(character);
    }
    safe
}

/// Text between back-ticks.
fn code(text: &str) -> String {
    harmless(text).replace('`', "'").replace('|', "\\|")
}
