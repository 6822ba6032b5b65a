//! What people look at. Views see journal records and nothing else; they never slow the agent and never
//! decide anything. Agent output never reaches a terminal unescaped.

mod appearance;
mod callouts;
mod change;
mod diff;
pub mod figures;
pub mod history;
mod json;
mod line;
mod markdown;
pub mod out;
mod page;
mod show;
mod spans;
mod style;
mod styled;
pub mod table;
mod text;
mod tools;
pub mod tui;
mod words;

use std::io;

pub use appearance::{Alert, Appearance, Channel, Columns, Detail, KeysGoTo, Letters, Motion, Place, Volume};
pub use json::{JsonView, pretty};
pub use line::LineView;
pub use page::{Differences, PageView};
pub use show::show;
pub use spans::SpanView;
pub use style::{Glyphs, Palette};
pub use text::{harmless, wrap};

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
