//! Did the agent say that it is done? The completion rule of the design, exactly.
//!
//! A marker counts only in the agent's own words, in its last message, on the last line that is not
//! empty, alone or after a finished sentence. Everything else is at most a near miss. This file must never
//! look at thinking, tool output, stderr or an echo of the prompt.

use std::sync::{Arc, OnceLock};

use aho_corasick::AhoCorasick;
use memchr::memmem;

use super::markdown::{Blocks, Place, is_invisible, trim_end, trim_start};
use super::marker::{closes, resembles};
use super::topics::Topics;
use super::{Signal, appeal};
use crate::event::{Event, Messages, Tag};

/// The completion markers that are known when none is configured.
pub(crate) const COMPLETION: [&str; 4] =
    ["LOOP_COMPLETE", "<promise>COMPLETE</promise>", "<<<RALPHEX:COMPLETED>>>", "<<<RALPHEX:ALL_TASKS_DONE>>>"];

/// Asks for another plan.
pub(crate) const REPLAN: &str = "<promise>REPLAN</promise>";

/// Markers that complete only some kinds of runs; elsewhere they are near misses.
pub(crate) const OF_SOME_RUNS: [&str; 3] =
    ["<<<RALPHEX:REVIEW_DONE>>>", "<<<RALPHEX:CODEX_REVIEW_DONE>>>", "<<<RALPHEX:PLAN_READY>>>"];

/// How much of a message is kept, for the reason or the question in it.
const KEPT_MESSAGE: usize = 16 * 1024;

/// A line longer than this is kept by its two ends; the rule needs no more.
const LONGEST_LINE: usize = 128 * 1024;
const KEPT_HEAD: usize = 1024;
const KEPT_TAIL: usize = 64 * 1024;

/// Where in the agent's words a marker counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// On the last line of the last message.
    #[default]
    LastLine,
    /// On any line, in the same form.
    AnyLine,
    /// Anywhere in the agent's words.
    Anywhere,
}

/// The rule as configured.
#[derive(Clone, Debug)]
pub struct Rule {
    completion: Vec<String>,
    told: String,
    place: Match,
    /// Says in one search that a line has no marker at all, which is true of nearly every line.
    any: Arc<OnceLock<Option<AhoCorasick>>>,
}

impl Rule {
    /// The known markers, or only the given one.
    pub fn new(completion_promise: Option<&str>, place: Match) -> Self {
        let completion = match completion_promise {
            Some(marker) => vec![marker.trim().to_owned()],
            None => COMPLETION.map(str::to_owned).to_vec(),
        };
        let told = if let [only] = completion.as_slice() { only.clone() } else { COMPLETION[1].to_owned() };
        Self { completion, told, place, any: Arc::default() }
    }

    /// True when there may be a marker in a text.
    fn is_in(&self, text: &str) -> bool {
        // Without it, each marker is searched for on its own.
        let any = self.any.get_or_init(|| AhoCorasick::new(self.markers()).ok());
        any.as_ref().is_none_or(|any| any.is_match(text))
    }

    /// The first marker that a line has.
    fn marker_in(&self, line: &str) -> Option<&str> {
        if self.is_in(line) { self.markers().find(|marker| line.contains(marker)) } else { None }
    }

    /// The same rule, for a kind of run that these markers complete too.
    #[must_use]
    pub(crate) fn or(mut self, markers: &[impl AsRef<str>]) -> Self {
        self.completion.extend(markers.iter().map(|marker| marker.as_ref().to_owned()));
        self.any = Arc::default();
        self
    }

    /// True for an event that claims completion: its topic is a completion marker.
    pub(crate) fn is_completion_event(&self, topic: &str) -> bool {
        self.completion.iter().any(|marker| marker == topic)
    }

    /// The marker to tell an agent about.
    pub(crate) fn told(&self) -> &str {
        &self.told
    }

    /// True when a text, such as the prompt, speaks of a completion marker already.
    pub(crate) fn is_mentioned_in(&self, text: &str) -> bool {
        self.completion.iter().any(|marker| text.contains(marker.as_str()))
    }

