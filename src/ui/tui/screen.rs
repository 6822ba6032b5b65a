//! The layout: what is where, from 40 columns to 300.

use std::ops::Range;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Modifier, Style};

use super::panes::{Pane, plan, tools};
use super::rows::Row;
use super::scroll::{Pages, Place, Scroll};
use super::search::Query;
use super::state::{Side, ViewState};
use super::theme::Theme;
use super::{footer, header};
use crate::ui::style::Ink;

/// The first and the last line, and what keys go to.
pub(super) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// From this width on, list and pane stand side by side.
const SIDE_BY_SIDE: u16 = 72;

/// From this width on, the list has more than it needs at least.
const WIDE: u16 = 120;

/// From this width on, plan and tools are beside the transcript.
const WITH_PLAN: u16 = 130;

/// Draws everything; where the cursor is, when a line is being written.
pub(crate) fn draw(state: &mut ViewState, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    if area.height < 3 || area.width < 10 {
        return None;
    }
    let [head, body, foot] = rows_of(area);
    header::draw(state, head, buffer);
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
    footer::draw(state, foot, buffer)
}

fn rows_of(area: Rect) -> [Rect; 3] {
    let head = header::height(area.height);
    [
        Rect { height: head, ..area },
        Rect { y: area.y + head, height: area.height - head - 1, ..area },
        Rect { y: area.y + area.height - 1, height: 1, ..area },
    ]
}

/// Where list and pane stand: side by side where there is room, else the one that takes the keys.
fn sides(body: Rect, front: Side) -> (Rect, Rect) {
    if body.width < SIDE_BY_SIDE {
        return if front == Side::List { (body, Rect::ZERO) } else { (Rect::ZERO, body) };
    }
    let columns = if body.width >= WIDE { (body.width * 2 / 5).min(76) } else { 30 };
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

pub(super) struct RowStyle<'a> {
    theme: &'a Theme,
    query: Option<&'a Query>,
    pub pointed: Pointed,
}

/// Whether a row is pointed at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pointed {
    /// It is, and keys go there.
    Here,
    /// It is, but keys go elsewhere.
    Elsewhere,
    Not,
}

impl<'a> RowStyle<'a> {
    pub(super) const fn plain(theme: &'a Theme) -> Self {
        Self { theme, query: None, pointed: Pointed::Not }
    }
}

pub(super) fn put(buffer: &mut Buffer, area: Rect, line: u16, row: &Row, look: &RowStyle) {
    if line >= area.height {
        return;
    }
    let (mut x, y) = (area.x, area.y + line);
    let mut room = usize::from(area.width);
    for (ink, text) in &row.spans {
        let style = look.theme.style(*ink);
        let style = match look.pointed {
            // Without its colour: reversed, that would be a patch of it.
            // And not dim: some of the row would be grey on grey.
            Pointed::Here => REVERSED,
            Pointed::Elsewhere => style.remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD),
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

/// The names of the panes: all of them, or, where there is little room, the one in front and those around it in full.
fn draw_tabs(state: &mut ViewState, area: Rect, buffer: &mut Buffer) {
    let names = Pane::ALL.map(|pane| format!(" {} {} ", pane.number() + 1, pane.name()));
    let range = tabs_in_sight(&names, state.pane.number(), usize::from(area.width));
    let dim = state.theme.style(Ink::Dim);
    let mut x = area.x;
    if range.start > 0 {
        x = buffer.set_stringn(x, area.y, state.theme.glyphs.screen.before, 1, dim).0;
    }
    for (pane, name) in Pane::ALL.into_iter().zip(&names).take(range.end).skip(range.start) {
        let is_shown = pane == state.pane && !state.help;
        let style = if is_shown { state.theme.style(Ink::Strong).patch(REVERSED) } else { dim };
        let left = usize::from(area.right().saturating_sub(x));
        let (next, _) = buffer.set_stringn(x, area.y, name, left, style);
        state.areas.tabs.push((Rect { x, y: area.y, width: next - x, height: 1 }, pane));
        x = next;
    }
    if range.end < names.len() && x < area.right() {
        buffer.set_stringn(x, area.y, state.theme.glyphs.screen.behind, 1, dim);
    }
}

/// As many whole names as fit, the one in front among them; two columns are for the signs that there are more.
fn tabs_in_sight(names: &[String], front: usize, columns: usize) -> Range<usize> {
    let all: usize = names.iter().map(String::len).sum();
    if all <= columns {
        return 0..names.len();
    }
    let mut range = front..front + 1;
    let mut room = columns.saturating_sub(2 + names[front].len());
    loop {
        let after = names.get(range.end).filter(|name| name.len() <= room);
        if let Some(name) = after {
            (range.end, room) = (range.end + 1, room - name.len());
        }
        let before = range.start.checked_sub(1).filter(|at| names[*at].len() <= room);
        if let Some(at) = before {
            (range.start, room) = (at, room - names[at].len());
        }
        if after.is_none() && before.is_none() {
            return range;
        }
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
    let mut planned = plan::rows(&state.plan, &state.theme, columns);
    planned.truncate(usize::from(area.height / 2));
    rows.append(&mut planned);
    rows.push(Row::default());
    rows.push(Row::new(Ink::Agent, "Tools"));
    let percent = state.detail.percent(&state.index);
    let mut called = tools::rows(&state.detail, &state.theme, columns, percent, state.tool_clock());
    // The newest are worth most.
    let room = usize::from(area.height).saturating_sub(rows.len() + 1);
    let hidden = called.len().saturating_sub(room + tools::HEADING);
    called.drain(tools::HEADING.min(called.len())..(tools::HEADING + hidden).min(called.len()));
    rows.append(&mut called);
    for (line, row) in (0..area.height).zip(&rows) {
        put(buffer, area, line, row, &RowStyle::plain(&state.theme));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_are_whole_words_and_the_one_in_front_is_among_them() {
        let names = Pane::ALL.map(|pane| format!(" {} {} ", pane.number() + 1, pane.name()));
        assert_eq!(tabs_in_sight(&names, 0, 200), 0..9);
        for front in 0..names.len() {
            for columns in 16..80 {
                let range = tabs_in_sight(&names, front, columns);
                let used: usize = names[range.clone()].iter().map(String::len).sum();
                assert!(range.contains(&front) && used <= columns, "{front} {columns}: {range:?}");
            }
        }
    }
}
