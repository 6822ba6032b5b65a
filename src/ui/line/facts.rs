//! What the loop itself has to tell: how it begins, continues, waits, verifies and ends.

use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;

use super::message::{Speaker, Voice};
use super::output::Head;
use super::{LineView, TerminalUser};
use crate::control::Order;
use crate::event::{FailureClass, Tag};
use crate::journal::{Asked, CheckResult, Fact, IterationOutcome, Outcome, Receipt};
use crate::signals::Signal;
use crate::ui::appearance::Volume;
use crate::ui::callouts::{self, Actions};
use crate::ui::figures;
use crate::ui::history::clock;
use crate::ui::judged;
use crate::ui::style::Ink;
use crate::ui::text::{harmless, safe, width};
use crate::ui::words::{self, Phrase};

/// How much a failed check shows of its output; the journal has more.
const SHOWN_CHECK_LINES: usize = 10;
/// A longer reason is no title.
const LONGEST_TITLE: usize = 50;
/// Nobody is called because of a shorter wait.
const LONG_WAIT_MS: u64 = 60_000;

impl<W: Write> LineView<W> {
    pub(super) fn fact(&mut self, fact: &Fact, at: Timestamp) -> io::Result<()> {
        if let Fact::Display { text, .. } = fact {
            return self.text(Voice { tag: Tag::Ai, from: Speaker::Display }, text, true);
        }
        self.end_message()?;
        self.output.measure();
        let dot = self.output.appearance.glyphs.between();
        match fact {
            Fact::RunStart { .. } => self.run_start(fact),
            Fact::IterationStart { iteration, of, agent, hat, interactive, .. } => {
                if *interactive && self.terminal == TerminalUser::Both {
                    self.terminal = TerminalUser::Agent;
                }
                self.last_checks.clear();
                (self.shown_calls, self.retry_shown) = (0, false);
                let before = self.status.begin(self.model.run.newest_agent());
                let differs = agent.as_ref().filter(|agent| !before.is_empty() && (**agent != before || hat.is_some()));
                let title = words::iteration_title(*iteration, *of, differs.into_iter().chain(hat), &dot);
                self.title(&format!("iteration {iteration}/{of}"))?;
                if self.is_quiet() {
                    return Ok(());
                }
                self.output.line("", Ink::None)?;
                self.output.rule(&title, &clock(at), Ink::Strong)
            }
            Fact::IterationEnd { receipt } => self.iteration_end(receipt),
            Fact::Judged { judgement } => {
                let lines = judged::lines(judgement, &dot);
                lines.iter().try_for_each(|(line, ink)| self.system(line, *ink))?;
                self.last_checks.extend(lines);
                Ok(())
            }
            Fact::Verification { asked, passed, checks, .. } => self.verification(*asked, *passed, checks),
            Fact::Decision { wait_ms: Some(wait), .. } => {
                let Some(Phrase { text, ink, .. }) = words::fact(fact, at) else { return Ok(()) };
                if let Ok(until) = at.checked_add(Duration::from_millis(*wait)) {
                    self.title(&words::waiting_until(until))?;
                }
                if *wait >= LONG_WAIT_MS {
                    self.alert(&text)?;
                }
                self.system(&text, ink)
            }
            // How the run ends is said when it has.
            Fact::Decision { verdict, .. } if verdict == "finish" || self.is_quiet() => Ok(()),
            Fact::Signal { signal, .. } if !matches!(signal, Signal::NearMiss { .. }) => Ok(()),
            Fact::RunEnd {
                outcome, reason, iterations, duration_ms, usage, cost, question, changed, compared, ..
            } => {
                self.announce_end(*outcome, reason, *duration_ms)?;
                let (name, ink) = words::outcome(*outcome);
                self.output.line("", Ink::None)?;
                // A reason that begins with the outcome says both.
                let reason = harmless(reason);
                let says_both = reason.starts_with(name) && !reason.contains('\n') && width(&reason) <= LONGEST_TITLE;
                self.output.rule(if says_both { &reason } else { name }, &clock(at), ink)?;
                if !says_both {
                    self.output.line(&reason, ink)?;
                }
                // A question may have options.
                for line in question.iter().flat_map(|question| question.lines().skip(1)) {
                    self.output.line(&harmless(line), ink)?;
                }
                let mut parts =
                    vec![figures::plural(u64::from(*iterations), "iteration"), figures::duration(*duration_ms)];
                parts.extend(figures::usage(usage, *cost).iter().map(|part| harmless(part)));
                self.output.line(&parts.join(&dot), Ink::None)?;
                let changes = changed
                    .as_ref()
                    .map(|changed| words::changed(changed, &self.output.appearance.glyphs))
                    .unwrap_or_default();
                if !changes.is_empty() {
                    self.output.line(&changes, Ink::None)?;
                }
                let compared = words::compared(compared, &self.output.appearance.glyphs);
                for (line, ink) in std::mem::take(&mut self.last_checks).into_iter().chain(compared) {
                    self.output.line(&line, ink)?;
                }
                if *outcome == Outcome::Complete && words::is_plan(&self.model.run.prompt) {
                    self.output.line("next: `ralph build`", Ink::None)?;
                }
                if let Some(next) = words::next_step(*outcome, question.is_some()) {
                    self.output.line(next, Ink::None)?;
                }
                let id = harmless(&self.model.run.run);
                self.output.line(&format!("details: `ralph show {id}`"), Ink::Dim)?;
                self.output.line(&format!("changes: `ralph diff {id}`"), Ink::Dim)
            }
            other => {
                match other {
                    Fact::Paused => self.title("paused")?,
                    Fact::Control { order: Order::Pause } => self.title("pausing after this iteration")?,
                    _ => {}
                }
                match words::fact(other, at) {
                    Some(Phrase { text, ink, .. }) => self.system(&text, ink),
                    None => Ok(()),
                }
            }
        }
    }

