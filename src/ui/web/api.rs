//! What the page can ask, and the one thing it can do: give an order.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::Deserialize;
use serde_json::{Value, json};

use super::guard::{self, Guard};
use super::pages::{self, Newest};
use super::rows::{Limits, plain};
use super::{Access, HTML, Place, Runs, SCRIPT, STYLE, batches, live, run, search};
use crate::control::Order;
use crate::journal::store::WHOLE_DIFF;
use crate::redact::Redactor;
use crate::ui::history::RunDetails;

/// An order with its words is never longer.
const LONGEST_BODY: usize = 64 * 1024;
/// More of a diff is not shown.
const LONGEST_DIFF: u64 = 4 * 1024 * 1024;
/// The most runs in the list.
const MOST_RUNS: usize = 2000;

pub(super) struct Server {
    pub runs: Arc<dyn Runs>,
    pub access: Access,
    /// The lines of runs that are over, by journal, with its length.
    listed: Mutex<HashMap<PathBuf, (u64, Value)>>,
}

impl Server {
    pub(super) fn new(runs: Arc<dyn Runs>, access: Access) -> Self {
        Self { runs, access, listed: Mutex::default() }
    }

    pub(super) fn open(&self, place: &Place) -> Option<(RunDetails, Newest)> {
        Some((self.runs.details(place)?, Newest::of(&place.directory.journal()).ok()?))
    }

    /// All runs, newest first.
    pub(super) fn list(&self) -> Vec<Value> {
        let mut places = self.runs.all();
        places.sort_unstable_by(|one, other| (other.alive, &other.directory.id).cmp(&(one.alive, &one.directory.id)));
        places.truncate(MOST_RUNS);
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = std::mem::take(&mut *listed);
        let mut all = Vec::new();
        for place in places {
            let journal = place.directory.journal();
            let length = std::fs::metadata(&journal).map_or(0, |metadata| metadata.len());
            let kept = known.remove(&journal).filter(|(then, _)| *then == length && !place.alive).map(|(_, line)| line);
            let line = kept.or_else(|| {
                let (run, newest) = self.open(&place)?;
                Some(run::short(&run, &place.workspace, &newest))
            });
            let Some(line) = line else { continue };
            if !place.alive {
                listed.insert(journal, (length, line.clone()));
            }
            all.push(line);
        }
        all
    }
}

pub(super) type Shared = State<Arc<Server>>;

