//! ralph runs your coding agent in a loop until your checks say it's done.
//!
//! The modules, in the order of the pipeline:
//! config → agent → process → transcript → signals → run → journal → ui.

#![warn(unreachable_pub)]
// The documentation is read by people who change ralph, so links to private items are useful.
#![allow(rustdoc::private_intra_doc_links)]

pub mod config;

pub mod agent;

pub mod process;

pub mod transcript;

pub mod stream;

pub mod emit;

pub mod signals;

mod run;

mod batch;

pub mod plugin;

pub mod journal;

mod git;
mod sandbox;
mod terminal;

pub mod ui;

pub mod control;

// Known to all, knowing nobody.
mod duration;
mod error;
pub mod event;
mod local_time;
mod nearest;
mod plural;
pub mod redact;
mod trust;
mod user_file;
pub mod yaml;

// The command line around it.
mod app;
mod cli;
pub mod commands;
