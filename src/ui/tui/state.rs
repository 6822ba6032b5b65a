//! Everything the view knows at a moment: the run, what is selected, where each pane is. It reads and never writes.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use ratatui_core::layout::Rect;

use super::Owner;
use super::actions::Actions;
use super::detail::Detail;
use super::index::{Index, Reach};
use super::input::Input;
use super::latest_plan::LatestPlan;
use super::panes::agent_screen::AgentScreen;
use super::panes::files::Files;
use super::panes::list::List;
use super::panes::raw::RawBytes;
use super::panes::{COUNT, Pane, checks, events, help, plan, tools, usage};
use super::rows::{Row, paragraph};
use super::scroll::{Listing, Pages, Scroll};
use super::search::{Query, Search, SearchStep, Tally};
use super::theme::Theme;
use super::transcript::Transcript;
use crate::event::Stream;
use crate::journal::RunDirectory;
use crate::ui::model::RunState;
use crate::ui::style::Ink;

/// How long one step of reading may take, so that keys are never late.
const STEP: Duration = Duration::from_millis(12);
/// How often is asked whether the run is alive.
const ALIVE: Duration = Duration::from_secs(1);
/// How long a message stays.
const MESSAGE: Duration = Duration::from_secs(6);

/// Which side takes the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The list of iterations.
    List,
    Pane,
}

/// Where things were drawn, for the mouse.
#[derive(Clone, Debug, Default)]
pub(crate) struct Areas {
    pub list: Rect,
    pub pane: Rect,
    /// How many columns plan and tools have beside the transcript.
    pub beside: u16,
    /// The name of each pane.
    pub tabs: Vec<(Rect, Pane)>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is one fact about the screen")]
pub(crate) struct ViewState {
    /// The run as far as it is known.
    pub index: Index,
    pub theme: Theme,
    /// What the view cannot do itself.
    pub actions: Box<dyn Actions>,
    pub directory: RunDirectory,
    pub owner: Owner,
    pub transcript: Transcript,
    /// The fold of the selected entry.
    pub detail: Detail,
    pub files: Files,
    pub raw: RawBytes,
    /// What it drew, once that was asked for and where it has a terminal.
    pub agent_screen: Option<AgentScreen>,
    /// The stream that is shown of it.
    pub stream: Stream,
    pub selected: usize,
    pub pane: Pane,
    /// Which side takes the keys.
    pub front: Side,
    /// Where the list is.
    pub list_scroll: Scroll,
    /// Where each pane is.
    pub scrolls: [Scroll; COUNT],
    /// Where the help is.
    pub help_scroll: Scroll,
    /// True while the help is shown.
    pub help: bool,
    /// True while the newest is kept in sight.
    pub follow: bool,
    pub input: Option<Input>,
    /// What is reported, and since when.
    pub message: Option<(Instant, String)>,
    pub query: Query,
    /// The search under way.
    pub search: Option<Search>,
    pub searched: usize,
    /// Which of how many places is in sight.
    pub tally: Option<Tally>,
    /// What the run is for.
    pub goal: String,
    /// The branch that the run has of its own.
    pub branch: Option<String>,
    /// The fold of the newest entry, while the run is under way.
    pub live: Option<Detail>,
    pub plan: LatestPlan,
    /// Whether the run is under way.
    pub running: bool,
    asked: Option<Instant>,
    /// When there was last something new.
    pub newest_seen: Instant,
    pub now: Timestamp,
    /// True when the screen is not what it should be.
    pub changed: bool,
    /// Where things were drawn.
    pub areas: Areas,
}

/// Whether there is more to do at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Left,
    Done,
}

