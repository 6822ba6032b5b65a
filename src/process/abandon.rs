//! The end of a tree that nobody drives any more: its handle was dropped, or could not be made.
//!
//! It must never hold the caller up, and never forget the tree before it is gone.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::stop::{Look, Next, Sweep};
use super::tree::{self, Tree};

/// Kills a tree that nobody drives any more: at once, and then on a thread until all of it is gone.
pub(super) fn end_detached(mut tree: Tree) {
    tree.signal_group(Signal::KILL);
    tree::kill(&tree.members(Instant::now()).unwrap_or_default());
    let finish = move || {
        let started = Instant::now();
        let mut sweep = Sweep::start(Duration::ZERO, Duration::ZERO);
        loop {
            let look = match tree.members(Instant::now()) {
                Ok(members) if tree::kill(&members).is_empty() => Look::Clean,
                _ => Look::Alive,
            };
            match sweep.looked(started.elapsed(), look) {
                Next::Again(again) => sweep = again,
                Next::Done | Next::GiveUp => break,
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        tree.release();
    };
    // Without a thread the rest is left to the parent-death signal and the guardian.
    let _ = std::thread::Builder::new().name("sweep".into()).spawn(finish);
}
