//! A small proxy for CONNECT and plain HTTP: the only way out where the network is a list of hosts.
//!
//! It looks names up itself and connects to exactly the address that it has judged. Everything is bounded: heads, times and
//! connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::head::{self, Request};
use super::hosts::{Hosts, Target};
use super::refusals::Refusals;

const LONGEST_HEAD: usize = 32 * 1024;
const SENDS_WITHIN: Duration = Duration::from_secs(20);
const CONNECTS_WITHIN: Duration = Duration::from_secs(20);
/// A tunnel without a byte for so long is closed.
const SILENT: Duration = Duration::from_secs(30 * 60);
const MOST_CONNECTIONS: usize = 512;
/// How long a command may take to send the socket of its own network.
const HANDS_OUT_WITHIN: Duration = Duration::from_secs(30);

/// A proxy for one list of hosts. It lives as long as this process.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) port: u16,
    /// Where commands with a network of their own send their listening sockets.
    pub(super) sockets: Sender<UnixStream>,
}

impl Proxy {
    pub(super) fn start(hosts: &[String], refusals: Refusals) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (sockets, queue) = channel();
        let (sender, listeners) = mpsc::unbounded_channel();
        let _ = sender.send(listener);
        std::thread::Builder::new().name("sandbox sockets".into()).spawn(move || take_sockets(&queue, &sender))?;
        let serving = Serving {
            hosts: Hosts::new(hosts),
            refusals,
            room: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            resolve: |target| Box::pin(look_up(target)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        std::thread::Builder::new()
            .name("sandbox proxy".into())
            .spawn(move || runtime.block_on(serve(listeners, Arc::new(serving))))?;
        Ok(Self { port, sockets })
    }
}

type Addresses = std::pin::Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

struct Serving {
    hosts: Hosts,
    refusals: Refusals,
    room: Arc<Semaphore>,
    resolve: fn(Target) -> Addresses,
}

async fn look_up(target: Target) -> io::Result<Vec<IpAddr>> {
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await?;
    Ok(found.map(|address| address.ip()).collect())
}

/// Receives the listening sockets of commands, one after the other; each comes within milliseconds.
fn take_sockets(queue: &Receiver<UnixStream>, listeners: &mpsc::UnboundedSender<TcpListener>) {
    for way in queue {
        let sender = listeners.clone();
        let _ = std::thread::Builder::new().name("sandbox socket".into()).spawn(move || {
            if let Some(listener) = receive(&way) {
                let _ = sender.send(listener);
            }
        });
    }
}

fn receive(way: &UnixStream) -> Option<TcpListener> {
    way.set_read_timeout(Some(HANDS_OUT_WITHIN)).ok()?;
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(way, &mut [io::IoSliceMut::new(&mut byte)], &mut buffer, flags).ok()?;
    let mut descriptors = buffer.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    descriptors.next()?.next().map(|descriptor: OwnedFd| TcpListener::from(descriptor))
}

async fn serve(mut listeners: mpsc::UnboundedReceiver<TcpListener>, serving: Arc<Serving>) {
    while let Some(listener) = listeners.recv().await {
        let serving = Arc::clone(&serving);
        let _ = listener.set_nonblocking(true);
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((client, _)) => {
                        let Ok(permit) = Arc::clone(&serving.room).acquire_owned().await else { return };
                        let serving = Arc::clone(&serving);
                        tokio::spawn(async move {
                            let _ = answer(client, &serving).await;
                            drop(permit);
                        });
                    }
                    // Out of descriptors, most likely.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        });
    }
}

/// One connection: one head, one judgement, then bytes in both directions.
async fn answer(mut client: TcpStream, serving: &Serving) -> io::Result<()> {
    let Ok(Ok((head, rest))) = timeout(SENDS_WITHIN, read_head(&mut client)).await else {
        return refuse(&mut client, 400, "cannot read this request").await;
    };
    let Some(request) = head::parse(&head) else {
        return refuse(&mut client, 400, "the sandbox's proxy takes CONNECT and plain HTTP requests").await;
    };
    let (target, first) = match &request {
        Request::Tunnel(target) => (target.clone(), None),
        Request::Plain { target, head } => (target.clone(), Some(head.clone())),
    };
    let Some(mut server) = connect(&target, serving).await? else {
        serving.refusals.add(target.to_string());
        let reason = format!("sandbox refused {target}; add it to `sandbox.network`");
        return refuse(&mut client, 403, &reason).await;
    };
    match first {
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        Some(head) => server.write_all(&head).await?,
    }
    server.write_all(&rest).await?;
    exchange(client, server).await
}

/// A connection to what the target is, if it may be reached; an error when it cannot be.
async fn connect(target: &Target, serving: &Serving) -> io::Result<Option<TcpStream>> {
    if !serving.hosts.allows(target) {
        return Ok(None);
    }
    let addresses = match target.address() {
        Some(address) => vec![address],
        // Which address that is, is not asked of anyone.
        None if target.host == "localhost" => vec![Ipv4Addr::LOCALHOST.into()],
        None => timeout(CONNECTS_WITHIN, (serving.resolve)(target.clone())).await??,
    };
    let allowed: Vec<SocketAddr> = addresses
        .into_iter()
        .filter(|address| serving.hosts.allows_address(*address, target.port) || is_own(target, *address))
        .map(|address| SocketAddr::new(address, target.port))
        .collect();
    if allowed.is_empty() {
        return Ok(None);
    }
    timeout(CONNECTS_WITHIN, TcpStream::connect(&allowed[..])).await?.map(Some)
}

/// `localhost` means this machine.
fn is_own(target: &Target, address: IpAddr) -> bool {
    target.host == "localhost" && address.is_loopback()
}

async fn read_head(client: &mut TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = client.read(&mut chunk).await?;
        bytes.extend_from_slice(&chunk[..count]);
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if count == 0 || bytes.len() > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

async fn refuse(client: &mut TcpStream, status: u16, reason: &str) -> io::Result<()> {
    let words = if status == 403 { "Forbidden" } else { "Bad Request" };
    let length = reason.len() + 1;
    let text = format!(
        "HTTP/1.1 {status} {words}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{reason}\n"
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

/// Copies in both directions until both are done, or nothing has come for a long time.
async fn exchange(client: TcpStream, server: TcpStream) -> io::Result<()> {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (one, other) = tokio::join!(copy(from_client, to_server), copy(from_server, to_client));
    one.and(other)
}

async fn copy(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf) -> io::Result<()> {
    let mut chunk = vec![0; 16 * 1024];
    loop {
        let count = timeout(SILENT, from.read(&mut chunk)).await??;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&chunk[..count]).await?;
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
