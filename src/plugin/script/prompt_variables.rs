//! The variables that a prompt of an agent script's loop may use: a closed list, filled before each try.

use std::path::Path;

use super::PLAN;
use super::plan_slices::Plan;
use crate::run::prompt::Source;
use crate::user_file;

/// Process specifications below both of these fit into one iteration of planning.
const SMALL_BYTES: u64 = 50 * 1024;
const SMALL_FILES: usize = 5;

/// The mode of that loop which a prompt belongs to: the name of a file in its `prompts`.
pub(super) fn mode(prompt: &Source, home: &Path) -> &'static str {
    let Source::File(path) = prompt else { return "prompt" };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let is_shipped = path.parent().is_some_and(|parent| parent.ends_with("prompts") && home.join("prompts").is_dir());
    match stem.as_str() {
        "plan" | "plan-process" if is_shipped => "plan",
        "build" | "build-process" if is_shipped => "build",
        "align-specs" if is_shipped => "align-specs",
        _ => "prompt",
    }
}

/// All variables, with those that the plan and the specifications say now.
pub(super) fn all(exports: &[(String, String)], mode: &str, home: &Path, workspace: &Path) -> Vec<(String, String)> {
    let text = match mode {
        "build" => user_file::read_text(&home.join(PLAN), user_file::MOST_BYTES).unwrap_or_default(),
        _ => String::new(),
    };
    let plan = Plan::read(&text);
    let (task, neighbours) = plan.selected().filter(|_| plan.is_process()).unwrap_or_default();
    let hint = exports.iter().find(|(name, value)| name == "PROCESS_DIR" && !value.is_empty());
    let hint = hint.filter(|_| mode == "plan").map(|(_, place)| volume(&workspace.join(place))).unwrap_or_default();
    let fresh = [
        ("MODE", mode.to_owned()),
        ("PLAN_HEADER", plan.header()),
        ("TASK_OVERVIEW", plan.overview()),
        ("SELECTED_TASK", task),
        ("ADJACENT_CONTEXT", neighbours),
        ("SPEC_VOLUME_HINT", hint),
    ];
    let fixed = exports.iter().filter(|(name, _)| fresh.iter().all(|(known, _)| known != name)).cloned();
    fixed.chain(fresh.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
}

/// How much there is to plan.
fn volume(place: &Path) -> String {
    let files = std::fs::read_dir(place).into_iter().flatten().flatten();
    let files = files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "md"));
    let sizes: Vec<u64> = files.filter_map(|entry| Some(entry.metadata().ok()?.len())).collect();
    let (count, bytes) = (sizes.len(), sizes.iter().sum::<u64>());
    let advice = if bytes < SMALL_BYTES && count < SMALL_FILES {
        "plan all of it in one iteration"
    } else {
        "plan it over several iterations"
    };
    format!("Process specifications: {count} files, {} KB; {advice}.", bytes / 1024)
}
