//! What happened, on disk before anybody sees it.
//!
//! One directory a run: `journal.jsonl` with one record a line, and the raw bytes of each iteration.
//! Whoever shows a run reads records; nobody else writes here.

pub(crate) mod activity;
pub(crate) mod compared;
pub mod disk;
pub(crate) mod events_file;
pub(crate) mod follow;
pub(crate) mod judgement;
pub(crate) mod lock;
pub(crate) mod place;
pub mod raw;
pub(crate) mod reader;
pub(crate) mod receipt;
pub(crate) mod record;
mod safe_copy;
pub(crate) mod store;
pub(crate) mod summary;
mod summary_parts;
pub(crate) mod writer;

pub(crate) use activity::Activity;
pub use compared::Compared;
pub(crate) use events_file::EventsFile;
pub(crate) use follow::{Follow, Wake};
pub use judgement::Judgement;
pub use judgement::Ruling;
pub use lock::Holder;
pub use lock::Lock;
pub use lock::LockError;
pub use reader::Reader;
pub use receipt::Asked;
pub use receipt::CheckResult;
pub use receipt::Cost;
pub use receipt::CostSource;
pub use receipt::IterationOutcome;
pub use receipt::Receipt;
pub use receipt::{Changed, Lines};
pub use record::Body;
pub use record::Fact;
pub use record::Outcome;
pub use record::Record;
pub use record::SandboxEvent;
pub use store::RunDirectory;
pub use store::State;
pub use store::Store;
pub use summary::Summary;
pub(crate) use writer::Appended;
pub use writer::Journal;
pub use writer::Raw;
