//! `ralph config`: the effective values here, and where they come from.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::app::appearance::{columns, palette};
use crate::app::choose::settle;
use crate::app::warn;
use crate::app::working_directory;
use crate::cli::{Config, ConfigAction};
use crate::config::{self, Adapter, FileLayer, Layer, Origin, Settings};
use crate::error::UserError;
use crate::nearest::nearest;
use crate::redact::Redactor;
use crate::ui::{Ink, Palette, harmless, out, width};

/// Runs `ralph config` or `ralph config get`.
pub(crate) fn run(args: &Config) -> Result<u8, UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(args.config.clone(), &workspace)?;
    warn(&file.warnings);
    let said = config::environment().over(file.layer.clone());
    // A plug-in that cannot be found is a run's error; the other values are worth showing.
    let settings = settle(said.clone(), &file, &workspace).unwrap_or_else(|error| {
        warn([error.message]);
        said.settle()
    });
    let text = match &args.action {
        Some(ConfigAction::Get(get)) => {
            let (value, origin) = value_of(&get.key, &settings, &file)?;
            match (args.json, value) {
                (true, value) => format!("{:#}\n", described(&value, &origin)),
                (false, Json::Null) => String::new(),
                (false, Json::String(text)) => format!("{text}\n"),
                (false, value) => format!("{value}\n"),
            }
        }
        None if args.json => format!("{:#}\n", all(&settings, &file)),
        None => config::effective(&settings, &file.adapters),
    };
    let text = Redactor::of_process().text(&text).unwrap_or(text);
    let is_page = args.action.is_none() && !args.json;
    // The reader may be gone.
    let _ = if is_page { out::print_painted(&page(&text, columns().count(), palette())) } else { out::print(&text) };
    Ok(0)
}

/// The values as a terminal shows them: where a value comes from is dim, and on a line of its own where there is no room
/// behind the value.
fn page(text: &str, columns: usize, palette: Palette) -> String {
    let mut page = String::new();
    for line in text.lines() {
        // Only text without control characters reaches a terminal, so that colours are only ralph's.
        let line = harmless(line);
        let margin = " ".repeat(line.len() - line.trim_start().len());
        match line.rsplit_once("  # ") {
            Some((value, origin)) if width(&line) > columns => {
                let origin = palette.paint(Ink::Dim, &format!("# {origin}"));
                let _ = writeln!(page, "{margin}{origin}\n{value}");
            }
            Some((value, origin)) => {
                let _ = writeln!(page, "{value}  {}", palette.paint(Ink::Dim, &format!("# {origin}")));
            }
            None if line.trim_start().starts_with('#') => page += &(palette.paint(Ink::Dim, &line) + "\n"),
            None if line.ends_with(':') => page += &(palette.paint(Ink::Strong, &line) + "\n"),
            None => page += &(line + "\n"),
        }
    }
    page
}

fn described(value: &Json, origin: &str) -> Json {
    json!({"value": value, "origin": origin})
}

/// Every key with its value and its origin.
fn all(settings: &Settings, file: &FileLayer) -> Json {
    let layer = settings.layer();
    let rows = layer.rows().into_iter();
    let rows = rows.map(|row| (row.key.path.to_owned(), described(&row.written, &row.origin.to_string())));
    let adapters = file.adapters.iter().flat_map(|(agent, adapter)| {
        let rows = adapter.rows().into_iter();
        rows.map(move |row| {
            (format!("adapters.{agent}.{}", row.key.path), described(&row.written, &row.origin.to_string()))
        })
    });
    rows.chain(adapters).collect::<Map<_, _>>().into()
}

/// One value and who says so; a key of an adapter that nobody mentions has its default.
fn value_of(key: &str, settings: &Settings, file: &FileLayer) -> Result<(Json, String), UserError> {
    let layer = settings.layer();
    let meant = config::renamed(key).unwrap_or(key);
    if let Some(row) = layer.rows().into_iter().find(|row| row.key.path == meant) {
        return Ok((row.written, row.origin.to_string()));
    }
    if let Some((agent, name)) = key.strip_prefix("adapters.").and_then(|rest| rest.split_once('.'))
        && let Some(known) = Adapter::KEYS.iter().find(|known| known.path == name)
    {
        let adapter = file.adapter(agent);
        let row = adapter.rows().into_iter().find(|row| row.key.path == name);
        return Ok(row.map_or_else(
            || ((known.default)(), Origin::Default.to_string()),
            |row| (row.written, row.origin.to_string()),
        ));
    }
    Err(unknown(key))
}

fn unknown(key: &str) -> UserError {
    let known: Vec<&str> = Layer::KEYS.iter().map(|known| known.path).collect();
    let inside: Vec<&str> = known.iter().copied().filter(|path| path.starts_with(&format!("{key}."))).collect();
    if !inside.is_empty() {
        return UserError::usage(format!("`{key}` is a section, not a key"))
            .hint(format!("its keys: {}", inside.join(", ")));
    }
    let error = UserError::usage(format!("unknown key `{key}`"));
    // A key without its section is the usual slip.
    let meant = nearest(key, known.iter().copied())
        .or_else(|| known.iter().copied().find(|path| path.rsplit('.').next() == Some(key)));
    match meant {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint("`ralph config` shows all keys"),
    }
}
