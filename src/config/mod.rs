//! Flags, environment and `ralph.yml` become [`Settings`]; every value knows where it came from.
//!
//! Nobody below this room imports it, except the loop, which reads the settings.

mod file;
mod layer;

pub use file::{Adapter, FileLayer, find, nearest_file, read};
pub use layer::{Layer, Origin, Setting, Settings};
