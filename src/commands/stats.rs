//! `ralph stats`: tokens, cost and time, by day, agent and model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::app::appearance::appearance;
use crate::app::find::{Here, print};
use crate::cli::history::Stats;
use crate::error::UserError;
use crate::journal::summary::Ended;
use crate::journal::{Cost, Judgement};
use crate::local_time;
use crate::ui::figures;
use crate::ui::history::RunDetails;
use crate::ui::table::{Align, bar, lines};
use crate::ui::{harmless, pretty};

/// The width of the longest bar.
const BAR: u32 = 24;

/// Sums over iterations.
#[derive(Clone, Debug, Default)]
struct Sums {
    iterations: u64,
    tokens: Option<u64>,
    cost: Option<Cost>,
    duration_ms: u64,
}

impl Sums {
    const fn of(ended: &Ended) -> Self {
        Self { iterations: 1, tokens: ended.tokens, cost: ended.cost, duration_ms: ended.duration_ms }
    }

    /// A judge plays no iteration.
    fn of_judge(judgement: &Judgement) -> Self {
        let Judgement { usage, cost, duration_ms, .. } = judgement;
        Self { iterations: 0, tokens: usage.total_or_sum(), cost: *cost, duration_ms: *duration_ms }
    }

    fn add(&mut self, more: &Self) {
        self.iterations += more.iterations;
        self.duration_ms += more.duration_ms;
        self.tokens = [self.tokens, more.tokens].into_iter().flatten().reduce(u64::saturating_add);
        self.cost = [self.cost, more.cost].into_iter().flatten().reduce(Cost::and);
    }
}

/// Day, agent and model.
type Group = (String, String, String);

pub(crate) fn run(args: &Stats) -> Result<u8, UserError> {
    let groups = gather(&Here::find()?.runs()?);
    if args.json {
        let rows: Vec<_> = groups
            .iter()
            .map(|((day, agent, model), sums)| {
                json!({
                    "day": day, "agent": agent, "model": model, "iterations": sums.iterations,
                    "tokens": sums.tokens, "cost_usd": sums.cost.map(|cost| cost.usd),
                    "cost_source": sums.cost.map(|cost| cost.source), "duration_ms": sums.duration_ms,
                })
            })
            .collect();
        return print(&pretty(&serde_json::Value::Array(rows)));
    }
    if args.csv {
        let mut text = "day,agent,model,iterations,tokens,cost_usd,duration_ms\n".to_owned();
        for ((day, agent, model), sums) in &groups {
            let tokens = sums.tokens.map_or_else(String::new, |tokens| tokens.to_string());
            let cost = sums.cost.map_or_else(String::new, |cost| cost.usd.to_string());
            let (agent, model) = (field(agent), field(model));
            let _ = writeln!(text, "{day},{agent},{model},{},{tokens},{cost},{}", sums.iterations, sums.duration_ms);
        }
        return print(&text);
    }
    let block = if appearance(args.appearance).glyphs.rule == "-" { "#" } else { "▇" };
    let mut text = String::new();
    for (title, key) in [("DAY", 0), ("AGENT", 1), ("MODEL", 2)] {
        if !text.is_empty() {
            text.push('\n');
        }
        chart(&mut text, title, &by(&groups, key), block);
    }
    print(&text)
}

fn gather(runs: &[RunDetails]) -> BTreeMap<Group, Sums> {
    let mut groups: BTreeMap<Group, Sums> = BTreeMap::new();
    for RunDetails { summary, .. } in runs {
        for tried in &summary.iterations {
            let at = tried.started.or(summary.started);
            let day = at.map_or_else(|| "?".to_owned(), |at| at.to_zoned(local_time::zone()).date().to_string());
            for judgement in &tried.judgements {
                let model = judgement.usage.model.clone().unwrap_or_else(|| "?".to_owned());
                groups
                    .entry((day.clone(), judgement.agent.clone(), model))
                    .or_default()
                    .add(&Sums::of_judge(judgement));
            }
            let Some(receipt) = &tried.receipt else { continue };
            let agent = if receipt.agent.is_empty() { &summary.agent } else { &receipt.agent };
            let model = receipt.usage.model.clone().unwrap_or_else(|| "?".to_owned());
            groups.entry((day, agent.clone(), model)).or_default().add(&Sums::of(&Ended::from(&**receipt)));
        }
    }
    groups
}

fn by(groups: &BTreeMap<Group, Sums>, key: usize) -> BTreeMap<String, Sums> {
    let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
    for ((day, agent, model), more) in groups {
        sums.entry([day, agent, model][key].clone()).or_default().add(more);
    }
    sums
}

fn chart(text: &mut String, title: &str, sums: &BTreeMap<String, Sums>, block: &str) {
    #[expect(clippy::cast_precision_loss, reason = "for the length of a bar")]
    let weight = |sums: &Sums| sums.tokens.map_or(0.0, |tokens| tokens as f64);
    let largest = sums.values().map(weight).fold(0.0, f64::max);
    let mut rows = vec![[title, "ITER", "TIME", "TOKENS", "COST", ""].map(str::to_owned).to_vec()];
    for (name, sums) in sums {
        rows.push(vec![
            harmless(name),
            figures::count(sums.iterations),
            figures::duration(sums.duration_ms),
            sums.tokens.map_or_else(|| "-".to_owned(), figures::count),
            sums.cost.map_or_else(|| "-".to_owned(), figures::cost),
            bar(weight(sums), largest, BAR, block),
        ]);
    }
    let columns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Right, Align::Left];
    for line in lines(&columns, &rows) {
        text.push_str(&line);
        text.push('\n');
    }
}

/// A field of CSV; what a spreadsheet would run as a formula stays text.
fn field(text: &str) -> String {
    let text = harmless(text);
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
