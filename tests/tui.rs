//! The full-screen view: as pictures without a terminal, and in a real pseudo-terminal behind a terminal emulator.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "tui/agent_screen.rs"]
mod agent_screen;
#[path = "transcripts/capture.rs"]
#[allow(dead_code)]
mod capture;
#[path = "tui/history.rs"]
mod history;
#[path = "tui/keys.rs"]
mod keys;
#[cfg(target_os = "linux")]
#[path = "tui/load.rs"]
mod load;
#[path = "tui/picture.rs"]
mod picture;
#[path = "tui/pty.rs"]
#[allow(dead_code)]
mod pty;
#[path = "tui/restore.rs"]
mod restore;
#[path = "tui/screens.rs"]
mod screens;
#[path = "tui/states.rs"]
mod states;
#[path = "tui/steer.rs"]
mod steer;
mod support;
