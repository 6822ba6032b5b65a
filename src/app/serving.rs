//! The runs that the page shows, and the server in a thread of its own: neither may hold up a run.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::find::Here;
use super::steering::Steering;
use crate::batch::order::BatchOrder;
use crate::control::Order;
use crate::error::{UserError, io_reason};
use crate::journal::Summary;
use crate::journal::store::is_id;
use crate::process::{self, Invocation, runtime};
use crate::ui::RunState;
use crate::ui::history::RunDetails;
use crate::ui::out;
use crate::ui::tui::Actions as _;
use crate::ui::web::{self, Access, Options, Place, Runs, SeenBatch, new_token};

/// Where the page is unless someone wants it elsewhere.
pub(crate) const PORT: u16 = 7331;
/// A token that a person chooses has at least this many characters.
const SHORTEST_TOKEN: usize = 16;
/// A run that is resumed has failed to start when it ends within this time.
const STARTS_WITHIN: Duration = Duration::from_millis(1500);
/// A resumed run may take this long.
const LONGEST_RUN: Duration = Duration::from_secs(30 * 24 * 3600);
/// So many runs that someone looked at are kept in memory.
const MOST_KEPT: usize = 16;

/// What the page is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub bind: IpAddr,
    /// `None`: 7331, or a free one where that is taken.
    pub port: Option<u16>,
    pub token: Option<String>,
    pub access: Access,
}

/// A socket that is open, and the address to visit.
pub(crate) struct Page {
    listener: std::net::TcpListener,
    options: Options,
    pub address: String,
}

impl Page {
    /// Opens the socket; nothing is answered yet.
    pub(crate) fn open(wanted: Wanted) -> Result<Self, UserError> {
        let token = match wanted.token {
            Some(token) => checked(token)?,
            None => {
                new_token().map_err(|error| UserError::failed(format!("no random numbers: {}", io_reason(&error))))?
            }
        };
        let listen = |port| std::net::TcpListener::bind(SocketAddr::new(wanted.bind, port));
        let listener = match wanted.port {
            Some(port) => listen(port),
            None => listen(PORT).or_else(|_| listen(0)),
        };
        let unable = |error: std::io::Error| {
            let port = wanted.port.unwrap_or(PORT);
            UserError::usage(format!("cannot listen on {}, port {port}: {}", wanted.bind, io_reason(&error)))
                .hint("choose another one with `--port` or `--bind`; `--port 0` takes any free port")
        };
        let listener = listener.map_err(unable)?;
        let mut visit = listener.local_addr().map_err(unable)?;
        if visit.ip().is_unspecified() {
            visit.set_ip(own_address());
        }
        let address = format!("http://{visit}/?token={token}");
        let runs = Arc::new(AllRuns::default());
        Ok(Self { listener, options: Options { token, access: wanted.access, runs }, address })
    }

    /// Answers until the process ends.
    pub(crate) fn serve(self) -> Result<(), UserError> {
        let failed = |error: std::io::Error| UserError::failed(format!("the page stopped: {}", io_reason(&error)));
        self.listener.set_nonblocking(true).map_err(failed)?;
        runtime()?
            .block_on(async {
                let listener = tokio::net::TcpListener::from_std(self.listener)?;
                web::serve(listener, self.options).await
            })
            .map_err(failed)
    }

    /// The same beside a run, in a thread of its own.
    pub(crate) fn serve_beside(self) {
        let served = std::thread::Builder::new().name("page".into()).spawn(move || {
            if let Err(error) = self.serve() {
                out::warn(error.message);
            }
        });
        if let Err(error) = served {
            out::warn(format_args!("cannot start the page: {error}"));
        }
    }
}

/// A token goes into an address and a cookie.
fn checked(token: String) -> Result<String, UserError> {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if token.len() >= SHORTEST_TOKEN && token.bytes().all(usual) {
        return Ok(token);
    }
    Err(UserError::usage(format!("the token must have at least {SHORTEST_TOKEN} letters, digits, `-` or `_`"))
        .hint("without `--token` ralph chooses one"))
}

/// The address of this machine in its network. Nothing is sent: a datagram socket only chooses its way.
fn own_address() -> IpAddr {
    let find = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    };
    find().map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}

/// A run as far as its journal was read; `None` before that.
type Kept = Arc<Mutex<Option<Summary>>>;

/// All runs of this user.
#[derive(Default)]
pub(crate) struct AllRuns {
    /// Runs that someone looks at. Each has a lock of its own: whoever asks while a long journal is read for the first time
    /// waits for that, and nobody reads it twice.
    kept: Mutex<HashMap<PathBuf, Kept>>,
}

