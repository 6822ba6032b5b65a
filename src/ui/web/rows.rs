//! A record as the page shows it: words, not fields. The wording is that of every other view (`words.rs`); all texts are
//! free of control characters and of characters that change the direction of writing.

use serde_json::{Value, json};

use crate::event::{Event, Known, Status, Tag, TodoItem, TodoStatus};
use crate::journal::{Body, CheckResult, Fact, Receipt, Record};
use crate::ui::model::Call;
use crate::ui::style::{Glyphs, Ink};
use crate::ui::text::{cut, safe};
use crate::ui::{figures, words};

/// How much of a text a row has. The rest is fetched on a click.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub words: usize,
    pub output: usize,
}

impl Limits {
    /// For a page of a run.
    pub(super) const PAGE: Self = Self { words: 64 * 1024, output: 4 * 1024 };
    /// For a file that has nobody to ask for more.
    pub(super) const FILE: Self = Self { words: 256 * 1024, output: 64 * 1024 };
    /// For one record that someone wants to see in full.
    pub(super) const FULL: Self = Self { words: 2 * 1024 * 1024, output: 2 * 1024 * 1024 };
}

/// The class of a colour.
pub(super) const fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Good | Ink::Added => "good",
        Ink::Bad | Ink::Removed => "bad",
        Ink::Warn => "warn",
        Ink::Agent => "live",
        Ink::Dim => "dim",
        _ => "",
    }
}

/// Text as a page may show it.
pub(super) fn plain(text: &str) -> String {
    text.split('\n').map(|line| safe(line.trim_end_matches('\r'))).collect::<Vec<_>>().join("\n")
}

/// The row of a record; `None` for what a page does not show.
pub(super) fn row(record: &Record, offset: u64, limits: Limits) -> Option<Value> {
    let mut row = match &record.body {
        Body::Agent { event, .. } => of_event(event, record, limits)?,
        Body::Loop(fact) => of_fact(fact, record, limits)?,
        Body::Unknown { kind, .. } => say("SYS", Ink::Warn, &words::unknown(kind)),
    };
    row["o"] = offset.into();
    row["at"] = record.at.as_millisecond().into();
    Some(row)
}

/// Puts a text into a row, and how long it is when that is not all of it.
fn put(row: &mut Value, name: &str, text: &str, most: usize) {
    let end = text.floor_char_boundary(most);
    row[name] = plain(&text[..end]).into();
    if end < text.len() {
        row["cut"] = text.len().into();
    }
}

fn say(tag: &str, ink: Ink, text: &str) -> Value {
    json!({ "k": "say", "tag": tag, "ink": class(ink), "text": plain(text) })
}

fn of_event(event: &Event, record: &Record, limits: Limits) -> Option<Value> {
    Some(match event {
        Event::Text { tag, text, delta, parent } => {
            let most = if *tag == Tag::Tool { limits.output } else { limits.words };
            let mut row = json!({ "k": "text", "tag": tag.name(), "delta": delta, "nested": parent.is_some() });
            put(&mut row, "text", text, most);
            row
        }
        Event::ToolStart { tool, parent } => {
            let call = Call::new(tool, parent.is_some(), record.seq, record.at);
            let mut row = json!({
                "k": "tool", "id": plain(&tool.id), "name": plain(&tool.name), "what": plain(&call.argument),
                "nested": call.nested,
            });
            if let Some(input) = &tool.input {
                put(&mut row, "input", &format!("{:#}", Value::Object(input.clone())), limits.output);
            }
            if let Some(change) = &call.change {
                let lines: Vec<String> = change.lines.iter().map(|line| plain(line)).collect();
                row["change"] = json!({ "added": change.added, "removed": change.removed, "lines": lines });
            }
            row
        }
        Event::ToolOutput { tool, text, delta, .. } => {
            let mut row = json!({ "k": "out", "id": plain(&tool.id), "delta": delta });
            put(&mut row, "text", text, limits.output);
            row
        }
        Event::ToolEnd { tool, .. } => {
            let status = match tool.status {
                Status::Ok => "ok",
                Status::Fail => "fail",
                Status::Unknown => "unknown",
            };
            json!({ "k": "end", "id": plain(&tool.id), "status": status, "ms": tool.duration_ms })
        }
        Event::Usage { .. } => return None,
        Event::Meta { meta } => match meta.known()? {
            Known::Todo { items } => json!({ "k": "plan", "items": plan(&items) }),
            known => words::meta(known).map(|(text, ink)| say("SYS", ink, &cut(&text, limits.output)))?,
        },
    })
}

