//! What the loop itself has to tell: how it begins, goes on, waits, verifies and ends.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::paper::Head;
use super::speech::{Speaker, Voice};
use super::status::Phase;
use super::{LineView, Owner};
use crate::event::{Status as ToolStatus, Tag};
use crate::journal::{CheckResult, Fact, Outcome, Receipt};
use crate::signals::Signal;
use crate::ui::callouts::{Gathered, outcome};
use crate::ui::figures;
use crate::ui::history::clock;
use crate::ui::style::Ink;
use crate::ui::text::{harmless, safe};

/// How much a failed check shows of its output; the journal has more.
const SHOWN_CHECK_LINES: usize = 10;
/// Nobody is called because of a shorter wait.
const LONG_WAIT_MS: u64 = 60_000;

impl<W: Write> LineView<W> {
    pub(super) fn fact(&mut self, fact: &Fact, at: Timestamp) -> io::Result<()> {
        if let Fact::Display { text, .. } = fact {
            return self.text(Voice { tag: Tag::Ai, from: Speaker::Display }, text, true);
        }
        self.end_speech()?;
        self.paper.measure();
        let dot = self.paper.looks.glyphs.between();
        match fact {
            Fact::RunStart { .. } => self.run_start(fact),
            Fact::IterationStart { iteration, of, display, agent, hat, interactive, .. } => {
                self.own_display = *display;
                if *interactive && self.terminal == Owner::Both {
                    self.terminal = Owner::Agent;
                }
                self.gathered = Gathered::default();
                let known = !self.status.agent.is_empty();
                let differs = agent.as_ref().filter(|agent| known && (**agent != self.status.agent || hat.is_some()));
                let mut title = format!("iteration {iteration} of {of}");
                for more in differs.into_iter().chain(hat) {
                    title = format!("{title}{dot}{}", safe(more));
                }
                self.status.begin(*iteration, *of, agent.as_ref(), hat.as_ref());
                self.title(&format!("iteration {iteration}/{of}"))?;
                if self.is_quiet() {
                    return Ok(());
                }
                self.paper.line("", Ink::None)?;
                self.paper.rule(&title, &clock(at), Ink::Strong)
            }
            Fact::Signal { signal: Signal::NearMiss { marker, reason, line }, .. } => {
                self.system(&format!("`{marker}` does not count: {reason}\n  {line}"), Ink::Warn)
            }
            Fact::Signal { .. } | Fact::Display { .. } => Ok(()),
            Fact::IterationEnd { receipt } => self.iteration_end(receipt),
            Fact::Decision { verdict, reason, wait_ms, .. } => match (verdict.as_str(), wait_ms) {
                ("finish", _) => Ok(()),
                (_, Some(wait)) => {
                    self.status.phase = Phase::Waiting(Instant::now() + Duration::from_millis(*wait));
                    let until = at.checked_add(Duration::from_millis(*wait)).map_or_else(|_| String::new(), clock);
                    let line = format!("waiting {}, until {until}: {reason}", figures::duration(*wait));
                    self.title(&format!("waiting until {until}"))?;
                    if *wait >= LONG_WAIT_MS {
                        self.alert(&line)?;
                    }
                    self.system(&line, Ink::Warn)
                }
                _ if self.is_quiet() => Ok(()),
                _ => self.system(&format!("next: {reason}"), Ink::Dim),
            },
            Fact::Verification { passed, checks, .. } => self.verification(*passed, checks),
            Fact::Published { event, by, heard_by, .. } => {
                let hearers = if heard_by.is_empty() { "nobody".to_owned() } else { heard_by.join(", ") };
                let ink = if heard_by.is_empty() { Ink::Warn } else { Ink::Dim };
                self.system(&format!("event {} by {by}, heard by {hearers}", event.topic), ink)
            }
            Fact::Control { command, words } => {
                let words = words.as_ref().map_or_else(String::new, |words| format!(": {words}"));
                self.system(&format!("{command}{words}"), Ink::Warn)
            }
            Fact::Interrupt { unix_signal, action } => self.system(&format!("{unix_signal}: {action}"), Ink::Warn),
            Fact::Notice { message } => self.system(message, Ink::Warn),
            Fact::RunEnd { outcome, reason, iterations, duration_ms, usage, question, .. } => {
                self.status.phase = Phase::Between;
                self.herald_end(*outcome, reason, *duration_ms)?;
                let (name, ink) = ending(*outcome);
                self.paper.line("", Ink::None)?;
                self.paper.rule(name, &clock(at), ink)?;
                self.paper.line(&harmless(reason), ink)?;
                // A question may have options.
                for line in question.iter().flat_map(|question| question.lines().skip(1)) {
                    self.paper.line(&harmless(line), ink)?;
                }
                let mut parts =
                    vec![figures::plural(u64::from(*iterations), "iteration"), figures::duration(*duration_ms)];
                parts.extend(figures::usage(usage).iter().map(|part| harmless(part)));
                self.paper.line(&parts.join(&dot), Ink::None)?;
                if let Some(next) = next_step(*outcome, question.is_some()) {
                    self.paper.line(next, Ink::None)?;
                }
                self.paper.line(&format!("everything that happened is in .ralph/runs/{}", self.run), Ink::Dim)
            }
        }
    }

