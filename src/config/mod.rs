//! Flags, environment and `ralph.yml` become [`Settings`]; every value knows where it came from.
//!
//! Only the commands import it: the rooms below are handed what they need.

pub mod bash_config;
mod file;
mod layer;
pub mod ralphrc;

pub use file::{Adapter, FileLayer, find, nearest_file, read};
pub use layer::{Layer, Origin, Setting, Settings};
