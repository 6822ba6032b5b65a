//! `ralph show`: what one run came to.

use crate::app::appearance::appearance;
use crate::app::find::{Here, print, shown};
use crate::cli::history::ShowRun;
use crate::error::UserError;
use crate::ui::history::{full, markdown};
use crate::ui::out;
use crate::ui::pretty;

pub(crate) fn run(args: &ShowRun) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.id.as_deref())?;
    let told = here.tell(&run)?;
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
    let appearance = appearance(args.looks);
    shown(out::print_painted(&full(&told, appearance.palette, &appearance.glyphs)))
}
