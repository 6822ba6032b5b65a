//! What a view knows of the tools of an iteration: one line each, from events only.

use serde_json::Value;

use super::change::Change;
use crate::event::{Object, Status};

/// More of an argument is never shown.
const LONGEST_ARGUMENT: usize = 200;
/// So many calls are kept; of more, the oldest that have ended and are not shown are forgotten.
const MOST_KEPT: usize = 200;
/// So much of what a call prints is kept from its beginning, and as much from its end.
const KEPT_BYTES: usize = 4096;
pub(crate) const MOST_SHOWN: usize = 20;

#[derive(Clone, Debug)]
pub(crate) struct Call {
    id: String,
    pub name: String,
    pub argument: String,
    /// How it went, once it is over.
    pub status: Option<Status>,
    /// How long it took, when the agent said so.
    pub duration_ms: Option<u64>,
    /// How many lines it printed.
    pub lines: usize,
    /// What it changes, as far as its arguments tell.
    pub change: Option<Change>,
    printed: Printed,
}

/// The beginning and the end of what a call printed.
#[derive(Clone, Debug, Default)]
struct Printed {
    head: String,
    tail: String,
}

impl Printed {
    fn push(&mut self, text: &str) {
        let room = KEPT_BYTES.saturating_sub(self.head.len());
        let (head, rest) = text.split_at(boundary(text, room));
        self.head.push_str(head);
        self.tail.push_str(&rest[boundary(rest, rest.len().saturating_sub(KEPT_BYTES))..]);
        if self.tail.len() > 2 * KEPT_BYTES {
            self.tail.drain(..boundary(&self.tail, self.tail.len() - KEPT_BYTES));
        }
    }
}

/// The last place at which a character begins, at or before this one.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// What is shown of a call's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub first: Vec<String>,
    /// How many lines are left out between the two.
    pub left_out: usize,
    pub last: Vec<String>,
}

impl Call {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The first and the last lines of what it printed.
    pub(crate) fn excerpt(&self, first: usize, last: usize) -> Excerpt {
        let owned = |line: &&str| (*line).to_owned();
        let Printed { head, tail } = &self.printed;
        let whole = if tail.len() < KEPT_BYTES { format!("{head}{tail}") } else { String::new() };
        let (begin, end): (Vec<&str>, Vec<&str>) = if whole.is_empty() {
            (head.lines().collect(), tail.lines().collect())
        } else {
            (whole.lines().collect(), Vec::new())
        };
        let end = if end.is_empty() { &begin } else { &end };
        let first = first.min(self.lines);
        let last = last.min(self.lines - first);
        Excerpt {
            first: begin.iter().take(first).map(owned).collect(),
            left_out: self.lines - first - last,
            last: end[end.len().saturating_sub(last)..].iter().map(owned).collect(),
        }
    }
}

/// The calls of one iteration, in the order they started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    kept: Vec<Call>,
    forgotten: usize,
}

impl Calls {
    pub(crate) fn start(&mut self, id: &str, name: &str, input: Option<&Object>) {
        let argument = input.map(main_argument).unwrap_or_default();
        if self.kept.len() >= MOST_KEPT
            && let Some(old) = (MOST_SHOWN..self.kept.len()).find(|&at| self.kept[at].status.is_some())
        {
            self.kept.remove(old);
            self.forgotten += 1;
        }
        self.kept.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            argument,
            status: None,
            duration_ms: None,
            lines: 0,
            change: input.and_then(Change::of),
            printed: Printed::default(),
        });
    }

    /// A call printed something.
    pub(crate) fn output(&mut self, id: &str, text: &str, delta: bool) {
        if let Some(call) = self.open(id) {
            call.lines += if delta { text.matches('\n').count() } else { text.lines().count() };
            if !delta && !call.printed.head.is_empty() {
                call.printed.push("\n");
            }
            call.printed.push(text);
        }
    }

    pub(crate) fn end(&mut self, id: &str, status: Status, duration_ms: Option<u64>) -> Option<&Call> {
        let call = self.open(id)?;
        call.status = Some(status);
        call.duration_ms = duration_ms;
        Some(call)
    }

    /// The newest call with this id.
    pub(crate) fn find(&self, id: &str) -> Option<&Call> {
        self.kept.iter().rev().find(|call| call.id == id)
    }

    /// The first of them, as many as are shown.
    pub(crate) fn shown(&self) -> &[Call] {
        &self.kept[..self.kept.len().min(MOST_SHOWN)]
    }

    /// Forgets what a call printed, once it was shown.
    pub(crate) fn forget_output(&mut self, id: &str) {
        if let Some(call) = self.open(id) {
            call.printed = Printed::default();
        }
    }

    /// Those that have not ended, oldest first.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Call> {
        self.kept.iter().filter(|call| call.status.is_none())
    }

    pub(crate) fn count(&self) -> usize {
        self.kept.len() + self.forgotten
    }

    fn open(&mut self, id: &str) -> Option<&mut Call> {
        self.kept.iter_mut().rev().find(|call| call.id == id)
    }
}

/// The argument that tells most about a call, on one line.
pub(crate) fn main_argument(input: &Object) -> String {
    const TELLING: [&str; 16] = [
        "command",
        "cmd",
        "file_path",
        "filePath",
        "path",
        "absolute_path",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "prompt",
        "description",
        "name",
        "id",
        "text",
        "code",
    ];
    let telling = TELLING.iter().find_map(|key| input.get(*key)).or_else(|| input.values().next());
    let text = match telling {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        // `["bash", "-lc", "cargo test"]`: what counts is the last word.
        Some(Value::Array(words)) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, "-c" | "-lc", script] => (*script).to_owned(),
                words => words.join(" "),
            }
        }
        Some(other) => other.to_string(),
    };
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let first = if lines.next().is_some() { format!("{first} …") } else { first };
    super::text::cut(&first, LONGEST_ARGUMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_argument_tells_what_a_tool_does() {
        for (json, expected) in [
            (r#"{"description":"Run tests","command":"cargo test"}"#, "cargo test"),
            (r#"{"command":["bash","-lc","ls -l"]}"#, "ls -l"),
            (r#"{"command":["git","status"]}"#, "git status"),
            (r#"{"file_path":"/a/b.rs","content":"x"}"#, "/a/b.rs"),
            (r#"{"cmd":"one\ntwo"}"#, "one …"),
            (r#"{"other":{"a":1}}"#, r#"{"a":1}"#),
            (r"{}", ""),
        ] {
            let input: Object = serde_json::from_str(json).unwrap();
            assert_eq!(main_argument(&input), expected);
        }
    }
}