pub(super) fn router(server: Arc<Server>, guard: Guard) -> Router {
    Router::new()
        .route("/", get(|| async { file("text/html; charset=utf-8", HTML) }))
        .route("/page.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
        .route("/page.js", get(|| async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .route("/api/runs", get(list))
        .route("/api/live", get(|State(server): Shared| async { live::all(server) }))
        .route("/api/runs/{id}", get(one))
        .route("/api/runs/{id}/live", get(follow))
        .route("/api/runs/{id}/rows", get(rows))
        .route("/api/runs/{id}/row", get(row))
        .route("/api/runs/{id}/diff", get(diff))
        .route("/api/runs/{id}/search", get(find))
        .route("/api/runs/{id}/order", post(order))
        .route("/api/batches/{id}", get(batches::one))
        .route(
            "/api/batches/{id}/live",
            get(|State(server): Shared, Path(id): Path<String>| async { live::batch(server, id) }),
        )
        .route("/api/batches/{id}/order", post(batches::order))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(server)
        .layer(middleware::from_fn_with_state(Arc::new(guard), guard::check))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

/// Reads disks in a thread of its own. `None` when that broke.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// An answer, or that there is none.
pub(super) async fn found<T: IntoResponse + Send + 'static>(
    work: impl FnOnce() -> Option<T> + Send + 'static,
) -> Response {
    match blocking(work).await.flatten() {
        Some(answer) => answer.into_response(),
        None => problem(StatusCode::NOT_FOUND, "not found"),
    }
}

pub(super) fn problem(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

async fn list(State(server): Shared) -> Response {
    found(move || {
        let steer = server.access == Access::Steer;
        Some(Json(json!({ "runs": server.list(), "batches": batches::list(&server), "steer": steer })))
    })
    .await
}

async fn one(State(server): Shared, Path(id): Path<String>) -> Response {
    found(move || {
        let place = server.runs.find(&id)?;
        let (run, newest) = server.open(&place)?;
        let mut value = run::header(&run, &place.workspace, &newest);
        value["iterations"] = run::iterations(&run, 0).into();
        value["steer"] = (server.access == Access::Steer).into();
        Some(Json(value))
    })
    .await
}

#[derive(Deserialize)]
struct Known {
    #[serde(default)]
    known: usize,
}

async fn follow(State(server): Shared, Path(id): Path<String>, Query(Known { known }): Query<Known>) -> Response {
    live::one(server, id, known).into_response()
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    from: u64,
    to: Option<u64>,
    /// The last page before this offset is wanted.
    before: Option<u64>,
}

async fn rows(State(server): Shared, Path(id): Path<String>, Query(range): Query<Range>) -> Response {
    found(move || {
        let journal = server.runs.find(&id)?.directory.journal();
        let page = match range.before {
            Some(end) => pages::before(&journal, range.from, end, Limits::PAGE),
            None => pages::after(&journal, range.from, range.to.unwrap_or(u64::MAX), Limits::PAGE),
        };
        page.ok().map(Json)
    })
    .await
}

#[derive(Deserialize)]
struct At {
    at: u64,
}

async fn row(State(server): Shared, Path(id): Path<String>, Query(At { at }): Query<At>) -> Response {
    found(move || pages::one(&server.runs.find(&id)?.directory.journal(), at).ok().flatten().map(Json)).await
}

#[derive(Deserialize)]
struct Which {
    iteration: Option<u32>,
}

async fn diff(State(server): Shared, Path(id): Path<String>, Query(Which { iteration }): Query<Which>) -> Response {
    found(move || {
        let place = server.runs.find(&id)?;
        kept_diff(&place, iteration).or_else(|| Some(String::new()))
    })
    .await
}

/// What the run, or one of its iterations, changed, as far as it was kept: without secrets.
pub(super) fn kept_diff(place: &Place, iteration: Option<u32>) -> Option<String> {
    use std::io::Read as _;
    let name = iteration.map_or_else(|| WHOLE_DIFF.to_owned(), |number| number.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(place.directory.difference(&name)).ok()?;
    file.take(LONGEST_DIFF).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let clean = Redactor::of_process().text(&text);
    Some(plain(clean.as_deref().unwrap_or(&text)))
}

#[derive(Deserialize)]
struct Words {
    q: String,
    #[serde(default)]
    from: u64,
}

async fn find(State(server): Shared, Path(id): Path<String>, Query(Words { q, from }): Query<Words>) -> Response {
    found(move || search::find(&server.runs.find(&id)?.directory.journal(), &q, from).ok().map(Json)).await
}

/// What a person can tell a run from the page.
#[derive(Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
enum Wish {
    Pause,
    Continue,
    Retry,
    Stop { now: bool },
    Hint { words: String },
    Answer { words: String },
    Limit { words: String },
}

async fn order(State(server): Shared, Path(id): Path<String>, Json(wish): Json<Wish>) -> Response {
    if server.access == Access::ReadOnly {
        return problem(StatusCode::FORBIDDEN, "this page is read-only");
    }
    found(move || {
        let place = server.runs.find(&id)?;
        Some(match give(&*server.runs, &place, wish) {
            Ok(effect) => Json(json!({ "effect": effect })).into_response(),
            Err(why) => problem(StatusCode::CONFLICT, &why),
        })
    })
    .await
}

fn give(runs: &dyn Runs, place: &Place, wish: Wish) -> Result<String, String> {
    let order = match wish {
        Wish::Pause => Order::Pause,
        Wish::Continue => Order::Continue,
        Wish::Retry => Order::Retry,
        Wish::Stop { now } => Order::Stop { now },
        Wish::Limit { words } => Order::limit(&words)?,
        Wish::Hint { words } | Wish::Answer { words } if words.trim().is_empty() => {
            return Err("write something first".to_owned());
        }
        Wish::Hint { words } => Order::Hint { words },
        Wish::Answer { words } => {
            return runs.answer(place, &words).map(|()| "the run is resumed with your answer".to_owned());
        }
    };
    runs.order(place, &order).map(|()| order.effect().to_owned())
}
