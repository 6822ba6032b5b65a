//! The view without a terminal: for pictures of it, for tests, and for measuring what a frame costs.

use crossterm::event::Event;
use jiff::Timestamp;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::state::{ViewState, Work};
use super::theme::Theme;
use super::{Options, screen};

/// A view that is drawn into memory.
pub struct Offscreen {
    state: ViewState,
    buffer: Buffer,
}

impl Offscreen {
    /// A view of this many columns and rows, at a moment.
    pub fn new(options: Options, columns: u16, rows: u16, now: Timestamp) -> Self {
        let Options { directory, palette, glyphs, owner, actions } = options;
        let mut state = ViewState::new(directory, &Theme::new(palette, glyphs), actions, owner);
        state.now = now;
        let mut offscreen = Self { state, buffer: Buffer::empty(Rect::new(0, 0, columns, rows)) };
        offscreen.settle();
        offscreen
    }

    /// Takes what a terminal would send.
    pub fn event(&mut self, event: Event) {
        self.state.event(event);
        self.settle();
    }

    /// Has another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        self.settle();
    }

    /// Reads everything there is to read, and draws.
    fn settle(&mut self) {
        // What is drawn can make more worth reading, so that it is drawn twice.
        for _ in 0..2 {
            while self.state.work() == Work::Left {}
            self.draw();
        }
    }

    /// Draws one frame.
    pub fn draw(&mut self) -> &Buffer {
        self.buffer.reset();
        screen::draw(&mut self.state, self.buffer.area, &mut self.buffer);
        &self.buffer
    }

    /// What is on the screen, as text.
    pub fn text(&self) -> String {
        let Rect { width, height, .. } = self.buffer.area;
        let mut text = String::new();
        for y in 0..height {
            let mut hidden = 0;
            let mut line = String::new();
            for x in 0..width {
                let symbol = self.buffer[(x, y)].symbol();
                if hidden == 0 {
                    line.push_str(symbol);
                    hidden = crate::ui::text::width(symbol).max(1);
                }
                hidden -= 1;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
