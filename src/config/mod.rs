//! Flags, environment and `ralph.yml` become [`Settings`]; every value knows where it came from.
//!
//! Only the commands import it: the rooms below are handed what they need.

mod file;
mod layer;

pub use file::{Adapter, FileLayer, find, nearest_file, read};
pub use layer::{Layer, Origin, Setting, Settings};
