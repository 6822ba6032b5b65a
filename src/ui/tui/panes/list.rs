//! The list of iterations: clock, outcome, time, cost, hat, and what came of each. Rows are made only for what is in sight.

use std::ops::Range;

use jiff::Timestamp;

use super::super::index::Index;
use super::super::rows::Row;
use super::super::scroll::Pages;
use super::super::theme::Theme;
use crate::event::FailureClass;
use crate::journal::IterationOutcome;
use crate::journal::summary::IterationSummary;
use crate::ui::figures;
use crate::ui::history::clock;
use crate::ui::model::IterationState;
use crate::ui::style::{Glyphs, Ink};
use crate::ui::text::{cut, width};
use crate::ui::words;

/// The columns of the word for what an iteration came to.
const WORD: usize = 11;
/// From this width on, the cost is shown.
const WITH_COST: usize = 36;
/// From this width on, the hat is shown.
const WITH_HAT: usize = 56;

/// Less of what came of an iteration is not worth showing.
const LEAST_RESULT: usize = 6;

/// The iterations as rows.
pub(crate) struct List<'a> {
    /// What is known of the run.
    pub index: &'a Index,
    pub theme: &'a Theme,
    /// The time, for the iteration under way.
    pub now: Timestamp,
    /// Whether the run is under way.
    pub running: bool,
    pub columns: usize,
}

impl Pages for List<'_> {
    fn pages(&self) -> Range<usize> {
        0..1
    }

    fn count(&mut self, _: usize) -> usize {
        self.index.entry_count()
    }

    fn row(&mut self, _: usize, number: usize) -> Row {
        let digits = self.index.run().iterations.last().map_or(1, |tried| tried.iteration).to_string().len().max(2);
        if number == 0 {
            let at = self.index.run().started.map(clock).unwrap_or_default();
            return Row::new(Ink::Dim, &format!("  {:digits$} {:<5} start", "", at.get(..5).unwrap_or_default()));
        }
        let Some(entry) = self.index.iteration(number) else { return Row::default() };
        let alive = self.running && number + 1 == self.index.entry_count();
        let (mark, _) = IterationState::of(entry, alive).sign(&self.theme.glyphs);
        let time = match (&entry.ended, entry.started) {
            (Some(ended), _) => figures::duration(ended.duration_ms),
            (None, Some(started)) if alive => {
                let passed = (self.now.as_millisecond() - started.as_millisecond()).max(0) / 1000 * 1000;
                figures::duration(u64::try_from(passed).unwrap_or(0))
            }
            _ => String::new(),
        };
        let (word, word_ink) = words::iteration_word(entry, alive);
        let at = entry.started.map(clock).unwrap_or_default();
        let mut row = Row::new(word_ink, &format!("{mark:<2}"))
            .and(Ink::Strong, &format!("{:>digits$} ", entry.iteration))
            .and(Ink::Dim, &format!("{:<5} ", at.get(..5).unwrap_or_default()))
            .and(word_ink, &format!("{:<WORD$} ", cut(word, WORD)))
            .and(Ink::None, &format!("{time:>6} "));
        let price = entry
            .ended
            .and_then(|ended| ended.cost.map(figures::short_cost).or_else(|| ended.tokens.map(figures::about)));
        if self.columns >= WITH_COST {
            row = row.and(Ink::Dim, &format!("{:>6} ", price.unwrap_or_default()));
        }
        if let Some(who) = entry.hat.as_ref().or(entry.agent.as_ref()).filter(|_| self.columns >= WITH_HAT) {
            row = row.and(Ink::Agent, &format!("{} ", cut(who, 10)));
        }
        let used = width(&row.text());
        let result = self.result(entry, number);
        // Half a word says nothing: what does not fit is cut as a whole.
        let mut room = self.columns.saturating_sub(used);
        for (ink, text) in result.spans {
            if room < LEAST_RESULT {
                break;
            }
            let mut text = cut(&text, room);
            room -= width(&text);
            if self.theme.glyphs.more.is_ascii() {
                text = text.replace('…', ".");
            }
            row = row.and(ink, &text);
        }
        row
    }
}

impl List<'_> {
    /// What came of it: a failure's class, the checks, the commit or the files.
    fn result(&self, entry: &IterationSummary, number: usize) -> Row {
        let mut row = Row::default();
        let Some(ended) = entry.ended else { return row };
        let glyphs = &self.theme.glyphs;
        // The word of the iteration says that it was limited.
        let is_told = |class: &FailureClass| *class == FailureClass::RateLimit || *class == FailureClass::Agent;
        if let Some(class) = ended.class.filter(|class| ended.outcome == IterationOutcome::Failed && !is_told(class)) {
            row = row.and(Ink::Bad, &format!("{} ", words::class_name(class)));
        }
        if let Some(passed) = ended.verified {
            let (mark, ink) = words::check_mark(passed, glyphs);
            row = row.and(if passed { ink } else { Ink::Warn }, &format!("{mark} checks "));
        }
        let Some(result) = self.index.result(number) else { return row };
        let lines = result.lines.map_or_else(String::new, |lines| format!(" {}", words::plus_minus(lines)));
        match &result.commit {
            Some(subject) => {
                let more = if result.commits > 1 { format!(" (+{})", result.commits - 1) } else { String::new() };
                row.and(Ink::None, subject).and(Ink::Dim, &format!("{more}{lines}"))
            }
            None if result.files > 0 => row.and(Ink::Dim, &format!("{}{lines}", figures::plural(result.files, "file"))),
            None => row,
        }
    }
}

impl IterationState {
    /// How it is drawn.
    pub const fn sign(self, glyphs: &Glyphs) -> (&'static str, Ink) {
        match self {
            Self::Running => (glyphs.screen.running, Ink::Agent),
            Self::Ok => (glyphs.ok, Ink::Good),
            Self::Complete => (glyphs.screen.complete, Ink::Good),
            Self::Unclear => (glyphs.unknown, Ink::Warn),
            Self::Failed => (glyphs.fail, Ink::Bad),
            Self::Rejected => (glyphs.screen.rejected, Ink::Warn),
        }
    }

    /// What it means.
    pub const fn means(self) -> &'static str {
        words::iteration_state(self)
    }
}
