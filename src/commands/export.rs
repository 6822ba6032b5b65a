//! `ralph export`: a run for others, as records, as a page, or as spans.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::app::find::{Here, shown, unreadable};
use crate::cli::history::{Export, Form};
use crate::error::{UserError, io_reason};
use crate::journal::{Reader, RunDirectory};
use crate::process;
use crate::process::runtime;
use crate::run::post;
use crate::ui::out::Data;
use crate::ui::web::{self, Place};
use crate::ui::{JsonView, SpanView, View};

pub(crate) fn run(args: &Export) -> Result<u8, UserError> {
    let (here, run) = Here::run(args.which.id())?;
    let known = here.details(&run)?;
    let form = args.to.unwrap_or(Form::Html);
    if let Some(url) = &args.endpoint {
        return send(&run, form, url);
    }
    let out: Box<dyn Write + Send> = match &args.file {
        None => Box::new(Data::on_stdout()),
        Some(path) => {
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            Box::new(file.map_err(|error| {
                UserError::usage(format!("cannot write `{}`: {}", path.display(), io_reason(&error)))
            })?)
        }
    };
    let mut out = BufWriter::with_capacity(256 * 1024, out);
    let written = match form {
        Form::Jsonl => {
            let mut view = JsonView::new(&mut out);
            records(&run, &mut view)?.and_then(|()| view.flush())
        }
        Form::Html => {
            let workspace = here.store.workspace().to_owned();
            let place = Place { alive: here.is_running(&run), directory: run, workspace };
            web::export(&mut out, &place, &known)
        }
        Form::Otlp => {
            let mut view = SpanView::new(&mut out);
            records(&run, &mut view)?.and_then(|()| view.finish())
        }
    };
    shown(written.and_then(|()| out.flush()))
}

/// Sends the spans of a run to a collector.
fn send(run: &RunDirectory, form: Form, url: &str) -> Result<u8, UserError> {
    if form != Form::Otlp {
        return Err(UserError::usage("`--endpoint` works only with `--to otlp`")
            .hint("add `--to otlp`, or write a file with `--file`"));
    }
    process::protect(process::own_program());
    let mut spans = Vec::new();
    let mut view = SpanView::new(&mut spans);
    shown(records(run, &mut view)?.and_then(|()| view.finish()))?;
    runtime()?.block_on(post(collector(url), spans.into())).map(|()| 0).map_err(|why| {
        UserError::failed(format!("the spans were not sent: {why}"))
            .hint("check that an OTLP/HTTP collector is listening there")
    })
}

/// An address without a path is that of a collector, which takes spans at a path of its own.
fn collector(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    if host.contains('/') { url.to_owned() } else { format!("{}/v1/traces", url.trim_end_matches('/')) }
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
