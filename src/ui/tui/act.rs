//! What keys and the mouse do.

use crossterm::event::{Event, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui_core::layout::{Position, Rect};

use super::block_rows::{Fold, Folding};
use super::input::{Input, Question, Typed};
use super::keys::{KeyAction, action};
use super::panes::{Pane, tools};
use super::scroll::Place;
use super::search::{Direction, Query, Search};
use super::state::{Side, ViewState};
use super::{Left, Owner};
use crate::control::Order;
use crate::event::Stream;
use crate::journal::Outcome;
use crate::ui::figures;
use crate::ui::model::RunState;

/// How many rows a turn of the wheel moves.
const WHEEL: isize = 3;
/// More is not put on the clipboard: terminals refuse it.
const LONGEST_COPY: usize = 100 * 1024;

/// What the loop around the view has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    /// Put this on the clipboard.
    Copy(String),
    /// Take the mouse, or let the terminal have it.
    Mouse,
    /// Redraw the screen.
    Redraw,
    Leave(Left),
    /// Do what Ctrl-C does outside of a view.
    Interrupt,
    /// Do what Ctrl-Z does outside of a view.
    Suspend,
}

impl ViewState {
    /// Takes what came from the terminal.
    pub(crate) fn event(&mut self, event: Event) -> Effect {
        match event {
            Event::Key(key) => {
                self.changed = true;
                match self.input.take() {
                    Some(input) => self.typed(input, key),
                    None => action(key).map_or(Effect::None, |action| self.action(action)),
                }
            }
            Event::Mouse(mouse) => {
                self.mouse(mouse);
                Effect::None
            }
            Event::Paste(text) => {
                if let Some(input) = &mut self.input {
                    input.paste(&text);
                }
                self.changed = true;
                Effect::None
            }
            _ => Effect::None,
        }
    }

    fn action(&mut self, action: KeyAction) -> Effect {
        self.message = None;
        if self.help
            && !matches!(action, KeyAction::Interrupt | KeyAction::Suspend | KeyAction::Redraw | KeyAction::Mouse)
        {
            return self.in_help(action);
        }
        match action {
            KeyAction::Step(rows) => self.step(rows),
            KeyAction::Screenful(screens) => self.screenful(screens),
            KeyAction::First => self.first(),
            KeyAction::Last => self.last(),
            KeyAction::Side => self.front = if self.front == Side::List { Side::Pane } else { Side::List },
            KeyAction::Iteration(by) => self.choose(self.selected.saturating_add_signed(by)),
            KeyAction::Show(pane) => self.show(pane),
            // A screen that is wider than the pane is seen from side to side before the next pane is.
            KeyAction::NextPane(by) if self.screen_in_front().is_some_and(|screen| screen.slide(by)) => {
                self.follow = false;
            }
            KeyAction::NextPane(by) => {
                let count = Pane::ALL.len();
                self.show(Pane::ALL[(self.pane.number() + count).wrapping_add_signed(by) % count]);
            }
            KeyAction::Toggle => self.toggle(),
            KeyAction::Tools => {
                self.fold(|folding| folding.tools = Some(folding.tools.unwrap_or(Fold::Folded).toggled()));
            }
            KeyAction::Thinking => self.fold(|folding| folding.thinking = folding.thinking.toggled()),
            KeyAction::Tool(direction) => self.next_tool(direction),
            KeyAction::Search => self.ask(Question::Search, ""),
            KeyAction::Again(direction) => self.search_on(direction),
            KeyAction::Follow => {
                if self.follow {
                    self.follow = false;
                } else {
                    self.last();
                }
            }
            KeyAction::Copy => return self.copied(),
            KeyAction::Write => {
                let iteration = self.index.number(self.selected);
                let name = format!("ralph-{}-{iteration}.txt", self.directory.id);
                self.ask(Question::Write, &name);
            }
            KeyAction::Stream => {
                self.stream = if self.stream == Stream::Stdout { Stream::Stderr } else { Stream::Stdout };
                self.show(Pane::Raw);
            }
            KeyAction::Pause if matches!(self.state(), RunState::Paused | RunState::Pausing) => {
                self.order(&Order::Continue);
            }
            KeyAction::Pause => self.order(&Order::Pause),
            KeyAction::Stop => self.order(&Order::Stop { now: false }),
            KeyAction::StopNow => self.ask_the_run(Question::StopNow),
            KeyAction::Hint => self.ask_the_run(Question::Hint),
            KeyAction::Answer => return self.answer_or_runs(),
            KeyAction::Retry => self.order(&Order::Retry),
            KeyAction::Limit => self.ask_the_run(Question::Limit),
            KeyAction::Mouse => return Effect::Mouse,
            KeyAction::Help => self.help = true,
            KeyAction::Redraw => return Effect::Redraw,
            KeyAction::Suspend => return Effect::Suspend,
            KeyAction::Back => {
                self.search = None;
                self.tally = None;
                self.query = Query::default();
            }
            KeyAction::Leave if self.is_our_run() => self.ask(Question::Leave, ""),
            KeyAction::Interrupt if self.is_our_run() => return Effect::Interrupt,
            KeyAction::Leave | KeyAction::Interrupt => return Effect::Leave(Left::Closed),
        }
        Effect::None
    }

