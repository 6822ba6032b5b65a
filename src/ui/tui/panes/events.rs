//! The events that were published in the run, and the hats that received them.

use super::super::index::Index;
use super::super::rows::{Row, paragraph};
use crate::ui::figures;
use crate::ui::history::clock;
use crate::ui::model::Model;
use crate::ui::style::Ink;
use crate::ui::words;

pub(crate) fn rows(index: &Index, columns: usize) -> Vec<Row> {
    let mut rows = hats(index);
    let Model { events, events_count, .. } = &index.model;
    if events.is_empty() {
        rows.push(Row::new(Ink::Dim, "no event was published"));
        return rows;
    }
    let forgotten = events_count - events.len();
    let earlier = if forgotten > 0 { format!(", the first {forgotten} are not listed") } else { String::new() };
    rows.push(Row::new(Ink::Strong, &format!("{}{earlier}", figures::plural(*events_count as u64, "event"))));
    for event in events {
        let time = clock(event.at);
        let (receivers, ink) = words::receivers(&event.heard_by);
        rows.push(
            Row::new(Ink::Dim, &format!("{time} {:>4} ", event.iteration))
                .and(Ink::Strong, &event.topic)
                .and(Ink::Dim, &format!("  {} to ", event.by))
                .and(ink, &receivers),
        );
        if !event.payload.is_empty() {
            let margin = Row::new(Ink::None, "              ");
            rows.extend(paragraph(&margin, &margin, &event.payload, Ink::Dim, columns));
        }
    }
    rows
}

/// How many iterations each hat had.
fn hats(index: &Index) -> Vec<Row> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for hat in index.run().iterations.iter().filter_map(|tried| tried.hat.as_deref()) {
        match counts.iter_mut().find(|(name, _)| *name == hat) {
            Some((_, times)) => *times += 1,
            None => counts.push((hat, 1)),
        }
    }
    let mut rows: Vec<Row> = counts
        .iter()
        .map(|(hat, times)| {
            Row::new(Ink::Agent, hat).and(Ink::Dim, &format!("  {}", figures::plural(*times, "iteration")))
        })
        .collect();
    if !rows.is_empty() {
        rows.insert(0, Row::new(Ink::Strong, "hats"));
        rows.push(Row::default());
    }
    rows
}
