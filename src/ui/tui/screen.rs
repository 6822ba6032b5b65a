//! The layout: what is where, from 40 columns to 300.

use std::time::Duration;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Modifier, Style};

use super::keys::KEYS;
use super::panes::{Pane, plan, tools};
use super::rows::Row;
use super::scroll::{Pages, Place, Scroll};
use super::search::Query;
use super::state::{Side, ViewState};
use super::theme::Theme;
use crate::journal::{Activity, Outcome};
use crate::ui::figures;
use crate::ui::model::RunState;
use crate::ui::style::Ink;
use crate::ui::text::{cut, harmless, width};
use crate::ui::words;

/// The first and the last line, and what keys go to.
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// From this width on, list and pane stand side by side.
const SIDE_BY_SIDE: u16 = 72;

/// From this width on, plan and tools are beside the transcript.
const WITH_PLAN: u16 = 130;

/// From this silence on, it is told how long it lasts.
const SILENT: Duration = Duration::from_secs(5);

/// Draws everything; where the cursor is, when a line is being written.
pub(crate) fn draw(state: &mut ViewState, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    if area.height < 3 || area.width < 10 {
        return None;
    }
    let [head, body, foot] = rows_of(area);
    header(state, head, buffer);
    let (list, pane) = sides(body, state.front);
    if list.width > 0 && pane.width > 0 {
        let style = state.theme.style(Ink::Dim);
        (body.top()..body.bottom()).for_each(|y| {
            buffer.set_string(list.right(), y, state.theme.glyphs.screen.column, style);
        });
    }
    state.areas.list = list;
    if list.width > 0 {
        draw_list(state, list, buffer);
    }
    state.areas.tabs.clear();
    (state.areas.pane, state.areas.beside) = (Rect::ZERO, 0);
    if pane.width > 0 {
        let [tabs, content] = [Rect { height: 1, ..pane }, below_tabs(pane)];
        state.areas.pane = content;
        let has_side = state.pane == Pane::Transcript && area.width >= WITH_PLAN;
        let beside = if has_side { (area.width / 5).clamp(30, 50) } else { 0 };
        state.areas.beside = beside;
        draw_tabs(state, tabs, buffer);
        if state.help {
            let columns = content.width - 1;
            let mut rows = state.help_rows(usize::from(columns));
            state.help_scroll.height = usize::from(content.height);
            let places = state.help_scroll.window(&mut rows);
            for (line, place) in (0..).zip(places) {
                put(buffer, content, line, &rows.row(place.page, place.row), &RowStyle::plain(&state.theme));
            }
            let edge = Rect { x: content.x + columns, width: 1, ..content };
            thumb(&state.help_scroll, &mut rows, edge, &state.theme, buffer);
        } else {
            state.areas.pane.width = content.width - beside;
            let side = Rect { x: content.x + content.width - beside, width: beside, ..content };
            let content = state.areas.pane;
            draw_pane(state, content, buffer);
            if beside > 0 {
                draw_beside(state, side, buffer);
            }
        }
    } else if state.help {
        state.front = Side::Pane;
        state.changed = true;
    }
    footer(state, foot, buffer)
}

fn rows_of(area: Rect) -> [Rect; 3] {
    [
        Rect { height: 1, ..area },
        Rect { y: area.y + 1, height: area.height - 2, ..area },
        Rect { y: area.y + area.height - 1, height: 1, ..area },
    ]
}

/// Where list and pane stand: side by side where there is room, else the one that takes the keys.
fn sides(body: Rect, front: Side) -> (Rect, Rect) {
    if body.width < SIDE_BY_SIDE {
        return if front == Side::List { (body, Rect::ZERO) } else { (Rect::ZERO, body) };
    }
    let columns = (body.width / 5).clamp(26, 38);
    let pane = Rect { x: body.x + columns + 1, width: body.width - columns - 1, ..body };
    (Rect { width: columns, ..body }, pane)
}

fn below_tabs(pane: Rect) -> Rect {
    Rect { y: pane.y + 1, height: pane.height.saturating_sub(1), ..pane }
}

/// The columns and rows of the pane on a terminal of this many columns and rows.
pub fn pane_size(columns: u16, rows: u16) -> (u16, u16) {
    let [_, body, _] = rows_of(Rect::new(0, 0, columns.max(10), rows.max(4)));
    let (_, pane) = sides(body, Side::Pane);
    let content = below_tabs(pane);
    (content.width, content.height)
}

