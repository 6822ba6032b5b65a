//! The page for the browser: `ralph serve`, and the same page in one file for `ralph export --html`.
//!
//! It reads journals page by page and holds no run in memory; orders go to the run as `ralph pause` gives them. It must never
//! slow a run, never answer without the token, and never turn an agent's text into markup.

mod api;
mod batches;
mod export;
mod guard;
mod listen;
mod live;
mod pages;
mod rows;
mod run;
mod search;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use batches::SeenBatch;
pub(crate) use export::export;
pub(crate) use guard::new_token;

use super::history::RunDetails;
use crate::batch::order::BatchOrder;
use crate::control::Order;
use crate::journal::RunDirectory;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str =
    concat!(include_str!("text.js"), include_str!("transcript.js"), include_str!("batch.js"), include_str!("page.js"));

/// A run, and where it works.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub directory: RunDirectory,
    pub workspace: PathBuf,
    /// True while a ralph works on it.
    pub alive: bool,
}

/// What the page asks of the program around it: the page itself finds no runs and starts nothing.
pub(crate) trait Runs: Send + Sync + 'static {
    /// All runs of this user, in any order.
    fn all(&self) -> Vec<Place>;

    /// The run with this id, in full.
    fn find(&self, id: &str) -> Option<Place>;

    /// What is known of a run; `None` when it cannot be read.
    fn details(&self, place: &Place) -> Option<RunDetails>;

    /// Gives the run an order; the error says why that failed.
    fn order(&self, place: &Place, order: &Order) -> Result<(), String>;

    /// All batches of this user, in any order.
    fn batches(&self) -> Vec<SeenBatch>;

    /// Gives a batch an order; the error says why that failed.
    fn order_batch(&self, batch: &SeenBatch, order: &BatchOrder) -> Result<(), String>;

    /// Answers the question of a run that stopped with one, and resumes it.
    fn answer(&self, place: &Place, words: &str) -> Result<(), String>;
}

/// Whether the page can steer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Steer,
    ReadOnly,
}

pub(crate) struct Options {
    pub token: String,
    pub access: Access,
    pub runs: Arc<dyn Runs>,
}

/// Serves on this socket until the future is dropped.
pub(crate) async fn serve(listener: tokio::net::TcpListener, options: Options) -> std::io::Result<()> {
    let address: SocketAddr = listener.local_addr()?;
    let guard = guard::Guard::new(&options.token, address);
    let server = Arc::new(api::Server::new(options.runs, options.access));
    axum::serve(listen::Bounded::new(listener), api::router(server, guard)).await
}
