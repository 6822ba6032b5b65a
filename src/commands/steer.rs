//! `ralph hint`, `pause`, `continue`, `stop`, `retry`, `limit` and `emit`: words to a run under way.

use std::io::Read as _;
use std::path::PathBuf;

use crate::app::find::Here;
use crate::cli;
use crate::cli::history::Which;
use crate::control::{Order, send};
use crate::error::{UserError, io_reason};
use crate::event::Topic;
use crate::process::RUN_ID;
use crate::run::CONTROL;
use crate::ui::out;

pub(crate) fn hint(args: &cli::Words) -> Result<u8, UserError> {
    give(&Order::Hint { words: args.words.join(" ") }, args.run.as_deref())
}

pub(crate) fn pause(which: &Which) -> Result<u8, UserError> {
    give(&Order::Pause, which.id())
}

pub(crate) fn go_on(which: &Which) -> Result<u8, UserError> {
    give(&Order::Continue, which.id())
}

pub(crate) fn stop(args: &cli::Stop) -> Result<u8, UserError> {
    give(&Order::Stop { now: args.now }, args.which.id())
}

pub(crate) fn retry(which: &Which) -> Result<u8, UserError> {
    give(&Order::Retry, which.id())
}

pub(crate) fn limit(args: &cli::Limit) -> Result<u8, UserError> {
    let order = Order::Limit {
        max_iterations: args.max_iterations,
        max_cost_usd: args.max_cost,
        max_seconds: args.max_time.map(|time| time.as_secs()),
    };
    give(&order, args.run.as_deref())
}

pub(crate) fn emit(args: &cli::Emit) -> Result<u8, UserError> {
    let payload = match (&args.json, args.payload.as_slice()) {
        (Some(json), _) => {
            serde_json::from_str::<serde_json::Value>(json)
                .map_err(|error| UserError::usage(format!("the payload is not JSON: {error}")))?;
            json.clone()
        }
        (None, [only]) if only == "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                UserError::usage(format!("cannot read the payload from stdin: {}", io_reason(&error)))
            })?;
            text.trim_end().to_owned()
        }
        (None, words) => words.join(" "),
    };
    if args.topic.trim().is_empty() || args.topic.contains(['*', '\n', '"', '<']) {
        return Err(
            UserError::usage(format!("`{}` is not a topic", args.topic)).hint("a topic is a word such as `build.done`")
        );
    }
    let order = Order::Emit { event: Topic { topic: args.topic.clone(), payload } };
    give(&order, None)
}

/// Sends an order and prints its effect.
fn give(order: &Order, id: Option<&str>) -> Result<u8, UserError> {
    let (socket, run) = match id {
        Some(id) => named(id)?,
        None => addressee()?,
    };
    send(&socket, order).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => UserError::usage(error.to_string()),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
            UserError::usage(format!("run {run} is no longer active"))
        }
        _ => UserError::failed(format!("run {run} did not accept the order: {}", io_reason(&error))),
    })?;
    // The reader may be gone.
    let _ = out::print(&format!("run {run}: {}\n", order.effect()));
    Ok(0)
}

/// Where to send it: to the run with this id, wherever it is.
fn named(id: &str) -> Result<(PathBuf, String), UserError> {
    let (here, run) = Here::run(Some(id))?;
    let socket = here.running.filter(|holder| holder.run == run.id).and_then(|holder| holder.control);
    let socket = socket.ok_or_else(|| {
        UserError::usage(format!("run {} is not active", run.id)).hint("`ralph runs --all` lists all runs")
    })?;
    Ok((socket, run.id))
}

/// Where to send it: to the run that this process is an agent of, else to the one of this directory or of one above it.
fn addressee() -> Result<(PathBuf, String), UserError> {
    if let (Some(socket), Ok(run)) = (std::env::var_os(CONTROL), std::env::var(RUN_ID)) {
        return Ok((socket.into(), run));
    }
    let nobody = || {
        UserError::usage("no run is active in this directory")
            .hint("name it with `--run ID`; `ralph runs --all` lists all runs")
    };
    let here = match Here::active() {
        Ok(here) => here,
        Err(error) if error.message.starts_with("several") => return Err(error),
        Err(_) => return Err(nobody()),
    };
    let holder = here.running.ok_or_else(nobody)?;
    Ok((holder.control.ok_or_else(nobody)?, holder.run))
}
