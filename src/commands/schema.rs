//! `ralph schema`: what may stand in a file, for editors.

use std::io::Write as _;

use crate::agent;
use crate::cli::{Schema, Subject};
use crate::config;

/// Prints a schema.
pub fn run(args: &Schema) -> u8 {
    let schema = match args.subject {
        Subject::Config => config::schema(),
        Subject::Agent => agent::schema::schema(),
    };
    // Nobody may be left to read it.
    let _ = writeln!(std::io::stdout(), "{schema:#}");
    0
}
