//! Kiro: a transcript for people. It has no events, no session id and no tokens, and exits with 0 when its key
//! is refused; a trailer on standard error shows that a run really happened.

use super::failure::Failure;
use super::jsonl::was_stopped;
use super::plain::Plain;
use super::tail::Tail;
use super::turn::Turn;
use super::{Adapter, Capabilities, Context, Dialect, Messages, stderr_text, strip_ansi};
use crate::event::{Event, FailureClass, Tag};
use crate::process::{Exit, Line};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "kiro",
    capabilities: Capabilities { roles: false, tools: false, usage: false, prompt_hiding: true, session: false },
    messages: Messages::Lines,
    speaks: |_| false,
    adapter: |context| Box::new(Kiro::new(context)),
};

const TRAILER: &str = "▸ Credits:";

struct Kiro {
    turn: Turn,
    plain: Plain,
    tail: Tail,
    /// The first line of the answer has been seen.
    answered: bool,
    paid: bool,
    refused: Option<String>,
}

impl Kiro {
    fn new(context: &Context) -> Self {
        Self {
            turn: Turn::default(),
            plain: Plain::new(context),
            tail: Tail::default(),
            answered: false,
            paid: false,
            refused: None,
        }
    }

    /// Takes note of what the program says about itself.
    fn program(&mut self, text: &str) {
        self.tail.push(text);
        self.paid |= text.trim_start().starts_with(TRAILER);
        if text.starts_with("Authentication failed") {
            self.refused = Some(text.to_owned());
        }
    }
}

impl Adapter for Kiro {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        let text = line.text();
        let text = strip_ansi(&text);
        if text.trim_start().starts_with(TRAILER) {
            self.program(&text);
            self.turn.text(Tag::Sys, None, text);
        } else {
            let blank = text.trim().is_empty();
            // The prompt sign before the answer.
            let words = if self.answered { &*text } else { text.strip_prefix("> ").unwrap_or(&text) };
            self.answered |= !blank;
            let mut said = Vec::new();
            self.plain.line(Line { bytes: words.as_bytes(), ..line }, &mut said);
            self.turn.append(said);
        }
        self.turn.swap(out);
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        self.program(&strip_ansi(&line.text()));
        self.turn.event(stderr_text(line));
        self.turn.swap(out);
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        let mut rest = Vec::new();
        self.plain.flush(&mut rest);
        self.turn.append(rest);
        let failed = exit.is_some_and(|exit| !exit.success());
        let stopped = exit.is_some_and(was_stopped);
        let failure = match (exit, self.refused.take()) {
            (_, Some(message)) if !self.paid => Some(Failure::of(FailureClass::Auth, None, message)),
            (Some(exit), _) if failed => self.tail.failure(exit, None).filter(|_| !stopped),
            (Some(_), _) if !self.answered => Some(Failure::of(FailureClass::Agent, None, "the answer was empty")),
            _ => None,
        };
        self.turn.close_by_exit(exit, failure);
        self.turn.swap(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Known;

    fn read(stdout: &str, stderr: &str, exit: Exit) -> Vec<Event> {
        let mut adapter = Kiro::new(&Context::default());
        let mut out = Vec::new();
        stdout.lines().for_each(|line| adapter.line(Line::whole(line.as_bytes()), &mut out));
        stderr.lines().for_each(|line| adapter.stderr(Line::whole(line.as_bytes()), &mut out));
        adapter.end(Some(exit), &mut out);
        out
    }

    fn words(events: &[Event]) -> Vec<&str> {
        events
            .iter()
            .filter_map(|event| match event {
                Event::Text { tag: Tag::Ai, text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    fn end(events: &[Event]) -> (Option<FailureClass>, Option<bool>) {
        let known = |event: &Event| if let Event::Meta { meta } = event { meta.known() } else { None };
        let all: Vec<Known> = events.iter().filter_map(known).collect();
        let class =
            all.iter().find_map(|known| if let Known::Error { class, .. } = known { Some(*class) } else { None });
        let success =
            all.iter().find_map(|known| if let Known::TurnEnd { success, .. } = known { *success } else { None });
        (class, success)
    }

    #[test]
    fn the_answer_loses_its_colours_and_its_prompt_sign() {
        let events =
            read("\u{1b}[38;5;141m> \u{1b}[0mRed\nBlue\n> quoted", "▸ Credits: 0.05 • Time: 2s", Exit::Code(0));
        assert_eq!(words(&events), ["Red", "Blue", "> quoted"]);
        assert_eq!(end(&events), (None, None), "the exit code decides");
    }

    #[test]
    fn a_refused_key_is_no_success() {
        let events = read("", "Authentication failed.", Exit::Code(0));
        assert_eq!(end(&events), (Some(FailureClass::Auth), Some(false)));
        assert_eq!(end(&read("", "", Exit::Code(0))), (Some(FailureClass::Agent), Some(false)));
    }
}