    fn run_start(&mut self, fact: &Fact) -> io::Result<()> {
        let Fact::RunStart {
            ralph,
            run,
            agent,
            command,
            transcript,
            prompt,
            max_iterations,
            max_seconds,
            max_cost_usd,
            ..
        } = fact
        else {
            return Ok(());
        };
        self.status.max_cost_usd = *max_cost_usd;
        self.status.agent.clone_from(agent);
        self.run.clone_from(run);
        let dot = self.paper.looks.glyphs.between();
        let time = max_seconds
            .map_or_else(String::new, |seconds| format!(", {}", figures::duration(seconds.saturating_mul(1000))));
        self.paper.line(&format!("ralph {ralph}{dot}run {run}"), Ink::Strong)?;
        let limits = format!("at most {}{time}", figures::plural(u64::from(*max_iterations), "iteration"));
        let facts = [
            format!("agent {agent}{dot}transcript {transcript}{dot}{limits}"),
            format!("command: {}", quoted(command)),
            format!("prompt: {prompt}"),
        ];
        let quiet = self.is_quiet();
        facts.iter().filter(|_| !quiet).try_for_each(|line| self.paper.line(&harmless(line), Ink::Dim))
    }

    fn iteration_end(&mut self, receipt: &Receipt) -> io::Result<()> {
        self.status.end(receipt);
        let glyphs = self.paper.looks.glyphs;
        let ink = if receipt.success { Ink::Dim } else { Ink::Bad };
        let short = format!("{}{}{}", outcome(receipt), glyphs.between(), figures::duration(receipt.duration_ms));
        if self.is_quiet() {
            let (number, of) = (receipt.iteration, self.status.of);
            return self.paper.line(&format!("iteration {number} of {of}: {short}"), ink);
        }
        self.show_unended()?;
        for row in self.gathered.rows(receipt, &glyphs, self.paper.room()) {
            let head = Head { tag: row.name, ink: Ink::Strong, gutter: glyphs.callout };
            self.paper.row(head, &row.text, row.ink)?;
        }
        if !self.gathered.has_report() {
            self.system(&short, ink)?;
        }
        if receipt.unparsed > 0 {
            let lines = figures::plural(u64::from(receipt.unparsed), "line");
            self.system(&format!("{lines} not understood, see the raw file"), Ink::Warn)?;
        }
        receipt.left_behind.iter().try_for_each(|stray| {
            let fate = if receipt.left_running { "goes on" } else { "was stopped" };
            self.system(&format!("the agent left a process behind, which {fate}: {stray}"), Ink::Warn)
        })
    }

    /// Tools of which nobody said that they ended.
    fn show_unended(&mut self) -> io::Result<()> {
        self.started = None;
        let open: Vec<String> = self.gathered.calls.running().map(|call| call.id().to_owned()).collect();
        for id in open {
            self.gathered.calls.end(&id, ToolStatus::Unknown, None);
            if !self.own_display {
                self.show_call(&id)?;
            }
        }
        Ok(())
    }

    /// One line a check, and what a failed one said last.
    fn verification(&mut self, passed: bool, checks: &[CheckResult]) -> io::Result<()> {
        let (quiet, dot) = (self.is_quiet(), self.paper.looks.glyphs.between());
        for check in checks.iter().filter(|check| !(quiet && check.passed)) {
            let CheckResult { name, ended, duration_ms, .. } = check;
            let ink = if check.passed { Ink::Good } else { Ink::Bad };
            let time = figures::duration(*duration_ms);
            self.system(&format!("verify {name}: {ended}{dot}{time}"), ink)?;
            if !check.passed && !check.tail.is_empty() {
                let lines: Vec<&str> = check.tail.lines().collect();
                let last = &lines[lines.len().saturating_sub(SHOWN_CHECK_LINES)..];
                self.system(&last.join("\n"), Ink::Dim)?;
            }
        }
        let line = if passed { "verified: every command agrees" } else { "not verified: the claim does not count" };
        self.system(line, if passed { Ink::Good } else { Ink::Bad })
    }
}

/// A command line as it would be typed.
fn quoted(argv: &[String]) -> String {
    let words =
        argv.iter().map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned));
    words.collect::<Vec<_>>().join(" ")
}

pub(super) const fn ending(outcome: Outcome) -> (&'static str, Ink) {
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

/// How a run goes on that could.
const fn next_step(outcome: Outcome, asked: bool) -> Option<&'static str> {
    match outcome {
        Outcome::Complete | Outcome::AgentUnusable => None,
        Outcome::Human if asked => Some("go on: ralph answer \"…\""),
        Outcome::Limit => Some("go on: ralph resume, with more of what was used up (-n, --max-time, --max-cost)"),
        Outcome::Human | Outcome::Failed | Outcome::NoProgress | Outcome::RateLimited | Outcome::Interrupted => {
            Some("go on: ralph resume")
        }
    }
}
