//! bubblewrap's part: whether it works here, and the last step inside before the command itself.

use std::ffi::{OsStr, OsString};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::super::{Invocation, Place, capture, platform, runtime, spawn};

const PROGRAM: &str = "bwrap";
const ARGUMENT: &str = "start-inside-sandbox";
/// A probe that takes longer does not work.
const PATIENCE: Duration = Duration::from_secs(5);

/// How bubblewrap can be used here.
#[derive(Clone, Debug)]
pub(super) struct Usable {
    pub(super) program: PathBuf,
    /// It needs a user namespace.
    pub(super) own_users: bool,
}

/// Whether bubblewrap works here, found out by using it; else why not.
pub(super) static USABLE: LazyLock<Result<Usable, String>> = LazyLock::new(|| {
    let invocation = Invocation { place: Place::Outside, ..Invocation::new(PROGRAM, "/") };
    let program = super::super::check(&invocation).map_err(|_| format!("`{PROGRAM}` is not installed"))?;
    let is_root = rustix::process::geteuid().is_root();
    let mut said = String::new();
    for own_users in [false, true].into_iter().skip(usize::from(!is_root)) {
        match probe(&program, own_users) {
            Ok(()) => return Ok(Usable { program, own_users }),
            Err(reason) => said = reason,
        }
    }
    Err(format!("`{PROGRAM}` does not work here: {said}"))
});

fn probe(program: &Path, own_users: bool) -> Result<(), String> {
    let mut words = vec!["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-net", "--cap-drop", "ALL"];
    words.extend(own_users.then_some("--unshare-user"));
    words.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "true"]);
    let invocation = Invocation {
        args: words.into_iter().map(OsString::from).collect(),
        place: Place::Outside,
        ..Invocation::new(program, "/")
    };
    let runtime = runtime().map_err(|error| error.message)?;
    let captured = runtime.block_on(capture(invocation, PATIENCE, 4096)).map_err(|error| error.to_string())?;
    if captured.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&captured.stderr);
    Err(said.lines().next().unwrap_or("no answer in time").trim_start_matches("bwrap: ").to_owned())
}

/// The words that make this program start a command inside. `listener` is a descriptor and a port: the command's network
/// is its own, and a socket that listens there is sent through the descriptor.
pub(super) fn inner(listener: Option<(i32, u16)>, path: &Path, name: &OsStr) -> Vec<OsString> {
    let listener = listener.map_or_else(|| "-".to_owned(), |(descriptor, port)| format!("{descriptor}:{port}"));
    vec![ARGUMENT.into(), listener.into(), path.into(), name.to_owned()]
}

/// Call this early in `main`: when this process was started inside a sandbox it becomes the command.
pub fn inside_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == ARGUMENT).then(|| {
        let listener = arguments.next().and_then(|word| word.into_string().ok()).unwrap_or_default();
        if let Some((descriptor, port)) = listener.split_once(':')
            && let (Ok(descriptor), Ok(port)) = (descriptor.parse(), port.parse())
            && hand_out(descriptor, port).is_none()
        {
            return ExitCode::from(126);
        }
        let (Some(path), Some(name)) = (arguments.next(), arguments.next()) else { return ExitCode::from(126) };
        platform::close_on_exec();
        // bubblewrap itself ignored what asks a program to end, so that the command can take its time.
        spawn::default_signals();
        let error = spawn::become_program(Path::new(&path), &name, arguments);
        let message = format!("ralph: cannot start `{}` in the sandbox: {error}\n", path.display());
        let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
        ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
    })
}

/// Listens in this network, and lets someone outside accept the connections.
#[expect(unsafe_code, reason = "an inherited descriptor is known by its number only")]
fn hand_out(descriptor: i32, port: u16) -> Option<()> {
    // SAFETY: the number was given by the ralph that started this, for this purpose, and nothing else here owns it.
    let way: OwnedFd = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    let sent: [BorrowedFd<'_>; 1] = [listener.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    buffer.push(SendAncillaryMessage::ScmRights(&sent)).then_some(())?;
    rustix::net::sendmsg(&way, &[std::io::IoSlice::new(b"l")], &mut buffer, SendFlags::NOSIGNAL).ok()?;
    Some(())
}
