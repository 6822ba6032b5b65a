//! A scripted agent for ralph's tests: it speaks the dialects of the real agents and misbehaves on demand.
//!
//! Tests build a [`Script`] that reads like a sentence and run the binary on it. A leaf: it must never depend on
//! ralph, or a mistake in ralph could hide in both.

mod binary;
mod dialect;
mod iteration;
mod mischief;
mod play;
mod record;
mod script;

pub use binary::binary;
pub use dialect::Dialect;
pub use iteration::{Iteration, says, silent, thinks};
pub use mischief::{child, is_child};
pub use play::play;
pub use record::Recorded;
pub use script::{Choose, Finish, Script, Speech, Status, Stdin, Step, Tokens, ToolCall};