    /// Every marker, completion first.
    fn markers(&self) -> impl Iterator<Item = &str> {
        let others = [REPLAN, appeal::BLOCKED, appeal::END].into_iter().chain(appeal::FAILED).chain(OF_SOME_RUNS);
        // Known ones that were replaced mean nothing, but who says them should hear that.
        let replaced = COMPLETION.into_iter().filter(|known| self.is_replaced(known));
        self.completion.iter().map(String::as_str).chain(others).chain(replaced)
    }

    fn is_replaced(&self, marker: &str) -> bool {
        COMPLETION.contains(&marker) && !self.completion.iter().any(|known| known == marker)
    }

    /// The markers that mean the same as this one.
    pub(super) fn alike<'a>(&'a self, marker: &'a str) -> Box<dyn Iterator<Item = &'a str> + 'a> {
        if self.completion.iter().any(|known| known == marker) {
            Box::new(self.completion.iter().map(String::as_str))
        } else {
            Box::new(std::iter::once(marker))
        }
    }

    /// What a marker means that closes this message.
    fn signal(&self, marker: &str, message: &str) -> Option<Signal> {
        let owned = marker.to_owned();
        match marker {
            _ if self.completion.iter().any(|known| known == marker) => Some(Signal::Complete { marker: owned }),
            REPLAN => Some(Signal::Replan { marker: owned }),
            appeal::BLOCKED => Some(Signal::Blocked { reason: appeal::reason(message, marker) }),
            appeal::END => appeal::block(message).map(|text| Signal::Question { text }),
            _ if appeal::FAILED.contains(&marker) => {
                Some(Signal::Failed { marker: owned, reason: appeal::reason(message, marker) })
            }
            _ => None,
        }
    }
}

/// Watches the events of one iteration.
#[derive(Debug)]
pub struct Watch {
    rule: Rule,
    messages: Messages,
    /// The newest message; it may have no words yet.
    message: Message,
    /// Fragments and lines still append to it.
    open: bool,
    /// The message before it, as long as the newest has no words.
    previous: Option<Message>,
    /// A tool that started after the last message.
    tool_after: Option<String>,
    /// The last marker in an earlier message.
    earlier: Option<(String, String)>,
    /// For [`Match::Anywhere`]: what was found, and the end of what was searched.
    anywhere: Option<Signal>,
    searched_tail: String,
    topics: Topics,
}

/// What the agent's own words of one iteration say to the loop.
#[derive(Debug)]
pub struct Heard {
    /// The last word.
    pub signal: Option<Signal>,
    /// Events that were published on the way.
    pub topics: Topics,
    /// The end of the last message.
    pub last_words: String,
}

impl Watch {
    /// A watch for one iteration of an agent whose dialect has such messages.
    pub fn new(rule: Rule, messages: Messages) -> Self {
        Self {
            rule,
            messages,
            message: Message::default(),
            open: false,
            previous: None,
            tool_after: None,
            earlier: None,
            anywhere: None,
            searched_tail: String::new(),
            topics: Topics::default(),
        }
    }

    /// The output turned out to speak a dialect with other messages. Nothing was said before that.
    pub(crate) fn switch(&mut self, messages: Messages) {
        self.messages = messages;
    }

    /// Takes the next event of standard output. Events of standard error must not come here.
    pub fn see(&mut self, event: &Event) {
        match event {
            Event::Text { parent: Some(_), .. } => {}
            Event::Text { tag: Tag::Ai, text, delta, .. } => self.words(text, *delta),
            Event::Text { tag: Tag::Sys | Tag::Prompt, .. } if self.messages == Messages::Lines => {}
            Event::Text { delta, .. } => self.open &= self.messages == Messages::Whole && *delta,
            Event::ToolStart { tool, .. } => {
                self.open = false;
                self.tool_after = Some(tool.name.clone());
            }
            Event::ToolOutput { .. } | Event::ToolEnd { .. } => self.open = false,
            Event::Usage { .. } | Event::Meta { .. } => self.open &= self.messages == Messages::Lines,
        }
    }

    /// The iteration is over: what did the agent say to the loop?
    pub fn end(mut self) -> Heard {
        self.message.end_line(&self.rule, &mut self.topics);
        self.topics.message_over();
        let topics = std::mem::take(&mut self.topics);
        let message = if self.message.has_words { Some(&self.message) } else { self.previous.as_ref() };
        let last_words = message.map_or_else(String::new, |message| ending(&message.tail, KEPT_MESSAGE).to_owned());
        Heard { signal: self.signal(), topics, last_words }
    }

