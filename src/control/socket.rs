//! How orders travel: a Unix socket for each run. The kernel says who is at the other end, so an agent cannot give its own
//! loop orders, except to publish an event.
//!
//! Each connection carries one order and one answer. Everything is bounded: bytes, time and connections.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::Orderable;
use crate::process;

const LONGEST: u64 = 256 * 1024;
/// How long the other side may take to send its order.
const SENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long the loop may take to accept one. It is busy between iterations, with git for example.
const ACCEPTS_WITHIN: Duration = Duration::from_secs(60);
/// How long the end of a run waits for answers that are being written.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// How many connections are served at once, and how many of them for processes of the agent.
const MOST_AT_ONCE: usize = 32;
const MOST_OF_AGENT: usize = 8;
/// Longer paths do not fit into the address of a socket; 108 bytes on Linux, 104 elsewhere.
const LONGEST_PATH: usize = 100;

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Gives a run an order. When this returns, the order is in the run's journal.
pub(crate) fn send(socket: &Path, order: &impl Serialize) -> io::Result<()> {
    let mut stream = reachable(socket, UnixStream::connect)?;
    stream.set_read_timeout(Some(ACCEPTS_WITHIN + SENDS_WITHIN))?;
    stream.set_write_timeout(Some(SENDS_WITHIN))?;
    let mut line = serde_json::to_vec(order)?;
    if line.len() as u64 >= LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the text is too long"));
    }
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    let answer: Answer = serde_json::from_str(&answer)
        .map_err(|_| io::Error::new(io::ErrorKind::ConnectionAborted, "the run ended before it took the order"))?;
    match answer.refused {
        None => Ok(()),
        Some(reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
    }
}

/// Calls with a path that fits into the address of a socket.
fn reachable<T>(socket: &Path, call: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    if socket.as_os_str().len() <= LONGEST_PATH {
        return call(socket.to_owned());
    }
    let too_long = || io::Error::new(io::ErrorKind::InvalidFilename, "the path of the socket is too long");
    if cfg!(not(target_os = "linux")) {
        return Err(too_long());
    }
    let (directory, name) = (socket.parent().ok_or_else(too_long)?, socket.file_name().ok_or_else(too_long)?);
    let directory = std::fs::File::open(directory)?;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&directory.as_fd());
    call(Path::new("/proc/self/fd").join(descriptor.to_string()).join(name))
}

/// An order that has arrived and waits to be accepted.
#[derive(Debug)]
pub(crate) struct Received<O> {
    pub order: O,
    answer: std::sync::mpsc::SyncSender<Result<(), String>>,
}

impl<O> Received<O> {
    /// It is recorded, and the sender gets its answer.
    pub(crate) fn accept(self) -> O {
        let _ = self.answer.try_send(Ok(()));
        self.order
    }

    /// Nothing is done, and the sender gets the reason.
    pub(crate) fn refuse(self, why: String) {
        let _ = self.answer.try_send(Err(why));
    }
}

/// The orders that arrive for a run or a batch.
#[derive(Debug)]
pub(crate) struct Inbox<O> {
    path: PathBuf,
    orders: mpsc::Receiver<Received<O>>,
    serving: Arc<Serving>,
}

/// What the threads of an inbox share.
#[derive(Debug, Default)]
struct Serving {
    closed: AtomicBool,
    /// Connections under way.
    all: AtomicUsize,
    /// Those of them that the agent opened.
    of_agent: AtomicUsize,
}

impl<O: Orderable> Inbox<O> {
    /// Listens for the orders of a run. `fallback` is where the socket is where there is no `$XDG_RUNTIME_DIR`.
    pub(crate) fn open(run: &str, fallback: &Path) -> io::Result<Self> {
        let (path, orders, serving) = Self::bind(Self::place(run, fallback)?)?;
        Ok(Self { path, orders, serving })
    }

