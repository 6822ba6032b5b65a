//! ralph runs a coding agent's command line again and again on one prompt until the work is really done.
//!
//! The modules stand in the order of the pipeline:
//! config → agent → process → transcript → signals → run → journal → ui.

pub mod config;

pub mod agent;

pub mod process;

pub mod transcript;

pub mod emit;

pub mod signals;

pub mod run;

pub mod journal;

pub mod ui;

// Known to all, knowing nobody.
pub mod duration;
pub mod error;
pub mod event;
pub mod nearest;
pub mod plural;
pub mod yaml;

// The command line around it.
pub mod cli;
pub mod commands;
