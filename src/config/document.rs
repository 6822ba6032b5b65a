//! The settings as documents: the effective ones as a `ralph.yml`, a commented one to begin with, and the table for the
//! handbook. All of them follow the tables of keys.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::adapter::{Adapter, SECTION};
use super::settings::{Layer, Settings};
use super::table::{Key, Row};
use crate::yaml::write::{entry, flow, head};

/// The effective value, as a valid `ralph.yml` in which a comment says where each value comes from.
pub fn effective(settings: &Settings, adapters: &[(String, Adapter)]) -> String {
    let layer = settings.layer();
    let rows = layer.rows();
    let mut text = layout("", 0, &|key, name, depth| {
        let row = rows.iter().find(|row| row.key.path == key.path);
        match row {
            Some(row) if !row.written.is_null() => entry(depth, name, &row.written, Some(&row.origin.to_string())),
            _ => format!("{}# {name}: not set\n", "  ".repeat(depth)),
        }
    });
    if !adapters.is_empty() {
        let _ = writeln!(text, "\n{SECTION}:");
    }
    for (agent, adapter) in adapters {
        let rows = adapter.rows();
        let nothing = if rows.is_empty() { " {}" } else { "" };
        let _ = writeln!(text, "{}{nothing}", head(1, agent));
        for Row { key, written, origin, .. } in rows {
            text += &entry(2, key.path, &written, Some(&origin.to_string()));
        }
    }
    text
}

/// A `ralph.yml` to begin with: every key with what it is for, all but the agent and what is taken over as comments.
pub fn template(agent: &str, remark: &str, taken: &Layer) -> String {
    let rows = taken.rows();
    let keys = layout("", 0, &|key, name, depth| {
        let margin = "  ".repeat(depth);
        let sentence = format!("{margin}# {}\n", key.doc());
        match key.path {
            "agent" => format!("{sentence}{margin}{name}: {agent}  # {remark}\n"),
            path => match rows.iter().find(|row| row.key.path == path) {
                Some(row) => sentence + &entry(depth, name, &row.written, Some(&row.origin.to_string())),
                None => format!("{sentence}{margin}# {name}:{}\n", default_of(key)),
            },
        }
    });
    let adapter =
        Adapter::KEYS.iter().map(|key| format!("#     # {}\n#     {}:{}\n", key.doc(), key.path, default_of(key)));
    format!(
        "# Settings of ralph for this directory and below. `ralph config` shows the effective values and their origin.\n\
         # Lines that start with `#` show the defaults; remove the `#` to change one.\n\n{keys}\n\
         # Settings of one agent, by its name; `ralph agents` lists the names.\n# {SECTION}:\n\
         #   {}:\n{}",
        if agent == "auto" || agent.contains(':') { "claude" } else { agent },
        adapter.collect::<String>(),
    )
}

/// A `ralph.yml` with the few settings that most projects need. `check` is a command and the file that it was found in.
pub(crate) fn short(agent: &str, check: Option<(&str, &str)>, no_sandbox: Option<&str>) -> String {
    let verify = match check {
        Some((command, source)) => {
            let command = flow(&command.into());
            format!(
                "# A completion is accepted only when these commands pass (found in {source}).\nverify:\n  - {command}\n"
            )
        }
        None => "# Without a check, ralph believes the agent.\n# verify: [your test command]\n".to_owned(),
    };
    let sandbox = match no_sandbox {
        None => {
            "# A wall around everything the agent starts; see `ralph sandbox explain`.\nsandbox: workspace\n".to_owned()
        }
        Some(reason) => format!("# No wall around the agent here: {reason}.\n# sandbox: workspace\n"),
    };
    format!(
        "# Settings of ralph for this directory. Every key: `ralph init --full`. Effective values: `ralph config`.\n\
         agent: {agent}\n{verify}{sandbox}event_loop:\n  max_iterations: 30\n  max_cost_usd: 10\n"
    )
}

/// The default behind its colon; nothing when there is none.
fn default_of(key: &Key) -> String {
    match (key.default)() {
        Json::Null => String::new(),
        default => format!(" {}", flow(&default)),
    }
}

/// All keys in their sections, in the order of the table; `line` writes one key by its last name at its depth.
fn layout(prefix: &str, depth: usize, line: &dyn Fn(&Key, &str, usize) -> String) -> String {
    let mut text = String::new();
    let mut seen = Vec::new();
    // At the top, a blank line goes around each section, and none between plain keys.
    let mut after_section = false;
    for (key, rest) in Layer::KEYS.iter().filter_map(|key| key.path.strip_prefix(prefix).map(|rest| (key, rest))) {
        match rest.split_once('.') {
            None => {
                if depth == 0 && after_section {
                    text.push('\n');
                }
                after_section = false;
                text += &line(key, rest, depth);
            }
            Some((section, _)) if seen.contains(&section) => {}
            Some((section, _)) => {
                if depth == 0 && !text.is_empty() {
                    text.push('\n');
                }
                after_section = true;
                seen.push(section);
                let _ = writeln!(text, "{}", head(depth, section));
                text += &layout(&format!("{prefix}{section}."), depth + 1, line);
            }
        }
    }
    text
}

/// The keys as a Markdown table.
pub fn handbook() -> String {
    let adapters = Adapter::KEYS.iter().map(|key| (format!("{SECTION}.NAME.{}", key.path), key));
    let keys = Layer::KEYS.iter().map(|key| (key.path.to_owned(), key));
    let line = |(path, key): (String, &Key)| {
        let default = Some(default_of(key)).filter(|default| !default.is_empty());
        let default = default.map_or_else(String::new, |default| format!("`{}`", default.trim_start()));
        format!("| `{path}` | {default} | {} |\n", key.doc().replace('|', "\\|"))
    };
    let title = "| key | default | what it is for |\n|---|---|---|\n".to_owned();
    std::iter::once(title).chain(keys.chain(adapters).map(line)).collect()
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
