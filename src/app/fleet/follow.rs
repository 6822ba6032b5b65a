//! Reads journals back from their stream: a worker that takes a task over reads one up to the last pushed iteration, a submitter follows
//! all of its batch into the directories of their runs, where every view finds them.

use std::collections::BTreeMap;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use futures_util::StreamExt as _;
use tokio::sync::watch;

use super::connect::Hub;
use crate::batch::fleet::chunk::{self, Fold, Step};
use crate::batch::fleet::names;
use crate::batch::fleet::submitted::Submitted;
use crate::batch::task::TaskId;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::store::is_id;

/// A stream that is silent this long is asked again.
const SILENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

struct Part {
    lease: u32,
    offset: u64,
    run: String,
}

fn part(headers: Option<&HeaderMap>) -> Option<Part> {
    let headers = headers?;
    let number = |name: &str| headers.get(name).and_then(|value| value.as_str().parse::<u64>().ok());
    let run = headers.get(names::RUN)?.as_str().to_owned();
    let lease = u32::try_from(number(names::LEASE)?).ok()?;
    is_id(&run).then_some(Part { lease, offset: number(names::OFFSET)?, run })
}

/// The first bytes of a task's journal: as many as are asked for, or as are there. A server that is killed may have lost a part that it
/// had confirmed.
pub(crate) async fn journal_so_far(hub: &Hub, task: &Submitted, length: u64) -> Result<Vec<u8>, String> {
    let subject = names::journal_subject(&task.batch, &task.task.id);
    let last = hub.journal.get_last_raw_message_by_subject(&subject).await.map_err(|error| error.to_string())?;
    let config = OrderedConfig { filter_subject: subject, ..OrderedConfig::default() };
    let consumer = hub.journal.create_consumer(config).await.map_err(|error| error.to_string())?;
    let mut messages = consumer.messages().await.map_err(|error| error.to_string())?;
    let (mut fold, mut journal) = (Fold::default(), Vec::new());
    loop {
        let message = tokio::time::timeout(SILENCE, messages.next()).await;
        let message = message.ok().flatten().ok_or("the stream is silent")?.map_err(|error| error.to_string())?;
        let sequence = message.info().map_err(|error| error.to_string())?.stream_sequence;
        if let Some(Part { lease, offset, .. }) = part(message.headers.as_ref())
            && let Ok(bytes) = chunk::unpack(&message.payload)
            && let Step::At(offset) = fold.take(lease, offset, bytes.len() as u64)
        {
            journal.truncate(usize::try_from(offset).unwrap_or(0));
            journal.extend_from_slice(&bytes);
        }
        if sequence >= last.sequence {
            break;
        }
    }
    journal.truncate(usize::try_from(length).unwrap_or(0));
    Ok(journal)
}

/// How much of each journal has arrived.
pub(crate) type Arrived = BTreeMap<TaskId, u64>;

/// The directory with the runs of a task.
pub(crate) type RunsOf = Box<dyn Fn(&TaskId) -> Option<PathBuf> + Send>;

/// Writes the journals of a batch.
pub(crate) struct Follower {
    hub: Hub,
    batch: String,
    /// The directory of a task's runs.
    runs: RunsOf,
    folds: BTreeMap<TaskId, Fold>,
    arrived: watch::Sender<Arrived>,
    newest: u64,
}

impl Follower {
    pub(crate) fn new(hub: Hub, batch: &str, runs: RunsOf) -> (Self, watch::Receiver<Arrived>) {
        let (arrived, seen) = watch::channel(Arrived::new());
        let follower = Self { hub, batch: batch.to_owned(), runs, folds: BTreeMap::new(), arrived, newest: 0 };
        (follower, seen)
    }

    /// Follows until it is dropped.
    pub(crate) async fn follow(mut self) {
        loop {
            let _ = self.read().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads from where it is until the stream is silent or breaks.
    async fn read(&mut self) -> Result<(), async_nats::Error> {
        let config = OrderedConfig {
            filter_subject: format!("ralph.journal.{}.*", self.batch),
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.newest + 1 },
            ..OrderedConfig::default()
        };
        let mut messages = self.hub.journal.create_consumer(config).await?.messages().await?;
        while let Ok(Some(message)) = tokio::time::timeout(SILENCE, messages.next()).await {
            let message = message?;
            let sequence = message.info()?.stream_sequence;
            let task = names::of_subject(&message.subject).map(|(_, task)| task);
            if let Some(task) = task
                && let Some(part) = part(message.headers.as_ref())
                && let Ok(bytes) = chunk::unpack(&message.payload)
            {
                let fold = self.folds.entry(task.clone()).or_default();
                match fold.take(part.lease, part.offset, bytes.len() as u64) {
                    // After a gap everything is sent again, from there on.
                    Step::Skip | Step::Gap => {}
                    Step::At(offset) => {
                        if let Some(runs) = (self.runs)(&task) {
                            write(&runs.join(&part.run), offset, &bytes)?;
                        }
                        let length = fold.length;
                        self.arrived.send_modify(|arrived| {
                            arrived.insert(task, length);
                        });
                    }
                }
            }
            self.newest = sequence;
        }
        Ok(())
    }
}

fn write(run: &std::path::Path, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    RealDisk.directory(&run.join("raw"))?;
    RealDisk.directory(&run.join("prompts"))?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(run.join("journal.jsonl"))?;
    file.set_len(offset)?;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}
