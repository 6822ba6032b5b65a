//! The books of one iteration that all structured dialects keep alike: what was said, which tools run,
//! what was not understood, and that there is exactly one terminal fact. A dialect tells the turn what
//! happened; only the turn makes events.

use super::failure::Failure;
use super::jsonl::was_stopped;
use super::tools::Tools;
use super::words::Words;
use super::{excerpt, turn_end};
use crate::event::{Event, FailureClass, Known, Object, Status, Tag, Usage};
use crate::process::Exit;

/// This many kinds of lines that were not understood are counted apart.
const REASONS: usize = 32;

/// One iteration of an agent, as its adapter sees it.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    out: Vec<Event>,
    tools: Tools,
    words: Words,
    /// The messages that a fragment would continue.
    open: Vec<(Tag, Option<String>)>,
    session: Option<String>,
    model: Option<String>,
    version: Option<String>,
    /// Tokens of the last call of the model.
    context: Option<u64>,
    /// How many there is room for.
    window: Option<u64>,
    unparsed: Vec<Unparsed>,
    failure: Option<FailureClass>,
    ended: bool,
    /// The terminal fact says whether it succeeded.
    judged: bool,
}

/// Whether a text is a message or continues one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Whole,
    Fragment,
}

/// Lines that were not understood for the same reason.
#[derive(Debug)]
struct Unparsed {
    /// The `type` that the dialect does not have.
    kind: Option<String>,
    reason: String,
    line: String,
    further: u64,
}

impl Turn {
    /// Lends the caller's list of events for one line; call again to hand it back.
    pub(crate) fn swap(&mut self, out: &mut Vec<Event>) {
        std::mem::swap(&mut self.out, out);
    }

    /// Adds events that this turn made before.
    pub(crate) fn append(&mut self, mut events: Vec<Event>) {
        self.out.append(&mut events);
    }

    /// Adds an event as it is.
    pub(crate) fn event(&mut self, event: Event) {
        if let Some(message) = self.tools.see(&event) {
            self.out.push(Known::Warning { message }.into());
        }
        self.open.clear();
        self.out.push(event);
    }

    pub(crate) fn meta(&mut self, known: Known) {
        self.event(known.into());
    }

    // --- words ---

    /// A whole message of a dialect that does not repeat itself.
    pub(crate) fn text(&mut self, tag: Tag, parent: Option<&str>, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        self.words.close(tag, parent);
        self.say(tag, parent, text, Piece::Whole);
    }

    /// A piece of a message that is under way.
    pub(crate) fn fragment(&mut self, tag: Tag, parent: Option<&str>, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        if self.words.fragment(tag, parent, &text) && self.is_open(tag, parent) {
            // The first piece of a message must not continue the one before it: an empty text closes that.
            self.say(tag, parent, String::new(), Piece::Whole);
        }
        self.say(tag, parent, text, Piece::Fragment);
    }

    /// A whole message that its fragments may have said already: only what they left out is added.
    pub(crate) fn whole(&mut self, tag: Tag, parent: Option<&str>, text: impl Into<String> + AsRef<str>) {
        match self.words.repeated(tag, parent, text.as_ref()) {
            Some(length) if length == text.as_ref().len() => {}
            Some(length) => self.say(tag, parent, text.as_ref()[length..].to_owned(), Piece::Fragment),
            None => self.text(tag, parent, text),
        }
    }

    /// The message of a speaker is over: fragments that follow are a new one.
    pub(crate) fn message_over(&mut self, tag: Tag, parent: Option<&str>) {
        self.words.close(tag, parent);
    }

    /// A speaker's messages are over, and none of them will be repeated whole.
    pub(crate) fn messages_over(&mut self, parent: Option<&str>) {
        self.words.forget(parent);
    }

    /// The final answer, repeated by most agents in their last line: said now unless it was the last thing said.
    pub(crate) fn answer(&mut self, text: impl Into<String> + AsRef<str>) {
        if !text.as_ref().trim().is_empty() && !self.words.ends_with(text.as_ref()) {
            self.text(Tag::Ai, None, text);
        }
    }

    /// True when the agent has said anything itself.
    pub(crate) fn has_spoken(&self) -> bool {
        !self.words.is_empty()
    }

    /// The end of what the agent has said itself.
    pub(crate) fn last_words(&self) -> &str {
        self.words.last()
    }

