//! The lease on a task: the value in the key-value bucket, as only its holder can change it. Its age is the difference of two times of the
//! servers, so that clocks of workers need not agree. Time only says when to try: the revision decides who has the lease.

use std::time::Duration;

use async_nats::jetstream::kv::{Store, UpdateErrorKind};
use tokio::time::Instant;

use crate::batch::fleet::entry::{Entry, Phase};

/// How long a lease lasts without renewal.
pub(crate) const LASTS: Duration = Duration::from_secs(20);
/// How often it is renewed.
pub(crate) const RENEWED: Duration = Duration::from_secs(5);
const TRIES: u32 = 5;
/// Its age is compared with that of this key, which is written for that.
const CLOCK: &str = "clock";

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// Someone else has the lease, or it is over.
    Lost,
    /// The server does not answer.
    Unreachable,
}

pub(crate) struct Lease {
    state: Store,
    key: String,
    id: String,
    pub entry: Entry,
    revision: u64,
    renewed: Instant,
}

/// Reads an entry with its revision. `Err`: the server does not answer. What is not an entry counts as none.
pub(crate) async fn read(state: &Store, key: &str) -> Result<Option<(Entry, u64)>, Unwritten> {
    let found = super::soon(state.entry(key)).await.and_then(Result::ok).ok_or(Unwritten::Unreachable)?;
    let found = found.filter(|it| it.operation == async_nats::jetstream::kv::Operation::Put);
    Ok(found.and_then(|it| Some((serde_json::from_slice(&it.value).ok()?, it.revision))))
}

/// Writes an entry if nobody has changed it since `revision`, and gives the new revision.
pub(crate) async fn write(state: &Store, key: &str, entry: &Entry, revision: u64) -> Result<u64, Unwritten> {
    let bytes = serde_json::to_vec(entry).map_err(|_| Unwritten::Lost)?;
    let written = super::soon(state.update(key, bytes.into(), revision)).await.ok_or(Unwritten::Unreachable)?;
    written.map_err(|error| match error.kind() {
        UpdateErrorKind::WrongLastRevision => Unwritten::Lost,
        _ => Unwritten::Unreachable,
    })
}

impl Lease {
    /// Takes the lease on a task whose entry was read with this revision.
    pub(crate) async fn take(
        state: Store,
        key: String,
        mut entry: Entry,
        revision: u64,
        worker: &str,
    ) -> Result<Self, Unwritten> {
        entry.leases += 1;
        let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), entry.leases);
        let id = format!("{worker}-{}-{chance:016x}", entry.leases);
        entry.phase = Phase::Running { lease: id.clone(), worker: worker.to_owned() };
        let renewed = Instant::now();
        let mut lease = Self { state, key, id, entry, revision, renewed };
        lease.save().await?;
        Ok(lease)
    }

    /// True while nobody else can have it.
    pub(crate) fn is_current(&self) -> bool {
        self.renewed.elapsed() < LASTS
    }

    pub(crate) fn since_renewal(&self) -> Duration {
        self.renewed.elapsed()
    }

    /// Writes the entry as it is now, which renews the lease.
    pub(crate) async fn save(&mut self) -> Result<(), Unwritten> {
        for _ in 0..TRIES {
            let sent = Instant::now();
            match write(&self.state, &self.key, &self.entry, self.revision).await {
                Ok(revision) => {
                    (self.revision, self.renewed) = (revision, sent);
                    return Ok(());
                }
                Err(Unwritten::Unreachable) => return Err(Unwritten::Unreachable),
                // An earlier write may have arrived although its answer did not.
                Err(Unwritten::Lost) => match read(&self.state, &self.key).await? {
                    Some((Entry { phase: Phase::Running { lease, .. }, .. }, revision)) if lease == self.id => {
                        if revision == self.revision {
                            // A replica that is behind.
                            tokio::time::sleep(Duration::from_millis(200)).await;
                        }
                        self.revision = revision;
                    }
                    Some((entry, _)) if entry == self.entry => return Ok(()),
                    _ => return Err(Unwritten::Lost),
                },
            }
        }
        Err(Unwritten::Unreachable)
    }
}

/// How long ago an entry was written. `None`: nobody can say now.
async fn age(state: &Store, key: &str, revision: u64) -> Option<Duration> {
    let entry = super::soon(state.entry(key)).await?.ok()??;
    if entry.revision != revision {
        return Some(Duration::ZERO);
    }
    super::soon(state.put(CLOCK, "".into())).await?.ok()?;
    let now = super::soon(state.entry(CLOCK)).await?.ok()??;
    Some((now.created - entry.created).try_into().unwrap_or(Duration::ZERO))
}

/// Waits until a lease has not been renewed for its whole time. `None`: it was renewed, or is over. A server that does not answer for a
/// moment does not make the wait begin again.
pub(crate) async fn wait_for_end(state: &Store, key: &str, revision: u64) -> Result<Option<(Entry, u64)>, Unwritten> {
    let seen = Instant::now();
    let known = age(state, key, revision).await.unwrap_or(Duration::ZERO);
    loop {
        match read(state, key).await {
            Ok(Some((entry, now))) if now == revision => {
                if known + seen.elapsed() >= LASTS {
                    return Ok(Some((entry, now)));
                }
            }
            Ok(_) => return Ok(None),
            Err(error) if seen.elapsed() >= 2 * LASTS => return Err(error),
            Err(_) => {}
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
