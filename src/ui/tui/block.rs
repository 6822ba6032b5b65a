//! Records of one page folded into blocks: a message, a tool call, a remark of the loop.
//!
//! A page knows nothing of its neighbours, so that any of them can be forgotten and read again. What is too long for a
//! screen is cut here, and that is said; the journal has it in full.

use jiff::Timestamp;

use crate::event::{Event, Known, Meta, Object, Stream, Tag, TodoItem, ToolStart};
use crate::journal::{Body, Fact, IterationOutcome, Record};
use crate::ui::model::Call;
use crate::ui::style::Ink;
use crate::ui::words::{self, Phrase};

/// More of one block is not shown.
const LONGEST: usize = 256 * 1024;

/// So much of a failed check's output is shown; the pane has more.
const CHECK_LINES: usize = 12;

/// More lines that came alone are not taken together: each new one lays out all of them again.
const MOST_LINES: usize = 200;

/// One thing that is shown, and folded, as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Where its first record is.
    pub at: u64,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Words {
        tag: Tag,
        text: String,
        /// True when a sub-agent says them.
        nested: bool,
        /// True when more of them may follow.
        open: bool,
        /// How many single lines they are made of; none when the agent has messages of its own.
        lines: usize,
    },
    Tool(Box<Tool>),
    Plan(Vec<TodoItem>),
    /// A remark of the loop, or of the system around the agent.
    Remark {
        tag: &'static str,
        text: String,
        ink: Ink,
    },
    /// What an iteration came to.
    Report {
        outcome: IterationOutcome,
        text: String,
        ink: Ink,
    },
    /// Where an iteration begins or ends.
    Rule(String, Ink),
}

#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub call: Call,
    /// All of its input, as text.
    pub input: String,
    pub output: String,
}

/// The blocks of one page, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    pub all: Vec<Block>,
    /// The first one that a record has changed since this was last looked at.
    changed: Option<usize>,
    /// The agent's own display is shown instead of its words.
    own_display: bool,
    /// Where the agent works: paths are shown as they are seen from there.
    workspace: String,
}

impl Blocks {
    /// None yet, of an agent that works there.
    pub(crate) fn of(workspace: &str) -> Self {
        Self { workspace: workspace.to_owned(), ..Self::default() }
    }

    /// The first block that is different from before; asked once.
    pub(crate) fn take_changed(&mut self) -> Option<usize> {
        self.changed.take()
    }

    /// Takes in the record that is at an offset.
    pub(crate) fn see(&mut self, record: &Record, at: u64) {
        match &record.body {
            Body::Agent { event, from, .. } => self.event(event, *from, record.at, at),
            Body::Loop(fact) => self.fact(fact, record.at, at),
            Body::Unknown { kind, .. } => {
                self.remark(at, "SYS", Ink::Warn, words::unknown(kind));
            }
        }
    }

    fn push(&mut self, at: u64, kind: Kind) {
        self.close();
        self.touch(self.all.len());
        self.all.push(Block { at, kind });
    }

    fn touch(&mut self, block: usize) {
        self.changed = Some(self.changed.map_or(block, |changed| changed.min(block)));
    }

    /// The words that are being said are over.
    fn close(&mut self) {
        if let Some(Block { kind: Kind::Words { open, .. }, .. }) = self.all.last_mut() {
            *open = false;
        }
    }

    fn remark(&mut self, at: u64, tag: &'static str, ink: Ink, text: impl Into<String>) {
        self.push(at, Kind::Remark { tag, text: text.into(), ink });
    }

    fn event(&mut self, event: &Event, from: Stream, when: Timestamp, at: u64) {
        match event {
            Event::Text { .. } if self.own_display && from == Stream::Stdout => {}
            Event::Text { tag, text, delta, parent } => self.words(at, *tag, text, *delta, parent.is_some()),
            Event::ToolStart { tool, parent } => {
                let input = tool.input.as_ref().map(spelled_out).unwrap_or_default();
                let call = Call::new(tool, parent.is_some(), at, when).seen_from(&self.workspace);
                self.push(at, Kind::Tool(Box::new(Tool { call, input, output: String::new() })));
            }
            Event::ToolOutput { tool, text, delta, .. } => self.with_tool(&tool.id, at, when, |tool| {
                if !*delta && !tool.output.is_empty() && !tool.output.ends_with('\n') {
                    add(&mut tool.output, "\n");
                }
                add(&mut tool.output, text);
            }),
            Event::ToolEnd { tool: end, .. } => self.with_tool(&end.id, at, when, |tool| tool.call.end(end, when)),
            Event::Usage { .. } => {}
            Event::Meta { meta } => self.meta(meta, at),
        }
    }

    fn words(&mut self, at: u64, tag: Tag, more: &str, delta: bool, nested: bool) {
        let last = self.all.len().wrapping_sub(1);
        // Where the dialect has no messages, each line comes alone; together they are what was meant.
        let is_line = !delta && !more.contains('\n');
        if let Some(Block { kind: Kind::Words { tag: before, text, nested: was_nested, open, lines }, .. }) =
            self.all.last_mut()
            && *before == tag
            && *was_nested == nested
            && (*open && delta || tag == Tag::Prompt || is_line && (1..MOST_LINES).contains(lines))
        {
            if !delta {
                add(text, "\n");
            }
            add(text, more);
            *lines += usize::from(is_line);
            self.touch(last);
            return;
        }
        let mut text = String::new();
        add(&mut text, more);
        self.push(at, Kind::Words { tag, text, nested, open: delta, lines: usize::from(is_line) });
    }