    /// Listens again where someone has removed the socket.
    pub(crate) fn ensure(&mut self) {
        use std::os::unix::fs::FileTypeExt as _;
        if std::fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
            return;
        }
        if let Ok((_, orders, serving)) = Self::bind(self.path.clone()) {
            (self.orders, self.serving) = (orders, serving);
        }
    }

    fn place(run: &str, fallback: &Path) -> io::Result<PathBuf> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir()).map(|path| path.join("ralph"));
        let directory = runtime.unwrap_or_else(|| fallback.to_owned());
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        Ok(directory.join(format!("{run}.sock")))
    }

    fn bind(path: PathBuf) -> io::Result<(PathBuf, mpsc::Receiver<Received<O>>, Arc<Serving>)> {
        // A run of this id was killed: only one process can hold the workspace's lock, and that is this one.
        let _ = std::fs::remove_file(&path);
        let listener = reachable(&path, UnixListener::bind)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let (sender, orders) = mpsc::channel(MOST_AT_ONCE);
        let serving = Arc::<Serving>::default();
        let shared = Arc::clone(&serving);
        std::thread::Builder::new().name("control".into()).spawn(move || listen(&listener, &sender, &shared))?;
        Ok((path, orders, serving))
    }

    /// Where orders are sent to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next order, as soon as there is one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Received<O> {
        match self.orders.recv().await {
            Some(received) => received,
            None => std::future::pending().await,
        }
    }

    /// The next order, if there is one now.
    pub(crate) fn poll(&mut self) -> Option<Received<O>> {
        self.orders.try_recv().ok()
    }
}

