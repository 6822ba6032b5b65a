//! `ralph show`: what one run came to.

use crate::app::appearance::appearance;
use crate::app::find::{Here, print, shown};
use crate::cli::history::ShowRun;
use crate::error::UserError;
use crate::ui::history::{full, markdown};
use crate::ui::out;
use crate::ui::{pretty, state_key};

pub(crate) fn run(args: &ShowRun) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    let run = here.details(&run)?;
    if args.json {
        let mut value = serde_json::to_value(&run.summary).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            // What only the loop reads, and what only the summary itself needs.
            for key in ["memory", "form", "covers", "decided", "remembered"] {
                object.remove(key);
            }
            object.insert("place".into(), run.place_json());
            object.insert("outcome".into(), state_key(run.state).into());
            object.insert("rejected".into(), run.summary.last_claim_was_rejected().into());
            object.insert("prompt_words".into(), run.words.into());
        }
        return print(&pretty(&value));
    }
    if args.markdown {
        return print(&markdown(&run));
    }
    let appearance = appearance(args.appearance);
    shown(out::print_painted(&full(&run, &appearance)))
}
