//! Batches on the page: the list, one batch with its tasks, and orders to it.

use std::path::PathBuf;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Access;
use super::api::{Server, Shared, found, problem};
use super::rows::{class, plain};
use crate::batch::order::BatchOrder;
use crate::batch::state::{Batch, Stage};
use crate::ui::{batch, figures};

/// The most batches in the list.
const MOST: usize = 50;

/// A batch, and whether a ralph works on it.
#[derive(Clone, Debug)]
pub(crate) struct SeenBatch {
    pub batch: Batch,
    pub is_running: bool,
    /// Where its records are.
    pub directory: PathBuf,
}

/// The newest batches, those that are running first.
pub(super) fn list(server: &Server) -> Vec<Value> {
    let mut batches = server.runs.batches();
    batches.sort_unstable_by(|one, other| {
        (other.is_running, &other.batch.start.batch).cmp(&(one.is_running, &one.batch.start.batch))
    });
    batches.iter().take(MOST).map(short).collect()
}

fn short(seen: &SeenBatch) -> Value {
    let SeenBatch { batch: it, is_running, .. } = seen;
    let (word, ink) = batch::state(it, *is_running);
    let project = it.start.repository.file_name().unwrap_or_default().to_string_lossy();
    let over = it.tasks.iter().filter(|state| state.stage.is_over()).count();
    json!({
        "id": it.start.batch,
        "word": word,
        "ink": class(ink),
        "alive": is_running,
        "paused": it.paused,
        "project": plain(&project),
        "target": plain(&it.start.target),
        "source": plain(&it.start.source),
        "counts": batch::counts(it),
        "over": over,
        "of": it.tasks.len(),
        "started": it.began.map(jiff::Timestamp::as_millisecond),
        "cost": (it.cost() > 0.0).then(|| figures::money(it.cost())),
        "why": it.end.as_ref().filter(|_| !is_running).map(|(_, why)| plain(why)),
    })
}

/// A batch with its tasks.
pub(super) fn whole(seen: &SeenBatch) -> Value {
    let tasks = seen.batch.tasks.iter().map(|state| {
        let (word, ink) = batch::stage(&seen.batch, state);
        let commit = if let Stage::Merged { commit: Some(commit) } = &state.stage { commit.get(..7) } else { None };
        json!({
            "id": state.task.id, "title": plain(&state.task.title), "word": word, "ink": class(ink), "run": state.run,
            "commit": commit, "cost": state.cost_usd.map(figures::money), "why": plain(&batch::why(state)),
            "needs": state.task.needs, "attempt": state.attempt,
        })
    });
    let tasks: Vec<Value> = tasks.collect();
    let mut value = short(seen);
    value["tasks"] = tasks.into();
    value
}

fn find(server: &Server, id: &str) -> Option<SeenBatch> {
    server.runs.batches().into_iter().find(|seen| seen.batch.start.batch == id)
}

/// A batch as it is now; `None` when there is none.
pub(super) fn now(server: &Server, id: &str) -> Option<Value> {
    let mut value = whole(&find(server, id)?);
    value["steer"] = (server.access == Access::Steer).into();
    Some(value)
}

pub(super) async fn one(State(server): Shared, Path(id): Path<String>) -> Response {
    found(move || now(&server, &id).map(Json)).await
}

pub(super) async fn order(State(server): Shared, Path(id): Path<String>, Json(order): Json<BatchOrder>) -> Response {
    if server.access == Access::ReadOnly {
        return problem(StatusCode::FORBIDDEN, "this page is read-only");
    }
    // New tasks bring commands with them; they come from the command line.
    if matches!(order, BatchOrder::Add { .. }) {
        return problem(StatusCode::FORBIDDEN, "tasks are added with `ralph batch add`");
    }
    found(move || {
        let seen = find(&server, &id)?;
        Some(match server.runs.order_batch(&seen, &order) {
            Ok(()) => Json(json!({ "effect": order.effect() })).into_response(),
            Err(why) => problem(StatusCode::CONFLICT, &why),
        })
    })
    .await
}