/// The items of a plan.
pub(super) fn plan(items: &[TodoItem]) -> Vec<Value> {
    let item = |item: &TodoItem| {
        let status = match item.status {
            TodoStatus::Done => "done",
            TodoStatus::InProgress => "doing",
            TodoStatus::Cancelled => "cancelled",
            TodoStatus::Pending => "open",
        };
        json!({ "status": status, "text": plain(&item.text) })
    };
    items.iter().map(item).collect()
}

pub(super) fn check(check: &CheckResult) -> Value {
    json!({
        "name": plain(&check.name), "command": plain(&check.command), "passed": check.passed,
        "ended": plain(&check.ended), "ms": check.duration_ms, "tail": plain(&check.tail),
    })
}

fn of_fact(fact: &Fact, record: &Record, limits: Limits) -> Option<Value> {
    Some(match fact {
        Fact::Display { text, .. } => {
            let mut row = json!({ "k": "text", "tag": "TOOL", "delta": false });
            put(&mut row, "text", text, limits.output);
            row
        }
        Fact::RunStart { .. } => {
            let parts = words::run_start(fact, " · ");
            say("RUN", Ink::Dim, &parts.join("\n"))
        }
        Fact::Verification { passed, checks, asked, .. } => {
            let (verdict, ink) = words::verification(*asked, *passed, checks);
            let checks: Vec<Value> = checks.iter().map(check).collect();
            json!({ "k": "checks", "passed": passed, "ink": class(ink), "text": plain(&verdict), "checks": checks })
        }
        Fact::IterationEnd { receipt } => of_receipt(receipt),
        Fact::RunEnd { outcome, reason, changed, .. } => {
            let (word, ink) = words::outcome(*outcome);
            let mut row = say("END", ink, &format!("{word}: {reason}"));
            if let Some(changed) = changed {
                row["more"] = words::changed(changed, &Glyphs::UNICODE).into();
            }
            row
        }
        other => {
            let words::Phrase { tag, ink, text } = words::fact(other, record.at)?;
            say(tag, ink, &text)
        }
    })
}

fn of_receipt(receipt: &Receipt) -> Value {
    let (parts, ink) = words::report(receipt);
    let files: Vec<String> = receipt.files.iter().map(|file| plain(file)).collect();
    let commits: Vec<String> = receipt.commits.iter().map(|commit| plain(commit)).collect();
    let left: Vec<String> = words::left_behind(receipt).map(|line| plain(&line)).collect();
    json!({
        "k": "receipt", "n": receipt.iteration, "ink": class(ink), "text": parts.join(" · "), "left": left,
        "files": files, "count": receipt.file_count(), "commits": commits,
        "lines": receipt.lines.map(words::plus_minus),
        "tools": figures::plural(u64::from(receipt.tools), "tool"), "failed": receipt.tools_failed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_character_that_a_page_would_obey() {
        assert_eq!(plain("a\r\nb\u{202e}c\u{1b}[0m"), "a\nb\u{fffd}c\u{241b}[0m");
    }

    #[test]
    fn a_long_text_is_cut_and_says_how_long_it_is() {
        let event = Event::text(Tag::Ai, "ä".repeat(100));
        let body = Body::Agent { iteration: 1, from: crate::event::Stream::Stdout, event };
        let record = Record { seq: 1, at: jiff::Timestamp::UNIX_EPOCH, body };
        let row = row(&record, 7, Limits { words: 11, output: 5 }).unwrap();
        assert_eq!((row["text"].as_str(), row["cut"].as_u64(), row["o"].as_u64()), (Some("äääää"), Some(200), Some(7)));
    }
}
