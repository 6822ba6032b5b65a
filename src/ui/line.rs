//! The line view: what happens, one line after the other, on a terminal, in a pipe, in a CI log.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use super::callouts::{Gathered, action, outcome};
use super::style::{Glyphs, Ink, Palette};
use super::text::{cut, harmless, wrap};
use super::{View, figures};
use crate::event::{Event, Known, Meta, Stream, Tag};
use crate::journal::{Body, CheckResult, Fact, Outcome, Record};
use crate::signals::Signal;

/// The width of the longest tag or callout.
const TAG_WIDTH: usize = 7;
/// A line without an end is shown in parts of this size.
const LONGEST_HELD: usize = 64 * 1024;
/// How much a failed check shows of its output; the journal has more.
const SHOWN_CHECK_LINES: usize = 10;

/// How wide the output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Lines are never broken.
    Unlimited,
    /// Always this many.
    Fixed(usize),
    /// As many as the terminal has.
    Terminal,
}

/// Writes lines to `out`.
pub struct LineView<W: Write> {
    out: io::BufWriter<W>,
    palette: Palette,
    glyphs: Glyphs,
    columns: Columns,
    width: usize,
    open: Option<Open>,
    gathered: Gathered,
    /// A tool that has started and is not shown yet: one line is enough when it ends soon.
    started: Option<String>,
    unparsed_told: bool,
    /// The agent's own display is shown instead of its events.
    own_display: bool,
    run: String,
    status: Status,
}

/// The text that is being said.
struct Open {
    tag: Tag,
    nested: bool,
    held: String,
    /// Lines of a repeated prompt, which are counted and not shown.
    hidden: usize,
}

/// The live line at the bottom of a terminal.
struct Status {
    shown: bool,
    agent: String,
    iteration: u32,
    of: u32,
    since: Instant,
    heard: Instant,
    running: bool,
    /// When a wait between iterations is over.
    until: Option<Instant>,
}

impl<W: Write> LineView<W> {
    /// A view with these looks. A status line is drawn when the columns are a terminal's.
    pub fn new(out: W, palette: Palette, glyphs: Glyphs, columns: Columns) -> Self {
        let now = Instant::now();
        let status = Status {
            shown: false,
            agent: String::new(),
            iteration: 0,
            of: 0,
            since: now,
            heard: now,
            running: false,
            until: None,
        };
        let mut view = Self {
            out: io::BufWriter::with_capacity(64 * 1024, out),
            palette,
            glyphs,
            columns,
            width: 80,
            open: None,
            gathered: Gathered::default(),
            started: None,
            unparsed_told: false,
            own_display: false,
            run: String::new(),
            status,
        };
        view.measure();
        view
    }

    fn measure(&mut self) {
        self.width = match self.columns {
            Columns::Unlimited => usize::MAX,
            Columns::Fixed(columns) => columns,
            Columns::Terminal => rustix::termios::tcgetwinsize(rustix::stdio::stdout())
                .map_or(80, |size| if size.ws_col == 0 { 80 } else { usize::from(size.ws_col) })
                .max(20),
        };
    }

    /// The tool that is running, when something else is to be shown before it ends.
    fn show_started(&mut self) -> io::Result<()> {
        let Some(id) = self.started.take() else { return Ok(()) };
        match self.gathered.calls.find(&id).map(|call| action(call, 0, &self.glyphs)) {
            Some((line, ink)) => self.row(Tag::Tool.name(), self.glyphs.gutter, Ink::Tool, &line, ink),
            None => Ok(()),
        }
    }

