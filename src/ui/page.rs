//! One run as one HTML page that needs nothing else: no script, no request, no file beside it. Everything an agent said is
//! text in it, never markup.

use std::io::{self, Write};

use jiff::Timestamp;

use super::history::{RunDetails, local};
use super::style::{Glyphs, Ink};
use super::text::{cut, harmless};
use super::words::{self, Phrase};
use super::{View, figures};
use crate::event::{Event, Known, Status, Tag};
use crate::journal::{Body, Fact, IterationOutcome, Receipt, Record};

/// Nothing may be loaded and nothing may run, whatever is in the page.
const HEAD: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root{color-scheme:light dark;--line:#8884;--dim:#8a8a8a;--good:#2a9d4a;--bad:#d0463b;--warn:#b9822b;--ai:#2b8a9d}
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2.5rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
dl{display:grid;grid-template-columns:8rem 1fr;gap:.2rem 1rem}dt{color:var(--dim)}dd{margin:0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font:13px/1.45 ui-monospace,monospace}
.row{display:grid;grid-template-columns:4.5rem 1fr;gap:1rem;padding:.25rem 0}
.tag{color:var(--dim);font:12px ui-monospace,monospace;text-align:right;padding-top:.15rem}
.AI .tag{color:var(--ai)}.THINK,.SYS,.PROMPT{color:var(--dim)}
details{border-left:2px solid var(--line);padding-left:.6rem}summary{cursor:pointer;color:var(--dim)}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.timeline{display:grid;grid-template-columns:2.5rem 1fr 6rem;gap:.25rem .75rem;align-items:center;font-size:13px}
.bar{height:.8rem;border-radius:2px;background:var(--good)}.bar.bad{background:var(--bad)}.bar.warn{background:var(--warn)}
a{color:inherit}
</style>
"#;

/// Says what an iteration changed.
pub(crate) type Differences = Box<dyn Fn(&Receipt) -> Option<String> + Send>;

/// The longest difference in a page.
const LONGEST_DIFFERENCE: usize = 256 * 1024;

pub(crate) struct PageView<W: Write> {
    out: W,
    differences: Differences,
    /// The text that is being said.
    open: Option<Tag>,
    /// How many tries of iterations came so far: the timeline links to each.
    tries: usize,
}

impl<W: Write> PageView<W> {
    /// Writes what comes before the records.
    pub(crate) fn new(mut out: W, run: &RunDetails, differences: Differences) -> io::Result<Self> {
        let RunDetails { summary, state, words: prompt, .. } = run;
        let title = format!("ralph run {}", summary.run);
        write!(
            out,
            "{HEAD}<title>{}</title></head><body>\n<h1>{} · <span class=\"{}\">{}</span></h1>\n",
            text(&title),
            text(&title),
            class(words::state(*state).1),
            words::state(*state).0
        )?;
        let mut facts = vec![
            ("started", local(summary.started)),
            ("agent", summary.agent.clone()),
            ("prompt", format!("{} ({})", cut(prompt, 300), summary.prompt)),
            ("command", summary.command.join(" ")),
            ("directory", summary.workspace.clone()),
            ("iterations", summary.count().to_string()),
            ("time", figures::duration(run.duration_ms())),
        ];
        let usage = figures::usage(&summary.usage(), summary.cost()).join(" · ");
        if !usage.is_empty() {
            facts.push(("used", usage));
        }
        facts.extend(summary.end.iter().map(|end| ("because", end.reason.clone())));
        writeln!(out, "<dl>")?;
        for (name, value) in facts {
            writeln!(out, "<dt>{name}</dt><dd>{}</dd>", text(&value))?;
        }
        writeln!(out, "</dl>\n<h2>Timeline</h2>\n<div class=\"timeline\">")?;
        let longest = summary.ended().map(|ended| ended.duration_ms).max().unwrap_or(1).max(1);
        for (index, tried) in summary.iterations.iter().enumerate() {
            let (class, share, time) = match &tried.ended {
                Some(ended) => {
                    let share = (ended.duration_ms * 100 / longest).max(1);
                    let is_bad = ended.outcome == IterationOutcome::Failed;
                    (if is_bad { "bad" } else { "" }, share, figures::duration(ended.duration_ms))
                }
                None => ("warn", 1, "not finished".to_owned()),
            };
            writeln!(
                out,
                "<a href=\"#i{}\">{}</a><div class=\"bar {class}\" style=\"width:{share}%\"></div><span>{time}</span>",
                index + 1,
                tried.iteration
            )?;
        }
        writeln!(out, "</div>")?;
        Ok(Self { out, differences, open: None, tries: 0 })
    }

    /// Writes what comes after the records.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.close()?;
        writeln!(self.out, "</body></html>")?;
        self.out.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        if self.open.take().is_some() { writeln!(self.out, "</pre></div>") } else { Ok(()) }
    }

    fn say(&mut self, tag: Tag, words: &str, delta: bool) -> io::Result<()> {
        if self.open != Some(tag) {
            self.close()?;
            write!(self.out, "<div class=\"row {0}\"><span class=\"tag\">{0}</span><pre>", tag.name())?;
            self.open = Some(tag);
        }
        write!(self.out, "{}{}", text(words), if delta { "" } else { "\n" })
    }

    fn row(&mut self, tag: &str, class: &str, words: &str) -> io::Result<()> {
        self.close()?;
        let words = text(words);
        writeln!(
            self.out,
            "<div class=\"row\"><span class=\"tag\">{tag}</span><pre class=\"{class}\">{words}</pre></div>"
        )
    }

    fn folded(&mut self, title: &str, words: &str) -> io::Result<()> {
        self.close()?;
        let (title, words) = (text(title), text(words));
        writeln!(
            self.out,
            "<div class=\"row\"><span></span><details><summary>{title}</summary><pre>{words}</pre></details></div>"
        )
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Text { tag, text, delta, .. } => self.say(*tag, text, *delta),
            Event::ToolStart { tool, .. } => {
                let input = tool.input.as_ref().map(|input| format!("{:#}", serde_json::Value::Object(input.clone())));
                self.row("TOOL", "", &format!("▸ {}", tool.name))?;
                input.map_or(Ok(()), |input| self.folded("input", &input))
            }
            Event::ToolOutput { text, .. } => {
                let lines = figures::plural(text.lines().count() as u64, "line");
                self.folded(&format!("output, {lines}"), text)
            }
            Event::ToolEnd { tool, .. } => {
                let (mark, ink) = words::tool_mark(Some(tool.status), &Glyphs::UNICODE);
                let failed = if tool.status == Status::Fail { " failed" } else { "" };
                let time = tool.duration_ms.map_or_else(String::new, |time| format!(" {}", figures::duration(time)));
                self.row("", class(ink), &format!("{mark}{failed}{time}"))
            }
            Event::Usage { .. } => Ok(()),
            Event::Meta { meta } => match meta.known() {
                Some(known @ (Known::Error { .. } | Known::Warning { .. } | Known::Permission { .. })) => {
                    words::meta(known).map_or(Ok(()), |(text, ink)| self.row("SYS", class(ink), &text))
                }
                _ => Ok(()),
            },
        }
    }

    fn fact(&mut self, fact: &Fact, at: Timestamp) -> io::Result<()> {
        self.close()?;
        match fact {
            Fact::IterationStart { iteration, of, hat, .. } => {
                let title = words::iteration_title(*iteration, *of, hat, " · ").replacen('i', "I", 1);
                self.tries += 1;
                writeln!(self.out, "<h2 id=\"i{}\">{}</h2>", self.tries, text(&title))
            }
            Fact::Verification { checks, .. } => checks.iter().try_for_each(|check| {
                let class = if check.passed { "good" } else { "bad" };
                self.row("CHECK", class, &format!("{} {}", check.command, check.ended))?;
                if check.tail.is_empty() { Ok(()) } else { self.folded("output", &check.tail) }
            }),
            Fact::IterationEnd { receipt } => self.receipt(receipt),
            other => match words::fact(other, at) {
                Some(Phrase { tag, ink, text }) => self.row(tag, class(ink), &text),
                None => Ok(()),
            },
        }
    }

    fn receipt(&mut self, receipt: &Receipt) -> io::Result<()> {
        let (parts, ink) = words::report(receipt);
        self.row("RESULT", class(ink), &parts.join(" · "))?;
        if !receipt.commits.is_empty() {
            self.folded(&figures::plural(receipt.commits.len() as u64, "commit"), &receipt.commits.join("\n"))?;
        }
        if receipt.files.is_empty() {
            return Ok(());
        }
        let title = words::files_changed(receipt);
        match (self.differences)(receipt) {
            Some(difference) => self.difference(&title, &difference),
            None => self.folded(&title, &receipt.files.join("\n")),
        }
    }

    /// Lines that came and lines that went, each in its colour.
    fn difference(&mut self, title: &str, difference: &str) -> io::Result<()> {
        self.close()?;
        write!(self.out, "<div class=\"row\"><span></span><details><summary>{}</summary><pre>", text(title))?;
        let mut length = 0;
        for line in difference.lines() {
            length += line.len();
            if length > LONGEST_DIFFERENCE {
                writeln!(self.out, "… the rest is too long for a page")?;
                break;
            }
            let class = match line.as_bytes() {
                [b'+', ..] => "good",
                [b'-', ..] => "bad",
                [b'@', b'@', ..] => "warn",
                _ => "",
            };
            writeln!(self.out, "<span class=\"{class}\">{}</span>", text(line))?;
        }
        writeln!(self.out, "</pre></details></div>")
    }
}

