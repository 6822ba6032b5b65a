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
mod merge;
mod origin;
mod prices;
mod reading;
mod sandbox;
mod saved;
mod schema;
mod settings;
mod table;
mod trust;
mod value;
mod verify;

pub(crate) use adapter::Adapter;
pub(crate) use command::{CommandLine, Program, PromptMode, ShellLine, shell_words};
pub use document::effective;
pub use document::handbook;
pub(crate) use document::short;
pub use document::template;
pub(crate) use environment::environment;
pub(crate) use file::{FileLayer, find, nearest_file, own_file, read_at};
pub(crate) use judgement::{Dollars, OrOff, SessionChoice};
pub(crate) use legacy::renamed;
pub(crate) use merge::Merge;
pub(crate) use origin::{Origin, Setting};
pub(crate) use prices::PRICE_LIST;
pub(crate) use saved::Saved;
pub use schema::DRAFT;
pub use schema::schema;
pub use settings::Layer;
pub(crate) use settings::Settings;
pub(crate) use table::Row;
pub(crate) use trust::Trust;
pub(crate) use value::{OneLine, RawBytes, RunMode, SettingValue};
pub(crate) use verify::Verify;
