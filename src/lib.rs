//! ralph runs a coding agent's command line again and again on one prompt until the work is really done.
//!
//! The modules stand in the order of the pipeline:
//! config → agent → process → transcript → signals → run → journal → ui.

pub mod config;
pub mod error;
pub mod event;
pub mod journal;
mod nearest;
pub mod process;
pub mod signals;
pub mod transcript;