impl<W: Write + Send> View for PageView<W> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        match &record.body {
            Body::Agent { event, .. } => self.event(event),
            Body::Loop(fact) => self.fact(fact, record.at),
            Body::Unknown { kind, .. } => self.row("SYS", "warn", &words::unknown(kind)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

const fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Good => "good",
        Ink::Bad => "bad",
        Ink::Warn | Ink::Agent => "warn",
        _ => "",
    }
}

/// Text that is nothing but text in HTML.
fn text(words: &str) -> String {
    let mut safe = String::with_capacity(words.len() + 16);
    for (at, line) in words.split('\n').enumerate() {
        if at > 0 {
            safe.push('\n');
        }
        for character in harmless(line).chars() {
            match character {
                '&' => safe.push_str("&amp;"),
                '<' => safe.push_str("&lt;"),
                '>' => safe.push_str("&gt;"),
                '"' => safe.push_str("&quot;"),
                '\'' => safe.push_str("&#39;"),
                other => safe.push(other),
            }
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Summary;
    use crate::ui::RunState;

    #[test]
    fn every_try_in_the_timeline_links_to_its_heading() {
        let tries = [1, 2, 2, 3];
        let mut summary = Summary::default();
        let records = tries.map(|iteration| {
            let start = Fact::iteration_start(iteration, 9);
            Record { seq: 0, at: Timestamp::UNIX_EPOCH, body: Body::Loop(start) }
        });
        for record in &records {
            summary.see(record, 0, 0);
        }
        let run = RunDetails { state: RunState::of(&summary, false), summary, words: String::new(), place: None };
        let mut page = Vec::new();
        let mut view = PageView::new(&mut page, &run, Box::new(|_| None)).unwrap();
        for record in &records {
            view.record(record).unwrap();
        }
        view.finish().unwrap();
        let page = String::from_utf8(page).unwrap();
        for number in 1..=tries.len() {
            assert_eq!(page.matches(&format!("href=\"#i{number}\"")).count(), 1, "{page}");
            assert_eq!(page.matches(&format!("id=\"i{number}\"")).count(), 1, "{page}");
        }
    }

    #[test]
    fn an_agent_cannot_write_markup() {
        let hostile = "</pre><script>alert(1)</script><img src=x onerror=\"alert(1)\">\u{1b}]0;x\u{7}\u{202e}";
        let safe = text(hostile);
        assert!(!safe.contains(['<', '>', '"', '\u{1b}', '\u{202e}']), "{safe}");
        assert_eq!(text("a\nb & c"), "a\nb &amp; c");
    }
}
