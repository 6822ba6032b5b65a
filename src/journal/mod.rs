//! What happened, on disk before anybody sees it.
//!
//! One directory a run: `journal.jsonl` with one record a line, and the raw bytes of each iteration.
//! Whoever shows a run reads records; nobody else writes here.

pub mod activity;
pub mod disk;
pub mod events_file;
pub mod follow;
pub mod lock;
pub mod raw;
pub mod reader;
pub mod receipt;
pub mod record;
pub mod store;
pub mod summary;
pub mod writer;

pub use activity::Activity;
pub use events_file::EventsFile;
pub use follow::{Follow, Wake};
pub use lock::{Holder, Lock, LockError};
pub use reader::Reader;
pub use receipt::{CheckResult, Cost, CostSource, IterationOutcome, Receipt};
pub use record::{Body, Fact, Outcome, Record};
pub use store::{RunDirectory, State, Store};
pub use summary::Summary;
pub use writer::{Journal, Raw};
