//! Words as they come: fragments become lines, lines become rows, and what is long is folded.

use std::collections::VecDeque;
use std::io::{self, Write};

use super::LineView;
use super::output::Head;
use crate::event::Tag;
use crate::ui::appearance::Channel;
use crate::ui::figures;
use crate::ui::markdown::Markdown;
use crate::ui::style::{Glyphs, Ink, Palette};
use crate::ui::styled::Styled;
use crate::ui::text::safe;

/// A line without an end is shown in parts of this size.
const LONGEST_HELD: usize = 64 * 1024;
/// This many lines of thinking are shown, unless more are asked for.
const THINK_LINES: usize = 4;
/// This many of everything else that is folded.
const OTHER_LINES: usize = 10;
/// What is said last around an agent explains most: this many lines of it are shown behind the fold.
const LAST_LINES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Voice {
    pub tag: Tag,
    pub from: Speaker,
}

/// Whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent,
    /// Those of an agent that the agent started.
    SubAgent,
    /// What the agent's own display makes of them: lines as they are.
    Display,
}

/// Consecutive words of one voice.
#[derive(Debug)]
pub(super) struct Message {
    voice: Voice,
    /// The line that has not ended.
    held: String,
    shown: usize,
    folded: usize,
    /// The newest lines that were folded.
    last: VecDeque<String>,
    markdown: Option<Markdown>,
    /// Its tag was written.
    tagged: bool,
}

impl Message {
    fn new(voice: Voice, palette: Palette, glyphs: Glyphs) -> Self {
        let read = palette == Palette::Colour && voice.tag == Tag::Ai && voice.from != Speaker::Display;
        let markdown = read.then(|| Markdown::new(glyphs));
        Self { voice, held: String::new(), shown: 0, folded: 0, last: VecDeque::new(), markdown, tagged: false }
    }
}

/// How many lines of a voice are shown in a row.
fn most_shown(channel: Option<Channel>) -> usize {
    match channel {
        None => usize::MAX,
        Some(Channel::Think) => THINK_LINES,
        Some(Channel::Prompt) => 0,
        Some(Channel::Tools | Channel::Sys) => OTHER_LINES,
    }
}

const fn channel(tag: Tag) -> Option<Channel> {
    match tag {
        Tag::Ai | Tag::User => None,
        Tag::Think => Some(Channel::Think),
        Tag::Sys => Some(Channel::Sys),
        Tag::Tool => Some(Channel::Tools),
        Tag::Prompt => Some(Channel::Prompt),
    }
}

impl<W: Write> LineView<W> {
    /// Takes words. A fragment continues where the last one ended; anything else begins a line.
    pub(super) fn text(&mut self, voice: Voice, text: &str, delta: bool) -> io::Result<()> {
        if self.message.as_ref().is_some_and(|message| message.voice != voice) {
            self.end_message()?;
        }
        let appearance = &self.output.appearance;
        let mut message =
            self.message.take().unwrap_or_else(|| Message::new(voice, appearance.palette, appearance.glyphs));
        let shown = self.take(&mut message, text, delta);
        self.message = Some(message);
        shown
    }

    fn take(&mut self, message: &mut Message, text: &str, delta: bool) -> io::Result<()> {
        if !delta {
            self.let_go(message)?;
        }
        let Some(end) = memchr::memrchr(b'\n', text.as_bytes()) else {
            message.held.push_str(text);
            return if delta && message.held.len() <= LONGEST_HELD { Ok(()) } else { self.let_go(message) };
        };
        let mut from = 0;
        for next in memchr::memchr_iter(b'\n', &text.as_bytes()[..=end]) {
            let line = &text[from..next];
            from = next + 1;
            if message.held.is_empty() {
                self.spoken(message, line.strip_suffix('\r').unwrap_or(line))?;
                continue;
            }
            let mut held = std::mem::take(&mut message.held);
            held.push_str(line);
            self.spoken(message, held.strip_suffix('\r').unwrap_or(&held))?;
            held.clear();
            message.held = held;
        }
        message.held.push_str(&text[end + 1..]);
        if delta { Ok(()) } else { self.let_go(message) }
    }