impl ViewState {
    pub(crate) fn new(directory: RunDirectory, theme: &Theme, actions: Box<dyn Actions>, owner: Owner) -> Self {
        let index = Index::new(&directory.journal());
        let branch = directory.place().map(|place| place.branch);
        Self {
            goal: directory.goal(),
            branch,
            tally: None,
            live: None,
            plan: LatestPlan::default(),
            detail: Detail::of(0, &index),
            index,
            theme: *theme,
            actions,
            directory,
            owner,
            transcript: Transcript::new(),
            files: Files::default(),
            raw: RawBytes::none(),
            agent_screen: None,
            stream: Stream::Stdout,
            selected: 0,
            pane: Pane::Transcript,
            front: Side::Pane,
            list_scroll: Scroll::default(),
            scrolls: [Scroll::default(); COUNT],
            help_scroll: Scroll::default(),
            help: false,
            follow: true,
            input: None,
            message: None,
            query: Query::default(),
            search: None,
            searched: 0,
            running: false,
            asked: None,
            newest_seen: Instant::now(),
            now: Timestamp::now(),
            changed: true,
            areas: Areas::default(),
        }
    }

    /// Reads on, a little at a time.
    pub(crate) fn work(&mut self) -> Work {
        let mut work = Work::Done;
        match self.index.advance(STEP) {
            Ok(Reach::Same) => {}
            Ok(reach) => {
                self.changed = true;
                self.newest_seen = Instant::now();
                if reach == Reach::More {
                    work = Work::Left;
                } else if self.follow {
                    self.select(self.index.entry_count() - 1);
                    self.show_newest();
                }
            }
            Err(error) => self.set_message(format!("cannot read the journal: {error}")),
        }
        self.ask_whether_alive();
        self.watch_newest();
        if work == Work::Done && self.gather() == Work::Left {
            work = Work::Left;
        }
        if self.continue_search() == Work::Left {
            work = Work::Left;
        }
        if self.message.as_ref().is_some_and(|(since, _)| since.elapsed() > MESSAGE) {
            self.message = None;
            self.changed = true;
        }
        work
    }

    fn ask_whether_alive(&mut self) {
        if self.asked.is_none_or(|asked| asked.elapsed() >= ALIVE) {
            self.asked = Some(Instant::now());
            let running = self.index.run().end.is_none() && self.actions.is_running();
            self.set_running(running);
        }
        if self.index.run().end.is_some() {
            self.set_running(false);
        }
    }

    /// Reads on what the newest iteration says while it is under way: its tokens, its model, the tool that runs.
    fn watch_newest(&mut self) {
        if self.goal.is_empty() && self.running {
            self.goal = self.directory.goal();
        }
        let newest = self.index.entry_count() - 1;
        let is_open = self.index.iteration(newest).is_some_and(|tried| tried.ended.is_none());
        if !(self.running && is_open) {
            self.live = None;
        } else if self.live.as_ref().is_none_or(|live| live.entry() != newest) {
            self.live = Some(Detail::of(newest, &self.index));
        }
        if let Some(live) = &mut self.live {
            self.changed |= live.advance(&self.index, STEP);
        }
        self.transcript.now = self.live.as_ref().map(|_| self.now);
    }

    /// A question about a run that has ended is not asked any longer.
    fn set_running(&mut self, running: bool) {
        if running == self.running {
            return;
        }
        (self.running, self.changed) = (running, true);
        if !running && self.input.as_ref().is_some_and(|input| input.question.needs_running_run()) {
            self.input = None;
            self.set_message("the run has ended");
        }
    }