    fn signal(mut self) -> Option<Signal> {
        if let Some(signal) = self.anywhere {
            return Some(signal);
        }
        if let Some(signal) = self.message.closed.as_ref().and_then(|marker| self.rule.signal(marker, "")) {
            return Some(signal);
        }
        let near_miss = |marker: &str, reason: &str, line: &str| {
            let line = trim_end(trim_start(line));
            Some(Signal::NearMiss { marker: marker.to_owned(), reason: reason.to_owned(), line: shortened(line) })
        };
        let message = if self.message.has_words { self.message } else { self.previous.take()? };
        let (lines, last) = (message.seen, message.last);
        let closing = self.rule.markers().find(|marker| closes(&last.text, marker, &self.rule));
        if let Some(marker) = closing.or_else(|| self.rule.markers().find(|marker| resembles(&last.text, marker))) {
            let reason = if let Some(place) = last.place {
                place.reason()
            } else if !last.text.replace("\\_", "_").contains(marker) {
                "it is not written exactly"
            } else if closing.is_none() {
                "it is neither alone on its line nor after a finished sentence"
            } else if let Some(tool) = &self.tool_after {
                return near_miss(
                    marker,
                    &format!("the agent continued to work afterwards (tool `{tool}`)"),
                    &last.text,
                );
            } else if let Some(signal) = self.rule.signal(marker, &message.tail) {
                return Some(signal);
            } else if self.rule.is_replaced(marker) {
                return near_miss(marker, &format!("in this run only `{}` counts", self.rule.told()), &last.text);
            } else {
                "it ends another kind of run"
            };
            return near_miss(marker, reason, &last.text);
        }
        let (marker, line, reason) = match (lines, self.earlier) {
            (Some((marker, line)), _) => (marker, line, "it is not on the last line"),
            (None, Some((marker, line))) => (marker, line, "it is not in the last message"),
            (None, None) => return None,
        };
        near_miss(&marker, reason, &line)
    }

    fn words(&mut self, text: &str, delta: bool) {
        if self.rule.place == Match::Anywhere {
            self.search_anywhere(text, delta);
        }
        let joins = self.open && (delta || self.messages == Messages::Lines);
        if !joins {
            let mut before = std::mem::take(&mut self.message);
            before.end_line(&self.rule, &mut self.topics);
            self.topics.message_over();
            self.message.closed = before.closed.take();
            if before.has_words {
                self.previous = Some(before);
            }
        } else if !delta {
            self.message.push("\n", &self.rule, &mut self.topics);
        }
        self.message.push(text, &self.rule, &mut self.topics);
        self.open = delta || self.messages == Messages::Lines;
        if self.message.has_words {
            self.tool_after = None;
            if let Some(previous) = self.previous.take() {
                self.earlier = previous.into_marker(&self.rule).or(self.earlier.take());
            }
        }
    }

    fn search_anywhere(&mut self, text: &str, delta: bool) {
        if !delta {
            self.searched_tail.clear();
        }
        self.searched_tail.push_str(text);
        for marker in self.rule.completion.iter().map(String::as_str).chain([REPLAN]) {
            if memmem::find(self.searched_tail.as_bytes(), marker.as_bytes()).is_some() {
                self.anywhere = self.rule.signal(marker, "");
            }
        }
        let longest = self.rule.completion.iter().map(String::len).chain([REPLAN.len()]).max().unwrap_or(0);
        cut_front(&mut self.searched_tail, longest);
    }
}

/// The part of a message that the rule needs.
#[derive(Debug, Default)]
struct Message {
    has_words: bool,
    blocks: Blocks,
    /// The end of all that was said.
    tail: String,
    /// The line that is being said.
    partial: String,
    /// The last line that is not empty, once it is over.
    last: LastLine,
    /// A marker on a line before the last one.
    seen: Option<(String, String)>,
    /// For [`Match::AnyLine`]: the marker that a line ends with.
    closed: Option<String>,
}

#[derive(Debug, Default)]
struct LastLine {
    text: String,
    place: Option<Place>,
}

