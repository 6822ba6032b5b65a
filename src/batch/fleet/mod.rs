//! A batch on many machines, through NATS `JetStream`: what is sent, what is kept, and the decisions about it. Nothing here does I/O;
//! `app/fleet/` does.

pub(crate) mod chunk;
pub(crate) mod entry;
pub(crate) mod names;
pub(crate) mod policy;
pub(crate) mod submitted;
