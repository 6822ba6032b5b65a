//! A block as rows: what it says when it is open, and in how many lines it is folded away.

use jiff::Timestamp;

use super::block::{Block, Kind, Tool};
use super::rows::{Row, difference, markdown, paragraph, styled};
use super::theme::Theme;
use crate::event::{Status, Tag, TodoItem, TodoStatus};
use crate::ui::figures;
use crate::ui::style::Ink;
use crate::ui::styled::Styled;
use crate::ui::text::{cut, harmless, width};
use crate::ui::words;

/// The width of the longest tag.
const TAG: usize = 6;

/// So many lines of what a failed tool printed are shown before someone asks for more.
const EXCERPT: usize = 8;

/// So much of an argument is seen before anything else about a tool.
const LEAST_ARGUMENT: usize = 16;

/// Whether a block shows all it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Folded,
    /// Only the end of what a tool printed.
    Excerpt,
    Open,
}

impl Fold {
    pub(crate) const fn toggled(self) -> Self {
        match self {
            Self::Folded | Self::Excerpt => Self::Open,
            Self::Open => Self::Folded,
        }
    }
}

/// What is folded unless someone opens it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Folding {
    /// Tools: their input and output. Unless someone says otherwise, only those that failed say why.
    pub tools: Option<Fold>,
    pub thinking: Fold,
}

impl Default for Folding {
    fn default() -> Self {
        Self { tools: None, thinking: Fold::Open }
    }
}

impl Folding {
    /// How a block is shown when nobody said otherwise.
    pub(crate) fn of(self, kind: &Kind) -> Fold {
        match kind {
            Kind::Tool(tool) => self.tools.unwrap_or(match tool.call.status {
                Some(Status::Fail) => Fold::Excerpt,
                _ => Fold::Folded,
            }),
            Kind::Words { tag: Tag::Think, .. } => self.thinking,
            Kind::Words { tag: Tag::Prompt, .. } => Fold::Folded,
            _ => Fold::Open,
        }
    }
}

/// The rows of a block; `now` is for a tool that is running.
pub(crate) fn rows(block: &Block, fold: Fold, columns: usize, theme: &Theme, now: Option<Timestamp>) -> Vec<Row> {
    match &block.kind {
        Kind::Words { tag, text, nested, .. } => {
            let ink = match tag {
                Tag::Think | Tag::Sys | Tag::Prompt => Ink::Dim,
                _ => Ink::None,
            };
            let (first, rest) = margins(tag.name(), Ink::of(*tag), *nested, theme);
            if fold == Fold::Folded {
                return vec![folded(first, text, ink, columns, theme)];
            }
            if *tag == Tag::Ai {
                return markdown(&first, &rest, text, theme.glyphs, columns);
            }
            paragraph(&first, &rest, text, ink, columns)
        }
        Kind::Tool(tool) => self::tool(tool, fold, columns, theme, now),
        Kind::Plan(items) => {
            let (first, rest) = margins("PLAN", Ink::Strong, false, theme);
            let mut rows: Vec<Row> = Vec::new();
            for item in items {
                let (text, ink) = todo(item, theme);
                let first = if rows.is_empty() { &first } else { &rest };
                rows.extend(paragraph(first, &rest, &text, ink, columns));
            }
            rows
        }
        Kind::Remark { tag, text, ink } => {
            let (first, rest) = margins(tag, Ink::Dim, false, theme);
            paragraph(&first, &rest, text, *ink, columns)
        }
        Kind::Report { outcome, text, ink } => {
            let (first, rest) = margins("REPORT", Ink::Dim, false, theme);
            let (ended, used) = text.split_at(text.find(" · ").unwrap_or(text.len()));
            let mut line = Styled::new(words::signed(*outcome, &harmless(ended), &theme.glyphs), *ink);
            line.push(&harmless(used).replace(" · ", &theme.glyphs.between()), Ink::None);
            styled(&first, &rest, &[line], columns)
        }
        Kind::Rule(title, ink) => {
            let rule = theme.glyphs.rule;
            let title = cut(&format!("{} {} ", rule.repeat(2), harmless(title)), columns);
            let rest = rule.repeat(columns.saturating_sub(width(&title)));
            vec![Row::new(*ink, &format!("{title}{rest}"))]
        }
    }
}