struct RowStyle<'a> {
    theme: &'a Theme,
    query: Option<&'a Query>,
    pointed: Pointed,
}

/// Whether a row is pointed at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pointed {
    /// It is, and keys go there.
    Here,
    /// It is, but keys go elsewhere.
    Elsewhere,
    Not,
}

impl<'a> RowStyle<'a> {
    const fn plain(theme: &'a Theme) -> Self {
        Self { theme, query: None, pointed: Pointed::Not }
    }
}

fn put(buffer: &mut Buffer, area: Rect, line: u16, row: &Row, look: &RowStyle) {
    if line >= area.height {
        return;
    }
    let (mut x, y) = (area.x, area.y + line);
    let mut room = usize::from(area.width);
    for (ink, text) in &row.spans {
        let style = look.theme.style(*ink);
        let style = match look.pointed {
            // Without its colour: reversed, that would be a patch of it.
            Pointed::Here => Style { fg: None, ..style }.patch(REVERSED),
            Pointed::Elsewhere => style.add_modifier(Modifier::BOLD),
            Pointed::Not => style,
        };
        let mut start = 0;
        let mut piece = |text: &str, style: Style| {
            let (next, _) = buffer.set_stringn(x, y, text, room, style);
            room = room.saturating_sub(usize::from(next - x));
            x = next;
        };
        while let Some((from, to)) = look.query.and_then(|query| query.find(text, start)) {
            piece(&text[start..from], style);
            piece(&text[from..to], look.theme.found(style));
            start = to;
        }
        piece(&text[start..], style);
    }
    if look.pointed == Pointed::Here {
        let rest = Rect { x, y, width: u16::try_from(room).unwrap_or(0), height: 1 };
        buffer.set_style(rest, REVERSED);
    }
}

fn draw_list(state: &mut ViewState, area: Rect, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    let mut scroll = state.list_scroll;
    if scroll.height != height {
        scroll.height = height;
        scroll.show(&mut state.list(0));
    }
    let mut list = state.list(usize::from(area.width));
    for (line, place) in (0..).zip(scroll.window(&mut list)) {
        let pointed = match (place.row == state.selected, state.front) {
            (true, Side::List) => Pointed::Here,
            (true, Side::Pane) => Pointed::Elsewhere,
            (false, _) => Pointed::Not,
        };
        let row = list.row(place.page, place.row);
        put(buffer, area, line, &row, &RowStyle { pointed, ..RowStyle::plain(&state.theme) });
    }
    state.list_scroll = scroll;
}

/// The names of the panes: of the one in front, and of as many others as there is room for. All have their number.
fn draw_tabs(state: &mut ViewState, area: Rect, buffer: &mut Buffer) {
    let names = Pane::ALL.map(|pane| format!("{} {}", pane.number() + 1, pane.name()));
    let all: usize = names.iter().map(|name| name.len() + 2).sum();
    let (edge, mut room) = if all <= usize::from(area.width) { (" ", all) } else { ("", usize::from(area.width)) };
    let front = Pane::ALL.into_iter().position(|pane| pane == state.pane && !state.help);
    // A number and a blank before it; the one in front also has a blank behind it.
    room = room.saturating_sub(2 * names.len() + front.map_or(0, |front| names[front].len()));
    let mut x = area.x;
    for (pane, name) in Pane::ALL.into_iter().zip(names) {
        let is_shown = front == Some(pane.number());
        let more = name.len() - 1;
        let fits = edge == " " || room >= more;
        if !is_shown && fits && edge.is_empty() {
            room -= more;
        }
        let name = if fits || is_shown { name } else { (pane.number() + 1).to_string() };
        let style = state.theme.style(if is_shown { Ink::Strong } else { Ink::Dim });
        let (style, edge) = if is_shown { (style.patch(REVERSED), " ") } else { (style, edge) };
        let left = usize::from(area.right().saturating_sub(x));
        let (next, _) = buffer.set_stringn(x, area.y, format!(" {name}{edge}"), left, style);
        state.areas.tabs.push((Rect { x, y: area.y, width: next - x, height: 1 }, pane));
        x = next;
    }
}

