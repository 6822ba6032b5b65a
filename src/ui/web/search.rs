//! Finds words in a journal, a part of it at a time, so that a search in a long run answers soon and can be given up.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rows::{self, Limits};
use crate::journal::{Body, Fact, Reader};
use crate::ui::text::cut;

/// One answer has at most this many places
const MOST: usize = 50;
/// and takes at most this long.
const PATIENCE: Duration = Duration::from_millis(400);

/// The next places where the words are, from an offset on, and where to continue.
pub(super) fn find(journal: &Path, words: &str, from: u64) -> io::Result<Value> {
    let (start, words) = (Instant::now(), words.to_lowercase());
    let mut reader = Reader::open(journal, from)?;
    let (mut hits, mut at, mut iteration, mut finished) = (Vec::new(), from, 0, false);
    while hits.len() < MOST && start.elapsed() < PATIENCE {
        let Some(record) = reader.read()? else {
            finished = true;
            break;
        };
        let offset = std::mem::replace(&mut at, reader.offset());
        let Ok(record) = record else { continue };
        match &record.body {
            Body::Agent { iteration: now, .. } | Body::Loop(Fact::IterationStart { iteration: now, .. }) => {
                iteration = *now;
            }
            _ => {}
        }
        let Some(row) = rows::row(&record, offset, Limits::PAGE) else { continue };
        let texts = ["text", "what", "name", "input"].iter().filter_map(|name| row[*name].as_str());
        if let Some(line) = texts.flat_map(str::lines).find(|line| line.to_lowercase().contains(&words)) {
            hits.push(json!({ "o": offset, "n": iteration, "k": row["k"], "line": cut(line.trim(), 200) }));
        }
    }
    Ok(json!({ "hits": hits, "next": if finished { Value::Null } else { at.into() } }))
}