    /// Reads on what only some panes show.
    fn gather(&mut self) -> Work {
        if self.detail.entry() != self.selected {
            self.detail = Detail::of(self.selected, &self.index);
        }
        let needs = match self.pane {
            Pane::Plan | Pane::Tools | Pane::Files => true,
            Pane::Transcript => self.areas.beside > 0,
            _ => false,
        };
        let more = needs && self.detail.advance(&self.index, STEP);
        self.changed |= more;
        let shows_plan = self.pane == Pane::Plan || self.areas.beside > 0;
        let (before, looks) = (self.plan.items.len(), shows_plan && self.plan.advance(&self.index, STEP));
        self.changed |= looks || before != self.plan.items.len();
        if looks {
            return Work::Left;
        }
        if self.pane == Pane::Files {
            let is_over = self.index.iteration(self.selected).is_some_and(|tried| tried.ended.is_some());
            if self.files.entry() != self.selected || (self.files.is_early() && is_over) {
                self.files = Files::ask(self.selected, &self.index, &mut *self.actions);
                self.changed = true;
            }
            self.changed |= self.files.poll();
        }
        if self.pane == Pane::Raw {
            let iteration = self.index.number(self.selected);
            if self.raw.what() != (iteration, self.stream) {
                self.raw = RawBytes::open(&self.directory.raw(), iteration, self.stream);
                self.changed = true;
            } else if self.running && self.raw.measure() {
                self.changed = true;
                if self.follow {
                    self.show_newest();
                }
            }
        }
        if self.pane == Pane::Screen && self.watch_agent() == Work::Left {
            return Work::Left;
        }
        if more && self.detail.percent(&self.index) < 100 { Work::Left } else { Work::Done }
    }

    /// Plays on what the agent draws.
    fn watch_agent(&mut self) -> Work {
        if self.agent_screen.as_ref().is_none_or(|screen| screen.entry() != self.selected) {
            let Some(terminal) = self.index.terminal(self.selected) else {
                self.agent_screen = None;
                return Work::Done;
            };
            let iteration = self.index.number(self.selected);
            self.agent_screen = Some(AgentScreen::open(&self.directory.raw(), self.selected, iteration, terminal));
            self.changed = true;
        }
        match self.agent_screen.as_mut().map(|screen| screen.play(STEP)) {
            Some(Ok(true)) => {
                self.changed = true;
                Work::Left
            }
            _ => Work::Done,
        }
    }

    /// The agent's own screen, when that is the pane and there is something to see.
    pub(crate) fn screen_in_front(&mut self) -> Option<&mut AgentScreen> {
        let is_shown = self.pane == Pane::Screen;
        let selected = self.selected;
        let screen = self.agent_screen.as_mut().filter(|screen| is_shown && screen.entry() == selected);
        screen.filter(|screen| screen.trouble().is_none())
    }

    /// Why the agent's own screen is not shown.
    fn no_screen(&self) -> String {
        if let Some(trouble) = self.agent_screen.as_ref().and_then(AgentScreen::trouble) {
            return trouble.to_owned();
        }
        if self.index.iteration(self.selected).is_some() {
            return "the agent has no terminal in this iteration, so it draws no screen: `--pty` gives it one"
                .to_owned();
        }
        "no agent works here: `]` goes to an iteration".to_owned()
    }

    /// Continues the search.
    fn continue_search(&mut self) -> Work {
        let Some(search) = &mut self.search else { return self.continue_tally() };
        let (origin, direction) = (search.origin, search.direction);
        let found = search.advance(&self.query, &mut self.transcript, &self.index, &self.theme, STEP);
        self.changed = true;
        match found {
            SearchStep::NotYet(percent) => {
                self.searched = percent;
                return Work::Left;
            }
            SearchStep::Nowhere => {
                self.tally = None;
                self.set_message(format!("`{}` not found in this run", self.query.words()));
            }
            SearchStep::At(entry, place) => {
                let tally = self.tally.take();
                self.tally = Some(tally.map_or_else(|| Tally::new(place), |old| old.moved(origin, place, direction)));
                self.select(entry);
                self.follow = false;
                self.pane = Pane::Transcript;
                self.front = Side::Pane;
                let mut pages = self.transcript.of(&self.index, &self.theme, entry);
                self.scrolls[0].go(&mut pages, place);
            }
        }
        self.search = None;
        self.continue_tally()
    }

