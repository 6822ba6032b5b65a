//! The last line: a question, a message, or the keys that are of use now.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};

use super::keys::KEYS;
use super::screen::REVERSED;
use super::state::ViewState;
use crate::journal::{Activity, Outcome};
use crate::ui::model::RunState;
use crate::ui::text::{cut, harmless, width};
use crate::ui::words;

pub(crate) fn draw(state: &ViewState, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let columns = usize::from(area.width);
    buffer.set_style(area, REVERSED);
    if let Some(input) = &state.input {
        let words = input.question.words();
        if input.question.is_choice() {
            buffer.set_stringn(area.x + 1, area.y, words, columns - 1, REVERSED);
            return None;
        }
        let (text, at) = input.text();
        // The end that is being written stays in sight.
        let before = harmless(&text[..at]);
        let room = columns.saturating_sub(width(words) + 2);
        let hidden = width(&before).saturating_sub(room);
        let shown: String = skip_columns(&before, hidden) + &harmless(&text[at..]);
        let (x, _) = buffer.set_stringn(area.x + 1, area.y, words, columns - 1, REVERSED);
        buffer.set_stringn(x, area.y, &shown, columns.saturating_sub(width(words) + 1), REVERSED);
        let column = u16::try_from(width(&before) - hidden).unwrap_or(0);
        return Some(Position { x: (x + column).min(area.right() - 1), y: area.y });
    }
    let words = words(state, columns.saturating_sub(2));
    buffer.set_stringn(area.x + 1, area.y, cut(&words, columns.saturating_sub(2)), columns - 1, REVERSED);
    None
}

fn words(state: &ViewState, columns: usize) -> String {
    if let Some((_, message)) = &state.message {
        return harmless(message);
    }
    if state.help {
        return "j k scroll, any other key closes this".to_owned();
    }
    if state.search.is_some() {
        return format!("searching, {} %  Esc ends it", state.searched);
    }
    if state.index.percent() < 99 && state.index.known() > 0 {
        return format!("reading the journal, {} %", state.index.percent());
    }
    if let Some(tally) = &state.tally {
        let query = harmless(state.query.words());
        return format!("`{query}` {}  n next  N previous  Esc ends it", tally.words());
    }
    if let (Activity::Waiting { until, .. }, true) = (&state.index.run().activity, state.running) {
        return format!("{}  r retry now  s stop  i hint  ? help  q leave", words::waiting_until(*until));
    }
    if let Some(question) = question(state) {
        let keys = "a answer  q leave";
        let question = format!("question: {}", harmless(&question.replace('\n', " ")));
        return format!("{}  {keys}", cut(&question, columns.saturating_sub(width(keys) + 2)));
    }
    keys(state, columns)
}

fn question(state: &ViewState) -> Option<&str> {
    let end = state.index.run().end.as_ref().filter(|end| end.outcome == Outcome::Human)?;
    Some(end.question.as_deref().unwrap_or(&end.reason))
}

fn skip_columns(text: &str, columns: usize) -> String {
    let mut left = columns;
    let mut rest = text.chars();
    while left > 0 {
        let Some(letter) = rest.next() else { break };
        left = left.saturating_sub(width(letter.encode_utf8(&mut [0; 4])).max(1));
    }
    rest.collect()
}

/// As many keys as there is room for: those that steer the run stay longest.
fn keys(state: &ViewState, columns: usize) -> String {
    const FIRST: [&str; 7] = ["pause", "stop", "hint", "help", "leave", "list", "search"];
    let all = || KEYS.iter().flat_map(|(_, keys)| *keys).filter(|key| !key.short.is_empty());
    let first = FIRST.iter().filter_map(|name| all().find(|key| key.short == *name));
    let is_over = state.index.run().end.is_some();
    let mut line = if is_over { "the run is over: q leaves".to_owned() } else { String::new() };
    let rest = all().filter(|key| !FIRST.contains(&key.short));
    for key in first.chain(rest) {
        let is_for_runs = ["pause", "stop", "hint"].contains(&key.short);
        if is_for_runs && !state.running || is_over && ["leave", "follow"].contains(&key.short) {
            continue;
        }
        // The first key of each is enough here.
        let name = match key.keys {
            "1…9 ← →" => "1-9",
            "/ n N" => "/",
            keys => keys,
        };
        let does = match key.short {
            "pause" if matches!(state.state(), RunState::Paused | RunState::Pausing) => "continue",
            "follow" if state.follow => "stay here",
            short => short,
        };
        let more = format!("{}{name} {does}", if line.is_empty() { "" } else { "  " });
        if width(&line) + width(&more) > columns {
            break;
        }
        line.push_str(&more);
    }
    line
}
