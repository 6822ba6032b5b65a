//! `ralph run --dry-run`: what would be run, with which prompt, settings and limits. It starts nothing of the repository,
//! except a driver that this user has run here before.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::agent::Turn;
use crate::app::planning::Planned;
use crate::app::repository::NOT_EXAMINED;
use crate::cli::Output;
use crate::config::Row;
use crate::error::UserError;
use crate::plugin;
use crate::plural::plural;
use crate::process;
use crate::run::{Worker, start_error};

/// The whole report, for people or as JSON.
pub(crate) fn report(planned: &Planned, output: Output) -> Result<String, UserError> {
    let Planned { plan, settings, defined_by, why, .. } = planned;
    let (words, mut prompt) = plan.first_prompt()?;
    let Worker { agent, transcript, .. } = plan.chosen();
    if let Some(file) = &agent.plugin {
        prompt = plugin::settings::filled(file, &plan.prompt, &prompt, &plan.workspace);
    }
    let examined = !plan.notices.iter().any(|notice| notice == NOT_EXAMINED);
    let turn = Turn { way: plan.screen.way(), ..Turn::new(&prompt, &plan.workspace) };
    let program = process::check(&agent.invocation(&turn)?).map_err(|error| start_error(&error))?;
    let definition = &agent.definition;
    let source = defined_by.as_ref().map_or_else(|| "the command you gave".to_owned(), ToString::to_string);
    let line = match &agent.plugin {
        None => agent.shell_line(&turn)?,
        Some(file) if examined => plugin::settings::command_line(agent, file, &words, &plan.workspace)?,
        Some(_) => NOT_EXAMINED.to_owned(),
    };
    let layer = settings.layer();
    let rows = layer.rows();
    if output == Output::Json {
        let settings = rows
            .iter()
            .map(|row| (row.key.path.to_owned(), json!({"value": row.written, "origin": row.origin.to_string()})));
        let whole = json!({
            "agent": {"id": definition.id, "name": definition.name, "defined": source, "why": why, "program": program},
            "directory": plan.workspace, "output": transcript.name(),
            "prompt": {"from": plan.prompt.name(), "bytes": words.len(), "sent": prompt},
            "notes": plan.notices, "command": line, "settings": Value::Object(settings.collect::<Map<_, _>>()),
        });
        return Ok(format!("{whole:#}\n"));
    }
    let program_said = match agent.plugin {
        Some(_) if !examined => "not checked".to_owned(),
        _ => program.display().to_string(),
    };
    let facts = [
        ("agent", format!("{} ({}), {source}", definition.id, definition.name)),
        ("why", why.clone()),
        ("program", program_said),
        ("directory", plan.workspace.display().to_string()),
        ("output", transcript.name()),
        (
            "prompt",
            format!(
                "{}, {}; {} with what the loop adds",
                plan.prompt.name(),
                plural(words.len() as u64, "byte"),
                prompt.len()
            ),
        ),
    ];
    let mut text = "dry run: nothing is started. This would run:\n\n".to_owned();
    for (name, value) in facts {
        let _ = writeln!(text, "{name:<10} {value}");
    }
    for notice in &plan.notices {
        let _ = writeln!(text, "note       {}", notice.replace('\n', "\n           "));
    }
    let how = if agent.plugin.is_some() { "as its hooks build it" } else { "ready to paste" };
    let _ = writeln!(text, "\nthe first iteration, {how}:\n\n{line}");
    let _ = writeln!(text, "\nsettings, and where they come from:\n");
    let width = |of: fn(&Row<'_>) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (keys, values) = (width(|row| row.key.path.len()), width(|row| row.shown.chars().count()));
    for Row { key, shown, origin, .. } in &rows {
        let _ = writeln!(text, "{:<keys$}  {shown:<values$}  {origin}", key.path);
    }
    Ok(text)
}
