//! What people look at. Views see journal records and nothing else; they never slow the agent and never
//! decide anything. Agent output never reaches a terminal unescaped.

mod appearance;
pub(crate) mod batch;
mod callouts;
mod diff;
pub(crate) mod figures;
pub(crate) mod history;
mod json;
mod judged;
mod line;
mod markdown;
mod model;
pub(crate) mod out;
mod show;
mod spans;
mod style;
mod styled;
pub(crate) mod table;
mod text;
pub mod tui;
pub(crate) mod web;
mod words;

use std::io;

pub use appearance::Appearance;
pub use appearance::Columns;
pub use appearance::Motion;
pub(crate) use appearance::{Alert, Channel, Detail, KeysGoTo, Letters, Place, Volume};
pub(crate) use json::{JsonView, pretty};
pub use line::LineView;
pub(crate) use model::RunState;
pub(crate) use show::show;
pub use spans::SpanView;
pub use style::Glyphs;
pub(crate) use style::Ink;
pub use style::Palette;
pub(crate) use styled::Styled;

pub(crate) use text::width;
pub use text::{harmless, wrap};
pub(crate) use words::state_key;

use crate::journal::Record;

/// Shows records, one after the other.
pub trait View: Send {
    /// Shows the next record.
    fn record(&mut self, record: &Record) -> io::Result<()>;

    /// Nothing came for a while: time to show that time passes.
    fn tick(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Everything that came has been shown: let the reader see it.
    fn flush(&mut self) -> io::Result<()>;

    /// Nothing more will come.
    fn close(&mut self) -> io::Result<()> {
        self.flush()
    }
}
