//! A batch on many machines: `submit.rs` puts tasks into a queue of NATS `JetStream` and follows them, `worker.rs` takes them out and works on
//! them. NATS keeps the queue, the leases and the journals; git carries the work.

mod cache;
mod connect;
mod follow;
mod lease;
mod queue;
mod sending;
pub(crate) mod submit;
mod upload;
mod work;
pub(crate) mod worker;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use crate::error::{UserError, io_reason};

/// How long a single message may take.
const SOON: Duration = Duration::from_secs(5);

/// How often something is tried that a server which is killed and returns may not answer, and how long between.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_secs(3);

/// Tries again for half a minute: a cluster chooses a new leader, a server is started again.
async fn patiently<T, E>(mut what: impl AsyncFnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 1..TRIES {
        if let Ok(done) = what().await {
            return Ok(done);
        }
        tokio::time::sleep(PAUSE).await;
    }
    what().await
}

fn unusable(path: &Path, error: &std::io::Error) -> UserError {
    UserError::failed(format!("cannot use `{}`: {}", path.display(), io_reason(error)))
}

/// Waits a moment for NATS, whose client itself would wait until it is connected again.
async fn soon<F: Future>(future: F) -> Option<F::Output> {
    tokio::time::timeout(SOON, future).await.ok()
}
