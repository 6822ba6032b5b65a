//! Runs that are over, for people: the table of all runs, one run in full, one run for a pull request.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::figures;
use super::style::{Glyphs, Ink, Palette};
use super::table::{Align, lines};
use super::text::{cut, harmless};
use super::words;
use crate::journal::summary::{IterationSummary, Summary};
use crate::journal::{Activity, Outcome, Receipt};

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A ralph is at work on it.
    Running,
    /// It waits for a limit to pass.
    Waiting,
    Paused,
    /// It has no end: it was killed, or the machine stopped.
    Unfinished,
    /// It has come to an end.
    Ended(Outcome),
}

impl Standing {
    /// In words, as the table and JSON have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Unfinished => "unfinished",
            Self::Ended(outcome) => words::outcome(outcome).0,
        }
    }

    /// What a run does that is alive.
    pub(crate) const fn of(activity: &Activity) -> Self {
        match activity {
            Activity::Running | Activity::Pausing => Self::Running,
            Activity::Waiting { .. } => Self::Waiting,
            Activity::Paused => Self::Paused,
        }
    }

    /// True while a ralph is at work on it.
    pub(crate) const fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Waiting | Self::Paused)
    }

    /// True when `ralph resume` can continue it.
    pub(crate) const fn can_resume(self) -> bool {
        match self {
            Self::Unfinished => true,
            Self::Ended(outcome) => !matches!(outcome, Outcome::Complete),
            Self::Running | Self::Waiting | Self::Paused => false,
        }
    }

    pub(super) const fn ink(self) -> Ink {
        match self {
            Self::Running => Ink::Agent,
            Self::Ended(outcome) => words::outcome(outcome).1,
            Self::Waiting | Self::Paused | Self::Unfinished => Ink::Warn,
        }
    }
}

/// One run with what is shown of it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub summary: Summary,
    pub standing: Standing,
    /// The first words of its prompt.
    pub words: String,
}

impl Told {
    /// How long it took, or has taken until now.
    pub(crate) fn duration_ms(&self) -> u64 {
        if self.standing.is_alive() { self.summary.elapsed_ms(Timestamp::now()) } else { self.summary.duration_ms() }
    }
}

/// A time as people here read it.
pub(crate) fn local(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "?".to_owned(), |at| at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
}

