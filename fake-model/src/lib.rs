//! A scripted model server on loopback: it speaks the four protocols that agent CLIs speak to a model, and plays a script.
//!
//! It never leaves the machine, never outlives its bounds, and knows nothing of ralph.

mod dialect;
mod http;
mod play;
mod scenario;
mod server;
mod tools;

pub use play::Exchange;
pub use scenario::{Afterwards, Call, Fault, FaultKind, Scenario, Turn, Usage, Which};
pub use server::{Bounds, Server};
