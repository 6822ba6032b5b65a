//! `ralph logs`: what agents said and did, also while they are at it.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use super::find::{Here, shown, unreadable};
use super::looks::{Tense, line_view};
use crate::cli::Output;
use crate::cli::history::Logs;
use crate::error::UserError;
use crate::event::{Event, Tag, ToolEnd, ToolRef, ToolStart};
use crate::journal::raw::{self, RawFile};
use crate::journal::{Body, Fact, Lock, Reader, Record, RunDirectory};
use crate::ui::{JsonView, View, harmless};

/// How often is looked for more.
const EVERY: Duration = Duration::from_millis(100);

/// A view is told about passing time this often.
const TICK: Duration = Duration::from_secs(1);

/// Shows the records of a run.
pub fn run(args: &Logs) -> Result<u8, UserError> {
    let here = Here::find()?;
    let run = here.run(args.id.as_deref())?;
    if args.raw {
        return shown(raw_bytes(&run, args.iteration));
    }
    let mut wanted = Wanted::new(args)?;
    let mut view: Box<dyn View> = match args.output {
        Output::Lines => Box::new(line_view(&args.looks, if args.follow { Tense::Present } else { Tense::Past })),
        Output::Json => Box::new(JsonView::new(io::BufWriter::new(io::stdout()))),
    };
    let start = match args.iteration {
        Some(number) => {
            let told = here.tell(&run)?;
            let first = told.summary.tries(number).next().map(|played| played.from);
            match first {
                Some(start) => start,
                None if args.follow => 0,
                None => {
                    let count = told.summary.iterations.len();
                    return Err(UserError::usage(format!("the run `{}` has no iteration {number}", run.id))
                        .hint(format!("it has {count}")));
                }
            }
        }
        None => 0,
    };
    let mut reader = Reader::open(&run.journal(), start).map_err(|error| unreadable(&run, &error))?;
    let mut over = false;
    let mut told = Instant::now();
    loop {
        // Whether the run is alive is asked before its journal is read: what it wrote last is read then, too.
        let alive = args.follow && Lock::holder(&here.store.lock()).is_some_and(|holder| holder.run == run.id);
        while let Some(record) = reader.read().map_err(|error| unreadable(&run, &error))? {
            let Ok(record) = record else { continue };
            over |= matches!(record.body, Body::Loop(Fact::RunEnd { .. }));
            if wanted.has(&record)
                && let Err(error) = view.record(&record)
            {
                return shown(Err(error));
            }
        }
        if let Err(error) = view.flush() {
            return shown(Err(error));
        }
        if over || !alive {
            return shown(view.close());
        }
        if told.elapsed() >= TICK {
            told = Instant::now();
            if let Err(error) = view.tick() {
                return shown(Err(error));
            }
        }
        std::thread::sleep(EVERY);
    }
}

/// Which records are shown.
struct Wanted {
    iteration: Option<u32>,
    tag: Option<Tag>,
    tool: Option<String>,
    /// The calls of the tool.
    calls: Vec<String>,
    /// The iteration under way; 0 outside of all.
    now: u32,
}

impl Wanted {
    fn new(args: &Logs) -> Result<Self, UserError> {
        let tag = match &args.tag {
            None => None,
            Some(name) => {
                let tag = Tag::ALL.into_iter().find(|tag| tag.name().eq_ignore_ascii_case(name));
                let names = Tag::ALL.map(Tag::name).join(", ");
                Some(tag.ok_or_else(|| UserError::usage(format!("no tag `{name}`")).hint(format!("one of {names}")))?)
            }
        };
        Ok(Self { iteration: args.iteration, tag, tool: args.tool.clone(), calls: Vec::new(), now: 0 })
    }

    fn has(&mut self, record: &Record) -> bool {
        match &record.body {
            Body::Loop(Fact::IterationStart { iteration, .. }) | Body::Agent { iteration, .. } => {
                self.now = *iteration;
            }
            // Where a run ends, or is taken up again, it is in no iteration: the next try of one says when it begins.
            Body::Loop(Fact::RunStart { .. } | Fact::RunEnd { .. }) => self.now = 0,
            _ => {}
        }
        if self.iteration.is_some_and(|wanted| wanted != self.now) {
            return false;
        }
        if self.tag.is_none() && self.tool.is_none() {
            return true;
        }
        match &record.body {
            Body::Loop(Fact::IterationStart { .. }) => true,
            Body::Agent { event, .. } => self.has_event(event),
            _ => false,
        }
    }

    fn has_event(&mut self, event: &Event) -> bool {
        let tool = |event: &Event| match event {
            Event::ToolStart { tool: ToolStart { id, .. }, .. }
            | Event::ToolOutput { tool: ToolRef { id }, .. }
            | Event::ToolEnd { tool: ToolEnd { id, .. }, .. } => Some(id.clone()),
            _ => None,
        };
        if let (Event::ToolStart { tool, .. }, Some(name)) = (event, &self.tool)
            && tool.name.eq_ignore_ascii_case(name)
        {
            self.calls.push(tool.id.clone());
        }
        match (event, self.tag) {
            (Event::Text { tag, .. }, Some(wanted)) => *tag == wanted,
            (_, Some(Tag::Tool)) => tool(event).is_some(),
            (_, Some(_)) => false,
            (_, None) => tool(event).is_some_and(|id| self.calls.contains(&id)),
        }
    }
}

/// What the agent wrote to standard output. On a terminal it is made harmless.
fn raw_bytes(run: &RunDirectory, iteration: Option<u32>) -> io::Result<()> {
    let terminal = io::stdout().is_terminal();
    let mut out = io::stdout().lock();
    for RawFile { path, .. } in raw::stdouts(&run.raw(), iteration)? {
        let mut input = raw::open(&path)?;
        if !terminal {
            io::copy(&mut input, &mut out)?;
            continue;
        }
        let mut line = Vec::new();
        while io::BufRead::read_until(&mut input, b'\n', &mut line)? > 0 {
            writeln!(out, "{}", harmless(String::from_utf8_lossy(&line).trim_end_matches('\n')))?;
            line.clear();
        }
    }
    out.flush()
}