/// The time of day where the user is.
pub(crate) fn clock(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

fn money(cost: Option<f64>) -> String {
    cost.map_or_else(|| "-".to_owned(), figures::money)
}

pub(crate) fn table(runs: &[Told]) -> String {
    let heading = ["RUN", "STARTED", "AGENT", "ITER", "TIME", "COST", "OUTCOME", "PROMPT"].map(str::to_owned).to_vec();
    let rows = runs.iter().map(|told| {
        let Told { summary, standing, words } = told;
        vec![
            harmless(&summary.run),
            local(summary.started),
            harmless(&summary.agent),
            summary.count().to_string(),
            figures::duration(told.duration_ms()),
            money(summary.cost()),
            standing.name().to_owned(),
            cut(&harmless(words), 50),
        ]
    });
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    let columns =
        [Align::Left, Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left, Align::Left];
    lines(&columns, &rows).iter().fold(String::new(), |text, line| text + line + "\n")
}

pub(crate) fn full(told: &Told, palette: Palette, glyphs: &Glyphs) -> String {
    let Told { summary, standing, words } = told;
    let mut text = String::new();
    let dot = glyphs.dot;
    let _ = writeln!(
        text,
        "{} {dot} {}",
        palette.paint(Ink::Strong, &format!("run {}", harmless(&summary.run))),
        palette.paint(standing.ink(), standing.name())
    );
    let mut facts = vec![
        ("started", local(summary.started)),
        ("agent", format!("{} {dot} transcript {}", harmless(&summary.agent), harmless(&summary.transcript))),
        ("prompt", format!("{} ({})", cut(&harmless(words), 100), harmless(&summary.prompt))),
        ("ralph", harmless(&summary.ralph)),
    ];
    let mut sums = vec![figures::plural(summary.count() as u64, "iteration"), figures::duration(told.duration_ms())];
    sums.extend(figures::usage(&summary.usage()).iter().map(|part| harmless(part)));
    facts.push(("in all", sums.join(&format!(" {dot} "))));
    if summary.resumed > 0 {
        facts.push(("resumed", figures::plural(u64::from(summary.resumed), "time")));
    }
    if let Some(end) = &summary.end {
        facts.push(("because", harmless(end.reason.lines().next().unwrap_or_default())));
        facts.extend(end.question.iter().map(|question| ("asks", harmless(question))));
    }
    for (name, value) in facts {
        let _ = writeln!(text, "{} {value}", palette.paint(Ink::Dim, &format!("{name:>8}")));
    }
    for played in &summary.iterations {
        text.push('\n');
        iteration(&mut text, played, summary, palette, glyphs);
    }
    for notice in &summary.notices {
        let _ = writeln!(text, "\n{}", palette.paint(Ink::Warn, &harmless(notice.lines().next().unwrap_or_default())));
    }
    text
}

fn iteration(text: &mut String, played: &IterationSummary, summary: &Summary, palette: Palette, glyphs: &Glyphs) {
    let title = palette.paint(Ink::Strong, &format!("iteration {}", played.iteration));
    let Some(receipt) = &played.receipt else {
        let _ = writeln!(text, "{title} {} {}", glyphs.dot, palette.paint(Ink::Warn, "not finished"));
        return;
    };
    let (ended, ink) = words::iteration(receipt);
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
    parts.extend(figures::usage(&receipt.usage).iter().map(|part| harmless(part)));
    let _ = writeln!(text, "  {}", parts.join(&format!(" {} ", glyphs.dot)));
    for line in work(receipt) {
        let _ = writeln!(text, "  {line}");
    }
    for check in &played.checks {
        let (mark, ink) = if check.passed { (glyphs.ok, Ink::Good) } else { (glyphs.fail, Ink::Bad) };
        let line = format!("{mark} {} {}", harmless(&check.name), harmless(&check.ended));
        let _ = writeln!(text, "  {}", palette.paint(ink, line.trim_end()));
    }
    for decision in summary.decisions.iter().filter(|decision| decision.iteration == played.iteration) {
        let line = format!("{}: {}", decision.verdict, decision.reason.lines().next().unwrap_or_default());
        let _ = writeln!(text, "  {}", palette.paint(Ink::Dim, &harmless(&line)));
    }
}

/// What an iteration left behind: files and commits.
fn work(receipt: &Receipt) -> Vec<String> {
    let mut lines: Vec<String> = receipt.commits.iter().map(|commit| format!("commit {}", harmless(commit))).collect();
    if !receipt.files.is_empty() {
        let names: Vec<String> = receipt.files.iter().take(10).map(|file| harmless(file)).collect();
        let more = receipt.files.len() - names.len() + receipt.more_files as usize;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("changed {}{more}", names.join(", ")));
    }
    lines
}

/// One run as Markdown, for a pull request.
pub(crate) fn markdown(told: &Told) -> String {
    let Told { summary, standing, words } = told;
    let mut text = String::new();
    let _ = writeln!(text, "## ralph run `{}`: {}\n", code(&summary.run), standing.name());
    let _ = writeln!(text, "> {}\n", escaped(&cut(words, 300)));
    let mut sums = vec![
        format!("agent `{}`", code(&summary.agent)),
        figures::plural(summary.count() as u64, "iteration"),
        figures::duration(told.duration_ms()),
    ];
    sums.extend(figures::usage(&summary.usage()).iter().map(|part| escaped(part)));
    let _ = writeln!(text, "{}\n", sums.join(" · "));
    if let Some(end) = &summary.end {
        let _ = writeln!(text, "{}\n", escaped(end.reason.lines().next().unwrap_or_default()));
    }
    let _ =
        writeln!(text, "| # | result | time | tools | tokens | cost | changed |\n|---:|---|---:|---:|---:|---:|---|");
    for played in &summary.iterations {
        let Some(receipt) = &played.receipt else {
            let _ = writeln!(text, "| {} | not finished | | | | | |", played.iteration);
            continue;
        };
        let files: Vec<String> = receipt.files.iter().take(10).map(|file| format!("`{}`", code(file))).collect();
        let more = receipt.files.len() - files.len() + receipt.more_files as usize;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let tokens = receipt.usage.total_or_sum().map_or_else(|| "-".to_owned(), figures::count);
        let cost = receipt.cost.map(|cost| cost.usd).or(receipt.usage.cost_usd);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {tokens} | {} | {}{more} |",
            receipt.iteration,
            escaped(&words::iteration(receipt).0),
            figures::duration(receipt.duration_ms),
            receipt.tools,
            money(cost),
            files.join(", "),
        );
    }
    let checks: Vec<_> = summary.iterations.last().map(|played| &played.checks).into_iter().flatten().collect();
    if !checks.is_empty() {
        let _ = writeln!(text, "\nVerification:\n");
        for check in checks {
            let mark = if check.passed { "x" } else { " " };
            let _ = writeln!(text, "- [{mark}] `{}` {}", code(&check.command), escaped(&check.ended));
        }
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
