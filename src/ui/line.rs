//! The line view: what happens, one line after the other, on a terminal, in a pipe, in a CI log.
//!
//! A line that was written stays as it is. Only on a terminal a few lines below it change: the tools that run, and what
//! is under way.

mod facts;
mod message;
mod output;
mod status;
mod title_and_bell;

use std::io::{self, Write};

use jiff::Timestamp;

use super::View;
use super::appearance::{Alert, Appearance, Channel, KeysGoTo, Motion, Volume};
use super::callouts::action;
use super::diff::Diff;
use super::model::{Excerpt, Model};
use super::style::Ink;
use super::styled::Styled;
use super::text::{harmless, safe};
use super::words;
use crate::event::{Event, FailureClass, Known, Meta, Status, Stream, Tag, TodoItem};
use crate::journal::{Body, Fact, Record};
use message::{Message, Speaker, Voice};
use output::{Head, Output};
use status::StatusLine;

/// What is shown of the output of a tool that failed.
const FAILED_LINES: usize = 5;
/// What is shown of any tool's output when it is asked for, from both its ends.
const ASKED_LINES: usize = 10;
/// This many tools that run are shown at once.
const RUNNING_TOOLS: usize = 5;

/// Writes lines.
pub struct LineView<W: Write> {
    output: Output<W>,
    message: Option<Message>,
    model: Model,
    /// A tool that has started and is not shown yet: one line is enough when it ends soon.
    started: Option<String>,
    /// A line that was not understood was shown; further ones are only counted.
    unparsed_shown: bool,
    status: StatusLine,
    terminal: TerminalUser,
    keys_go_to: fn() -> KeysGoTo,
    /// The title of the terminal is ours.
    titled: bool,
    /// How the last checks went, for the end of the run.
    last_checks: Vec<(String, Ink)>,
    /// How many calls of the iteration were shown when they ended.
    shown_calls: usize,
    /// What was said about session, model and version: only another one is worth a line.
    about: Vec<(std::mem::Discriminant<Known>, String)>,
    /// The plan that was shown last.
    plan: Vec<TodoItem>,
    /// It was said that the agent retries.
    retry_shown: bool,
}

/// Who uses the terminal that the view is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TerminalUser {
    View,
    /// The view's, until an agent's own program gets it.
    Both,
    /// The agent's, for now.
    Agent,
}

impl<W: Write> LineView<W> {
    /// A view that looks like this.
    pub fn new(out: W, appearance: Appearance) -> Self {
        Self {
            output: Output::new(out, appearance),
            message: None,
            model: Model::new(),
            started: None,
            last_checks: Vec::new(),
            shown_calls: 0,
            about: Vec::new(),
            plan: Vec::new(),
            retry_shown: false,
            unparsed_shown: false,
            status: StatusLine::new(),
            terminal: TerminalUser::View,
            keys_go_to: || KeysGoTo::Elsewhere,
            titled: false,
        }
    }

    /// The same without bell and notices of the desktop.
    #[must_use]
    pub(crate) fn silent(mut self) -> Self {
        self.output.appearance.alert = Alert::Off;
        self
    }

    /// For a terminal that agents get for themselves now and then: meanwhile nothing is shown.
    #[must_use]
    pub(crate) fn beside_the_agent(mut self) -> Self {
        self.terminal = TerminalUser::Both;
        self
    }

