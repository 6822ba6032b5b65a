//! Whether code that comes with a repository runs without a question.

use super::value::words;

/// Whether code of a repository runs without a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Starting ralph there is the consent, as with any build tool.
    #[default]
    Always,
    /// A person is asked the first time, and when a file has changed.
    Ask,
}

words! { Trust { "always" => Always, "ask" => Ask } }
