//! What happened, on disk before anybody sees it.
//!
//! One directory a run: `journal.jsonl` with one record a line, and the raw bytes of each iteration.
//! Whoever shows a run reads records; nobody else writes here.

pub mod disk;
pub mod events_file;
pub mod lock;
pub mod raw;
pub mod reader;
pub mod receipt;
pub mod record;
pub mod redact;
pub mod store;
pub mod summary;
pub mod writer;

pub use events_file::EventsFile;
pub use lock::{Holder, Lock, LockError};
pub use reader::Reader;
pub use receipt::{CheckResult, Cost, CostSource, Receipt, Topic};
pub use record::{Body, Fact, Outcome, Record};
pub use redact::Redactor;
pub use store::{RunDirectory, Store};
pub use summary::Summary;
pub use writer::{Journal, Raw};
