//! What becomes of the branch of a run, and who commits to it.

use super::value::words;
use crate::run::Commit;

/// What happens to the branch of a completed run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// Nothing: the next commands are printed.
    #[default]
    None,
    /// Rebase, run the checks, fast-forward.
    Ff,
    /// The same as one commit.
    Squash,
    /// Push and open a pull request.
    Pr,
}

words! { Merge { "none" => None, "ff" => Ff, "squash" => Squash, "pr" => Pr } }

words! { Commit { "agent" => Agent, "iteration" => Iteration } }