    /// Counts the places on.
    fn continue_tally(&mut self) -> Work {
        let Some(tally) = &mut self.tally else { return Work::Done };
        let more = tally.advance(&self.query, &mut self.transcript, &self.index, &self.theme, STEP);
        self.changed |= more;
        if more { Work::Left } else { Work::Done }
    }

    /// Selects an entry; its panes begin at their beginning.
    pub(crate) fn select(&mut self, entry: usize) {
        let entry = entry.min(self.index.entry_count() - 1);
        if self.selected != entry {
            self.selected = entry;
            self.changed = true;
            for pane in [Pane::Transcript, Pane::Plan, Pane::Tools, Pane::Files, Pane::Checks, Pane::Raw] {
                let height = self.scrolls[pane.number()].height;
                self.scrolls[pane.number()] = Scroll { height, ..Scroll::default() };
            }
        }
        if self.list_scroll.cursor.row != entry {
            let mut scroll = self.list_scroll;
            scroll.cursor.row = entry;
            scroll.show(&mut self.list(0));
            self.list_scroll = scroll;
        }
    }

    /// Keeps the newest in sight.
    pub(crate) fn show_newest(&mut self) {
        match self.pane {
            Pane::Transcript | Pane::Tools | Pane::Events | Pane::Raw => {
                self.scroll_pane(|scroll, pages| scroll.last(pages));
            }
            Pane::Screen => {
                if let Some(screen) = self.screen_in_front() {
                    screen.follow();
                }
            }
            _ => {}
        }
    }

    /// Does something with the pane in front, and where it is.
    pub(crate) fn scroll_pane(&mut self, act: impl FnOnce(&mut Scroll, &mut dyn Pages)) {
        self.changed = true;
        let number = self.pane.number();
        let mut scroll = self.scrolls[number];
        match self.pane {
            Pane::Transcript => {
                act(&mut scroll, &mut self.transcript.of(&self.index, &self.theme, self.selected));
            }
            Pane::Raw => act(&mut scroll, &mut self.raw),
            _ => {
                let columns = usize::from(self.areas.pane.width).max(20);
                let rows = self.rows(columns, scroll.height);
                act(&mut scroll, &mut Listing(rows));
            }
        }
        self.scrolls[number] = scroll;
    }

    /// The rows of a pane that has few of them.
    pub(crate) fn rows(&mut self, columns: usize, height: usize) -> Vec<Row> {
        let percent = self.detail.percent(&self.index);
        match self.pane {
            Pane::Plan => plan::rows(&self.plan, &self.theme, columns),
            Pane::Tools => tools::rows(&self.detail, &self.theme, columns, percent, self.tool_clock()),
            Pane::Files => self.files.rows(&self.detail, &self.theme),
            Pane::Events => events::rows(&self.index, columns),
            Pane::Usage => usage::rows(&self.index, &self.theme, columns, height),
            Pane::Checks => checks::rows(&self.index, self.selected, &self.theme, columns),
            Pane::Screen => paragraph(&Row::default(), &Row::default(), &self.no_screen(), Ink::Dim, columns),
            Pane::Transcript | Pane::Raw => Vec::new(),
        }
    }

    /// The time for tools that run, when the selected entry is under way.
    pub(crate) fn tool_clock(&self) -> Option<Timestamp> {
        self.live.as_ref().filter(|live| live.entry() == self.selected).map(|_| self.now)
    }

    pub(crate) fn list(&self, columns: usize) -> List<'_> {
        List { index: &self.index, theme: &self.theme, now: self.now, running: self.running, columns }
    }

    pub(crate) fn help_rows(&self, columns: usize) -> Listing {
        Listing(help::rows(&self.theme, columns))
    }

    pub(crate) fn state(&self) -> RunState {
        RunState::of(self.index.run(), self.running)
    }

    /// Tells something at the bottom.
    pub(crate) fn set_message(&mut self, words: impl Into<String>) {
        self.message = Some((Instant::now(), words.into()));
        self.changed = true;
    }
}