fn draw_pane(state: &mut ViewState, area: Rect, buffer: &mut Buffer) {
    // The last column shows where the window is.
    let columns = area.width.saturating_sub(1);
    let number = state.pane.number();
    let height = usize::from(area.height);
    state.scrolls[number].height = height;
    let theme = state.theme;
    if let Some(screen) = state.screen_in_front() {
        screen.draw(area, buffer, &theme);
        return;
    }
    match state.pane {
        Pane::Transcript => {
            let mut pages = state.transcript.of(&state.index, &state.theme, state.selected);
            pages.widen(usize::from(columns), &mut state.scrolls[0]);
        }
        Pane::Raw => state.raw.widen(usize::from(columns)),
        _ => {}
    }
    if state.follow {
        state.show_newest();
    }
    let query = state.query.clone();
    let front = state.front == Side::Pane;
    state.scroll_pane(|scroll, pages| {
        for (line, place) in (0..).zip(scroll.in_sight(pages)) {
            let row = pages.row(place.page, place.row);
            let pointed = if place == scroll.cursor && front { Pointed::Here } else { Pointed::Not };
            let query = (!query.is_empty()).then_some(&query);
            put(buffer, Rect { width: columns, ..area }, line, &row, &RowStyle { theme: &theme, query, pointed });
        }
        thumb(scroll, pages, Rect { x: area.x + columns, width: 1, ..area }, &theme, buffer);
    });
    state.changed = false;
}

/// Shows on the edge where the window is in the whole.
fn thumb(scroll: &Scroll, pages: &mut dyn Pages, edge: Rect, theme: &Theme, buffer: &mut Buffer) {
    let range = pages.pages();
    let Place { page, row } = scroll.top;
    let count = pages.count(page).max(1);
    if range.len() <= 1 && count <= scroll.height {
        return;
    }
    let track = usize::from(edge.height).saturating_sub(1);
    let before = page.saturating_sub(range.start);
    // Rows of pages that are not in sight are not counted: each page is as long as another.
    let rows = if range.len() == 1 { count.saturating_sub(scroll.height).max(1) } else { count };
    let place = (before * rows + row) * track / (range.len().max(1) * rows);
    let place = if scroll.cursor >= scroll.top && is_last(scroll, pages) { track } else { place.min(track) };
    let y = edge.y + u16::try_from(place).unwrap_or(0);
    buffer.set_string(edge.x, y, theme.glyphs.screen.thumb, theme.style(Ink::Dim));
}

fn is_last(scroll: &Scroll, pages: &mut dyn Pages) -> bool {
    let mut probe = *scroll;
    probe.roll(pages, 1);
    probe.top == scroll.top
}

/// Plan and tools beside the transcript.
fn draw_beside(state: &mut ViewState, area: Rect, buffer: &mut Buffer) {
    let style = state.theme.style(Ink::Dim);
    (area.top()..area.bottom()).for_each(|y| {
        buffer.set_string(area.x, y, state.theme.glyphs.screen.column, style);
    });
    let area = Rect { x: area.x + 2, width: area.width - 2, ..area };
    let columns = usize::from(area.width);
    let mut rows = vec![Row::new(Ink::Agent, "Plan")];
    let mut planned = plan::rows(&state.detail, &state.theme, columns);
    planned.truncate(usize::from(area.height / 2));
    rows.append(&mut planned);
    rows.push(Row::default());
    rows.push(Row::new(Ink::Agent, "Tools"));
    let percent = state.detail.percent(&state.index);
    let mut called = tools::rows(&state.detail, &state.theme, columns, percent);
    // The newest are worth most.
    let room = usize::from(area.height).saturating_sub(rows.len() + 1);
    let hidden = called.len().saturating_sub(room + tools::HEADING);
    called.drain(tools::HEADING.min(called.len())..(tools::HEADING + hidden).min(called.len()));
    rows.append(&mut called);
    for (line, row) in (0..area.height).zip(&rows) {
        put(buffer, area, line, row, &RowStyle::plain(&state.theme));
    }
}