    /// For a run that takes keys from this terminal; `keys_go_to` says whether it does so now.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys_go_to: fn() -> KeysGoTo) -> Self {
        self.keys_go_to = keys_go_to;
        self
    }

    fn is_quiet(&self) -> bool {
        self.output.appearance.detail.is_quiet()
    }

    /// The tool that is running, when something else is to be shown before it ends.
    fn show_started(&mut self) -> io::Result<()> {
        let Some(id) = self.started.take() else { return Ok(()) };
        self.show_call(&id)
    }

    /// One line for a tool, as far as it has come.
    fn show_call(&mut self, id: &str) -> io::Result<()> {
        let (glyphs, room) = (self.output.appearance.glyphs, self.output.room());
        let Some(call) = self.model.iteration.calls.find(id) else { return Ok(()) };
        let line = action(call, 0, &glyphs, room, None);
        self.shown_calls += usize::from(call.status.is_some());
        if self.is_quiet() { Ok(()) } else { self.output.styled(self.head(Tag::Tool), &line) }
    }

    /// What a tool changed and printed, when someone wants to see it, or should.
    fn show_output(&mut self, id: &str) -> io::Result<()> {
        let asked = self.output.appearance.detail.shows(Channel::Tools);
        let Some(call) = self.model.iteration.calls.find(id) else { return Ok(()) };
        let failed = call.status == Some(Status::Fail);
        if self.is_quiet() || !(asked || failed) {
            return Ok(());
        }
        let change = if asked { call.change.as_ref().map(|change| change.lines.clone()) } else { None };
        let Excerpt { first, left_out, last } =
            if asked { call.excerpt(ASKED_LINES, ASKED_LINES) } else { call.excerpt(0, FAILED_LINES) };
        let mut diff = Diff::Inside;
        change.iter().flatten().try_for_each(|line| self.under_tool(line, &mut diff))?;
        diff = Diff::Outside;
        first.iter().try_for_each(|line| self.under_tool(line, &mut diff))?;
        if left_out > 0 {
            let note = format!(
                "  {} {} more",
                self.output.appearance.glyphs.more,
                super::figures::plural(left_out as u64, "line")
            );
            self.output.row(self.below(), &note, Ink::Dim)?;
        }
        last.iter().try_for_each(|line| self.under_tool(line, &mut diff))
    }

    fn under_tool(&mut self, line: &str, diff: &mut Diff) -> io::Result<()> {
        let line = safe(line);
        let ink = diff.line(&line).unwrap_or(Ink::Dim);
        let mut styled = Styled::new("  ", Ink::None);
        styled.push(&line, ink);
        self.output.styled(self.below(), &styled.hanging(4))
    }

    /// What is before lines that belong to the one above.
    const fn below(&self) -> Head {
        Head { tag: "", ..self.head(Tag::Tool) }
    }

    fn system(&mut self, text: &str, ink: Ink) -> io::Result<()> {
        self.show_started()?;
        let head = Head { ink: Ink::Dim, ..self.head(Tag::Sys) };
        text.lines().enumerate().try_for_each(|(at, line)| {
            let head = if at == 0 { head } else { Head { tag: "", ..head } };
            self.output.row(head, &safe(line), ink)
        })
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Text { tag, text, delta, parent } => {
                let from = match parent {
                    Some(_) => Speaker::SubAgent,
                    // Standard error beside the agent's own display.
                    None if self.model.iteration.own_display => Speaker::Display,
                    None => Speaker::Agent,
                };
                self.text(Voice { tag: *tag, from }, text, *delta)
            }
            Event::ToolStart { tool, .. } => {
                self.end_message()?;
                self.show_started()?;
                // On a terminal it is among the lines that change.
                if self.output.appearance.motion == Motion::Append {
                    self.started = Some(tool.id.clone());
                }
                Ok(())
            }
            Event::ToolEnd { tool, .. } => {
                self.end_message()?;
                if self.started.as_ref().is_some_and(|id| *id == tool.id) {
                    self.started = None;
                }
                self.show_call(&tool.id)?;
                self.show_output(&tool.id)
            }
            Event::ToolOutput { .. } | Event::Usage { .. } => Ok(()),
            Event::Meta { meta } => self.meta(meta),
        }
    }

    fn meta(&mut self, meta: &Meta) -> io::Result<()> {
        let Some(known) = meta.known() else { return Ok(()) };
        let (text, ink) = match known {
            // The decision to wait says which limit it is, and its end.
            Known::Todo { .. } | Known::Files { .. } | Known::Error { class: FailureClass::RateLimit, .. } => {
                return Ok(());
            }
            Known::Unparsed { .. } if std::mem::replace(&mut self.unparsed_shown, true) => return Ok(()),
            Known::Unparsed { reason, .. } => {
                let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                (format!("a line was not understood{reason}; further ones are only counted"), Ink::Warn)
            }
            Known::Retry { .. } if std::mem::replace(&mut self.retry_shown, true) => return Ok(()),
            known @ (Known::Session { .. } | Known::Model { .. } | Known::Version { .. } | Known::Warning { .. }) => {
                let kind = std::mem::discriminant(&known);
                let Some(worded) = words::meta(known).filter(|worded| self.is_news(kind, &worded.0)) else {
                    return Ok(());
                };
                worded
            }
            other => match words::meta(other) {
                Some(worded) => worded,
                None => return Ok(()),
            },
        };
        self.end_message()?;
        self.system(&text, ink)
    }

    /// True when something about the agent is worth a line: it was not said, or it has changed.
    fn is_news(&mut self, kind: std::mem::Discriminant<Known>, text: &str) -> bool {
        let known = self.about.iter().any(|(about, said)| *about == kind && said == text);
        if !known {
            self.about.retain(|(about, _)| *about != kind);
            self.about.push((kind, text.to_owned()));
        }
        !known && !self.is_quiet()
    }

    /// An event whose text another display shows: only what went wrong is said.
    fn beside_own_display(&mut self, event: &Event) -> io::Result<()> {
        let Event::Meta { meta } = event else { return Ok(()) };
        match meta.known() {
            Some(Known::Unparsed { .. } | Known::Dialect { .. } | Known::ParseError { .. }) => Ok(()),
            _ => self.meta(meta),
        }
    }

    /// The lines that change: tools that run, and what is under way.
    fn live(&self) -> Vec<String> {
        let glyphs = &self.output.appearance.glyphs;
        let mut lines = Vec::new();
        if !self.model.iteration.own_display && !self.is_quiet() {
            let running: Vec<_> = self.model.iteration.calls.running().collect();
            let newest = &running[running.len().saturating_sub(RUNNING_TOOLS)..];
            let (tag, room, now) = (Tag::Tool.name(), self.output.live_room(), Some(Timestamp::now()));
            lines.extend(
                newest
                    .iter()
                    .map(|call| format!("{tag:>7} {} {}", glyphs.gutter, action(call, 0, glyphs, room, now).text())),
            );
        }
        lines.extend(self.status.line(&self.model, &glyphs.between(), self.keys_go_to).map(|line| harmless(&line)));
        lines
    }
}

