//! Flags, environment and `ralph.yml` become [`Settings`]; every value knows where it came from.
//!
//! A new key is one entry in `settings.rs`; a new kind of value is a type that implements [`SettingValue`]. Only the
//! commands import this room: the rooms below are handed what they need.

mod adapter;
mod command;
mod document;
mod environment;
mod file;
mod judgement;
mod legacy;
mod origin;
mod reading;
mod saved;
mod schema;
mod settings;
mod table;
mod trust;
mod value;

pub use adapter::Adapter;
pub use command::{CommandLine, Program, PromptMode, ShellLine, shell_words};
pub use document::{effective, handbook, template};
pub use environment::environment;
pub use file::{FileLayer, find, nearest_file, read, read_at, read_text};
pub use judgement::{Dollars, HatList, OrOff, SessionChoice};
pub use origin::{Origin, Setting};
pub use reading::Reading;
pub use saved::Saved;
pub use schema::{DRAFT, schema};
pub use settings::{Layer, Settings};
pub use table::{Key, Row};
pub use trust::Trust;
pub use value::{OneLine, RawBytes, RunMode, SettingValue};