    /// True when a fragment would continue a message.
    pub(crate) fn is_open(&self, tag: Tag, parent: Option<&str>) -> bool {
        self.open.iter().any(|(open, of)| *open == tag && of.as_deref() == parent)
    }

    fn say(&mut self, tag: Tag, parent: Option<&str>, text: String, piece: Piece) {
        if tag == Tag::Ai && parent.is_none() {
            self.words.said(&text);
        }
        match piece {
            Piece::Whole => self.open.clear(),
            Piece::Fragment if self.is_open(tag, parent) => {}
            Piece::Fragment => self.open.push((tag, parent.map(str::to_owned))),
        }
        let (parent, delta) = (parent.map(str::to_owned), piece == Piece::Fragment);
        self.out.push(Event::Text { tag, text, delta, parent });
    }

    // --- tools ---

    /// A tool call begins. A call that runs already is not begun again.
    pub(crate) fn tool_start(
        &mut self,
        id: &str,
        parent: Option<&str>,
        name: impl Into<String>,
        input: Option<Object>,
    ) {
        if !self.tools.is_open(id) {
            self.event(within(Event::tool_start(id, name, input), parent));
        }
    }

    /// A tool printed something.
    pub(crate) fn tool_output(&mut self, id: &str, parent: Option<&str>, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.event(within(Event::tool_output(id, text), parent));
        }
    }

    /// A tool printed more, without a line break between.
    pub(crate) fn tool_output_fragment(&mut self, id: &str, parent: Option<&str>, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            let mut event = within(Event::tool_output(id, text), parent);
            if let Event::ToolOutput { delta, .. } = &mut event {
                *delta = true;
            }
            self.event(event);
        }
    }

    pub(crate) fn tool_end(&mut self, id: &str, parent: Option<&str>, status: Status, duration_ms: Option<u64>) {
        self.event(within(Event::tool_end(id, status, duration_ms), parent));
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    // --- facts ---

    /// The session's id, reported once and again when it changes.
    pub(crate) fn session(&mut self, id: &str) {
        if !id.is_empty() && self.session.as_deref() != Some(id) {
            self.session = Some(id.to_owned());
            self.meta(Known::Session { id: id.to_owned() });
        }
    }

    /// The model, reported once and again when it changes.
    pub(crate) fn model(&mut self, model: &str) {
        if !model.is_empty() && self.model.as_deref() != Some(model) {
            self.model = Some(model.to_owned());
            self.meta(Known::Model { model: model.to_owned() });
        }
    }

    /// The model that was reported last.
    pub(crate) fn current_model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The agent's version, reported once.
    pub(crate) fn version(&mut self, version: &str) {
        if !version.is_empty() && self.version.as_deref() != Some(version) {
            self.version = Some(version.to_owned());
            self.meta(Known::Version { version: version.to_owned() });
        }
    }

    /// Tokens and money. Nothing but zeros is what failed runs report: unknown.
    pub(crate) fn usage(&mut self, usage: Usage) {
        let known = [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens];
        if known.iter().any(|tokens| tokens.is_some_and(|tokens| tokens > 0))
            || usage.cost_usd.is_some_and(|cost| cost > 0.0)
        {
            self.event(Event::usage(usage));
        }
    }

    /// What one call of the model took: the last one says how full the context is.
    pub(crate) fn call(&mut self, usage: &Usage) {
        if let Some(tokens) = usage.total_or_sum().filter(|tokens| *tokens > 0) {
            self.context = Some(tokens);
        }
    }

    /// How many tokens the context has room for.
    pub(crate) fn window(&mut self, tokens: u64) {
        self.window = Some(tokens).filter(|tokens| *tokens > 0);
    }

    /// The agent met a failure. The same failure reported again (an error message, then the result) is one.
    pub(crate) fn failure(&mut self, failure: Failure) {
        if self.failure != Some(failure.class) {
            self.failure = Some(failure.class);
            self.event(failure.into_event());
        }
    }

    /// The failure that was reported last.
    pub(crate) fn failed(&self) -> Option<FailureClass> {
        self.failure
    }

    /// The agent tries again by itself. A refused login is a failure at once, because no retry can fix it; when it is
    /// refused again, the loop wants to know that too.
    pub(crate) fn retry(&mut self, failure: Failure, attempt: Option<u64>, delay_ms: Option<u64>) {
        if failure.class == FailureClass::Auth && self.failure != Some(FailureClass::Auth) {
            return self.failure(failure);
        }
        let message = Some(failure.message).filter(|message| !message.is_empty());
        self.meta(Known::Retry { class: failure.class, attempt, delay_ms, message });
    }

    /// The terminal fact; only the first one counts.
    pub(crate) fn end(&mut self, success: Option<bool>, reason: &str) {
        if !std::mem::replace(&mut self.ended, true) {
            self.judged = success.is_some();
            if let Some(tokens) = self.context {
                self.meta(Known::Context { tokens, window: self.window });
            }
            self.event(turn_end(success, reason));
        }
    }

    /// True after the terminal fact.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// True after a terminal fact that says whether the turn succeeded.
    pub(crate) fn judged(&self) -> bool {
        self.judged
    }

    // --- what was not understood ---

    /// A line that is no event of the dialect: shown as it is, and counted.
    pub(crate) fn stray(&mut self, line: &str, reason: &str) {
        self.unparsed(line, reason);
        let line = super::strip_ansi(line).into_owned();
        self.text(Tag::Sys, None, line);
    }

    /// Counts a line that was not understood. The first of each reason is reported at once, the others as a
    /// number at the end: a flood of them must not become a flood of events.
    pub(crate) fn unparsed(&mut self, line: &str, reason: &str) {
        if let Some(known) = self.unparsed.iter_mut().find(|known| known.reason == reason) {
            known.further += 1;
            return;
        }
        if self.unparsed.len() >= REASONS {
            return self.unparsed_last();
        }
        let line = excerpt(line);
        self.unparsed.push(Unparsed { kind: None, reason: reason.to_owned(), line: line.clone(), further: 0 });
        self.meta(Known::Unparsed { line, reason: Some(reason.to_owned()), count: None });
    }

    /// Counts a line whose `type` is known not to be the dialect's; false for any other. The first of a kind
    /// was looked at; after it the closing brace, which the caller has seen, is proof enough.
    pub(crate) fn is_unknown(&mut self, line: &[u8]) -> bool {
        let Some(rest) = line.strip_prefix(b"{\"type\":\"") else { return false };
        let mut kinds = self.unparsed.iter_mut().filter(|unparsed| unparsed.kind.is_some());
        let same = |kind: &str| rest.starts_with(kind.as_bytes()) && rest.get(kind.len()) == Some(&b'"');
        let known = kinds.find(|unparsed| unparsed.kind.as_deref().is_some_and(same));
        if let Some(known) = known {
            known.further += 1;
            return true;
        }
        false
    }

    /// Counts an object whose `type` the dialect does not have; false when it is no object at all.
    pub(crate) fn unknown(&mut self, json: &str) -> bool {
        let kind = super::shape::kind(json).unwrap_or_default();
        if let Some(known) = self.unparsed.iter_mut().find(|known| known.kind.as_deref() == Some(&*kind)) {
            known.further += u64::from(json.ends_with('}'));
            return json.ends_with('}');
        }
        let whole = serde_json::from_str::<&serde_json::value::RawValue>(json).is_ok();
        if whole {
            self.unparsed(json, &format!("unknown event `{kind}`"));
            if let Some(last) = self.unparsed.last_mut() {
                last.kind = Some(kind.into_owned());
            }
        }
        whole
    }

    fn unparsed_last(&mut self) {
        if let Some(last) = self.unparsed.last_mut() {
            last.further += 1;
        }
    }

    /// The streams are over: closes what is open and says what was counted.
    pub(crate) fn close(&mut self, success: Option<bool>, reason: &str) {
        let mut out = std::mem::take(&mut self.out);
        self.tools.close(&mut out);
        self.out = out;
        for Unparsed { reason, line, further, .. } in std::mem::take(&mut self.unparsed) {
            if further > 0 {
                self.meta(Known::Unparsed { line, reason: Some(reason), count: Some(further) });
            }
        }
        self.end(success, reason);
    }

    /// The same for an agent without a terminal event: its process, or a failure that it reports, says how it went.
    pub(crate) fn close_by_exit(&mut self, exit: Option<Exit>, failure: Option<Failure>) {
        let failed = exit.is_some_and(|exit| !exit.success());
        let success = (failed || failure.is_some()).then_some(false);
        if let Some(failure) = failure {
            self.failure(failure);
        }
        self.close(success, if exit.is_some_and(was_stopped) { "stopped" } else { "end of output" });
    }
}

fn within(event: Event, parent: Option<&str>) -> Event {
    match parent {
        Some(parent) => event.within(parent),
        None => event,
    }
}
