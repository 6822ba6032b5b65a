//! The events that were published in the run, and the hats that heard them.

use super::super::index::Index;
use super::super::rows::{Row, paragraph};
use crate::ui::figures;
use crate::ui::style::Ink;

pub(crate) fn rows(index: &Index, columns: usize) -> Vec<Row> {
    let mut rows = hats(index);
    if index.events.is_empty() {
        rows.push(Row::new(Ink::Dim, "no event was published"));
        return rows;
    }
    let forgotten = index.events_count - index.events.len();
    let earlier = if forgotten > 0 { format!(", the first {forgotten} are not listed") } else { String::new() };
    rows.push(Row::new(Ink::Strong, &format!("{}{earlier}", figures::plural(index.events_count as u64, "event"))));
    for event in &index.events {
        let time = event.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
        let (hearers, ink) = match event.heard_by.as_slice() {
            [] => ("nobody".to_owned(), Ink::Warn),
            hats => (hats.join(", "), Ink::Agent),
        };
        rows.push(
            Row::new(Ink::Dim, &format!("{time} {:>4} ", event.iteration))
                .and(Ink::Strong, &event.topic)
                .and(Ink::Dim, &format!("  {} to ", event.by))
                .and(ink, &hearers),
        );
        if !event.payload.is_empty() {
            let margin = Row::new(Ink::None, "              ");
            rows.extend(paragraph(&margin, &margin, &event.payload, Ink::Dim, columns));
        }
    }
    rows
}

/// How often each hat was worn.
fn hats(index: &Index) -> Vec<Row> {
    let mut worn: Vec<(&str, u64)> = Vec::new();
    for hat in index.entries.iter().filter_map(|entry| entry.hat.as_deref()) {
        match worn.iter_mut().find(|(name, _)| *name == hat) {
            Some((_, times)) => *times += 1,
            None => worn.push((hat, 1)),
        }
    }
    let mut rows: Vec<Row> = worn
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
