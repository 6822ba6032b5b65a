//! A batch on the full screen: its tasks, those that are worked on first. From here any run can be opened, and the batch be steered.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::Signals;
use super::rows::Row;
use super::runs::{move_cursor, padded};
use super::screen::{Pointed, REVERSED, RowStyle, put};
use super::scroll::{Listing, Pages as _, Scroll};
use super::theme::Theme;
use crate::batch::order::BatchOrder;
use crate::batch::state::{Batch, Stage, TaskState};
use crate::batch::task::TaskId;
use crate::terminal::{FullScreen, Keyboard};
use crate::ui::batch;
use crate::ui::figures;
use crate::ui::history::clock;
use crate::ui::style::{Glyphs, Ink, Palette};
use crate::ui::text::{cut, harmless, width};

/// How often the batch is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long a key is waited for.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long a note is shown instead of the keys.
const NOTE: Duration = Duration::from_secs(4);
/// The columns of the state.
const STATE: usize = 10;

/// A batch as it is now.
pub(crate) struct Now {
    pub batch: Batch,
    pub is_running: bool,
    /// Iterations and milliseconds of a run that is under way.
    pub progress: BTreeMap<TaskId, (usize, u64)>,
}

/// How someone left the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// To look at the run of a task.
    Run(TaskId),
    Closed,
    /// A Unix signal ended it.
    Signal(i32),
}

/// What the board asks of the program around it.
pub(crate) trait Watched {
    fn now(&mut self) -> Option<Now>;

    /// Gives the batch an order, and says what that does or why it failed.
    fn order(&mut self, order: BatchOrder) -> String;
}

/// Shows the board until someone leaves it, or `close` says so.
pub(crate) fn show(
    watched: &mut dyn Watched,
    (palette, glyphs): (Palette, Glyphs),
    ending: Vec<i32>,
    close: &AtomicBool,
    at: &mut usize,
) -> io::Result<Left> {
    let caught = Signals::catch(ending)?;
    let Some(now) = watched.now() else { return Ok(Left::Closed) };
    let mut board = Board::new(now, Theme::new(palette, glyphs));
    board.scroll.cursor.row = *at;
    let mut looked = Instant::now();
    let mut taken = FullScreen::take()?;
    let mut keyboard = Keyboard::new();
    loop {
        if looked.elapsed() >= LOOK {
            if let Some(now) = watched.now() {
                board.renew(now);
            }
            looked = Instant::now();
        }
        taken.draw(|frame| board.draw(frame.area(), Timestamp::now(), frame.buffer_mut()))?;
        let event = keyboard.next(PATIENCE);
        if let Some(number) = caught.take() {
            return Ok(Left::Signal(number));
        }
        if close.load(Ordering::SeqCst) {
            return Ok(Left::Closed);
        }
        match event?.and_then(|event| board.event(&event)) {
            Some(Did::Left(left)) => {
                *at = board.scroll.cursor.row;
                return Ok(left);
            }
            Some(Did::Ordered(order)) => board.note = Some((Instant::now(), watched.order(order))),
            None => {}
        }
    }
}

#[derive(Debug, PartialEq)]
enum Did {
    Left(Left),
    Ordered(BatchOrder),
}

struct Board {
    now: Now,
    /// The tasks in the order in which they are shown.
    order: Vec<usize>,
    theme: Theme,
    scroll: Scroll,
    /// What came of the last order, and when.
    note: Option<(Instant, String)>,
}

impl Board {
    fn new(now: Now, theme: Theme) -> Self {
        let order = sorted(&now.batch);
        Self { now, order, theme, scroll: Scroll::default(), note: None }
    }

    fn pointed(&self) -> Option<&TaskState> {
        self.order.get(self.scroll.cursor.row).map(|&at| &self.now.batch.tasks[at])
    }

    /// The task that is pointed at stays, except in the first row: there is always what is happening.
    fn renew(&mut self, now: Now) {
        let first = self.scroll.cursor.row == 0;
        let pointed = self.pointed().filter(|_| !first).map(|state| state.task.id.clone());
        self.order = sorted(&now.batch);
        let row = self.order.iter().position(|&at| Some(&now.batch.tasks[at].task.id) == pointed.as_ref());
        self.scroll.cursor.row = row.unwrap_or(self.scroll.cursor.row);
        self.now = now;
    }

