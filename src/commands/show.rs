//! `ralph show`: what one run came to.

use super::find::{Here, print};
use super::looks::looks;
use crate::cli::history::ShowRun;
use crate::error::UserError;
use crate::ui::history::{full, markdown};
use crate::ui::pretty;

/// Shows one run.
pub fn run(args: &ShowRun) -> Result<u8, UserError> {
    let here = Here::find()?;
    let told = here.tell(&here.run(args.id.as_deref())?)?;
    if args.json {
        let mut value = serde_json::to_value(&told.summary).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            // What only the loop reads, and what only the summary itself needs.
            for key in ["memory", "form", "covers", "decided", "remembered"] {
                object.remove(key);
            }
            object.insert("outcome".into(), told.standing.name().replace([' ', '-'], "_").into());
            object.insert("prompt_words".into(), told.words.into());
        }
        return print(&pretty(&value));
    }
    if args.markdown {
        return print(&markdown(&told));
    }
    let looks = looks(args.looks);
    print(&full(&told, looks.palette, &looks.glyphs))
}
