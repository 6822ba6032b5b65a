//! Hosts that the proxy refused, until someone records them. Bounded: an agent can ask for as many as it likes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

const MOST: usize = 1000;

/// Shared by the proxies of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    known: BTreeSet<String>,
    new: Vec<String>,
}

impl Refusals {
    /// Notes a host, once for a run.
    pub(super) fn add(&self, target: String) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.known.len() < MOST && noted.known.insert(target.clone()) {
            noted.new.push(target);
        }
    }

    /// Those that nobody has asked for yet.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).new)
    }
}