    fn run_start(&mut self, fact: &Fact) -> io::Result<()> {
        let Fact::RunStart { ralph, run, agent, .. } = fact else { return Ok(()) };
        self.status.begin(agent);
        let (quiet, dot) = (self.is_quiet(), self.output.appearance.glyphs.between());
        self.output.line(&format!("ralph {ralph}{dot}run {run}"), Ink::Strong)?;
        let facts = words::run_start(fact, &dot);
        facts.iter().filter(|_| !quiet).try_for_each(|line| self.output.line(&harmless(line), Ink::Dim))
    }

    fn iteration_end(&mut self, receipt: &Receipt) -> io::Result<()> {
        let glyphs = self.output.appearance.glyphs;
        let is_limited = receipt.class == Some(FailureClass::RateLimit);
        let (ended, ink) = words::iteration(receipt);
        let ended = words::signed(receipt.outcome, &ended, &glyphs);
        let ink = if receipt.outcome == IterationOutcome::Ok { Ink::Dim } else { ink };
        let short = format!("{ended}{}{}", glyphs.between(), figures::duration(receipt.duration_ms));
        if self.is_quiet() {
            let (number, of) = (receipt.iteration, self.model.run.max_iterations);
            let line = format!("iteration {number} of {of}: {short}");
            return if is_limited { Ok(()) } else { self.output.line(&line, ink) };
        }
        self.show_unended()?;
        let in_full = self.output.appearance.detail.volume == Volume::Full;
        let is_shown = self.shown_calls >= self.model.iteration.calls.count();
        let actions = if is_shown && !in_full { Actions::Counted } else { Actions::Listed };
        let mut rows = callouts::rows(&self.model.iteration, receipt, actions, &glyphs, self.output.room());
        let plan = &self.model.iteration.plan;
        if *plan == self.plan && !in_full {
            rows.drain(..plan.len());
        }
        if !plan.is_empty() {
            self.plan.clone_from(plan);
        }
        for row in rows {
            let head = Head { tag: row.name, ink: Ink::Strong, gutter: glyphs.callout };
            self.output.styled(head, &row.line)?;
        }
        if self.model.iteration.usage.is_none() && !is_limited {
            self.system(&short, ink)?;
        }
        if receipt.unparsed > 0 {
            let lines = figures::plural(u64::from(receipt.unparsed), "line");
            self.system(&format!("{lines} not understood, see the raw file"), Ink::Warn)?;
        }
        words::left_behind(receipt).try_for_each(|line| self.system(&line, Ink::Warn))
    }

    /// Tools of which nobody said that they ended.
    fn show_unended(&mut self) -> io::Result<()> {
        self.started = None;
        if self.model.iteration.own_display {
            return Ok(());
        }
        let open = self.model.iteration.calls.kept().iter().filter(|call| call.cut_off);
        let open: Vec<String> = open.map(|call| call.id.clone()).collect();
        open.iter().try_for_each(|id| self.show_call(id))
    }

    /// One line a check, and what a failed one said last.
    fn verification(&mut self, asked: Asked, passed: bool, checks: &[CheckResult]) -> io::Result<()> {
        let (quiet, dot) = (self.is_quiet(), self.output.appearance.glyphs.between());
        for check in checks.iter().filter(|check| !(quiet && check.passed)) {
            let (line, ink) = words::check(check, &dot);
            self.system(&line, ink)?;
            if !check.passed && !check.tail.is_empty() && asked != Asked::Start {
                let lines: Vec<&str> = check.tail.lines().collect();
                let last = &lines[lines.len().saturating_sub(SHOWN_CHECK_LINES)..];
                for line in last {
                    self.output.row(self.below(), &format!("  {}", safe(line)), Ink::Dim)?;
                }
            }
        }
        if asked != Asked::End {
            self.last_checks.clear();
        }
        if asked != Asked::Start {
            self.last_checks.extend(checks.iter().map(|check| words::check(check, &dot)));
        }
        let (line, ink) = words::verification(asked, passed, checks);
        if quiet && (ink == Ink::Dim || asked == Asked::Iteration) { Ok(()) } else { self.system(&line, ink) }
    }
}