impl Message {
    fn push(&mut self, text: &str, rule: &Rule, topics: &mut Topics) {
        self.has_words |= !text.chars().all(is_invisible);
        if text.len() >= KEPT_MESSAGE {
            self.tail.clear();
        } else if self.tail.len() + text.len() > 4 * KEPT_MESSAGE {
            cut_front(&mut self.tail, KEPT_MESSAGE);
        }
        self.tail.push_str(ending(text, KEPT_MESSAGE));
        let mut rest = text;
        if let Some(end) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
            self.partial.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            self.end_line(rule, topics);
        }
        if let Some(end) = memchr::memrchr2(b'\n', b'\r', rest.as_bytes()) {
            self.whole_lines(&rest[..end], rule, topics);
            rest = &rest[end + 1..];
        }
        self.partial.push_str(rest);
        if self.partial.len() > LONGEST_LINE {
            let mut tail = self.partial.clone();
            cut_front(&mut tail, KEPT_TAIL);
            let head = self.partial.floor_char_boundary(KEPT_HEAD);
            self.partial.truncate(head);
            self.partial.push_str(&tail);
        }
    }

    /// Takes lines that came together. One search tells that none of them has a marker or an event, as nearly always.
    fn whole_lines(&mut self, text: &str, rule: &Rule, topics: &mut Topics) {
        let plain = rule.place != Match::AnyLine && !topics.is_open() && !Topics::begins_in(text) && !rule.is_in(text);
        let mut last: Option<(&str, Option<Place>)> = None;
        let mut from = 0;
        for end in memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()).chain([text.len()]) {
            let line = &text[from..end];
            from = end + 1;
            if !plain {
                self.partial.push_str(line);
                self.end_line(rule, topics);
            } else if line.chars().all(is_invisible) {
                self.blocks.blank();
            } else {
                last = Some((line, self.blocks.line(line)));
            }
        }
        let Some((line, place)) = last else { return };
        // The line before the first of these may have one.
        if let Some(marker) = rule.marker_in(&self.last.text) {
            self.seen = Some((marker.to_owned(), std::mem::take(&mut self.last.text)));
        }
        self.last.text.clear();
        self.last.text.push_str(line);
        self.last.place = place;
    }

    fn end_line(&mut self, rule: &Rule, topics: &mut Topics) {
        let line = std::mem::take(&mut self.partial);
        if line.chars().all(is_invisible) {
            self.blocks.blank();
            if topics.is_open() {
                topics.line(&line, false);
            }
            return;
        }
        let place = self.blocks.line(&line);
        if rule.place == Match::AnyLine && place.is_none() {
            let markers = rule.completion.iter().map(String::as_str).chain([REPLAN]);
            let closing = markers.into_iter().find(|marker| closes(&line, marker, rule));
            // A claim to be done is stronger than a wish for another plan.
            if closing.is_some() && self.closed.as_deref().is_none_or(|before| before == REPLAN) {
                self.closed = closing.map(str::to_owned);
            }
        }
        topics.line(&line, place == Some(Place::Fence));
        let mut before = std::mem::replace(&mut self.last, LastLine { text: line, place }).text;
        if let Some(marker) = rule.marker_in(&before) {
            self.seen = Some((marker.to_owned(), before));
        } else {
            // Its memory serves the next line.
            before.clear();
            self.partial = before;
        }
    }

    /// The message is over, and not the last one: the last marker in it, with its line.
    fn into_marker(self, rule: &Rule) -> Option<(String, String)> {
        let last = self.last.text;
        match rule.marker_in(&last) {
            Some(marker) => Some((marker.to_owned(), last)),
            None => self.seen,
        }
    }
}

fn shortened(line: &str) -> String {
    if line.len() <= 200 { line.to_owned() } else { format!("{}…", &line[..line.floor_char_boundary(200)]) }
}

/// The last `most` bytes, cut between characters.
pub(super) fn ending(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// Keeps the last `keep` bytes, cut between characters.
fn cut_front(text: &mut String, keep: usize) {
    text.drain(..text.len() - ending(text, keep).len());
}

#[cfg(test)]
#[path = "promise_tests.rs"]
mod tests;