    /// One line behind a tag, wrapped.
    fn row(&mut self, tag: &str, gutter: &str, tag_ink: Ink, text: &str, ink: Ink) -> io::Result<()> {
        let room = self.width.saturating_sub(TAG_WIDTH + 3);
        let rows = if self.width == usize::MAX { vec![text.to_owned()] } else { wrap(text, room) };
        for (at, row) in rows.iter().enumerate() {
            let tag = if at == 0 { format!("{tag:>TAG_WIDTH$}") } else { " ".repeat(TAG_WIDTH) };
            let line = format!(
                "{} {} {}",
                self.palette.paint(tag_ink, &tag),
                self.palette.paint(Ink::Dim, gutter),
                self.palette.paint(ink, row)
            );
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn say(&mut self, tag: Tag, text: &str) -> io::Result<()> {
        self.show_started()?;
        let ink = match tag {
            Tag::Think | Tag::Sys | Tag::Prompt => Ink::Dim,
            _ => Ink::None,
        };
        self.row(tag.name(), self.glyphs.gutter, Ink::of(tag), &harmless(text), ink)
    }

    fn system(&mut self, text: &str, ink: Ink) -> io::Result<()> {
        self.show_started()?;
        for line in text.lines() {
            self.row(Tag::Sys.name(), self.glyphs.gutter, Ink::Dim, &harmless(line), ink)?;
        }
        Ok(())
    }

    /// A line across, with a title.
    fn rule(&mut self, title: &str, ink: Ink) -> io::Result<()> {
        let title = format!("{} {title} ", self.glyphs.rule.repeat(2));
        let columns = if self.width == usize::MAX { 80 } else { self.width };
        let title = cut(&title, columns);
        let rest = self.glyphs.rule.repeat(columns.saturating_sub(super::text::width(&title)));
        writeln!(self.out, "{}", self.palette.paint(ink, &format!("{title}{rest}")))
    }

    fn text(&mut self, tag: Tag, text: &str, delta: bool, nested: bool) -> io::Result<()> {
        let same = self.open.as_ref().is_some_and(|open| open.tag == tag && open.nested == nested);
        if !same || (!delta && tag != Tag::Prompt) {
            self.close()?;
        }
        let open = self.open.get_or_insert_with(|| Open { tag, nested, held: String::new(), hidden: 0 });
        if tag == Tag::Prompt {
            open.hidden += text.lines().count().max(1);
            return Ok(());
        }
        open.held.push_str(text);
        let mut held = std::mem::take(&mut open.held);
        let whole = held.rfind('\n').map_or(0, |end| end + 1);
        for line in held[..whole].lines() {
            self.spoken(tag, nested, line)?;
        }
        held.drain(..whole);
        if held.len() > LONGEST_HELD {
            self.spoken(tag, nested, &held)?;
            held.clear();
        }
        if let Some(open) = &mut self.open {
            open.held = held;
        }
        if !delta {
            self.close()?;
        }
        Ok(())
    }

    fn spoken(&mut self, tag: Tag, nested: bool, line: &str) -> io::Result<()> {
        if nested { self.say(tag, &format!("{} {line}", self.glyphs.start)) } else { self.say(tag, line) }
    }

    /// The open text is over: what is held is its last line.
    fn close(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(Open { hidden, .. }) if hidden > 0 => {
                self.say(Tag::Prompt, &format!("({} of the prompt repeated)", figures::plural(hidden as u64, "line")))
            }
            Some(Open { tag, nested, held, .. }) if !held.is_empty() => self.spoken(tag, nested, &held),
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::Text { tag, text, delta, parent } = event {
            if *tag == Tag::Think && parent.is_none() {
                self.gathered.think(text, *delta);
            }
            return self.text(*tag, text, *delta, parent.is_some());
        }
        match event {
            Event::Text { .. } => Ok(()),
            Event::ToolStart { tool, .. } => {
                self.close()?;
                self.show_started()?;
                self.gathered.calls.start(&tool.id, &tool.name, tool.input.as_ref());
                self.started = Some(tool.id.clone());
                Ok(())
            }
            Event::ToolOutput { tool, text, delta, .. } => {
                self.gathered.calls.output(&tool.id, text, *delta);
                Ok(())
            }
            Event::ToolEnd { tool, .. } => {
                self.close()?;
                if self.started.as_ref().is_some_and(|id| *id == tool.id) {
                    self.started = None;
                }
                let call = self.gathered.calls.end(&tool.id, tool.status, tool.duration_ms);
                match call.map(|call| action(call, 0, &self.glyphs)) {
                    Some((line, ink)) => self.row(Tag::Tool.name(), self.glyphs.gutter, Ink::Tool, &line, ink),
                    None => Ok(()),
                }
            }
            Event::Usage { .. } => {
                self.gathered.usage = true;
                Ok(())
            }
            Event::Meta { meta } => self.meta(meta),
        }
    }

    fn meta(&mut self, meta: &Meta) -> io::Result<()> {
        let Some(known) = meta.known() else { return Ok(()) };
        let (text, ink) = match known {
            Known::Todo { items } => {
                self.gathered.todo = items;
                return Ok(());
            }
            Known::TurnEnd { .. } | Known::Files { .. } | Known::Context { .. } => return Ok(()),
            Known::Unparsed { .. } if std::mem::replace(&mut self.unparsed_told, true) => return Ok(()),
            Known::Unparsed { reason, .. } => {
                let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
                (format!("a line was not understood{reason}; further ones are only counted"), Ink::Warn)
            }
            Known::Session { id } => (format!("session {id}"), Ink::Dim),
            Known::Model { model } => (format!("model {model}"), Ink::Dim),
            Known::Version { version } => (format!("version {version}"), Ink::Dim),
            Known::Error { class, message, .. } => (format!("{}: {message}", class.name()), Ink::Bad),
            Known::Retry { class, attempt, message, .. } => {
                let attempt = attempt.map_or_else(String::new, |attempt| format!(" (try {attempt})"));
                let message = message.map_or_else(String::new, |message| format!(": {message}"));
                (format!("the agent tries again after {}{attempt}{message}", class.name()), Ink::Warn)
            }
            Known::Permission { tool, message, .. } => {
                let message = message.map_or_else(String::new, |message| format!(": {message}"));
                (format!("tool `{tool}` was not permitted{message}"), Ink::Warn)
            }
            Known::ParseError { message, .. } => (format!("broken RTF1 line: {message}"), Ink::Warn),
            Known::Warning { message } => (message, Ink::Warn),
            Known::Dialect { from, to } => (format!("expected {from}, but the output is {to}: switched"), Ink::Warn),
        };
        self.close()?;
        self.system(&text, ink)
    }

    /// An event whose text another display shows: only what it adds up to is taken, and what went wrong is told.
    fn count(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Text { tag: Tag::Think, text, delta, parent: None } => self.gathered.think(text, *delta),
            Event::Text { .. } => {}
            Event::ToolStart { tool, .. } => self.gathered.calls.start(&tool.id, &tool.name, tool.input.as_ref()),
            Event::ToolOutput { tool, text, delta, .. } => self.gathered.calls.output(&tool.id, text, *delta),
            Event::ToolEnd { tool, .. } => {
                self.gathered.calls.end(&tool.id, tool.status, tool.duration_ms);
            }
            Event::Usage { .. } => self.gathered.usage = true,
            Event::Meta { meta } => match meta.known() {
                Some(Known::Unparsed { .. } | Known::Dialect { .. } | Known::ParseError { .. }) => {}
                _ => return self.meta(meta),
            },
        }
        Ok(())
    }

    fn fact(&mut self, fact: &Fact) -> io::Result<()> {
        if let Fact::Display { text, .. } = fact {
            return self.text(Tag::Ai, text, true, false);
        }
        self.close()?;
        self.measure();
        match fact {
            Fact::RunStart { ralph, run, agent, command, transcript, prompt, max_iterations, max_seconds, .. } => {
                self.status.agent.clone_from(agent);
                self.run.clone_from(run);
                let dot = self.glyphs.dot;
                let time = max_seconds.map_or_else(String::new, |seconds| {
                    format!(", {}", figures::duration(seconds.saturating_mul(1000)))
                });
                let title = format!("ralph {ralph} {dot} run {run}");
                writeln!(self.out, "{}", self.palette.paint(Ink::Strong, &title))?;
                let limits = format!("at most {}{time}", figures::plural(u64::from(*max_iterations), "iteration"));
                let facts = [
                    format!("agent {agent} {dot} transcript {transcript} {dot} {limits}"),
                    format!("command: {}", quoted(command)),
                    format!("prompt: {prompt}"),
                ];
                facts
                    .iter()
                    .try_for_each(|line| writeln!(self.out, "{}", self.palette.paint(Ink::Dim, &harmless(line))))
            }
            Fact::IterationStart { iteration, of, display, .. } => {
                self.own_display = *display;
                self.gathered = Gathered::default();
                self.status = Status {
                    iteration: *iteration,
                    of: *of,
                    since: Instant::now(),
                    running: true,
                    until: None,
                    agent: std::mem::take(&mut self.status.agent),
                    ..self.status
                };
                writeln!(self.out)?;
                self.rule(&format!("iteration {iteration} of {of}"), Ink::Strong)
            }
            Fact::Signal { signal: Signal::NearMiss { marker, reason, line }, .. } => {
                self.system(&format!("`{marker}` does not count: {reason}\n  {line}"), Ink::Warn)
            }
            Fact::Signal { .. } | Fact::Display { .. } => Ok(()),
            Fact::IterationEnd { receipt } => {
                self.status.running = false;
                for row in self.gathered.rows(receipt, &self.glyphs) {
                    self.row(row.name, self.glyphs.callout, Ink::Strong, &row.text, row.ink)?;
                }
                if !self.gathered.has_report() {
                    let line =
                        format!("{} {} {}", outcome(receipt), self.glyphs.dot, figures::duration(receipt.duration_ms));
                    self.system(&line, if receipt.success { Ink::Dim } else { Ink::Bad })?;
                }
                if receipt.unparsed > 0 {
                    let lines = figures::plural(u64::from(receipt.unparsed), "line");
                    self.system(&format!("{lines} not understood, see the raw file"), Ink::Warn)?;
                }
                receipt.left_behind.iter().try_for_each(|stray| {
                    let fate = if receipt.left_running { "goes on" } else { "was stopped" };
                    self.system(&format!("the agent left a process behind, which {fate}: {stray}"), Ink::Warn)
                })
            }
            Fact::Decision { verdict, reason, wait_ms, .. } => match (verdict.as_str(), wait_ms) {
                ("finish", _) => Ok(()),
                (_, Some(wait)) => {
                    self.status.until = Some(Instant::now() + Duration::from_millis(*wait));
                    self.system(&format!("waiting {}: {reason}", figures::duration(*wait)), Ink::Warn)
                }
                _ => self.system(&format!("next: {reason}"), Ink::Dim),
            },
            Fact::Verification { passed, checks, .. } => self.verification(*passed, checks),
            Fact::Published { event, by, heard_by, .. } => {
                let hearers = if heard_by.is_empty() { "nobody".to_owned() } else { heard_by.join(", ") };
                let ink = if heard_by.is_empty() { Ink::Warn } else { Ink::Dim };
                self.system(&format!("event {} by {by}, heard by {hearers}", event.topic), ink)
            }
            Fact::Control { command, words } => {
                let words = words.as_ref().map_or_else(String::new, |words| format!(": {words}"));
                self.system(&format!("{command}{words}"), Ink::Warn)
            }
            Fact::Interrupt { unix_signal, action } => self.system(&format!("{unix_signal}: {action}"), Ink::Warn),
            Fact::Notice { message } => self.system(message, Ink::Warn),
            Fact::RunEnd { outcome, reason, iterations, duration_ms, usage, .. } => {
                let (name, ink) = ending(*outcome);
                writeln!(self.out)?;
                self.rule(name, ink)?;
                let mut parts =
                    vec![figures::plural(u64::from(*iterations), "iteration"), figures::duration(*duration_ms)];
                parts.extend(figures::usage(usage).iter().map(|part| harmless(part)));
                let dot = format!(" {} ", self.glyphs.dot);
                writeln!(self.out, "{}\n{}", self.palette.paint(ink, &harmless(reason)), parts.join(&dot))?;
                let place = format!("everything that happened is in .ralph/runs/{}", self.run);
                writeln!(self.out, "{}", self.palette.paint(Ink::Dim, &place))
            }
        }
    }

    /// One line a check, and what a failed one said last.
    fn verification(&mut self, passed: bool, checks: &[CheckResult]) -> io::Result<()> {
        for check in checks {
            let CheckResult { name, ended, duration_ms, .. } = check;
            let ink = if check.passed { Ink::Good } else { Ink::Bad };
            let time = figures::duration(*duration_ms);
            self.system(&format!("verify {name}: {ended} {} {time}", self.glyphs.dot), ink)?;
            if !check.passed && !check.tail.is_empty() {
                let lines: Vec<&str> = check.tail.lines().collect();
                let last = &lines[lines.len().saturating_sub(SHOWN_CHECK_LINES)..];
                self.system(&last.join("\n"), Ink::Dim)?;
            }
        }
        let line = if passed { "verified: every command agrees" } else { "not verified: the claim does not count" };
        self.system(line, if passed { Ink::Good } else { Ink::Bad })
    }

    fn clear_status(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.status.shown) {
            self.out.write_all(b"\r\x1b[K")?;
        }
        Ok(())
    }
}

