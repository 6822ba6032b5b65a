//! Server-sent events: a page hears that something has changed and fetches what it wants to see. A page that does not
//! read is not sent more.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::sleep;

use super::api::Server;
use super::{batches, run};

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How often all runs are looked at.
const LOOK_AT_ALL: Duration = Duration::from_millis(1000);
/// A page that hears nothing for this long is told that the connection is alive.
const QUIET: Duration = Duration::from_secs(5);

pub(super) struct Messages(Receiver<Event>);

impl Stream for Messages {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}

type Answer = Sse<axum::response::sse::KeepAliveStream<Messages>>;

fn answer(receiver: Receiver<Event>) -> Answer {
    Sse::new(Messages(receiver)).keep_alive(KeepAlive::new().interval(QUIET))
}

/// False when nobody listens any more.
async fn send(sender: &Sender<Event>, value: &Value) -> bool {
    sender.send(Event::default().data(value.to_string())).await.is_ok()
}

/// What has changed in one run: its header, and its iterations from the one that was the last on.
pub(super) fn one(server: Arc<Server>, id: String, known: usize) -> Answer {
    let (sender, receiver) = channel(1);
    tokio::spawn(async move {
        let (mut seen, mut known) = (None, known);
        while !sender.is_closed() {
            let (asked, id, last) = (Arc::clone(&server), id.clone(), seen);
            let news = super::api::blocking(move || {
                let place = asked.runs.find(&id)?;
                let length = std::fs::metadata(place.directory.journal()).ok()?.len();
                if last == Some((length, place.alive)) {
                    return Some(None);
                }
                let (run, newest) = asked.open(&place)?;
                let from = known.saturating_sub(1);
                let mut value = run::header(&run, &place.workspace, &newest);
                value["iterations"] = run::iterations(&run, from).into();
                Some(Some((value, (length, place.alive), run.summary.iterations.len())))
            });
            match news.await.flatten() {
                None => break,
                Some(None) => {}
                Some(Some((value, now, count))) => {
                    (seen, known) = (Some(now), count);
                    if !send(&sender, &value).await {
                        break;
                    }
                }
            }
            sleep(LOOK).await;
        }
    });
    answer(receiver)
}

/// All runs, whenever something has changed.
pub(super) fn all(server: Arc<Server>) -> Answer {
    let (sender, receiver) = channel(1);
    tokio::spawn(async move {
        let mut last = Value::Null;
        while !sender.is_closed() {
            let asked = Arc::clone(&server);
            let both = super::api::blocking(move || (asked.list(), batches::list(&asked)));
            let Some((runs, batches)) = both.await else { break };
            // Elapsed time alone is no news: the page counts it itself.
            let key = json!([without_clock(&runs), batches]);
            if key != last && !send(&sender, &json!({ "runs": runs, "batches": batches })).await {
                break;
            }
            last = key;
            sleep(LOOK_AT_ALL).await;
        }
    });
    answer(receiver)
}

/// One batch, whenever something has changed.
pub(super) fn batch(server: Arc<Server>, id: String) -> Answer {
    let (sender, receiver) = channel(1);
    tokio::spawn(async move {
        let mut last = Value::Null;
        while !sender.is_closed() {
            let (asked, id) = (Arc::clone(&server), id.clone());
            let Some(value) = super::api::blocking(move || batches::now(&asked, &id)).await.flatten() else { break };
            if value != last && !send(&sender, &value).await {
                break;
            }
            last = value;
            sleep(LOOK_AT_ALL).await;
        }
    });
    answer(receiver)
}

fn without_clock(runs: &[Value]) -> Value {
    let mut runs = runs.to_vec();
    runs.iter_mut().filter_map(Value::as_object_mut).for_each(|run| drop(run.remove("ms")));
    Value::Array(runs)
}
