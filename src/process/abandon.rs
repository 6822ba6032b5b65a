//! The end of a tree that nobody drives any more: its handle was dropped, or could not be made.
//!
//! It must never hold the caller up, and never forget the tree before it is gone.

use std::time::{Duration, Instant};

use super::stop::{Look, Next, Sweep};
use super::tree::{Exited, Tree};

/// Kills a tree that nobody drives any more: at once, and then on a thread until all of it is gone.
pub(super) fn end_detached(mut tree: Tree) {
    tree.kill_groups();
    let _ = tree.sweep(Exited::Reap);
    let finish = move || {
        let started = Instant::now();
        let mut sweep = Sweep::start(Duration::ZERO);
        loop {
            let look = match tree.sweep(Exited::Reap) {
                Ok(swept) if swept.alive.is_empty() && swept.reaped.is_empty() => Look::Clean,
                Ok(_) => Look::Alive,
                Err(_) => Look::Unknown,
            };
            match sweep.looked(started.elapsed(), look) {
                Next::Again(again) => sweep = again,
                Next::Done => return tree.release(),
                // The guardian tries again when ralph ends.
                Next::GiveUp => return,
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    // Without a thread the rest is left to the parent-death signal and the guardian.
    let _ = std::thread::Builder::new().name("sweep".into()).spawn(finish);
}
