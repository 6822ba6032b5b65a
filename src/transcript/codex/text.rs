//! Codex' text form: blocks under bare role words. Today's has a banner, commands on two lines and patches;
//! the classic one had one-line tool headers, and before that a time in front of each header.
//!
//! A role word cannot be distinguished from the same word in a text, so the prompt is compared line by line with the
//! one that was sent, and inside a tool's output a role word counts only after a blank line.

use super::json::{failure, reconnecting};
use super::line::{self, Header};
use super::message::{push_line, same_words, split_plan, trim_lines};
use super::patch;
use super::router::{self, Router};
use super::running::Running;
use crate::event::{Event, FailureClass, Known, Status, Stream, Tag, Usage};
use crate::process::{Exit, Line};
use crate::transcript::failure::Failure;
use crate::transcript::jsonl::was_stopped;
use crate::transcript::tail::Tail;
use crate::transcript::turn::Turn;
use crate::transcript::{Adapter, Context, stderr_text, strip_ansi};
use serde_json::json;

pub(crate) use super::line::{is_banner, opens};

/// So much of a block is held until it is over.
const HELD: usize = 1024 * 1024;
/// A command may go over this many lines.
const COMMAND_LINES: usize = 400;

pub(crate) struct Text {
    turn: Turn,
    tail: Tail,
    router: Router,
    /// The lines of the prompt as sent, then of the user's part of it.
    prompts: Vec<Vec<String>>,
    block: Block,
    /// The line before was blank.
    after_blank: bool,
    /// The stream that has the blocks, once seen.
    blocks: Option<Stream>,
    banner: bool,
    directory: Option<String>,
    calls: usize,
    running: Running,
    /// Names and ids of other calls that run.
    told: Vec<(String, String)>,
    /// The last message, until it is known whether it is repeated.
    message: Option<String>,
    /// The final message as it is repeated after everything else.
    copy: String,
    failure: Option<Failure>,
}

/// What the lines belong to.
enum Block {
    System,
    /// How far an echo of each prompt has come; `None`: it is no echo of that one.
    Prompt(Vec<Option<usize>>),
    Message(String),
    Thinking(String),
    /// After `exec`: the command, perhaps over several lines.
    Command(Vec<String>),
    /// Of the call with this id.
    Output {
        id: String,
        text: String,
        cut: bool,
    },
    Patch(Vec<String>),
    Tokens,
    /// After the number of tokens: the final message again.
    Copy,
}

impl Text {
    pub(crate) fn new(context: &Context) -> Self {
        let prompts = context.prompts.iter().map(|prompt| lines_of(prompt)).filter(|lines| !lines.is_empty()).collect();
        Self {
            turn: Turn::default(),
            tail: Tail::default(),
            router: Router::default(),
            prompts,
            block: Block::System,
            after_blank: true,
            blocks: None,
            banner: false,
            directory: None,
            calls: 0,
            running: Running::default(),
            told: Vec::new(),
            message: None,
            copy: String::new(),
            failure: None,
        }
    }

    fn take(&mut self, line: &str) {
        let line = strip_ansi(line);
        let line = line.trim_end_matches('\r');
        self.block_line(line);
        self.after_blank = line.trim().is_empty();
    }

    fn block_line(&mut self, line: &str) {
        if self.is_echo(line) {
            return self.turn.text(Tag::Prompt, None, line);
        }
        if router::is_log(line) {
            // What a log line says may go over several lines, none of which belongs to the block before.
            self.close();
            self.turn.text(Tag::Sys, None, line);
            return self.router.line(line, &mut self.turn);
        }
        if let Some(end) = line::end_of_command(line)
            && end.command.is_empty()
            && !self.running.is_empty()
        {
            self.close();
            return self.command_over(end.status, end.duration_ms);
        }
        let inside = matches!(self.block, Block::Output { .. } | Block::Patch(_));
        if !inside || self.after_blank || line::is_timed(line) {
            if let Some(header) = line::header(line, self.banner) {
                return self.open(&header);
            }
            if self.notice(line) {
                return;
            }
            if line::is_bold(line) && (inside || matches!(self.block, Block::Prompt(_))) {
                self.close();
                self.block = Block::Thinking(line.to_owned());
                return;
            }
        }
        self.append(line);
    }

