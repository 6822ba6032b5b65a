//! All runs of this machine, those that are running first: from here any of them can be opened.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::Signals;
use super::rows::Row;
use super::screen::{Pointed, REVERSED, RowStyle, put};
use super::scroll::{Listing, Pages as _, Scroll};
use super::theme::Theme;
use crate::terminal::{FullScreen, Keyboard};
use crate::ui::figures;
use crate::ui::history::{RunDetails, clock, local};
use crate::ui::style::{Glyphs, Ink, Palette};
use crate::ui::text::{cut, harmless, width};
use crate::ui::words;

/// How often the runs are looked at again.
const LOOK: Duration = Duration::from_secs(2);
/// How long a key is waited for.
const PATIENCE: Duration = Duration::from_millis(200);

/// What someone did with the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    /// The id of a run.
    Run(String),
    Left,
    /// A Unix signal ended it.
    Signal(i32),
}

/// Shows the runs until someone opens one, or leaves.
pub(crate) fn pick(
    look: &mut dyn FnMut() -> Vec<RunDetails>,
    palette: Palette,
    glyphs: Glyphs,
    ending: Vec<i32>,
) -> io::Result<Picked> {
    let caught = Signals::catch(ending)?;
    let mut list = RunList::new(look(), Theme::new(palette, glyphs));
    let mut looked = Instant::now();
    let mut taken = FullScreen::take()?;
    let mut keyboard = Keyboard::new();
    loop {
        if looked.elapsed() >= LOOK {
            list.renew(look());
            looked = Instant::now();
        }
        taken.draw(|frame| list.draw(frame.area(), Timestamp::now(), frame.buffer_mut()))?;
        let event = keyboard.next(PATIENCE);
        if let Some(number) = caught.take() {
            return Ok(Picked::Signal(number));
        }
        if let Some(picked) = event?.and_then(|event| list.event(&event)) {
            return Ok(picked);
        }
    }
}

pub(crate) struct RunList {
    runs: Vec<RunDetails>,
    theme: Theme,
    scroll: Scroll,
}

impl RunList {
    pub(crate) fn new(runs: Vec<RunDetails>, theme: Theme) -> Self {
        let mut list = Self { runs: Vec::new(), theme, scroll: Scroll::default() };
        list.renew(runs);
        list
    }

    /// The runs as they are now; the one that is pointed at stays.
    fn renew(&mut self, mut runs: Vec<RunDetails>) {
        let pointed = self.runs.get(self.scroll.cursor.row).map(|run| run.summary.run.clone());
        runs.sort_by(|one, other| {
            let is_alive = |run: &RunDetails| run.state.is_alive();
            is_alive(other).cmp(&is_alive(one)).then_with(|| other.summary.run.cmp(&one.summary.run))
        });
        let row = pointed.and_then(|id| runs.iter().position(|run| run.summary.run == id));
        self.scroll.cursor.row = row.unwrap_or(self.scroll.cursor.row);
        self.runs = runs;
    }

