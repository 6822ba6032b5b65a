//! The list of iterations: outcome, time, cost, hat. Rows are made only for what is in sight.

use std::ops::Range;

use jiff::Timestamp;

use super::super::index::Index;
use super::super::rows::Row;
use super::super::scroll::Pages;
use super::super::theme::Theme;
use crate::journal::IterationOutcome;
use crate::ui::figures;
use crate::ui::model::IterationState;
use crate::ui::style::{Glyphs, Ink};
use crate::ui::words;

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

    fn row(&mut self, _: usize, row: usize) -> Row {
        if row == 0 {
            return Row::new(Ink::Dim, "    start");
        }
        let Some(entry) = self.index.iteration(row) else { return Row::default() };
        let alive = self.running && row + 1 == self.index.entry_count();
        let (mark, ink) = IterationState::of(entry, alive).sign(&self.theme.glyphs);
        let digits = self.index.run().max_iterations.max(100).to_string().len().min(6);
        let time = match (&entry.ended, entry.started) {
            (Some(ended), _) => figures::duration(ended.duration_ms),
            (None, Some(started)) if alive => {
                let passed = (self.now.as_millisecond() - started.as_millisecond()).max(0) / 1000 * 1000;
                figures::duration(u64::try_from(passed).unwrap_or(0))
            }
            _ => String::new(),
        };
        let wide = self.columns >= 34;
        let mut row = Row::new(ink, &format!("{mark:<2}"))
            .and(Ink::Strong, &format!("{:>digits$} ", entry.iteration))
            .and(Ink::None, &format!("{time:>7} "));
        let price = entry
            .ended
            .and_then(|ended| ended.cost.map(figures::short_cost).or_else(|| ended.tokens.map(figures::about)));
        row = row.and(Ink::Dim, &format!("{:>7} ", price.unwrap_or_default()));
        if let Some(hat) = &entry.hat {
            row = row.and(Ink::Agent, hat);
        } else if let Some(agent) = &entry.agent {
            row = row.and(Ink::Agent, agent);
        } else if let Some(ended) = entry.ended.filter(|ended| wide && ended.outcome != IterationOutcome::Interrupted)
            && let Some(class) = ended.class
        {
            row = row.and(Ink::Bad, class.name());
        }
        row
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
