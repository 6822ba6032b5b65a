//! Sends the journal of a run as it grows: whole lines, compressed, in order, each part once. What cannot be sent now is sent later; the
//! file is the only queue.

use std::io::{Read as _, Seek as _, SeekFrom};

use std::future::IntoFuture as _;

use async_nats::HeaderMap;

use super::connect::Hub;
use crate::batch::fleet::submitted::Submitted;
use crate::batch::fleet::{chunk, names};
use crate::journal::RunDirectory;

/// What is read at once. A line can be longer.
const READ: u64 = 2 * chunk::LARGEST as u64;
/// The most parts at once.
const MOST_PARTS: u32 = 32;
const LONGEST_LINE: u64 = 16 * 1024 * 1024;

pub(crate) struct Sending<'a> {
    hub: &'a Hub,
    submitted: &'a Submitted,
    lease: u32,
    sent: u64,
    /// How often something was lost on the server.
    lost: u32,
}

impl<'a> Sending<'a> {
    /// Of this journal `sent` bytes are there already.
    pub(crate) const fn new(hub: &'a Hub, submitted: &'a Submitted, lease: u32, sent: u64) -> Self {
        Self { hub, submitted, lease, sent, lost: 0 }
    }

    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends one part. True when it has a decision: the work of an iteration is committed. `None`: there was nothing, or it did not
    /// arrive.
    pub(crate) async fn send(&mut self, run: &RunDirectory) -> Option<bool> {
        let mut file = std::fs::File::open(run.journal()).ok()?;
        file.seek(SeekFrom::Start(self.sent)).ok()?;
        let mut bytes = Vec::new();
        file.by_ref().take(READ).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 == READ && !bytes.contains(&b'\n') {
            file.take(LONGEST_LINE).read_to_end(&mut bytes).ok()?;
        }
        let mut part = chunk::next(&bytes);
        // A part ends with a decision, so that the work of an iteration and the journal up to it belong together.
        let decision = memchr::memmem::find(part, br#""by":"ralph","type":"meta","meta":{"kind":"decision""#);
        if let Some(at) = decision
            && let Some(end) = memchr::memchr(b'\n', &part[at..])
        {
            part = &part[..=at + end];
        }
        if part.is_empty() {
            return None;
        }
        let mut headers = HeaderMap::new();
        let task = names::token(&self.submitted.task.id);
        let id = format!("{}.{task}.{}.{}.{}", self.submitted.batch, self.lease, self.sent, self.lost);
        headers.insert("Nats-Msg-Id", id);
        headers.insert(names::LEASE, self.lease.to_string());
        headers.insert(names::OFFSET, self.sent.to_string());
        headers.insert(names::RUN, run.id.as_str());
        let subject = names::journal_subject(&self.submitted.batch, &self.submitted.task.id);
        let packed = chunk::pack(part).ok()?;
        let published = self.hub.context.publish_with_headers(subject, headers, packed.into());
        super::soon(super::soon(published).await?.ok()?.into_future()).await?.ok()?;
        self.sent += part.len() as u64;
        Some(decision.is_some())
    }

    /// Sends what there is, up to a decision, and not so much that the lease would have to wait. True when it ends with a decision.
    pub(crate) async fn send_some(&mut self, run: &RunDirectory) -> bool {
        for _ in 0..MOST_PARTS {
            match self.send(run).await {
                Some(true) => return true,
                Some(false) => {}
                None => return false,
            }
        }
        false
    }

    /// Sends everything and reads it back: a server that was killed may have lost what it had confirmed. False: something is missing
    /// there, and is sent the next time.
    pub(crate) async fn send_all(&mut self, run: &RunDirectory) -> bool {
        while self.send(run).await.is_some() {}
        if !std::fs::metadata(run.journal()).is_ok_and(|file| file.len() == self.sent) {
            return false;
        }
        let Ok(there) = super::follow::journal_so_far(self.hub, self.submitted, self.sent).await else { return false };
        let is_whole = there.len() as u64 == self.sent;
        if !is_whole {
            // Under another id: the server may still think that it has the part.
            (self.sent, self.lost) = (there.len() as u64, self.lost + 1);
        }
        is_whole
    }
}