    /// Takes what came from the terminal.
    fn event(&mut self, event: &Event) -> Option<Picked> {
        let Event::Key(KeyEvent { code, modifiers, .. }) = event else { return None };
        let control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            KeyCode::Char('c') if control => Some(Picked::Left),
            KeyCode::Char('q') | KeyCode::Esc => Some(Picked::Left),
            KeyCode::Enter => self.runs.get(self.scroll.cursor.row).map(|run| Picked::Run(run.summary.run.clone())),
            code => {
                move_cursor(&mut self.scroll, *code, self.runs.len());
                None
            }
        }
    }

    pub(crate) fn draw(&mut self, area: Rect, now: Timestamp, buffer: &mut Buffer) {
        if area.height < 4 || area.width < 20 {
            return;
        }
        let columns = usize::from(area.width);
        let running = self.runs.iter().filter(|run| run.state.is_alive()).count();
        let counts = format!("{running} running, {} in all", self.runs.len());
        let strong = self.theme.style(Ink::Strong);
        buffer.set_stringn(area.x + 1, area.y, format!("runs on this machine  {counts}"), columns - 1, strong);
        let time = clock(now);
        let x = area.right().saturating_sub(u16::try_from(time.len()).unwrap_or(0) + 1);
        buffer.set_stringn(x, area.y, &time, time.len(), self.theme.style(Ink::None));
        let body = Rect { y: area.y + 2, height: area.height - 3, ..area };
        let head = Self::head(columns);
        put(buffer, Rect { y: area.y + 1, height: 1, ..area }, 0, &head, &RowStyle::plain(&self.theme));
        let mut rows = Listing(self.runs.iter().map(|run| Self::row(run, now, columns)).collect());
        self.scroll.height = usize::from(body.height);
        for (line, place) in (0..).zip(self.scroll.in_sight(&mut rows)) {
            let pointed = if place == self.scroll.cursor { Pointed::Here } else { Pointed::Not };
            let mut style = RowStyle::plain(&self.theme);
            style.pointed = pointed;
            put(buffer, body, line, &rows.row(place.page, place.row), &style);
        }
        let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
        buffer.set_style(foot, REVERSED);
        buffer.set_stringn(foot.x + 1, foot.y, "Enter open  j k move  q leave", columns - 1, REVERSED);
    }

    fn head(columns: usize) -> Row {
        let head = Self::cells(["state", "started", "project", "iter", "time", "cost"].map(str::to_owned), columns);
        Row::new(Ink::Dim, &format!("{head}goal"))
    }

    fn row(run: &RunDetails, now: Timestamp, columns: usize) -> Row {
        let summary = &run.summary;
        let (word, ink) = words::state_in_full(run);
        let word = if run.state.is_alive() { words::state_at(run.state, now) } else { word };
        let project = std::path::Path::new(&summary.workspace).file_name().unwrap_or_default();
        let cells = Self::cells(
            [
                word,
                local(summary.started).get(5..).unwrap_or_default().to_owned(),
                harmless(&project.to_string_lossy()),
                summary.count().to_string(),
                figures::duration(run.duration_ms()),
                summary.cost().map_or_else(String::new, figures::short_cost),
            ],
            columns,
        );
        let (state, rest) = cells.split_at(cells.char_indices().nth(STATE + 1).map_or(cells.len(), |(at, _)| at));
        let goal = cut(&harmless(&run.words), columns.saturating_sub(width(&cells) + 1));
        Row::new(ink, state).and(Ink::None, rest).and(Ink::Dim, &goal)
    }

    /// The columns before the goal, as many as there is room for.
    fn cells(cells: [String; 6], columns: usize) -> String {
        let [state, started, project, iterations, time, cost] = cells;
        let name = if columns >= 120 { 24 } else { 14 };
        let mut line = format!(" {}", padded(&state, STATE));
        line += &padded(&started, 12);
        line += &padded(&project, name);
        let _ = write!(line, "{iterations:>5} {time:>7} ");
        if columns >= 100 {
            let _ = write!(line, "{cost:>7} ");
        }
        line + " "
    }
}

/// Moves the cursor of a list of so many rows.
pub(super) fn move_cursor(scroll: &mut Scroll, code: KeyCode, count: usize) {
    let screen = isize::try_from(scroll.height.max(2) - 1).unwrap_or(1);
    let rows = match code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp | KeyCode::Char('b') => -screen,
        KeyCode::PageDown | KeyCode::Char(' ') => screen,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN / 2,
        KeyCode::End | KeyCode::Char('G') => isize::MAX / 2,
        _ => return,
    };
    scroll.cursor.row = scroll.cursor.row.saturating_add_signed(rows).min(count.saturating_sub(1));
}

/// The columns of the state.
const STATE: usize = 24;

/// A cell with a blank behind it.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let text = cut(text, columns - 1);
    let padding = " ".repeat(columns - width(&text));
    text + &padding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Outcome, Summary};
    use crate::ui::RunState;

    fn run(id: &str, state: RunState) -> RunDetails {
        let mut summary = Summary::default();
        (summary.run, summary.workspace) = (id.to_owned(), "/home/me/shop".to_owned());
        RunDetails { summary, state, words: format!("goal of {id}"), place: None }
    }

    fn text(list: &mut RunList) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 8));
        list.draw(buffer.area, Timestamp::UNIX_EPOCH, &mut buffer);
        let row = |y| (0..80).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>().trim_end().to_owned();
        (0..8).map(row).collect()
    }

    #[test]
    fn running_runs_are_first_and_any_can_be_opened() {
        let runs = || {
            vec![
                run("1", RunState::Running),
                run("2", RunState::Ended(Outcome::Complete)),
                run("3", RunState::Ended(Outcome::Failed)),
            ]
        };
        let mut list = RunList::new(runs(), Theme::new(Palette::Plain, Glyphs::ASCII));
        let rows = text(&mut list);
        assert!(rows[0].contains("1 running, 3 in all"), "{rows:?}");
        assert!(rows[2].contains("running") && rows[2].ends_with("goal of 1"), "{rows:?}");
        assert!(rows[3].contains("failed") && rows[3].contains("shop") && rows[3].ends_with("goal of 3"), "{rows:?}");
        let key = |code: KeyCode| Event::Key(KeyEvent::from(code));
        assert_eq!(list.event(&key(KeyCode::Char('j'))), None);
        // Another run begins, and the cursor stays where it was.
        let mut more = runs();
        more.push(run("4", RunState::Running));
        list.renew(more);
        assert_eq!(list.event(&key(KeyCode::Enter)), Some(Picked::Run("3".into())));
        assert_eq!(list.event(&key(KeyCode::Char('q'))), Some(Picked::Left));
    }
}