    fn event(&mut self, event: &Event) -> Option<Did> {
        let Event::Key(KeyEvent { code, modifiers, .. }) = event else { return None };
        let control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            KeyCode::Char('c') if control => Some(Did::Left(Left::Closed)),
            KeyCode::Char('q') | KeyCode::Esc => Some(Did::Left(Left::Closed)),
            KeyCode::Enter => {
                let state = self.pointed()?;
                if state.run.is_none() {
                    self.note = Some((Instant::now(), format!("{} has no run yet", state.task.id)));
                    return None;
                }
                Some(Did::Left(Left::Run(state.task.id.clone())))
            }
            KeyCode::Char('p') if self.now.batch.paused => Some(Did::Ordered(BatchOrder::Continue { task: None })),
            KeyCode::Char('p') => Some(Did::Ordered(BatchOrder::Pause { task: None })),
            KeyCode::Char('r') => Some(Did::Ordered(BatchOrder::Retry { task: self.pointed()?.task.id.clone() })),
            code => {
                move_cursor(&mut self.scroll, *code, self.order.len());
                None
            }
        }
    }

    fn draw(&mut self, area: Rect, time: Timestamp, buffer: &mut Buffer) {
        if area.height < 6 || area.width < 20 {
            return;
        }
        let columns = usize::from(area.width);
        let batch = &self.now.batch;
        let (word, ink) = batch::state(batch, self.now.is_running);
        let clock = clock(time);
        let head = format!("  batch {} into `{}`", batch.start.batch, batch.start.target);
        let first =
            Row::new(ink, &format!(" {word}")).and(Ink::Strong, &cut(&head, columns.saturating_sub(word.len() + 12)));
        let plain = RowStyle::plain(&self.theme);
        put(buffer, Rect { height: 1, ..area }, 0, &first, &plain);
        let x = area.right().saturating_sub(u16::try_from(clock.len()).unwrap_or(0) + 1);
        buffer.set_stringn(x, area.y, &clock, clock.len(), self.theme.style(Ink::None));
        let mut counts = format!(" {}", batch::counts(batch));
        if batch.cost() > 0.0 {
            let most = batch.start.max_cost.map_or_else(String::new, |most| format!(" of {}", figures::money(most)));
            let _ = write!(counts, ", {}{most}", figures::money(batch.cost()));
        }
        put(buffer, Rect { y: area.y + 1, height: 1, ..area }, 0, &Row::new(Ink::None, &counts), &plain);
        let titles = cells(["state", "task", "iter", "time", "cost"].map(str::to_owned), columns);
        put(buffer, Rect { y: area.y + 2, height: 1, ..area }, 0, &Row::new(Ink::Dim, &titles), &plain);
        let body = Rect { y: area.y + 3, height: area.height - 4, ..area };
        let rows = self.order.iter().map(|&at| self.row(&batch.tasks[at], columns)).collect();
        let mut rows = Listing(rows);
        self.scroll.height = usize::from(body.height);
        for (line, place) in (0..).zip(self.scroll.in_sight(&mut rows)) {
            let mut style = RowStyle::plain(&self.theme);
            style.pointed = if place == self.scroll.cursor { Pointed::Here } else { Pointed::Not };
            put(buffer, body, line, &rows.row(place.page, place.row), &style);
        }
        let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
        buffer.set_style(foot, REVERSED);
        let pause = if self.now.batch.paused { "p continue" } else { "p pause" };
        let keys = format!("Enter open  {pause}  r retry  j k move  q leave");
        let note = self.note.as_ref().filter(|(since, _)| since.elapsed() < NOTE);
        let text = note.map_or(keys, |(_, note)| harmless(note));
        buffer.set_stringn(foot.x + 1, foot.y, text, columns - 1, REVERSED);
    }

    fn row(&self, state: &TaskState, columns: usize) -> Row {
        let (word, ink) = batch::stage(&self.now.batch, state);
        let (iterations, time) = self.now.progress.get(&state.task.id).copied().unzip();
        let number = |value: Option<usize>| value.map_or_else(String::new, |value| value.to_string());
        let cells = cells(
            [
                word.to_owned(),
                harmless(state.task.id.as_str()),
                number(iterations),
                time.map_or_else(String::new, figures::duration),
                state.cost_usd.map_or_else(String::new, figures::money),
            ],
            columns,
        );
        let (first, rest) = cells.split_at(cells.char_indices().nth(STATE + 1).map_or(cells.len(), |(at, _)| at));
        let why = batch::why(state);
        let words = if why.is_empty() { harmless(&state.task.title) } else { why };
        let words = cut(&words, columns.saturating_sub(width(&cells) + 1));
        Row::new(ink, first).and(Ink::None, rest).and(Ink::Dim, &words)
    }
}

