//! `ralph schema`: what a file may contain, for editors.

use crate::agent;
use crate::cli::{Schema, Subject};
use crate::config;
use crate::ui::out;

pub(crate) fn run(args: &Schema) -> u8 {
    let schema = match args.subject {
        Subject::Config => config::schema(),
        Subject::Agent => agent::schema::schema(),
    };
    // The reader may be gone.
    let _ = out::print(&format!("{schema:#}\n"));
    0
}
