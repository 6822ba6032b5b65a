//! `ralph tasks`: the tasks of a source, checked.

use std::fmt::Write as _;

use crate::app::find::print;
use crate::app::working_directory;
use crate::batch::sources;
use crate::batch::task::TaskId;
use crate::cli::batch::Tasks;
use crate::error::UserError;
use crate::plural::plural;
use crate::ui::harmless;

pub(crate) fn run(args: &Tasks) -> Result<u8, UserError> {
    let found = sources::open(args.source.as_deref(), &working_directory()?)?.read()?;
    sources::check(&found, &[])?;
    let tasks: Vec<_> = found.into_iter().map(|found| found.task).collect();
    if args.json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "tasks": tasks })).unwrap_or_default();
        return print(&format!("{text}\n"));
    }
    let width = tasks.iter().map(|task| task.id.as_str().len()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for task in &tasks {
        let _ = write!(text, "{:<width$}  {}", task.id, harmless(&task.title));
        if !task.needs.is_empty() {
            let needs: Vec<&str> = task.needs.iter().map(TaskId::as_str).collect();
            let _ = write!(text, "  (needs {})", needs.join(", "));
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{}",
        if tasks.is_empty() { "no open tasks".to_owned() } else { plural(tasks.len() as u64, "task") }
    );
    print(&text)
}
