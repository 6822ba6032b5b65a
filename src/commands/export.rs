//! `ralph export`: a run for others, as records, as a page, or as spans.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;

use super::diff;
use super::find::{Here, shown, unreadable};
use crate::cli::history::{Export, Form};
use crate::error::{UserError, io_reason};
use crate::http::Address;
use crate::journal::{Reader, Redactor, RunDirectory};
use crate::process;
use crate::ui::{Differences, JsonView, PageView, SpanView, View};

/// Writes a run.
pub fn run(args: &Export) -> Result<u8, UserError> {
    let here = Here::find()?;
    let run = here.run(args.id.as_deref())?;
    let told = here.tell(&run)?;
    if let Some(url) = &args.endpoint {
        return send(&run, args.to, url);
    }
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
        Form::Html => match PageView::new(&mut out, &told, differences(&run)) {
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

/// What iterations changed, without secrets: a page is made to be sent away.
fn differences(run: &RunDirectory) -> Differences {
    process::protect(process::own_program());
    let (run, redactor) = (run.clone(), Redactor::of_environment());
    Box::new(move |receipt| {
        let text = diff::of(&run, &[receipt]).ok()?;
        Some(redactor.text(&text).unwrap_or(text))
    })
}

/// Sends the spans of a run to a collector.
fn send(run: &RunDirectory, form: Form, url: &str) -> Result<u8, UserError> {
    if form != Form::Otlp {
        return Err(UserError::usage("`--endpoint` takes spans").hint("add `--to otlp`, or write a file with `--file`"));
    }
    let address = Address::parse(url).map_err(|why| {
        UserError::usage(why)
            .hint("for a collector behind TLS: `ralph export --to otlp --file spans.json`, then `curl`")
    })?;
    let mut spans = Vec::new();
    let mut view = SpanView::new(&mut spans);
    let written = records(run, &mut view)?.and_then(|()| view.finish());
    let sent = written.and_then(|()| address.or_path("/v1/traces").post_json(&spans));
    match sent {
        Ok(200..300) => Ok(0),
        Ok(status) => Err(UserError::failed(format!("`{url}` did not take the spans: status {status}"))),
        Err(error) => Err(UserError::failed(format!("cannot send to `{url}`: {}", io_reason(&error)))
            .hint("is a collector with OTLP over HTTP listening there?")),
    }
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
