//! The server: loopback only, a thread for each connection, bounded in time and in requests.
//!
//! It stops when it is dropped; nothing of it waits longer than its bounds.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dialect::{Dialect, Route, route};
use crate::http::{self, Request};
use crate::play::{Answer, Exchange, Play};
use crate::scenario::{FaultKind, Scenario};

/// How long a thread looks away at most.
const GLANCE: Duration = Duration::from_millis(5);
/// Events that are sent before a stream is cut or hangs.
const BEFORE_THE_FAULT: usize = 3;

/// What it may not exceed.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Its life.
    pub lifetime: Duration,
    /// Requests that it answers.
    pub requests: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { lifetime: Duration::from_secs(600), requests: 10_000 }
    }
}

struct Shared {
    play: Mutex<Play>,
    stopped: AtomicBool,
    requests: AtomicU64,
    deadline: Instant,
    bounds: Bounds,
}

impl Shared {
    fn over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
            || Instant::now() >= self.deadline
            || self.requests.load(Ordering::Relaxed) >= self.bounds.requests
    }

    fn play(&self) -> MutexGuard<'_, Play> {
        self.play.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running server.
pub struct Server {
    shared: Arc<Shared>,
    port: u16,
    listening: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Starts on a free port of loopback, or on the one that is given.
    pub fn start(scenario: Scenario, workspace: &Path, bounds: Bounds, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            play: Mutex::new(Play::new(scenario, workspace)),
            stopped: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            deadline: Instant::now() + bounds.lifetime,
            bounds,
        });
        let accepting = Arc::clone(&shared);
        let listening = thread::spawn(move || {
            while !accepting.over() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        let shared = Arc::clone(&accepting);
                        // A client that goes away is none of our business.
                        thread::spawn(move || drop(converse(&shared, stream)));
                    }
                    Err(_) => thread::sleep(GLANCE),
                }
            }
        });
        Ok(Self { shared, port, listening: Some(listening) })
    }

    /// Where it is, without a path.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends the faults that have no number of their own.
    pub fn lift(&self) {
        self.shared.play().lift();
    }

    /// All requests for an answer so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.play().exchanges()
    }

    /// Whether its bounds have ended it.
    pub fn over(&self) -> bool {
        self.shared.over()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(listening) = self.listening.take() {
            // It looks every few milliseconds; a panic there has nothing to tell here.
            drop(listening.join());
        }
    }
}

fn converse(shared: &Shared, stream: TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_write_timeout(Some(Duration::from_secs(60)))?;
    let mut both = Both { reader: BufReader::new(stream.try_clone()?), writer: stream };
    while !shared.over() {
        let Some(request) = http::read(&mut both)? else { return Ok(()) };
        shared.requests.fetch_add(1, Ordering::Relaxed);
        if serve(shared, &request, &mut both.writer)? == After::Close {
            return both.writer.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// A connection, read through a buffer.
struct Both {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Read for Both {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reader.read(into)
    }
}

impl BufRead for Both {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// What becomes of the connection.
#[derive(PartialEq, Eq)]
enum After {
    Keep,
    Close,
}

fn serve(shared: &Shared, request: &Request, stream: &mut TcpStream) -> io::Result<After> {
    match route(&request.path) {
        Route::Fixed(_) if request.method == "HEAD" => http::answer(stream, 200, &[], "")?,
        Route::Fixed(value) => http::answer(stream, 200, &[], &value.to_string())?,
        Route::Model { dialect, streams, model } if request.method == "POST" => {
            let body: Value = match serde_json::from_slice(&request.body) {
                Ok(body) => body,
                Err(error) => {
                    let said = json!({"error": {"message": error.to_string(), "type": "invalid_request_error"}});
                    http::answer(stream, 400, &[], &said.to_string())?;
                    return Ok(After::Keep);
                }
            };
            let model = model.unwrap_or_else(|| body["model"].as_str().unwrap_or_default().to_owned());
            let streams = streams || body["stream"] == true;
            let answer = shared.play().next(dialect, model, &body, &request.body);
            return say(shared, dialect, &answer, streams, stream);
        }
        Route::Model { .. } | Route::Unknown => {
            let said =
                json!({"error": {"message": format!("nothing is at {}", request.path), "type": "not_found_error"}});
            http::answer(stream, 404, &[], &said.to_string())?;
        }
    }
    Ok(After::Keep)
}

fn say(
    shared: &Shared,
    dialect: &dyn Dialect,
    answer: &Answer,
    streams: bool,
    stream: &mut TcpStream,
) -> io::Result<After> {
    let fault = answer.fault.map(|fault| fault.kind);
    match (answer.fault, fault) {
        (Some(fault), Some(FaultKind::Cut | FaultKind::Hang)) if !streams => {
            if fault.kind == FaultKind::Hang {
                hang(shared, stream);
            }
            return Ok(After::Close);
        }
        (Some(_), Some(FaultKind::Cut | FaultKind::Hang)) | (None, _) | (_, None) => {}
        (Some(fault), Some(kind)) => {
            let (status, body) = dialect.refusal(kind);
            let headers: Vec<(&str, String)> =
                fault.retry_after.iter().map(|seconds| ("retry-after", seconds.to_string())).collect();
            http::answer(stream, status, &headers, &body.to_string())?;
            return Ok(After::Keep);
        }
    }
    if !streams {
        http::answer(stream, 200, &[], &dialect.whole(&answer.reply).to_string())?;
        return Ok(After::Keep);
    }
    http::begin_events(stream)?;
    for (sent, frame) in dialect.frames(&answer.reply).iter().enumerate() {
        if fault.is_some() && sent == BEFORE_THE_FAULT {
            break;
        }
        http::event(stream, frame.name, &frame.data)?;
        thread::sleep(Duration::from_millis(answer.pause_ms));
    }
    match fault {
        Some(FaultKind::Hang) => hang(shared, stream),
        Some(_) => {}
        None => {
            http::end_events(stream)?;
            return Ok(After::Keep);
        }
    }
    Ok(After::Close)
}

/// Says nothing until the client goes or the server ends.
fn hang(shared: &Shared, stream: &TcpStream) {
    let mut byte = [0];
    if stream.set_read_timeout(Some(Duration::from_millis(100))).is_err() {
        return;
    }
    while !shared.over() {
        match stream.peek(&mut byte) {
            Ok(0) => return,
            Ok(_) => thread::sleep(GLANCE),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}