    /// Who plays the run now: when it is over, nobody in this process does.
    pub(crate) fn runner(&self) -> Owner {
        if self.running { self.owner } else { Owner::Another }
    }

    fn is_our_run(&self) -> bool {
        self.runner() == Owner::This
    }

    fn in_help(&mut self, action: KeyAction) -> Effect {
        let mut rows = self.help_rows(usize::from(self.areas.pane.width.saturating_sub(1)).max(20));
        let scroll = &mut self.help_scroll;
        let screen = isize::try_from(scroll.height).unwrap_or(1);
        match action {
            KeyAction::Step(by) => scroll.roll(&mut rows, by),
            KeyAction::Screenful(by) => scroll.roll(&mut rows, by * screen),
            KeyAction::First => scroll.first(&mut rows),
            KeyAction::Last => scroll.last(&mut rows),
            _ => self.help = false,
        }
        Effect::None
    }

    fn step(&mut self, rows: isize) {
        if self.front == Side::List {
            self.choose(self.list_scroll.cursor.row.saturating_add_signed(rows));
            return;
        }
        if self.screen_in_front().is_some() {
            return self.roll(rows);
        }
        self.follow &= rows > 0;
        self.scroll_pane(|scroll, pages| scroll.step(pages, rows));
    }

    fn roll(&mut self, rows: isize) {
        if let Some(screen) = self.screen_in_front() {
            self.follow &= !screen.roll(rows);
            return;
        }
        self.follow &= rows > 0;
        self.scroll_pane(|scroll, pages| scroll.roll(pages, rows));
    }

    fn screenful(&mut self, screens: isize) {
        let height = match self.front {
            Side::List => self.list_scroll.height,
            Side::Pane => self.scrolls[self.pane.number()].height,
        };
        self.step(screens * isize::try_from(height.saturating_sub(1).max(1)).unwrap_or(1));
    }

    fn first(&mut self) {
        if self.front == Side::List {
            self.choose(0);
            return;
        }
        self.follow = false;
        if let Some(screen) = self.screen_in_front() {
            return screen.first();
        }
        self.scroll_pane(|scroll, pages| scroll.first(pages));
    }

    /// The last row. At the end of the last iteration the newest is followed.
    fn last(&mut self) {
        let newest = self.index.entry_count() - 1;
        if self.front == Side::List {
            self.choose(newest);
        }
        if self.selected == newest || self.front == Side::List {
            self.follow = true;
        }
        if let Some(screen) = self.screen_in_front() {
            return screen.follow();
        }
        self.scroll_pane(|scroll, pages| scroll.last(pages));
    }

    /// Selects an entry by hand.
    fn choose(&mut self, entry: usize) {
        self.follow = false;
        self.select(entry);
    }

    fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.front = Side::Pane;
        if self.follow {
            self.show_newest();
        }
    }

    /// Opens or closes what is pointed at, or shows it.
    fn toggle(&mut self) {
        if self.front == Side::List {
            self.front = Side::Pane;
            return;
        }
        let row = self.scrolls[self.pane.number()].cursor.row;
        match self.pane {
            Pane::Transcript => {
                let mut pages = self.transcript.of(&self.index, &self.theme, self.selected);
                pages.toggle(&mut self.scrolls[0]);
                self.follow = false;
            }
            Pane::Files => self.files.toggle(row),
            Pane::Tools => {
                let call = row.checked_sub(tools::HEADING).and_then(|at| self.detail.iteration.calls.kept().get(at));
                if let Some(at) = call.and_then(|call| self.detail.offset(call)) {
                    self.follow = false;
                    self.pane = Pane::Transcript;
                    let mut pages = self.transcript.of(&self.index, &self.theme, self.selected);
                    let place = pages.place_at(at);
                    self.scrolls[0].go(&mut pages, place);
                }
            }
            _ => {}
        }
    }

    fn fold(&mut self, change: impl FnOnce(&mut Folding)) {
        let mut pages = self.transcript.of(&self.index, &self.theme, self.selected);
        pages.fold(&mut self.scrolls[0], change);
    }

    fn next_tool(&mut self, direction: Direction) {
        self.show(Pane::Transcript);
        let mut pages = self.transcript.of(&self.index, &self.theme, self.selected);
        match pages.next_tool(self.scrolls[0].cursor, direction) {
            Some(place) => {
                self.scrolls[0].go(&mut pages, place);
                self.follow = false;
            }
            None => self.set_message(match direction {
                Direction::Forward => "no tool after this place",
                Direction::Backward => "no tool before this place",
            }),
        }
    }

    fn search_on(&mut self, direction: Direction) {
        if self.query.is_empty() {
            self.set_message("no search yet: press `/`");
            return;
        }
        let from = self.scrolls[0].cursor;
        // A pane that was never drawn is at no page yet.
        let pages = self.index.pages_of(self.selected);
        let from = if pages.contains(&from.page) { from } else { Place { page: pages.start, row: 0 } };
        self.searched = 0;
        self.search = Some(Search::new(direction, from, &self.index));
    }

    fn copied(&mut self) -> Effect {
        let mut text = String::new();
        if self.pane == Pane::Transcript {
            let cursor = self.scrolls[0].cursor;
            let pointed = self.transcript.of(&self.index, &self.theme, self.selected).text_at(cursor);
            text = pointed.unwrap_or_default();
        } else if let Some(screen) = self.screen_in_front() {
            text = screen.text();
        } else {
            self.scroll_pane(|scroll, pages| text = pages.row(scroll.cursor.page, scroll.cursor.row).text());
        }
        if text.len() > LONGEST_COPY {
            text.truncate(text.floor_char_boundary(LONGEST_COPY));
            self.set_message("copied the first 100 KB; `w` writes all of it to a file");
        } else {
            self.set_message(format!("copied {}", figures::plural(text.chars().count() as u64, "character")));
        }
        Effect::Copy(text)
    }

    fn ask(&mut self, question: Question, text: &str) {
        self.input = Some(Input::new(question, text));
    }

    /// Asks something that only makes sense while the run is active.
    fn ask_the_run(&mut self, question: Question) {
        if self.running { self.ask(question, "") } else { self.set_message("the run is not active") }
    }

    /// Answers the question of the run, or, where it has none, goes to the list of all runs.
    fn answer_or_runs(&mut self) -> Effect {
        if self.index.run().end.as_ref().is_some_and(|end| end.outcome == Outcome::Human) {
            self.ask(Question::Answer, "");
        } else if self.owner == Owner::Another {
            return Effect::Leave(Left::Runs);
        } else {
            self.set_message("`ralph tui --all` in another terminal lists all runs");
        }
        Effect::None
    }

    fn typed(&mut self, mut input: Input, key: KeyEvent) -> Effect {
        let question = input.question;
        match input.key(key) {
            Typed::More => self.input = Some(input),
            Typed::Away => {}
            Typed::Chosen(letter) => return self.chosen(question, letter),
            Typed::Done(text) if text.trim().is_empty() => {}
            Typed::Done(text) => match question {
                Question::Search => {
                    self.query = Query::new(&text);
                    self.tally = None;
                    self.search_on(Direction::Forward);
                }
                Question::Hint => self.order(&Order::Hint { words: text }),
                Question::Limit => match Order::limit(&text) {
                    Ok(order) => self.order(&order),
                    Err(reason) => self.set_message(reason),
                },
                Question::Answer => return Effect::Leave(Left::Answered(text)),
                Question::Write => self.write(&text),
                Question::StopNow | Question::Leave => {}
            },
        }
        Effect::None
    }

    fn chosen(&mut self, question: Question, letter: char) -> Effect {
        match (question, letter) {
            (Question::StopNow, 'y' | 'Y') | (Question::Leave, 'S') => self.order(&Order::Stop { now: true }),
            (Question::Leave, 's') => self.order(&Order::Stop { now: false }),
            (Question::Leave, 'd') => return Effect::Leave(Left::Closed),
            (Question::Leave, _) => self.ask(Question::Leave, ""),
            _ => {}
        }
        Effect::None
    }

    fn order(&mut self, order: &Order) {
        if !self.running {
            self.set_message("the run is not active");
            return;
        }
        match self.actions.order(order) {
            Ok(()) => self.set_message(order.effect()),
            Err(reason) => self.set_message(reason),
        }
    }

    /// Writes the transcript of the selected entry, page by page.
    fn write(&mut self, path: &str) {
        let pages = self.index.pages_of(self.selected);
        let mut entry = self.transcript.of(&self.index, &self.theme, self.selected);
        let written = std::fs::File::create_new(path).and_then(|file| {
            let mut out = std::io::BufWriter::new(file);
            for page in pages {
                entry.write(page, &mut out)?;
            }
            std::io::Write::flush(&mut out)
        });
        match written {
            Ok(()) => self.set_message(format!("written to {path}")),
            Err(error) => self.set_message(format!("cannot write `{path}`: {error}")),
        }
    }

    fn mouse(&mut self, mouse: MouseEvent) {
        let at = Position { x: mouse.column, y: mouse.row };
        let over = |area: Rect| area.contains(at);
        let (in_list, in_pane) = (over(self.areas.list), over(self.areas.pane));
        match mouse.kind {
            MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
                let rows = if mouse.kind == MouseEventKind::ScrollUp { -WHEEL } else { WHEEL };
                if self.help {
                    self.in_help(KeyAction::Step(rows));
                } else if in_list {
                    // The wheel looks around; it selects nothing.
                    let mut scroll = self.list_scroll;
                    scroll.roll(&mut self.list(20), rows);
                    self.list_scroll.top = scroll.top;
                } else if in_pane {
                    self.roll(rows);
                }
                self.changed = true;
            }
            MouseEventKind::Down(MouseButton::Left) if self.help => {
                self.help = false;
                self.changed = true;
            }
            MouseEventKind::Down(MouseButton::Left) => {
                self.changed = true;
                if let Some(pane) = self.areas.tabs.iter().find(|(area, _)| over(*area)).map(|(_, pane)| *pane) {
                    self.show(pane);
                } else if in_list {
                    self.front = Side::List;
                    let row = self.list_scroll.top.row + usize::from(at.y - self.areas.list.y);
                    if row < self.index.entry_count() {
                        self.choose(row);
                    }
                } else if in_pane {
                    self.front = Side::Pane;
                    self.click(usize::from(at.y - self.areas.pane.y));
                }
            }
            _ => {}
        }
    }

    /// Points at a row in sight; a second click opens or closes it.
    fn click(&mut self, row: usize) {
        if self.screen_in_front().is_some() {
            return;
        }
        let mut again = false;
        self.scroll_pane(|scroll, pages| {
            if let Some(place) = scroll.in_sight(pages).get(row) {
                again = scroll.cursor == *place;
                scroll.cursor = *place;
            }
        });
        self.follow = false;
        if again {
            self.toggle();
        }
    }
}