    /// True for the next line of a prompt that is being repeated.
    fn is_echo(&mut self, line: &str) -> bool {
        let Block::Prompt(progress) = &mut self.block else { return false };
        let mut echo = false;
        for (at, lines) in progress.iter_mut().zip(&self.prompts) {
            match at {
                Some(next) if lines.get(*next).is_some_and(|expected| expected == line.trim_end()) => {
                    *next += 1;
                    echo = true;
                }
                // An echo that is complete stays so.
                Some(next) if *next == lines.len() => {}
                _ => *at = None,
            }
        }
        echo
    }

    /// True when the prompt has been repeated in full: what follows is Codex' own.
    fn echoed(&self) -> bool {
        let Block::Prompt(progress) = &self.block else { return false };
        progress.iter().zip(&self.prompts).any(|(at, lines)| *at == Some(lines.len()))
    }

    fn open(&mut self, header: &Header<'_>) {
        self.close();
        self.block = match *header {
            Header::User => Block::Prompt(vec![Some(0); self.prompts.len()]),
            Header::Agent => {
                self.release();
                Block::Message(String::new())
            }
            Header::Thinking => Block::Thinking(String::new()),
            Header::System => Block::System,
            Header::Patch => Block::Patch(Vec::new()),
            Header::Command => Block::Command(Vec::new()),
            Header::CommandLine(command) => return self.command(command),
            Header::Ended { status, duration_ms } => return self.command_over(status, duration_ms),
            Header::Tokens(None) => Block::Tokens,
            Header::Tokens(Some(total)) => {
                self.tokens(total);
                Block::Copy
            }
        };
    }

    /// One line that is complete by itself.
    fn notice(&mut self, line: &str) -> bool {
        if let Some(message) = line.strip_prefix("ERROR: ") {
            self.close();
            self.block = Block::System;
            self.turn.text(Tag::Sys, None, line);
            match reconnecting(message) {
                Some((attempt, retried)) => self.turn.retry(retried, attempt, None),
                // It counts when the process fails: a message may have such a line, too.
                None => self.failure = Some(failure(message.to_owned())),
            }
        } else if let Some(message) =
            line.strip_prefix("warning: ").filter(|_| !matches!(self.block, Block::Message(_)))
        {
            self.close();
            self.block = Block::System;
            self.turn.meta(Known::Warning { message: message.to_owned() });
        } else if line == "turn interrupted" && self.banner {
            self.close();
            self.block = Block::System;
            self.turn.text(Tag::Sys, None, line);
        } else if let Some(call) = line::call(line).filter(|_| self.banner) {
            self.close();
            self.block = Block::System;
            self.call(&call);
        } else {
            return false;
        }
        true
    }

    /// A call that is reported on one line: `mcp: server/tool started`, `web search: words`, `collab: Wait`.
    fn call(&mut self, call: &line::Call<'_>) {
        self.release();
        let name = call.name.as_str();
        let open = self.told.iter().position(|(open, _)| open == name);
        let open = open.filter(|_| call.end.is_some() || call.once).map(|at| self.told.remove(at).1);
        match (call.end, open) {
            (Some(status), Some(id)) => self.turn.tool_end(&id, None, status, None),
            // The same words again: it is over.
            (None, Some(id)) => self.turn.tool_end(&id, None, Status::Ok, None),
            (end, None) => {
                let id = self.next_id();
                let input = call.query.map(|query| [("query".to_owned(), query.into())].into_iter().collect());
                self.turn.tool_start(&id, None, name, input);
                match end {
                    Some(status) => self.turn.tool_end(&id, None, status, None),
                    None => self.told.push((call.name.clone(), id)),
                }
            }
        }
    }