    /// What is held is a line.
    fn let_go(&mut self, message: &mut Message) -> io::Result<()> {
        if message.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut message.held);
        self.spoken(message, &held)
    }

    fn spoken(&mut self, message: &mut Message, line: &str) -> io::Result<()> {
        let channel = channel(message.voice.tag);
        let detail = &self.output.appearance.detail;
        if detail.is_quiet() {
            return Ok(());
        }
        let whole = |channel: &Channel| detail.shows(*channel) || message.voice.from == Speaker::Display;
        if message.shown >= most_shown(channel.filter(|channel| !whole(channel))) {
            message.folded += 1;
            if channel == Some(Channel::Sys) {
                if message.last.len() == LAST_LINES {
                    message.last.pop_front();
                }
                message.last.push_back(line.to_owned());
            }
            return Ok(());
        }
        message.shown += 1;
        match &mut message.markdown {
            Some(markdown) if !markdown.is_plain(line) => {
                let (mut lines, room) = (Vec::new(), self.output.room());
                markdown.line(line, room, &mut lines);
                lines.iter().try_for_each(|line| self.say_styled(message, line))
            }
            _ => self.say(message, line),
        }
    }

    fn say(&mut self, message: &mut Message, line: &str) -> io::Result<()> {
        self.show_started()?;
        let (voice, head) = (message.voice, self.head_of(message));
        let ink = match voice.tag {
            Tag::Think | Tag::Sys | Tag::Prompt => Ink::Dim,
            _ => Ink::None,
        };
        let line = safe(line);
        if voice.from == Speaker::SubAgent {
            let line = format!("{} {line}", self.output.appearance.glyphs.start);
            return self.output.row(head, &line, ink);
        }
        self.output.row(head, &line, ink)
    }

    fn say_styled(&mut self, message: &mut Message, line: &Styled) -> io::Result<()> {
        self.show_started()?;
        let head = self.head_of(message);
        if message.voice.from == Speaker::SubAgent {
            let mut nested = Styled::new(format!("{} ", self.output.appearance.glyphs.start), Ink::Dim);
            nested.append(line);
            return self.output.styled(head, &nested);
        }
        self.output.styled(head, line)
    }

    fn say_note(&mut self, message: &mut Message, note: &str) -> io::Result<()> {
        self.show_started()?;
        let head = self.head_of(message);
        self.output.row(head, note, Ink::Dim)
    }

    /// What is before words of a tag.
    pub(super) const fn head(&self, tag: Tag) -> Head {
        Head { tag: tag.name(), ink: Ink::of(tag), gutter: self.output.appearance.glyphs.gutter }
    }

    /// The same for words: only their first line has the tag.
    fn head_of(&self, message: &mut Message) -> Head {
        let head = self.head(message.voice.tag);
        let again = std::mem::replace(&mut message.tagged, true) && self.output.continues(head.tag);
        if again { Head { tag: "", ..head } } else { head }
    }

    /// Someone waits: what is held back only to be shown well is shown as well as it can be.
    pub(super) fn hurry(&mut self) -> io::Result<()> {
        let Some(mut message) = self.message.take() else { return Ok(()) };
        let mut lines = Vec::new();
        if let Some(markdown) = &mut message.markdown {
            markdown.pause(self.output.room(), &mut lines);
        }
        let shown = lines.iter().try_for_each(|line| self.say_styled(&mut message, line));
        self.message = Some(message);
        shown
    }

    /// The words are over: what is held is their last line, and what was folded is counted.
    pub(super) fn end_message(&mut self) -> io::Result<()> {
        let Some(mut message) = self.message.take() else { return Ok(()) };
        self.let_go(&mut message)?;
        if let Some(markdown) = &mut message.markdown {
            let mut lines = Vec::new();
            markdown.end(self.output.room(), &mut lines);
            lines.iter().try_for_each(|line| self.say_styled(&mut message, line))?;
        }
        let hidden = message.folded - message.last.len();
        if hidden > 0 {
            let lines = figures::plural(hidden as u64, "line");
            let note = match message.voice.tag {
                Tag::Prompt => format!("({lines} of the prompt repeated)"),
                _ => format!("{} {lines} more", self.output.appearance.glyphs.more),
            };
            self.say_note(&mut message, &note)?;
        }
        std::mem::take(&mut message.last).iter().try_for_each(|line| self.say(&mut message, line))
    }
}