    /// Changes the newest call with this id. A call that began on an earlier page is shown again, without its name.
    fn with_tool(&mut self, id: &str, at: u64, when: Timestamp, change: impl FnOnce(&mut Tool)) {
        let found = self.all.iter().rposition(|block| matches!(&block.kind, Kind::Tool(tool) if tool.call.id == id));
        let place = found.unwrap_or_else(|| {
            let start = ToolStart { id: id.to_owned(), name: "(started above)".to_owned(), input: None };
            let call = Call::new(&start, false, at, when);
            self.push(at, Kind::Tool(Box::new(Tool { call, input: String::new(), output: String::new() })));
            self.all.len() - 1
        });
        if let Kind::Tool(tool) = &mut self.all[place].kind {
            change(tool);
        }
        self.touch(place);
    }

    fn meta(&mut self, meta: &Meta, at: u64) {
        let Some(known) = meta.known() else { return };
        if let Known::Todo { items } = known {
            // Only what was last planned counts, and nothing was said in between.
            if let Some(Block { kind: Kind::Plan(last), .. }) = self.all.last_mut() {
                *last = items;
                self.touch(self.all.len() - 1);
            } else {
                self.push(at, Kind::Plan(items));
            }
        } else if let Some((text, ink)) = words::meta(known) {
            self.remark(at, "SYS", ink, text);
        }
    }

    fn fact(&mut self, fact: &Fact, when: Timestamp, at: u64) {
        match fact {
            Fact::RunStart { ralph, run, workspace, .. } => {
                self.push(at, Kind::Rule(format!("ralph {ralph}, run {run}"), Ink::Strong));
                let mut lines = words::run_start(fact, ", ");
                lines.push(format!("directory: {workspace}"));
                self.remark(at, "RUN", Ink::None, lines.join("\n"));
            }
            Fact::IterationStart { iteration, of, display, hat, .. } => {
                self.own_display = *display;
                self.push(at, Kind::Rule(words::iteration_title(*iteration, *of, hat, ", "), Ink::Strong));
            }
            Fact::Display { text, .. } => self.words(at, Tag::Ai, text, true, false),
            Fact::IterationEnd { receipt } => {
                let (parts, ink) = words::report(receipt);
                self.push(at, Kind::Report { outcome: receipt.outcome, text: parts.join(" · "), ink });
                for line in words::left_behind(receipt) {
                    self.remark(at, "SYS", Ink::Warn, line);
                }
            }
            Fact::RunEnd { outcome, reason, question, exit_code, .. } => {
                let ink = words::outcome(*outcome).1;
                self.push(at, Kind::Rule("the run is over".to_owned(), ink));
                self.remark(at, "END", ink, format!("{reason} (exit code {exit_code})"));
                if let Some(question) = question {
                    self.remark(at, "ASKS", Ink::Warn, question.as_str());
                }
            }
            Fact::Verification { checks, .. } => {
                if let Some(Phrase { tag, ink, text }) = words::fact(fact, when) {
                    self.remark(at, tag, ink, text);
                }
                // Why a claim was rejected is what someone wants to know first.
                for check in checks.iter().filter(|check| !check.passed && !check.tail.is_empty()) {
                    let lines: Vec<&str> = check.tail.lines().collect();
                    let last = &lines[lines.len().saturating_sub(CHECK_LINES)..];
                    self.remark(at, "", Ink::None, last.join("\n"));
                }
            }
            other => {
                if let Some(Phrase { tag, ink, text }) = words::fact(other, when) {
                    self.remark(at, tag, ink, text);
                }
            }
        }
    }
}

/// Adds to a text, but not without end.
fn add(text: &mut String, more: &str) {
    const CUT: &str = "\n(the rest is in the journal)";
    let room = LONGEST.saturating_sub(text.len());
    if more.len() <= room {
        text.push_str(more);
    } else if !text.ends_with(CUT) {
        text.push_str(&more[..more.floor_char_boundary(room)]);
        text.push_str(CUT);
    }
}

/// The input of a tool as people read it: one key after the other, texts as they are. An edit reads as a difference.
fn spelled_out(input: &Object) -> String {
    let mut text = String::new();
    for (key, value) in input {
        let (mark, value) = match (key.as_str(), value) {
            ("old_string" | "old" | "oldString" | "old_str" | "oldText", serde_json::Value::String(old)) => {
                ("-", old.clone())
            }
            ("new_string" | "new" | "newString" | "new_str" | "newText", serde_json::Value::String(new)) => {
                ("+", new.clone())
            }
            (_, serde_json::Value::String(words)) => ("", words.clone()),
            (_, other) => ("", other.to_string()),
        };
        if mark.is_empty() {
            add(&mut text, &format!("{key}: {value}\n"));
        } else {
            value.lines().for_each(|line| add(&mut text, &format!("{mark}{line}\n")));
        }
    }
    text
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