    fn append(&mut self, line: &str) {
        let echoed = self.echoed();
        match &mut self.block {
            Block::System => self.system(line),
            // What follows the prompt without a header is reasoning; after the classic one it was anything.
            Block::Prompt(_) if echoed && self.banner => self.block = Block::Thinking(line.to_owned()),
            Block::Prompt(_) if echoed => {
                self.block = Block::System;
                self.turn.text(Tag::Sys, None, line);
            }
            Block::Prompt(_) => self.turn.text(Tag::Prompt, None, line),
            Block::Thinking(text) => {
                push_line(text, line);
                if text.len() > HELD {
                    self.turn.text(Tag::Think, None, std::mem::take(text));
                }
            }
            Block::Message(text) => {
                push_line(text, line);
                if text.len() > HELD {
                    self.close();
                    self.release();
                    self.block = Block::Message(String::new());
                }
            }
            Block::Command(lines) => {
                lines.push(line.to_owned());
                let is_over =
                    line::splits(line, self.directory.as_deref()).is_some() || line::end_of_command(line).is_some();
                // The classic form had the command on one line, whatever it says.
                if is_over || !self.banner || lines.len() == COMMAND_LINES {
                    let command = lines.join("\n");
                    self.command(&command);
                }
            }
            Block::Output { id, text, cut } => {
                if let Some(end) = line::end_of_command(line).filter(|end| end.command.contains("-lc ")) {
                    self.close();
                    self.command_with_end(end.command, end.status, end.duration_ms);
                    return;
                }
                push_line(text, line);
                if text.len() > HELD {
                    self.turn.tool_output_fragment(id, None, std::mem::take(text) + "\n");
                    *cut = true;
                }
            }
            Block::Patch(lines) => lines.push(line.to_owned()),
            Block::Tokens => {
                if let Some(total) = line::number(line) {
                    self.tokens(total);
                    self.block = Block::Copy;
                } else if !line.trim().is_empty() {
                    self.block = Block::Copy;
                    self.append(line);
                }
            }
            Block::Copy => self.repeat(line),
        }
    }

