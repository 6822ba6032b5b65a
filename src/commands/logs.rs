//! `ralph logs`: what agents said and did, also while they are at it.

use std::io::{self, Write as _};

use crate::app::appearance::{Tense, line_view};
use crate::app::find::{Here, shown, unreadable};
use crate::cli::Output;
use crate::cli::history::Logs;
use crate::error::UserError;
use crate::event::{Event, Tag, ToolEnd, ToolRef, ToolStart};
use crate::journal::raw::{self, RawFile};
use crate::journal::{Body, Fact, Follow, Record, RunDirectory};
use crate::ui::{self, JsonView, View, out};

/// Shows the records of a run.
pub(crate) fn run(args: &Logs) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    if args.raw {
        return shown(raw_bytes(&run, args.iteration));
    }
    let mut wanted = Wanted::new(args)?;
    let mut view: Box<dyn View> = match args.output {
        Output::Lines => Box::new(line_view(&args.view, if args.follow { Tense::Present } else { Tense::Past })),
        Output::Json => Box::new(JsonView::new(io::BufWriter::new(out::stdout()))),
    };
    let start = match args.iteration {
        Some(number) => {
            let known = here.details(&run)?;
            let first = known.summary.tries(number).next().map(|tried| tried.from);
            match first {
                Some(start) => start,
                None if args.follow => 0,
                None => {
                    let count = known.summary.iterations.len();
                    return Err(UserError::usage(format!("the run `{}` has no iteration {number}", run.id))
                        .hint(format!("it has {count}")));
                }
            }
        }
        None => 0,
    };
    let (store, id) = (here.store.clone(), run.clone());
    let follows = args.follow;
    let is_alive = Box::new(move || follows && Here::of(store.clone()).is_running(&id));
    let follow = Follow::another(&run.journal(), start, is_alive);
    let mut follow = follow.map_err(|error| unreadable(&run, &error))?;
    shown(ui::show(&mut follow, &mut *view, |record| wanted.has(record)))
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

fn known_tag(name: &str) -> Result<Tag, UserError> {
    let tag = Tag::ALL.into_iter().find(|tag| tag.name().eq_ignore_ascii_case(name));
    let names = Tag::ALL.map(Tag::name).join(", ");
    tag.ok_or_else(|| UserError::usage(format!("unknown tag `{name}`")).hint(format!("one of {names}")))
}

impl Wanted {
    fn new(args: &Logs) -> Result<Self, UserError> {
        let tag = args.tag.as_deref().map(known_tag).transpose()?;
        Ok(Self { iteration: args.iteration, tag, tool: args.tool.clone(), calls: Vec::new(), now: 0 })
    }

    fn has(&mut self, record: &Record) -> bool {
        match &record.body {
            Body::Loop(Fact::IterationStart { iteration, .. }) | Body::Agent { iteration, .. } => {
                self.now = *iteration;
            }
            // Where a run ends, or is resumed, it is in no iteration: the next try of one says when it begins.
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
    let mut out = out::Data::on_stdout();
    for RawFile { path, .. } in raw::stdouts(&run.raw(), iteration)? {
        io::copy(&mut raw::open(&path)?, &mut out)?;
    }
    out.flush()
}