/// Those that are worked on first, then those that wait, then those that are over.
fn sorted(batch: &Batch) -> Vec<usize> {
    let rank = |stage: &Stage| match stage {
        Stage::Running => 0,
        Stage::Checking { .. } | Stage::Merging { .. } => 1,
        Stage::Stuck => 2,
        Stage::Waiting => 3,
        Stage::Merged { .. } => 4,
        Stage::Skipped => 5,
    };
    let mut order: Vec<usize> = (0..batch.tasks.len()).collect();
    order.sort_by_key(|&at| (rank(&batch.tasks[at].stage), at));
    order
}

fn cells([state, task, iterations, time, cost]: [String; 5], columns: usize) -> String {
    let name = if columns >= 120 { 32 } else { 22 };
    let mut line = format!(" {}{}", padded(&state, STATE), padded(&task, name));
    let _ = write!(line, "{iterations:>4} {time:>7} {cost:>7}  ");
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::state::Fact;
    use crate::batch::task::{Task, TaskLimits};

    fn now() -> Now {
        let mut batch = Batch::default();
        (batch.start.batch, batch.start.target) = ("b1".to_owned(), "main".to_owned());
        let id = |name: &str| TaskId::new(name).unwrap();
        let mut see = |fact| batch.see(fact, Timestamp::UNIX_EPOCH);
        for name in ["done", "later", "bad", "now"] {
            let (title, prompt) = (format!("Title of {name}"), String::new());
            let (verify, needs, touches, limits) = (Vec::new(), Vec::new(), Vec::new(), TaskLimits::default());
            let task = Task {
                id: id(name),
                title,
                prompt,
                verify,
                agent: None,
                model: None,
                needs,
                touches,
                priority: 0,
                limits,
            };
            see(Fact::Added { task: Box::new(task) });
        }
        see(Fact::Started { task: id("now"), attempt: 1 });
        see(Fact::Run { task: id("now"), run: "r1".to_owned() });
        see(Fact::Merged { task: id("done"), commit: Some("abcdef123".to_owned()) });
        see(Fact::Stuck { task: id("bad"), why: "check failed\nmore".to_owned(), cost_usd: Some(0.5) });
        Now { batch, is_running: true, progress: [(id("now"), (3, 61_000))].into() }
    }

    fn text(board: &mut Board) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 10));
        board.draw(buffer.area, Timestamp::UNIX_EPOCH, &mut buffer);
        let row = |y| (0..80).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>().trim_end().to_owned();
        (0..10).map(row).collect()
    }

    #[test]
    fn tasks_are_shown_by_what_happens_to_them_and_can_be_steered() {
        let mut board = Board::new(now(), Theme::new(Palette::Plain, Glyphs::ASCII));
        let rows = text(&mut board);
        assert!(rows[0].starts_with(" running") && rows[0].contains("b1") && rows[0].contains("`main`"), "{rows:?}");
        assert_eq!(rows[1], " 1 running, 1 waiting, 1 merged, 1 stuck, $0.50");
        let words: Vec<&str> = rows[3..7].iter().map(|row| row.split_whitespace().next().unwrap()).collect();
        assert_eq!(words, ["running", "stuck", "waiting", "merged"]);
        assert!(rows[3].contains("1m01s") && rows[3].ends_with("Title of now"), "{rows:?}");
        assert!(rows[4].ends_with("check failed"), "{rows:?}");
        let mut key = |code: KeyCode| board.event(&Event::Key(KeyEvent::from(code)));
        let id = |name: &str| TaskId::new(name).unwrap();
        assert_eq!(key(KeyCode::Enter), Some(Did::Left(Left::Run(id("now")))));
        assert_eq!(key(KeyCode::Char('p')), Some(Did::Ordered(BatchOrder::Pause { task: None })));
        assert_eq!(key(KeyCode::Char('j')), None);
        assert_eq!(key(KeyCode::Char('r')), Some(Did::Ordered(BatchOrder::Retry { task: id("bad") })));
        assert_eq!(key(KeyCode::Enter), None, "it has no run");
        assert_eq!(key(KeyCode::Char('q')), Some(Did::Left(Left::Closed)));
    }
}