    /// A line of the banner, or of nobody.
    fn system(&mut self, line: &str) {
        if let Some(version) = line::banner(line) {
            self.banner = true;
            self.turn.version(version);
        }
        if let Some((key, value)) = line.split_once(": ") {
            match key {
                "model" => self.turn.model(value.trim()),
                "session id" => self.turn.session(value.trim()),
                "workdir" => self.directory = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        self.tail.push(line);
        self.turn.text(Tag::Sys, None, line);
    }

    fn repeat(&mut self, line: &str) {
        if self.copy.len() < HELD {
            push_line(&mut self.copy, line);
        } else {
            self.finish_message();
            self.turn.text(Tag::Ai, None, line);
        }
    }

    fn tokens(&mut self, total: u64) {
        self.turn.usage(Usage { total_tokens: Some(total), ..Usage::default() });
    }

    fn next_id(&mut self) -> String {
        self.calls += 1;
        format!("call_{}", self.calls)
    }

    /// A command begins, perhaps with its end on the same line.
    fn command(&mut self, said: &str) {
        if let Some(end) = line::end_of_command(said) {
            return self.command_with_end(end.command, end.status, end.duration_ms);
        }
        self.release();
        let command = line::splits(said, self.directory.as_deref()).map_or(said, |(command, _)| command);
        let id = self.next_id();
        self.turn.tool_start(&id, None, "shell", json!({"command": command}).as_object().cloned());
        if self.banner {
            self.running.begin(id);
            self.block = Block::System;
        } else {
            self.block = Block::Output { id: id.clone(), text: String::new(), cut: false };
            self.running.begin(id);
        }
    }

    fn command_with_end(&mut self, said: &str, status: Status, duration_ms: Option<u64>) {
        self.release();
        let command = line::splits(said, self.directory.as_deref()).map_or(said, |(command, _)| command);
        let id = self.next_id();
        self.turn.tool_start(&id, None, "shell", json!({"command": command}).as_object().cloned());
        self.running.begin(id);
        self.command_over(status, duration_ms);
    }

    /// A command is over; its output follows.
    fn command_over(&mut self, status: Status, duration_ms: Option<u64>) {
        self.release();
        let id = self.running.over(status, duration_ms);
        self.block = Block::Output { id, text: String::new(), cut: false };
    }

    fn close(&mut self) {
        match std::mem::replace(&mut self.block, Block::System) {
            Block::Message(text) => self.message = Some(text).filter(|text| !text.trim().is_empty()),
            Block::Thinking(text) => self.turn.text(Tag::Think, None, trim_lines(&text)),
            Block::Output { id, text, cut } => {
                let text = trim_lines(&text);
                if cut {
                    self.turn.tool_output_fragment(&id, None, text);
                } else {
                    self.turn.tool_output(&id, None, text);
                }
                // The classic form without an end: nobody says how it went.
                if !self.banner {
                    self.running.give_up();
                }
                self.running.settle(&mut self.turn);
            }
            Block::Command(lines) if !lines.is_empty() => {
                self.command(&lines.join("\n"));
                self.block = Block::System;
            }
            Block::Patch(lines) => {
                self.release();
                let id = self.next_id();
                patch::tell(&id, &lines, &mut self.turn);
            }
            Block::System | Block::Prompt(_) | Block::Command(_) | Block::Tokens | Block::Copy => {}
        }
    }

    /// The message before is not the last one: it is said, and a plan at its end is a plan.
    fn release(&mut self) {
        let Some(message) = self.message.take() else { return };
        let (words, items) = split_plan(&message);
        self.turn.text(Tag::Ai, None, trim_lines(words));
        if !items.is_empty() {
            self.turn.meta(Known::Todo { items });
        }
    }

    /// Says the last message once, whether it was repeated or not.
    fn finish_message(&mut self) {
        let copy = trim_lines(&std::mem::take(&mut self.copy));
        let message = self.message.take().map(|message| trim_lines(&message)).unwrap_or_default();
        if !same_words(&copy, &message) {
            self.turn.text(Tag::Ai, None, message);
            self.turn.answer(copy);
        } else if copy.is_empty() {
        } else {
            self.turn.text(Tag::Ai, None, copy);
        }
    }
}

impl Adapter for Text {
    fn line(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        let said = line.text();
        if self.blocks.is_none() && opens(&said) {
            self.blocks = Some(Stream::Stdout);
            // What came before it was no answer.
            std::mem::take(&mut self.copy).lines().for_each(|line| self.take(line));
        }
        if self.blocks == Some(Stream::Stdout) {
            self.take(&said);
        } else {
            let said = strip_ansi(&said);
            self.repeat(&said);
        }
        self.turn.swap(out);
    }

    fn stderr(&mut self, line: Line<'_>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        let said = line.text();
        if self.blocks.is_none() && is_banner(&said) {
            self.blocks = Some(Stream::Stderr);
        }
        if self.blocks == Some(Stream::Stderr) {
            self.take(&said);
        } else {
            self.tail.push(&said);
            self.turn.event(stderr_text(line));
            self.router.line(&said, &mut self.turn);
        }
        self.turn.swap(out);
    }

    fn end(&mut self, exit: Option<Exit>, out: &mut Vec<Event>) {
        self.turn.swap(out);
        self.close();
        self.finish_message();
        let failed = exit.map(|exit| !exit.success());
        // Without an exit code, an error is the end.
        if failed.unwrap_or(self.failure.is_some()) {
            let stopped = exit.is_some_and(was_stopped);
            if let Some(failure) = self.failure.take().or_else(|| self.tail.failure(exit?, None)).filter(|_| !stopped) {
                self.turn.failure(failure);
            }
            self.turn.close(Some(false), if stopped { "stopped" } else { "the agent failed" });
        } else if self.banner && !self.turn.has_spoken() {
            self.turn.failure(Failure::of(FailureClass::Agent, None, "the answer was empty"));
            self.turn.close(Some(false), "end of output");
        } else {
            self.turn.close(None, "end of output");
        }
        self.turn.swap(out);
    }
}

fn lines_of(text: &str) -> Vec<String> {
    text.trim().lines().map(|line| strip_ansi(line).trim_end().to_owned()).collect()
}
