//! Tokens, money and time of the run, iteration by iteration, as small charts.

use super::super::index::Index;
use super::super::rows::Row;
use super::super::theme::Theme;
use crate::journal::IterationOutcome;
use crate::journal::summary::Ended;
use crate::ui::figures;
use crate::ui::style::{Glyphs, Ink};

pub(crate) fn rows(index: &Index, theme: &Theme, columns: usize, height: usize) -> Vec<Row> {
    let run = index.run();
    let ended: Vec<Ended> = run.ended().copied().collect();
    if ended.is_empty() {
        return vec![Row::new(Ink::Dim, "no iteration is over yet")];
    }
    let (tokens, cost) = (run.tokens(), run.cost());
    let time: u64 = ended.iter().map(|ended| ended.duration_ms).sum();
    let failed = ended.iter().filter(|ended| ended.outcome == IterationOutcome::Failed).count() as u64;
    let mut rows = vec![
        Row::new(Ink::Strong, &figures::plural(ended.len() as u64, "iteration"))
            .and(Ink::Dim, &format!(", {failed} failed, {} of work", figures::duration(time))),
        Row::new(
            Ink::None,
            &match tokens {
                Some(tokens) => figures::plural(tokens, "token"),
                None => "tokens: not reported".to_owned(),
            },
        ),
        Row::new(
            Ink::None,
            &match cost {
                Some(cost) => format!("{} in all", figures::cost(cost)),
                None => "cost: not reported".to_owned(),
            },
        ),
    ];
    let tall = if height >= 30 { 6 } else { 3 };
    #[expect(clippy::cast_precision_loss, reason = "bars of a few columns")]
    let mut draw = |title: &str, ink: Ink, value: &dyn Fn(&Ended) -> Option<u64>, words: &dyn Fn(f64) -> String| {
        let values: Vec<f64> = ended.iter().map(|ended| value(ended).unwrap_or(0) as f64).collect();
        let drawn = Chart { title, ink, values, words, limit: None };
        chart(&mut rows, &drawn, Size { columns, tall }, &theme.glyphs);
    };
    if tokens.is_some() {
        draw("tokens per iteration", Ink::Agent, &|ended| ended.tokens, &|most| figures::about(whole(most)));
    }
    draw("time per iteration", Ink::Tool, &|ended| Some(ended.duration_ms), &|most| figures::duration(whole(most)));
    if cost.is_some() {
        let mut sum = 0.0;
        let values: Vec<f64> = ended
            .iter()
            .map(|ended| {
                sum += ended.cost.map_or(0.0, |cost| cost.usd);
                sum
            })
            .collect();
        let limit = run.max_cost_usd;
        let drawn = Chart { title: "cost so far", ink: Ink::Good, values, words: &figures::money, limit };
        chart(&mut rows, &drawn, Size { columns, tall }, &theme.glyphs);
    }
    rows
}

/// What is drawn.
struct Chart<'a> {
    title: &'a str,
    ink: Ink,
    values: Vec<f64>,
    /// How a value is written.
    words: &'a dyn Fn(f64) -> String,
    /// What the value must not exceed.
    limit: Option<f64>,
}

#[derive(Clone, Copy)]
struct Size {
    columns: usize,
    tall: usize,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are positive and far from the limit"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Bars for the values between their axes, the largest of each when there are more than columns.
fn chart(rows: &mut Vec<Row>, chart: &Chart, Size { columns, tall }: Size, glyphs: &Glyphs) {
    let Chart { title, ink, values, words, limit } = chart;
    let most = values.iter().copied().fold(0.0, f64::max);
    let scale = limit.unwrap_or(0.0).max(most);
    let top = words(scale);
    let margin = top.len().max(4) + 1;
    let columns = columns.saturating_sub(margin + 3).max(8);
    let each = values.len().div_ceil(columns).max(1);
    let bars: Vec<f64> = values.chunks(each).map(|some| some.iter().copied().fold(0.0, f64::max)).collect();
    rows.push(Row::default());
    let per = if each > 1 { format!(", a column is {each} iterations") } else { String::new() };
    let of = limit.map_or_else(String::new, |limit| format!(", limit {}", words(limit)));
    rows.push(Row::new(Ink::Strong, title).and(Ink::Dim, &format!("  up to {}{of}{per}", words(most))));
    let width = if bars.len() * 2 <= columns { 2 } else { 1 };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 0 and the rows of a chart"
    )]
    let row_of = |value: f64| if scale > 0.0 { ((value / scale * tall as f64).ceil() as usize).max(1) - 1 } else { 0 };
    let limit_row = limit.map(row_of);
    for level in (0..tall).rev() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "between 0 and 8"
        )]
        let part = |value: f64| {
            let filled = if scale > 0.0 { value / scale * tall as f64 } else { 0.0 } - level as f64;
            let eighths = (filled.clamp(0.0, 1.0) * 8.0).round() as usize;
            // Something is never nothing.
            if level == 0 && value > 0.0 { eighths.max(1) } else { eighths }
        };
        let label = if level + 1 == tall { top.as_str() } else { "" };
        let mut row = Row::new(Ink::Dim, &format!("{label:>margin$} {}", glyphs.gutter));
        let line: String = bars.iter().map(|value| glyphs.screen.bars[part(*value)].repeat(width)).collect();
        if limit_row == Some(level) {
            let drawn = line.trim_end();
            let rest = columns.saturating_sub(crate::ui::text::width(drawn));
            row = row.and(*ink, drawn).and(Ink::Warn, &glyphs.screen.limit.repeat(rest));
        } else {
            row = row.and(*ink, line.trim_end());
        }
        rows.push(row);
    }
    let axis = format!("{:>margin$} {}{}", 0, glyphs.screen.corner, glyphs.rule.repeat(bars.len() * width));
    rows.push(Row::new(Ink::Dim, &axis));
    let last = values.len().to_string();
    let gap = (bars.len() * width).saturating_sub(1 + last.len());
    let numbers = if values.len() > 1 && bars.len() * width > last.len() + 1 {
        format!("1{}{last}", " ".repeat(gap))
    } else {
        last
    };
    rows.push(Row::new(Ink::Dim, &format!("{:margin$}  {numbers}", "")));
}
