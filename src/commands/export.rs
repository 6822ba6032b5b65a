//! `ralph export`: a run for others, as records, as a page, or as spans.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;

use super::find::{Here, shown, unreadable};
use crate::cli::history::{Export, Form};
use crate::error::{UserError, io_reason};
use crate::journal::{Reader, RunDirectory};
use crate::ui::{JsonView, PageView, SpanView, View};

/// Writes a run.
pub fn run(args: &Export) -> Result<u8, UserError> {
    let here = Here::find()?;
    let run = here.run(args.id.as_deref())?;
    let told = here.tell(&run)?;
    let out: Box<dyn Write + Send> = match &args.file {
        None => Box::new(io::stdout()),
        Some(path) => {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            Box::new(file.map_err(|error| {
                UserError::usage(format!("cannot write `{}`: {}", path.display(), io_reason(&error)))
            })?)
        }
    };
    let mut out = BufWriter::with_capacity(256 * 1024, out);
    let written = match args.to {
        Form::Jsonl => {
            let mut view = JsonView::new(&mut out);
            records(&run, &mut view)?.and_then(|()| view.flush())
        }
        Form::Html => match PageView::new(&mut out, &told) {
            Err(error) => Err(error),
            Ok(mut view) => records(&run, &mut view)?.and_then(|()| view.finish()),
        },
        Form::Otlp => {
            let mut view = SpanView::new(&mut out);
            records(&run, &mut view)?.and_then(|()| view.finish())
        }
    };
    shown(written.and_then(|()| out.flush()))
}

/// Shows every record to the view. The outer error is the journal's, the inner one the view's.
fn records(run: &RunDirectory, view: &mut dyn View) -> Result<io::Result<()>, UserError> {
    let mut reader = Reader::open(&run.journal(), 0).map_err(|error| unreadable(run, &error))?;
    while let Some(record) = reader.read().map_err(|error| unreadable(run, &error))? {
        let Ok(record) = record else { continue };
        if let Err(error) = view.record(&record) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}