/// The first line: what matters most stays longest when there is little room.
fn header(state: &ViewState, area: Rect, buffer: &mut Buffer) {
    let (run, now) = (state.index.run(), state.state());
    let mut parts: Vec<(u8, String)> = vec![(6, format!("ralph {}", harmless(&state.directory.id)))];
    if !run.agent.is_empty() {
        parts.push((5, harmless(run.newest_agent())));
    }
    parts.push((0, words::state_at(now, state.now)));
    if let Some(last) = run.iterations.last() {
        parts.push((1, format!("{}/{}", last.iteration, run.max_iterations)));
        parts.extend(last.hat.as_deref().map(|hat| (4, harmless(hat))));
    }
    parts.extend(elapsed(state).map(|time| (2, time)));
    let silent = state.newest_seen.elapsed();
    if now == RunState::Running && silent >= SILENT {
        parts.push((3, format!("idle {}", figures::duration(silent.as_secs() * 1000))));
    }
    parts.extend(run.tokens().map(|tokens| (4, figures::tokens(tokens))));
    parts.extend(run.cost().map(|cost| (3, figures::cost_of(cost, run.max_cost_usd))));
    let dot = format!(" {} ", state.theme.glyphs.dot);
    let line = loop {
        let line = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(&dot);
        let least = parts.iter().map(|(priority, _)| *priority).max().unwrap_or(0);
        if width(&line) + 2 <= usize::from(area.width) || least == 0 {
            break line;
        }
        parts.retain(|(priority, _)| *priority != least);
    };
    buffer.set_style(area, REVERSED);
    let line = cut(&line, usize::from(area.width).saturating_sub(2));
    buffer.set_stringn(area.x + 1, area.y, &line, usize::from(area.width) - 1, REVERSED);
}

fn elapsed(state: &ViewState) -> Option<String> {
    let run = state.index.run();
    let passed = match (&run.end, run.newest) {
        (Some(end), _) => return Some(figures::duration(end.duration_ms)),
        (None, None) => return None,
        (None, Some(newest)) => run.elapsed_ms(if state.running { state.now } else { newest }),
    };
    Some(figures::duration(passed / 1000 * 1000))
}

/// The last line: a question, a message, or the keys.
fn footer(state: &ViewState, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let columns = usize::from(area.width);
    let style = REVERSED;
    buffer.set_style(area, style);
    if let Some(input) = &state.input {
        let words = input.question.words();
        if input.question.is_choice() {
            buffer.set_stringn(area.x + 1, area.y, words, columns - 1, style);
            return None;
        }
        let (text, at) = input.text();
        // The end that is being written stays in sight.
        let before = harmless(&text[..at]);
        let room = columns.saturating_sub(width(words) + 2);
        let hidden = width(&before).saturating_sub(room);
        let shown: String = skip_columns(&before, hidden) + &harmless(&text[at..]);
        let (x, _) = buffer.set_stringn(area.x + 1, area.y, words, columns - 1, style);
        buffer.set_stringn(x, area.y, &shown, columns.saturating_sub(width(words) + 1), style);
        let column = u16::try_from(width(&before) - hidden).unwrap_or(0);
        return Some(Position { x: (x + column).min(area.right() - 1), y: area.y });
    }
    let words = if let Some((_, message)) = &state.message {
        harmless(message)
    } else if state.help {
        "j k scroll, any other key closes this".to_owned()
    } else if state.search.is_some() {
        format!("searching, {} %  Esc ends it", state.searched)
    } else if state.index.percent() < 99 && state.index.known() > 0 {
        format!("reading the journal, {} %", state.index.percent())
    } else if let (Activity::Waiting { reason, .. }, true) = (&state.index.run().activity, state.running) {
        format!("waiting: {}  r retry now", harmless(reason))
    } else if let Some(question) = question(state) {
        format!("question: {}  a answer  q leave", harmless(&question.replace('\n', " ")))
    } else {
        keys(state, columns)
    };
    buffer.set_stringn(area.x + 1, area.y, cut(&words, columns.saturating_sub(2)), columns - 1, style);
    None
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

/// As many keys as there is room for.
fn keys(state: &ViewState, columns: usize) -> String {
    const FIRST: [&str; 4] = ["help", "leave", "list", "search"];
    let all = || KEYS.iter().flat_map(|(_, keys)| *keys).filter(|key| !key.short.is_empty());
    let first = FIRST.iter().filter_map(|name| all().find(|key| key.short == *name));
    let is_over = state.index.run().end.is_some();
    let mut line = match (is_over, state.follow) {
        (true, _) => "the run is over: q leaves".to_owned(),
        (false, true) => "following".to_owned(),
        (false, false) => String::new(),
    };
    for key in first.chain(all().filter(|key| !FIRST.contains(&key.short))) {
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
        let more = format!("{}{name} {}", if line.is_empty() { "" } else { "  " }, key.short);
        if width(&line) + width(&more) + 2 > columns {
            break;
        }
        line.push_str(&more);
    }
    line
}
