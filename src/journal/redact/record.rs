//! Takes secrets out of records before they are written and shown. Fragments of one message are one stream: a secret that
//! is cut between them is found, because what may be its beginning waits for the next fragment.

use super::{End, KEY, Redactor, Streaming, into_text, word};
use crate::event::{Event, Stream};
use crate::journal::{Body, Fact};

/// The records of one run.
#[derive(Debug)]
pub struct Records {
    redactor: Redactor,
    stdout: Side,
    stderr: Side,
}

/// What is under way on one of the agent's streams.
#[derive(Debug)]
struct Side {
    from: Stream,
    /// The message or tool output that is coming in fragments.
    open: Option<Open>,
    /// Plain lines, which may be the lines of a private key.
    lines: Streaming,
}

#[derive(Debug)]
struct Open {
    iteration: u32,
    /// The last fragment, without its text.
    like: Event,
    stream: Streaming,
}

impl Records {
    /// Nothing is under way.
    pub fn new(redactor: Redactor) -> Self {
        let side = |from| Side { from, open: None, lines: Streaming::new(&redactor) };
        Self { stdout: side(Stream::Stdout), stderr: side(Stream::Stderr), redactor }
    }

    /// What is to be recorded now that this has happened, in order.
    pub fn take(&mut self, body: Body, out: &mut Vec<Body>) {
        match body {
            Body::Agent { iteration, from, event } => {
                let side = match from {
                    Stream::Stdout => &mut self.stdout,
                    Stream::Stderr => &mut self.stderr,
                };
                side.take(&self.redactor, iteration, event, out);
            }
            Body::Loop(fact) => {
                self.stdout.close(out);
                self.stderr.close(out);
                out.push(Body::Loop(self.fact(fact)));
            }
            other @ Body::Unknown { .. } => out.push(other),
        }
    }

    /// What was held back when the run ended in the middle.
    pub fn finish(&mut self, out: &mut Vec<Body>) {
        self.stdout.close(out);
        self.stderr.close(out);
    }

    fn fact(&self, fact: Fact) -> Fact {
        let Ok(mut value) = serde_json::to_value(&fact) else { return fact };
        self.redactor.clean_value(&mut value);
        serde_json::from_value(value).unwrap_or(fact)
    }
}

impl Side {
    fn take(&mut self, redactor: &Redactor, iteration: u32, mut event: Event, out: &mut Vec<Body>) {
        clean_names(redactor, &mut event);
        let Some(text) = fragment(&mut event) else {
            self.close(out);
            self.whole(redactor, &mut event);
            out.push(self.body(iteration, event));
            return;
        };
        let text = std::mem::take(text);
        if self.open.as_ref().is_none_or(|open| open.like != event) {
            self.close(out);
        }
        let open =
            self.open.get_or_insert_with(|| Open { iteration, like: event.clone(), stream: Streaming::new(redactor) });
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = open.stream.write(text.as_bytes(), &mut bytes);
        if !bytes.is_empty() || text.is_empty() {
            set(&mut event, into_text(bytes));
            out.push(self.body(iteration, event));
        }
    }

    /// The message is over: what was held back is no secret.
    fn close(&mut self, out: &mut Vec<Body>) {
        let Some(mut open) = self.open.take() else { return };
        let mut bytes = Vec::new();
        let _ = open.stream.finish(&mut bytes);
        if !bytes.is_empty() {
            set(&mut open.like, into_text(bytes));
            out.push(self.body(open.iteration, open.like));
        }
    }

    /// An event that is no fragment.
    fn whole(&mut self, redactor: &Redactor, event: &mut Event) {
        match event {
            Event::Text { text, .. } => {
                self.lines.before.clear();
                let inside = self.lines.key.is_some();
                if let Some(clean) = self.lines.part(text.as_bytes(), End::Final) {
                    // A line of a key is gone, but that it was there is told.
                    *text = if clean.is_empty() && inside { word(KEY) } else { into_text(clean) };
                }
            }
            Event::ToolOutput { text, .. } => redactor.clean(text),
            Event::ToolStart { tool, .. } => {
                self.lines.key = None;
                if let Some(input) = &mut tool.input {
                    redactor.clean_object(input);
                }
            }
            Event::Meta { meta } => redactor.clean_object(&mut meta.0),
            Event::ToolEnd { .. } | Event::Usage { .. } => self.lines.key = None,
        }
    }

    const fn body(&self, iteration: u32, event: Event) -> Body {
        Body::Agent { iteration, from: self.from, event }
    }
}

/// The text of a fragment.
fn fragment(event: &mut Event) -> Option<&mut String> {
    match event {
        Event::Text { text, delta: true, .. } | Event::ToolOutput { text, delta: true, .. } => Some(text),
        _ => None,
    }
}

fn set(event: &mut Event, new: String) {
    if let Some(text) = fragment(event) {
        *text = new;
    }
}

/// Names and ids come from the agent too.
fn clean_names(redactor: &Redactor, event: &mut Event) {
    let parent = match event {
        Event::Text { parent, .. } => parent,
        Event::ToolStart { tool, parent } => {
            redactor.clean(&mut tool.id);
            redactor.clean(&mut tool.name);
            parent
        }
        Event::ToolOutput { tool, parent, .. } => {
            redactor.clean(&mut tool.id);
            parent
        }
        Event::ToolEnd { tool, parent } => {
            redactor.clean(&mut tool.id);
            parent
        }
        Event::Usage { usage } => &mut usage.model,
        Event::Meta { .. } => return,
    };
    if let Some(parent) = parent {
        redactor.clean(parent);
    }
}