impl<O> Drop for Inbox<O> {
    fn drop(&mut self) {
        self.serving.closed.store(true, Ordering::SeqCst);
        // Wakes the listener, which then ends.
        let _ = reachable(&self.path, UnixStream::connect);
        let _ = std::fs::remove_file(&self.path);
        // Orders that nobody took are answered so, and those that were taken must get their answer before ralph exits.
        self.orders.close();
        while self.orders.try_recv().is_ok() {}
        let deadline = std::time::Instant::now() + ANSWERS_WITHIN;
        while self.serving.all.load(Ordering::SeqCst) > 0 && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn listen<O: Orderable>(listener: &UnixListener, sender: &mpsc::Sender<Received<O>>, serving: &Arc<Serving>) {
    for stream in listener.incoming() {
        if serving.closed.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of descriptors, most likely.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let peer = peer(&stream);
        let count: fn(&Serving) -> &AtomicUsize = match peer {
            Peer::Agent => |serving| &serving.of_agent,
            Peer::User | Peer::Stranger => |serving| &serving.all,
        };
        let most = if peer == Peer::Agent { MOST_OF_AGENT } else { MOST_AT_ONCE };
        if count(serving).fetch_add(1, Ordering::SeqCst) >= most {
            count(serving).fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let (shared, sender) = (Arc::clone(serving), sender.clone());
        let served = std::thread::Builder::new().name("order".into()).spawn(move || {
            let answer = match serve(&stream, peer, &sender) {
                Ok(()) => Answer { refused: None },
                Err(reason) => Answer { refused: Some(reason) },
            };
            let _ = stream.set_write_timeout(Some(SENDS_WITHIN));
            let _ = serde_json::to_vec(&answer).map(|bytes| (&stream).write_all(&bytes));
            count(&shared).fetch_sub(1, Ordering::SeqCst);
        });
        if served.is_err() {
            count(serving).fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// The user, in another process or in this one.
    User,
    /// A process of the run's own tree.
    Agent,
    /// Another user of the machine.
    Stranger,
}

fn serve<O: Orderable>(stream: &UnixStream, peer: Peer, sender: &mpsc::Sender<Received<O>>) -> Result<(), String> {
    if peer == Peer::Stranger {
        return Err("only the user who started the run may give it orders".to_owned());
    }
    let order: O = read(stream).map_err(|error| format!("cannot read the order: {error}"))?;
    if peer == Peer::Agent && !order.may_come_from_agent() {
        return Err("an agent cannot give its own run orders; only `ralph emit` is allowed".to_owned());
    }
    let (answer, waits) = std::sync::mpsc::sync_channel(1);
    sender.try_send(Received { order, answer }).map_err(|_| "the run takes no more orders now".to_owned())?;
    waits.recv_timeout(ACCEPTS_WITHIN).map_err(|_| "the run did not accept the order".to_owned())?
}

fn read<O: DeserializeOwned>(stream: &UnixStream) -> io::Result<O> {
    let deadline = std::time::Instant::now() + SENDS_WITHIN;
    let (mut line, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = (&mut &*stream).read(&mut part)?;
        line.extend_from_slice(&part[..count]);
        if count == 0 || line.ends_with(b"\n") {
            return Ok(serde_json::from_slice(&line)?);
        }
        if line.len() as u64 > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
        }
    }
}

fn peer(stream: &UnixStream) -> Peer {
    let Ok((uid, pid)) = process::peer(stream) else { return Peer::Stranger };
    if uid != rustix::process::geteuid().as_raw() && uid != 0 {
        return Peer::Stranger;
    }
    if process::is_descendant(pid) { Peer::Agent } else { Peer::User }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Order;

    fn inbox(directory: &Path) -> Inbox<Order> {
        // The tests' own runtime directory is not used: a name may be taken there.
        let path = directory.join("r.sock");
        let listener = reachable(&path, UnixListener::bind).unwrap();
        let (sender, orders) = mpsc::channel(MOST_AT_ONCE);
        let serving = Arc::<Serving>::default();
        let shared = Arc::clone(&serving);
        std::thread::spawn(move || listen(&listener, &sender, &shared));
        Inbox { path, orders, serving }
    }

    #[test]
    fn an_order_returns_when_it_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = inbox(directory.path());
        let path = inbox.path().to_owned();
        let sender = std::thread::spawn(move || send(&path, &Order::Hint { words: "look\nhere".into() }));
        let received = loop {
            if let Some(received) = inbox.poll() {
                break received;
            }
            assert!(!sender.is_finished(), "nobody has accepted it yet");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(received.accept(), Order::Hint { words: "look\nhere".into() });
        sender.join().unwrap().unwrap();
        drop(inbox);
        assert!(!directory.path().join("r.sock").exists());
    }

    #[test]
    fn an_order_that_ends_the_run_is_answered_before_ralph_exits() {
        for _ in 0..50 {
            let directory = tempfile::tempdir().unwrap();
            let mut inbox = inbox(directory.path());
            let path = inbox.path().to_owned();
            let sender = std::thread::spawn(move || send(&path, &Order::Stop { now: false }));
            while inbox.poll().map(Received::accept).is_none() {}
            let serving = Arc::clone(&inbox.serving);
            drop(inbox);
            assert_eq!(serving.all.load(Ordering::SeqCst), 0, "its answer is written");
            sender.join().unwrap().unwrap();
        }
    }

    #[test]
    fn an_order_that_the_run_drops_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = inbox(directory.path());
        let path = inbox.path().to_owned();
        let sender = std::thread::spawn(move || send(&path, &Order::Pause));
        while inbox.poll().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = sender.join().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the run did not accept the order");
    }

    #[test]
    fn a_long_path_works_too() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let mut inbox = inbox(&deep);
        let path = inbox.path().to_owned();
        let sender = std::thread::spawn(move || send(&path, &Order::Retry));
        let order = loop {
            if let Some(received) = inbox.poll() {
                break received.accept();
            }
        };
        assert_eq!(order, Order::Retry);
        sender.join().unwrap().unwrap();
    }

    #[test]
    fn rubbish_and_too_much_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = inbox(directory.path());
        for bytes in [b"rubbish\n".to_vec(), vec![b' '; 400_000]] {
            let mut stream = UnixStream::connect(inbox.path()).unwrap();
            let _ = stream.write_all(&bytes);
            let mut answer = String::new();
            // The rest of what was sent may make the kernel reset the connection.
            let _ = stream.read_to_string(&mut answer);
            assert!(answer.is_empty() || answer.contains("cannot read the order"), "{answer}");
        }
    }

    #[test]
    fn only_events_may_come_from_the_agent() {
        let event = crate::event::Topic { topic: "a".into(), payload: "p".into() };
        let order = Order::Emit { event };
        assert!(order.may_come_from_agent());
        assert_eq!(serde_json::to_string(&order).unwrap(), r#"{"command":"emit","topic":"a","payload":"p"}"#);
        let limit = Order::Limit { max_iterations: Some(3), max_cost_usd: None, max_seconds: None };
        for order in [Order::Pause, Order::Stop { now: true }, limit, Order::Hint { words: String::new() }] {
            assert!(!order.may_come_from_agent(), "{order:?}");
        }
    }
}
