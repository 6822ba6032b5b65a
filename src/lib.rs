//! ralph runs a coding agent's command line again and again on one prompt until the work is really done.
//!
//! The modules stand in the order of the pipeline:
//! config → agent → process → transcript → signals → run → journal → ui.

pub mod config;

pub mod agent;

pub mod process;

pub mod transcript;

pub mod stream;

pub mod emit;

pub mod signals;

pub mod run;

pub mod plugin;

pub mod journal;

mod git;
mod terminal;

pub mod ui;

pub mod control;

// Known to all, knowing nobody.
pub mod duration;
pub mod error;
pub mod event;
pub mod nearest;
pub mod plural;
pub mod redact;
mod trust;
mod user_file;
pub mod yaml;

// The command line around it.
mod app;
pub mod cli;
pub mod commands;