/// The text of a block, for copying and searching: everything, folded or not.
pub(crate) fn text(block: &Block) -> String {
    match &block.kind {
        Kind::Words { text, .. } | Kind::Remark { text, .. } | Kind::Report { text, .. } | Kind::Rule(text, _) => {
            text.clone()
        }
        Kind::Tool(tool) => {
            let parts = [format!("{} {}", tool.call.name, tool.call.argument), tool.input.clone(), tool.output.clone()];
            parts.iter().map(|part| part.trim_end()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Kind::Plan(items) => {
            let mark = |status| match status {
                TodoStatus::Done => "[x]",
                TodoStatus::InProgress => "[>]",
                TodoStatus::Cancelled => "[-]",
                TodoStatus::Pending => "[ ]",
            };
            let lines = items.iter().map(|item| format!("{} {}", mark(item.status), item.text));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

pub(crate) fn todo(item: &TodoItem, theme: &Theme) -> (String, Ink) {
    let (mark, ink) = words::plan_mark(item.status, &theme.glyphs);
    (format!("{mark} {}", item.text), ink)
}

/// The mark and the ink of a tool's status: one that is running turns.
pub(crate) fn status(status: Option<Status>, theme: &Theme, now: Option<Timestamp>) -> (&'static str, Ink) {
    match (status, now) {
        (Some(_), _) => words::tool_mark(status, &theme.glyphs),
        (None, Some(now)) => {
            let turns = theme.glyphs.screen.turns;
            let at = usize::try_from(now.as_second()).unwrap_or(0) % turns.len();
            (turns[at], Ink::Agent)
        }
        (None, None) => (theme.glyphs.screen.running, Ink::Warn),
    }
}

fn tool(tool: &Tool, fold: Fold, columns: usize, theme: &Theme, now: Option<Timestamp>) -> Vec<Row> {
    let call = &tool.call;
    let (first, rest) = margins("TOOL", Ink::Tool, call.nested, theme);
    let (mark, ink) = status(call.status, theme, now);
    let time = call.took_ms().or_else(|| call.runs_for_ms(now?)).map(figures::duration);
    let lines = Some(tool.output.lines().count() as u64).filter(|lines| *lines > 0);
    let lines = lines.map(|lines| figures::plural(lines, "line"));
    let name = width(&harmless(&call.name));
    let left = columns.saturating_sub(width(&first.text()) + 6 + name);
    // What the tool does matters more than how long it took, and that more than how much it said.
    let facts = [vec![&time, &lines], vec![&time], vec![]].into_iter().map(|facts| {
        let facts: Vec<&str> = facts.into_iter().flatten().map(String::as_str).collect();
        if facts.is_empty() { String::new() } else { format!("  ({})", facts.join(", ")) }
    });
    let wanted = width(&harmless(&call.argument)).min(LEAST_ARGUMENT);
    let facts = facts.into_iter().find(|facts| width(facts) + wanted <= left).unwrap_or_default();
    let has_more = !(tool.input.is_empty() && tool.output.is_empty());
    let sign = match fold {
        _ if !has_more => " ",
        Fold::Folded | Fold::Excerpt => theme.glyphs.screen.folded,
        Fold::Open => theme.glyphs.screen.open,
    };
    let argument = cut(&harmless(&call.argument), left.saturating_sub(width(&facts)));
    let head = first
        .and(Ink::Dim, &format!("{sign} "))
        .and(ink, &format!("{mark} "))
        .and(Ink::Strong, &format!("{}  ", call.name))
        .and(Ink::None, &argument)
        .and(Ink::Dim, &facts);
    let mut rows = vec![head];
    let margin = rest.and(Ink::Dim, &format!("  {} ", theme.glyphs.gutter));
    if fold == Fold::Excerpt {
        let all: Vec<&str> = tool.output.lines().collect();
        let hidden = all.len().saturating_sub(EXCERPT);
        if hidden > 0 {
            let more = format!("{} {} more", theme.glyphs.more, figures::plural(hidden as u64, "line"));
            rows.push(margin.clone().and(Ink::Dim, &more));
        }
        for line in &all[hidden..] {
            rows.extend(paragraph(&margin, &margin, line, Ink::None, columns).into_iter().take(EXCERPT));
        }
    }
    if fold == Fold::Open {
        if tool.input.lines().any(|line| line.starts_with(['+', '-'])) {
            let text = margin.text();
            rows.extend(difference(&tool.input, &text));
        } else if !tool.input.is_empty() {
            rows.extend(paragraph(&margin, &margin, &tool.input, Ink::Dim, columns));
        }
        if !tool.output.is_empty() {
            rows.extend(paragraph(&margin, &margin, &tool.output, Ink::None, columns));
        }
    }
    rows
}

/// What is before the first row, and before all others.
fn margins(tag: &str, ink: Ink, nested: bool, theme: &Theme) -> (Row, Row) {
    let gutter = if nested { format!(" {0} {0} ", theme.glyphs.gutter) } else { format!(" {} ", theme.glyphs.gutter) };
    let first = Row::new(ink, &format!("{tag:>TAG$}")).and(Ink::Dim, &gutter);
    let rest = Row::new(ink, &" ".repeat(TAG)).and(Ink::Dim, &gutter);
    (first, rest)
}

/// The first line of a text, and how many are hidden behind it.
fn folded(first: Row, text: &str, ink: Ink, columns: usize, theme: &Theme) -> Row {
    let lines = text.lines().count();
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let more = if lines > 1 { format!("  ({})", figures::plural(lines as u64, "line")) } else { String::new() };
    let used = width(&first.text()) + 2 + more.len();
    let line = cut(&harmless(line.trim()), columns.saturating_sub(used).max(8));
    first.and(Ink::Dim, &format!("{} ", theme.glyphs.screen.folded)).and(ink, &line).and(Ink::Dim, &more)
}