impl<W: Write + Send> View for LineView<W> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.clear_status()?;
        self.status.heard = Instant::now();
        match &record.body {
            Body::Agent { event, from: Stream::Stdout, .. } if self.own_display => self.count(event),
            Body::Agent { event, .. } => self.event(event),
            Body::Loop(fact) => self.fact(fact),
            Body::Unknown { kind, .. } => {
                self.close()?;
                self.system(&format!("a record `{kind}` of a newer ralph, which this one does not know"), Ink::Warn)
            }
        }
    }

    fn tick(&mut self) -> io::Result<()> {
        if self.started.is_some() {
            self.clear_status()?;
            self.show_started()?;
            self.out.flush()?;
        }
        if self.columns != Columns::Terminal || !(self.status.running || self.status.until.is_some()) {
            return Ok(());
        }
        self.measure();
        let Status { iteration, of, agent, since, heard, .. } = &self.status;
        let dot = self.glyphs.dot;
        let idle = heard.elapsed().as_secs();
        let idle = if idle >= 2 { format!(" {dot} idle {idle}s") } else { String::new() };
        let elapsed = figures::duration(since.elapsed().as_secs() * 1000);
        let line = match self.status.until {
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now()).as_secs();
                format!("waiting, {} left {dot} r tries now", figures::duration(left * 1000))
            }
            None => format!("iteration {iteration}/{of} {dot} {} {dot} {elapsed}{idle}", harmless(agent)),
        };
        let line = self.palette.paint(Ink::Dim, &cut(&line, self.width.saturating_sub(1)));
        write!(self.out, "\r\x1b[K{line}")?;
        self.status.shown = true;
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A command line as it would be typed.
fn quoted(argv: &[String]) -> String {
    let words =
        argv.iter().map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned));
    words.collect::<Vec<_>>().join(" ")
}

const fn ending(outcome: Outcome) -> (&'static str, Ink) {
    match outcome {
        Outcome::Complete => ("complete", Ink::Good),
        Outcome::Failed => ("failed", Ink::Bad),
        Outcome::Human => ("needs a human", Ink::Warn),
        Outcome::AgentUnusable => ("agent not usable", Ink::Bad),
        Outcome::Limit => ("limit reached", Ink::Warn),
        Outcome::NoProgress => ("no progress", Ink::Warn),
        Outcome::RateLimited => ("rate-limited", Ink::Warn),
        Outcome::Interrupted => ("interrupted", Ink::Warn),
    }
}
