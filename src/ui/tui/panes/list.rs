//! The list of iterations: outcome, time, cost, hat. Rows are made only for what is in sight.

use std::ops::Range;

use jiff::Timestamp;

use super::super::index::{Entry, Index, Said};
use super::super::rows::Row;
use super::super::scroll::Pages;
use super::super::theme::{Signs, Theme};
use crate::ui::figures;
use crate::ui::style::{Glyphs, Ink};

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
        self.index.entries.len()
    }

    fn row(&mut self, _: usize, row: usize) -> Row {
        let Some(entry) = self.index.entries.get(row) else { return Row::default() };
        if row == 0 {
            return Row::new(Ink::Dim, "    start");
        }
        let is_last = row + 1 == self.index.entries.len();
        let (mark, ink) = Mark::of(entry, is_last && self.running).sign(self.theme.glyphs, self.theme.signs);
        let digits = self.index.run.most.max(100).to_string().len().min(6);
        let time = match (&entry.ended, entry.started) {
            (Some(ended), _) => figures::duration(ended.duration_ms),
            (None, Some(started)) if is_last && self.running => {
                let passed = (self.now.as_millisecond() - started.as_millisecond()).max(0) / 1000 * 1000;
                figures::duration(u64::try_from(passed).unwrap_or(0))
            }
            _ => String::new(),
        };
        let wide = self.columns >= 34;
        let mut row = Row::new(ink, &format!("{mark:<2}"))
            .and(Ink::Strong, &format!("{:>digits$} ", entry.iteration))
            .and(Ink::None, &format!("{time:>7} "));
        let price =
            entry.ended.and_then(|ended| ended.cost.map(figures::money).or_else(|| ended.tokens.map(figures::about)));
        row = row.and(Ink::Dim, &format!("{:>7} ", price.unwrap_or_default()));
        if let Some(hat) = &entry.hat {
            row = row.and(Ink::Agent, hat);
        } else if let Some(agent) = &entry.agent {
            row = row.and(Ink::Agent, agent);
        } else if let Some(class) = entry.ended.filter(|ended| wide && !ended.interrupted).and_then(|ended| ended.class)
        {
            row = row.and(Ink::Bad, class.name());
        }
        row
    }
}

/// What the list says of an iteration in one sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The agent is at it.
    UnderWay,
    /// Its turn succeeded.
    Ok,
    /// And it said that everything is done.
    Complete,
    /// Nobody can say, or somebody should look.
    Unclear,
    /// Its turn failed.
    Failed,
    /// It said that everything is done, and the user's commands did not agree.
    Unverified,
}

impl Mark {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::UnderWay, Self::Ok, Self::Complete, Self::Unclear, Self::Failed, Self::Unverified];

    fn of(entry: &Entry, running: bool) -> Self {
        match (&entry.ended, entry.said) {
            (None, _) if running => Self::UnderWay,
            (Some(ended), _) if !ended.success && ended.interrupted => Self::Unclear,
            (Some(ended), _) if !ended.success => Self::Failed,
            (Some(ended), _) if ended.verified == Some(false) => Self::Unverified,
            (Some(_), Some(Said::Complete)) => Self::Complete,
            (Some(_), None) => Self::Ok,
            (None, _) | (Some(_), Some(Said::NearMiss | Said::Other)) => Self::Unclear,
        }
    }

    /// How it is drawn.
    pub const fn sign(self, glyphs: Glyphs, signs: Signs) -> (&'static str, Ink) {
        match self {
            Self::UnderWay => (signs.running, Ink::Agent),
            Self::Ok => (glyphs.ok, Ink::Good),
            Self::Complete => (signs.complete, Ink::Good),
            Self::Unclear => (glyphs.unknown, Ink::Warn),
            Self::Failed => (glyphs.fail, Ink::Bad),
            Self::Unverified => (signs.unverified, Ink::Warn),
        }
    }

    /// What it means.
    pub const fn means(self) -> &'static str {
        match self {
            Self::UnderWay => "under way",
            Self::Ok => "went well; there is more to do",
            Self::Complete => "the agent said that everything is done",
            Self::Unclear => {
                "look at it: almost said that it is done, asked something, was interrupted, or never ended"
            }
            Self::Failed => "failed",
            Self::Unverified => "said that everything is done, but a `verify` command did not agree",
        }
    }
}