impl<W: Write + Send> View for LineView<W> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.status.heard();
        self.model.apply(record);
        if self.terminal == TerminalUser::Agent {
            match &record.body {
                Body::Loop(Fact::IterationEnd { .. } | Fact::RunEnd { .. }) => self.terminal = TerminalUser::Both,
                _ => return Ok(()),
            }
        }
        match &record.body {
            Body::Agent { event, from: Stream::Stdout, .. }
                if self.model.iteration.own_display && !self.model.iteration.judging =>
            {
                self.beside_own_display(event)
            }
            // A judge answers in JSON; its verdict and findings are shown in words.
            Body::Agent { event: Event::Text { tag: Tag::Ai, .. }, .. }
                if self.model.iteration.judging && self.output.appearance.detail.volume != Volume::Full =>
            {
                Ok(())
            }
            Body::Agent { event, .. } => self.event(event),
            Body::Loop(fact) => self.fact(fact, record.at),
            Body::Unknown { kind, .. } => {
                self.end_message()?;
                self.system(&words::unknown(kind), Ink::Warn)
            }
        }
    }

    fn tick(&mut self) -> io::Result<()> {
        if self.terminal == TerminalUser::Agent {
            return Ok(());
        }
        self.hurry()?;
        self.show_started()?;
        if self.output.appearance.motion == Motion::Append {
            let between = self.output.appearance.glyphs.between();
            if let Some(line) =
                self.status.heartbeat(&self.model, &between).filter(|_| !self.output.appearance.detail.is_quiet())
            {
                self.system(&line, Ink::Dim)?;
            }
        }
        self.output.measure();
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let live = if self.terminal == TerminalUser::Agent { Vec::new() } else { self.live() };
        self.output.draw(&live)?;
        self.output.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        self.end_message()?;
        self.output.draw(&[])?;
        self.restore_title()?;
        self.output.flush()
    }
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
