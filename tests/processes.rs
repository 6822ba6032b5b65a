//! The supervisor against real processes that misbehave: a test for each promise of `src/process/`.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "processes/bytes.rs"]
mod bytes;
#[path = "processes/clocks.rs"]
mod clocks;
#[path = "processes/death.rs"]
mod death;
#[path = "processes/delivery.rs"]
mod delivery;
#[path = "processes/errors.rs"]
mod errors;
#[path = "processes/orphans.rs"]
mod orphans;
#[path = "processes/scale.rs"]
mod scale;
#[path = "processes/stop.rs"]
mod stop;
#[path = "processes/support.rs"]
mod support;
#[path = "processes/terminal.rs"]
mod terminal;