impl AllRuns {
    fn kept(&self, journal: PathBuf) -> Kept {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT && !kept.contains_key(&journal) {
            kept.clear();
        }
        Arc::clone(kept.entry(journal).or_default())
    }
}

impl Runs for AllRuns {
    fn all(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for here in Here::everywhere().unwrap_or_default() {
            let workspace = here.store.workspace().to_owned();
            for directory in here.store.runs().unwrap_or_default() {
                places.push(Place { alive: here.is_running(&directory), directory, workspace: workspace.clone() });
            }
        }
        places
    }

    fn find(&self, id: &str) -> Option<Place> {
        if !is_id(id) {
            return None;
        }
        Here::everywhere().ok()?.into_iter().find_map(|here| {
            let directory = here.store.resolve(Some(id)).ok().filter(|directory| directory.id == id)?;
            Some(Place { alive: here.is_running(&directory), workspace: here.store.workspace().to_owned(), directory })
        })
    }

    fn details(&self, place: &Place) -> Option<RunDetails> {
        let journal = place.directory.journal();
        let kept = self.kept(journal.clone());
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A torn end may have been cut off when the run was resumed.
        let length = std::fs::metadata(&journal).ok()?.len();
        let mut summary = match kept.take().filter(|summary| summary.covers <= length) {
            Some(mut summary) => summary.read_on(&journal).ok().map(|()| summary)?,
            None => Summary::of(&place.directory).ok()?,
        };
        *kept = Some(summary.clone());
        drop(kept);
        summary.run.clone_from(&place.directory.id);
        let words = place.directory.goal();
        Some(RunDetails { state: RunState::of(&summary, place.alive), words, summary, place: place.directory.place() })
    }

    fn order(&self, place: &Place, order: &Order) -> Result<(), String> {
        steering(place)?.order(order)
    }

    fn batches(&self) -> Vec<SeenBatch> {
        let all = Here::everywhere().unwrap_or_default();
        all.iter().flat_map(|here| super::batch::all(&here.store)).collect()
    }

    fn order_batch(&self, batch: &SeenBatch, order: &BatchOrder) -> Result<(), String> {
        super::batch::send(&batch.directory, order)
    }

    fn answer(&self, place: &Place, words: &str) -> Result<(), String> {
        if place.alive {
            return self.order(place, &Order::Answer { words: words.to_owned() });
        }
        let mut invocation = Invocation::new(process::own_program(), &place.workspace);
        // It raises a wall of its own.
        invocation.place = process::Place::Outside;
        invocation.args = ["answer", "--run", &place.directory.id, "--", words].map(Into::into).to_vec();
        let (sender, receiver) = channel();
        // The run lives as long as the server: a process of ralph's never outlives it.
        let started = std::thread::Builder::new().name("answer".into()).spawn(move || {
            process::protect(process::own_program());
            let ended = runtime().map_err(|error| error.message).and_then(|runtime| {
                let ended = runtime.block_on(process::capture(invocation, LONGEST_RUN, 64 * 1024));
                ended.map_err(|error| error.to_string())
            });
            let _ = sender.send(ended.and_then(|ended| {
                if ended.success() { Ok(()) } else { Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()) }
            }));
        });
        started.map_err(|error| error.to_string())?;
        match receiver.recv_timeout(STARTS_WITHIN) {
            Ok(Err(why)) => Err(why),
            _ => Ok(()),
        }
    }
}

fn steering(place: &Place) -> Result<Steering, String> {
    let here = Here::everywhere().map_err(|error| error.message)?;
    let here = here.into_iter().find(|here| here.store.workspace() == place.workspace);
    here.map(|here| Steering::new(&here.store, &place.directory)).ok_or_else(|| "the run is gone".to_owned())
}

/// A QR code of the address, in half blocks, light on dark.
pub(crate) fn qr(address: &str) -> Option<String> {
    let code = qrcode::QrCode::new(address).ok()?;
    let (width, dark) = (code.width(), code.to_colors());
    let is_light = |x: usize, y: usize| {
        // A border of two light modules is enough for cameras.
        let inside = (2..width + 2).contains(&x) && (2..width + 2).contains(&y);
        !inside || dark[(y - 2) * width + x - 2] == qrcode::Color::Light
    };
    let mut text = String::new();
    for y in (0..width + 4).step_by(2) {
        for x in 0..width + 4 {
            text.push(match (is_light(x, y), y + 1 < width + 4 && is_light(x, y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        text.push('\n');
    }
    Some(text)
}
