//! The first lines: what the run is for, what it does, and what it has used. What matters most stays longest when there is
//! little room.

use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};

use super::state::ViewState;
use crate::event::Usage;
use crate::journal::Cost;
use crate::ui::figures;
use crate::ui::history::clock;
use crate::ui::model::RunState;
use crate::ui::style::Ink;
use crate::ui::text::{cut, harmless, width};
use crate::ui::words;

/// From this height on, there are two lines.
const TWO_LINES: u16 = 16;
/// From this silence on, it is told how long it lasts.
const SILENT: Duration = Duration::from_secs(5);
/// So much of the goal is seen before anything else about the run.
const LEAST_GOAL: usize = 24;
/// More of a tool's argument is not shown here.
const LONGEST_TOOL: usize = 40;

/// How many lines it has on a screen of this many rows.
pub(crate) const fn height(rows: u16) -> u16 {
    if rows >= TWO_LINES { 2 } else { 1 }
}

pub(crate) fn draw(state: &ViewState, area: Rect, buffer: &mut Buffer) {
    let columns = usize::from(area.width);
    let (word, ink) = badge(state);
    let badge_style = state.theme.style(ink).remove_modifier(Modifier::DIM).add_modifier(Modifier::REVERSED);
    let (x, _) =
        buffer.set_stringn(area.x, area.y, format!(" {word} "), columns, badge_style.add_modifier(Modifier::BOLD));
    let room = columns.saturating_sub(usize::from(x - area.x) + 1);
    let dot = format!(" {} ", state.theme.glyphs.dot);
    let strong = state.theme.style(Ink::Strong);
    if area.height < 2 {
        let line = joined(progress(state), &dot, room);
        buffer.set_stringn(x + 1, area.y, &line, room, strong);
        return;
    }
    let goal = harmless(&state.goal);
    let wanted = width(&goal).clamp(0, LEAST_GOAL.max(room / 2)) + 2;
    let about = joined(about(state), &dot, room.saturating_sub(wanted));
    let goal = cut(&goal, room.saturating_sub(width(&about) + 2));
    buffer.set_stringn(x + 1, area.y, &goal, room, strong);
    let start = area.right().saturating_sub(u16::try_from(width(&about)).unwrap_or(0) + 1);
    buffer.set_stringn(start, area.y, &about, columns, Style::new());
    let line = joined(progress(state), &dot, columns.saturating_sub(2));
    buffer.set_stringn(area.x + 1, area.y + 1, &line, columns.saturating_sub(1), Style::new());
}

/// What the run does, in its colour.
fn badge(state: &ViewState) -> (String, Ink) {
    let now = state.state();
    let (_, ink) = words::state(now);
    let word = words::state_at(now, state.now);
    if !state.index.run().last_claim_was_rejected() || now.is_alive() {
        return (word, ink);
    }
    (format!("{word}, rejected"), if ink == Ink::Bad { ink } else { Ink::Warn })
}

/// Parts with their priority; the least important go first until the rest fits.
fn joined(mut parts: Vec<(u8, String)>, dot: &str, columns: usize) -> String {
    loop {
        let line = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(dot);
        let least = parts.iter().map(|(priority, _)| *priority).max().unwrap_or(0);
        if width(&line) <= columns || least == 0 {
            return cut(&line, columns);
        }
        parts.retain(|(priority, _)| *priority != least);
    }
}

/// Who works where: branch, agent and model, the time.
fn about(state: &ViewState) -> Vec<(u8, String)> {
    let run = state.index.run();
    let mut parts = vec![(4, harmless(&state.directory.id))];
    parts.extend(state.index.branch.as_deref().or(state.branch.as_deref()).map(|branch| (3, harmless(branch))));
    if !run.agent.is_empty() {
        parts.push((1, harmless(run.newest_agent())));
    }
    let live = state.live.as_ref().and_then(|live| live.iteration.model.as_deref());
    parts.extend(live.or(state.index.model_name.as_deref()).map(|model| (2, harmless(model))));
    // The clock is for whoever waits.
    if run.end.is_none() {
        parts.push((0, clock(state.now)));
    }
    parts
}

/// How far it is, and what it has used.
fn progress(state: &ViewState) -> Vec<(u8, String)> {
    let (run, now) = (state.index.run(), state.state());
    let mut parts = Vec::new();
    if let Some(last) = run.iterations.last() {
        parts.push((0, format!("iteration {}/{}", last.iteration, run.max_iterations)));
        parts.extend(last.hat.as_deref().map(|hat| (5, harmless(hat))));
    }
    parts.extend(time(state));
    let usage = state.live.as_ref().and_then(|live| live.iteration.usage.as_ref());
    let tokens = [run.tokens(), usage.and_then(Usage::total_or_sum)].into_iter().flatten().reduce(u64::saturating_add);
    parts.extend(tokens.map(|tokens| (4, figures::tokens(tokens))));
    let cost = [run.cost(), usage.and_then(|usage| usage.cost_usd).map(Cost::reported)];
    let cost = cost.into_iter().flatten().reduce(Cost::and);
    parts.extend(cost.map(|cost| (1, figures::cost_of(cost, run.max_cost_usd))));
    let silent = state.newest_seen.elapsed();
    if let Some(call) = state.live.as_ref().and_then(|live| live.iteration.calls.running().last()) {
        let time = call.runs_for_ms(state.now).map_or_else(String::new, |time| format!(" {}", figures::duration(time)));
        let tool = harmless(&format!("{} {}", call.name, call.argument));
        parts.push((3, format!("{}{time}", cut(tool.trim_end(), LONGEST_TOOL))));
    } else if now == RunState::Running && silent >= SILENT {
        parts.push((3, format!("idle {}", figures::duration(silent.as_secs() * 1000))));
    }
    parts
}

/// The time that has passed, and what is left of it.
fn time(state: &ViewState) -> Vec<(u8, String)> {
    let run = state.index.run();
    let passed = match (&run.end, run.newest) {
        (Some(end), _) => return vec![(2, figures::duration(end.duration_ms))],
        (None, None) => return Vec::new(),
        (None, Some(newest)) => run.elapsed_ms(if state.running { state.now } else { newest }) / 1000 * 1000,
    };
    let left = run.max_seconds.filter(|_| state.running).map(|most| most.saturating_mul(1000).saturating_sub(passed));
    let mut parts = vec![(2, figures::duration(passed))];
    parts.extend(left.map(|left| (6, format!("{} left", figures::duration(left)))));
    parts
}
