//! Does the agent do the same thing over and over? Some CLIs ask the model again without end after a cut stream or an
//! overflow; then the same step comes back, word for word.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::event::{Event, Messages, Tag};

/// The same step this often is a stall.
pub(crate) const MOST_REPEATS: u32 = 20;

/// The longest cycle of steps that is recognised: say, call, read, fail.
const LONGEST_CYCLE: usize = 6;

/// Watches the steps of one iteration.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// The newest steps, newest last.
    steps: Vec<u64>,
    /// For each length of cycle: how many steps in a row were the same as the one a cycle ago.
    same: [u32; LONGEST_CYCLE],
    /// The text that is being said.
    text: Print,
    open: bool,
    /// Everything the iteration did, for a comparison with the next.
    work: DefaultHasher,
    tools: u32,
}

impl Stall {
    /// Takes the next event. Lines of plain agents are no steps: a progress bar says the same for hours.
    pub(crate) fn see(&mut self, event: &Event, messages: Messages) {
        match event {
            Event::Text { tag: Tag::Ai, text, delta, .. } if messages == Messages::Whole => {
                if !*delta {
                    self.close();
                }
                // Without marks between fragments: how they are cut says nothing.
                self.text.add(text.as_bytes());
                self.open = true;
                if !*delta {
                    self.close();
                }
            }
            Event::ToolStart { tool, .. } => {
                self.close();
                self.tools += 1;
                let mut step = DefaultHasher::new();
                tool.name.hash(&mut step);
                if let Some(input) = &tool.input {
                    serde_json::to_string(input).unwrap_or_default().hash(&mut step);
                }
                let step = step.finish();
                step.hash(&mut self.work);
                self.step(step);
            }
            Event::ToolOutput { text, .. } => {
                self.close();
                let mut step = Print::default();
                step.add(text.as_bytes());
                self.step(step.finish());
            }
            _ => self.close(),
        }
    }

    /// True when the same steps came back too often.
    pub(crate) fn is_stuck(&self) -> bool {
        self.same.iter().enumerate().any(|(index, &same)| {
            let cycle = u32::try_from(index + 1).unwrap_or(u32::MAX);
            same >= cycle * (MOST_REPEATS - 1)
        })
    }

    /// What was done, as one number; `None` when no tool was seen.
    pub(crate) fn work(&self) -> Option<u64> {
        (self.tools > 0).then(|| self.work.finish())
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.open) {
            let step = std::mem::take(&mut self.text).finish();
            self.step(step);
        }
    }

    fn step(&mut self, step: u64) {
        for (index, same) in self.same.iter_mut().enumerate() {
            let before = self.steps.len().checked_sub(index + 1).and_then(|at| self.steps.get(at));
            *same = if before == Some(&step) { *same + 1 } else { 0 };
        }
        if self.steps.len() == LONGEST_CYCLE {
            self.steps.remove(0);
        }
        self.steps.push(step);
    }
}

/// A number for a text, however it is cut: eight bytes at a time, because all words of an agent go through it.
#[derive(Debug, Default)]
struct Print {
    state: u64,
    /// Bytes that wait for a whole word, the first lowest, and how many there are.
    held: u64,
    count: u32,
    length: u64,
}

impl Print {
    fn add(&mut self, mut bytes: &[u8]) {
        self.length += bytes.len() as u64;
        while self.count > 0
            && let Some((&first, rest)) = bytes.split_first()
        {
            self.hold(first);
            bytes = rest;
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        for &byte in rest {
            self.hold(byte);
        }
    }

    fn hold(&mut self, byte: u8) {
        self.held |= u64::from(byte) << (8 * self.count);
        self.count += 1;
        if self.count == 8 {
            self.count = 0;
            let word = std::mem::take(&mut self.held);
            self.mix(word);
        }
    }

    fn mix(&mut self, word: u64) {
        self.state = (self.state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(mut self) -> u64 {
        let (held, length) = (self.held, self.length);
        self.mix(held);
        self.mix(length);
        self.state ^ (self.state >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(events: impl IntoIterator<Item = Event>) -> bool {
        let mut stall = Stall::default();
        events.into_iter().for_each(|event| stall.see(&event, Messages::Whole));
        stall.is_stuck()
    }

    fn step(number: usize, word: &str) -> [Event; 3] {
        let id = number.to_string();
        [
            Event::text(Tag::Ai, format!("I look{word}.")),
            Event::tool_start(id.clone(), "Bash", None),
            Event::tool_output(id, "nothing"),
        ]
    }

    #[test]
    fn twenty_times_the_same_is_a_stall_and_nineteen_are_not() {
        assert!(after((0..20).flat_map(|number| step(number, ""))));
        assert!(!after((0..19).flat_map(|number| step(number, ""))));
        assert!(!after((0..60).flat_map(|number| step(number, &number.to_string()))));
        assert!(after((0..20).map(|_| Event::text(Tag::Ai, "Hm."))));
        assert!(!after((0..19).map(|_| Event::text(Tag::Ai, "Hm."))));
    }

    #[test]
    fn fragments_of_one_message_are_no_steps() {
        assert!(!after((0..100).map(|_| Event::delta(Tag::Ai, "la "))));
    }

    #[test]
    fn lines_of_a_plain_agent_are_no_steps() {
        let mut stall = Stall::default();
        (0..100).for_each(|_| stall.see(&Event::text(Tag::Ai, "."), Messages::Lines));
        assert!(!stall.is_stuck());
    }
}
