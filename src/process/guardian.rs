//! The end of agents whose ralph has died: `kill -9`, out of memory, a crash.
//!
//! A small process, the same program under a hidden argument, that sleeps on a pipe of which only ralph has the other
//! end. When the pipe ends, ralph is dead, however it died; then the guardian kills the trees it knows of, removes
//! the private files, and goes. While ralph lives it only sees to it that ralph is not halted by someone else. It must
//! never outlive its purpose.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};

use super::mark::Mark;
use super::stop::{Look, Next, Sweep};
use super::table::{Entry, Table};
use super::tree::{self, Identity};
use super::{exit, group, platform, private_directory, registry, spawn, table};

const ARGUMENT: &str = "guard-agents-of";

/// Between two looks at trees that are being killed.
const PAUSE: Duration = Duration::from_millis(5);

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
static GUARDIAN: Mutex<Post> = Mutex::new(Post { guardian: None, duties: Vec::new() });

/// Our side: the guardian, if one was started, and what it has to know.
struct Post {
    guardian: Option<(Pid, File)>,
    duties: Vec<Duty>,
}

/// Something to be done when ralph dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    Tree {
        mark: Mark,
        root: Identity,
    },
    /// Kill this control group and remove it.
    Group(PathBuf),
    File(PathBuf),
    /// Remove it with everything in it, after the trees that use it.
    Directory(PathBuf),
    /// None: ralph has halted itself and its agents, as after Ctrl-Z, and must not be woken up.
    Sleep,
}

/// How a process stops that did not do so itself.
#[cfg_attr(any(not(target_os = "linux"), ralph_portable), allow(dead_code))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Halted {
    /// It runs, or a shell has stopped it in the usual way.
    No,
    /// Its terminal belongs to another program, which may be the reason.
    InBackground,
    /// By a signal that no program can refuse.
    Yes,
}

/// How often in a row ralph may be found halted before it is continued, and before its agents are ended: an agent that
/// halts ralph again and again would have no limits.
const CONTINUE_AFTER: u32 = 2;
const END_AFTER: u32 = 20;

/// Puts the agents of this process under the protection of a guardian; the binary calls it, once, before the first.
///
/// `program` is one that calls [`guardian_main`] first thing; it is started with the first agent.
///
/// From here on every child that this process did not start itself is taken for an agent's.
pub fn protect(program: impl Into<PathBuf>) {
    let _ = PROGRAM.set(program.into());
    registry::own_all_children();
}

/// Tells of a tree before it is there: between its start and the news of it, ralph may die. Taken back with the value,
/// when the tree itself is known or could not be started.
pub(super) fn announce(mark: Mark) -> Announcement {
    let own = table::entry(std::process::id().cast_signed()).map_or(0, |entry| entry.started);
    // No process has this number; the mark is all there is to find it by.
    let duty = Duty::Tree { mark, root: Identity { pid: -1, started: own } };
    add(duty.clone());
    Announcement(duty)
}

/// A tree that is about to be.
pub(super) struct Announcement(Duty);

impl Drop for Announcement {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

pub(super) fn add(duty: Duty) {
    let Some(program) = PROGRAM.get() else { return };
    let mut post = post();
    let message = Message::Add(&duty).encode();
    post.duties.push(duty);
    // A guardian that was killed, by an over-eager agent for example, gets a successor that learns everything.
    if !post.tell(&message) {
        post.replace(program);
    }
}

pub(super) fn remove(duty: &Duty) {
    let mut post = post();
    if let Some(index) = post.duties.iter().position(|known| known == duty) {
        post.duties.swap_remove(index);
        post.tell(&Message::Remove(duty).encode());
    }
}

fn post() -> MutexGuard<'static, Post> {
    GUARDIAN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Post {
    fn tell(&mut self, message: &[u8]) -> bool {
        self.guardian.as_mut().is_some_and(|(_, pipe)| pipe.write_all(message).is_ok())
    }

    fn replace(&mut self, program: &Path) {
        if let Some((old, pipe)) = self.guardian.take() {
            // It may only be halted, and would take the end of its pipe for our death.
            let _ = rustix::process::kill_process(old, Signal::KILL);
            drop(pipe);
            exit::reap_soon(old);
            registry::remove(old.as_raw_nonzero().get());
        }
        // Without a guardian the parent-death signal remains; an agent is not refused for that.
        let Ok((pid, pipe)) = spawn::guardian(program, ARGUMENT) else { return };
        self.guardian = Some((pid, pipe.into()));
        let all: Vec<u8> = self.duties.iter().flat_map(|duty| Message::Add(duty).encode()).collect();
        self.tell(&all);
    }
}

/// What goes over the pipe; each message ends in NUL, which no path contains.
enum Message<'a> {
    Add(&'a Duty),
    Remove(&'a Duty),
}

impl Message<'_> {
    fn encode(&self) -> Vec<u8> {
        let (sign, duty) = match self {
            Self::Add(duty) => ('+', duty),
            Self::Remove(duty) => ('-', duty),
        };
        let mut bytes = match duty {
            Duty::Tree { mark, root } => format!("{sign}tree {} {} {}", mark.0, root.pid, root.started).into_bytes(),
            Duty::Group(path) => [format!("{sign}group ").as_bytes(), path.as_os_str().as_bytes()].concat(),
            Duty::File(path) => [format!("{sign}file ").as_bytes(), path.as_os_str().as_bytes()].concat(),
            Duty::Directory(path) => [format!("{sign}directory ").as_bytes(), path.as_os_str().as_bytes()].concat(),
            Duty::Sleep => format!("{sign}sleep").into_bytes(),
        };
        bytes.push(0);
        bytes
    }
}

/// Takes one message into the list of duties.
fn learn(message: &[u8], duties: &mut Vec<Duty>) -> Option<()> {
    let (sign, rest) = message.split_first()?;
    let duty = if let Some(path) = rest.strip_prefix(b"file ") {
        Duty::File(PathBuf::from(OsStr::from_bytes(path)))
    } else if let Some(path) = rest.strip_prefix(b"directory ") {
        Duty::Directory(PathBuf::from(OsStr::from_bytes(path)))
    } else if let Some(path) = rest.strip_prefix(b"group ") {
        Duty::Group(PathBuf::from(OsStr::from_bytes(path)))
    } else if rest == b"sleep" {
        Duty::Sleep
    } else {
        let mut words = std::str::from_utf8(rest.strip_prefix(b"tree ")?).ok()?.split(' ');
        let mark = Mark(words.next()?.parse().ok()?);
        let root = Identity { pid: words.next()?.parse().ok()?, started: words.next()?.parse().ok()? };
        Duty::Tree { mark, root }
    };
    match sign {
        b'+' => duties.push(duty),
        _ => duties.retain(|known| *known != duty),
    }
    Some(())
}

/// Call this first thing in `main`: when this process was started as a guardian it does that work and returns.
pub fn guardian_main() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == ARGUMENT).then(|| {
        platform::forbid_inspection();
        ignore_signals();
        let ralph = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
        // Not `Stdin` itself, whose buffer would hide from `poll` what has come.
        let Ok(pipe) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
        let duties = listen(File::from(pipe), ralph);
        for duty in &duties {
            if let Duty::File(path) = duty {
                let _ = std::fs::remove_file(path);
            }
        }
        end_trees(&duties);
        for duty in &duties {
            if let Duty::Directory(path) = duty {
                private_directory::remove(path);
            }
        }
        ExitCode::SUCCESS
    })
}

/// Learns until the pipe ends. Nothing but the death of ralph ends it.
fn listen(mut pipe: impl Read + AsFd, ralph: Option<i32>) -> Vec<Duty> {
    let (mut duties, mut held, mut chunk) = (Vec::new(), Vec::new(), [0; 4096]);
    let mut halted = 0;
    loop {
        if let Some((ralph, every)) = ralph.zip(platform::ASK_HALTED)
            && !is_ready(&pipe, every)
        {
            let asleep = duties.is_empty() || duties.contains(&Duty::Sleep);
            halted = if asleep { 0 } else { wake(ralph, halted, &duties) };
            continue;
        }
        match pipe.read(&mut chunk) {
            Ok(0) => return duties,
            Ok(count) => held.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return duties,
        }
        while let Some(end) = memchr::memchr(0, &held) {
            learn(&held[..end], &mut duties);
            held.drain(..=end);
        }
    }
}

fn is_ready(pipe: &impl AsFd, within: Duration) -> bool {
    let mut ready = [PollFd::new(pipe, PollFlags::IN)];
    let within = Timespec::try_from(within).ok();
    !matches!(rustix::event::poll(&mut ready, within.as_ref()), Ok(0) | Err(rustix::io::Errno::INTR))
}

/// Continues a ralph that someone has halted, and ends its agents when that does not help. Returns how often in a row it
/// was found so.
fn wake(ralph: i32, before: u32, duties: &[Duty]) -> u32 {
    let halted = platform::halted(ralph);
    if halted == Halted::No {
        return 0;
    }
    let times = before.saturating_add(1);
    if times >= CONTINUE_AFTER
        && let Some(pid) = Pid::from_raw(ralph)
    {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
    if times == END_AFTER && halted == Halted::Yes {
        end_trees(duties);
    }
    times
}

/// Kills all trees, again and again until nothing of them is left.
fn end_trees(duties: &[Duty]) {
    let groups = || duties.iter().filter_map(|duty| if let Duty::Group(path) = duty { Some(path) } else { None });
    groups().for_each(|path| group::kill(path));
    let trees = duties.iter().filter_map(|duty| match duty {
        Duty::Tree { mark, root } => Some((*mark, *root, HashSet::new())),
        _ => None,
    });
    sweep(trees.collect());
    groups().for_each(|path| group::remove(path));
}

fn sweep(mut trees: Vec<(Mark, Identity, HashSet<Identity>)>) {
    let Some(oldest) = trees.iter().map(|(_, root, _)| root.started).min() else { return };
    let marks: HashSet<Mark> = trees.iter().map(|(mark, _, _)| *mark).collect();
    let began = Instant::now();
    let mut sweep = Sweep::start(Duration::ZERO);
    let mut strangers = HashSet::new();
    loop {
        // What cannot be seen is not gone.
        let (table, mut look) = match Table::read() {
            Ok(table) => (table, Look::Clean),
            Err(_) => (Table::default(), Look::Unknown),
        };
        let marked = find_marked(&table, oldest, &marks, &mut strangers);
        for (mark, root, known) in &mut trees {
            let marked = marked.iter().filter(|(one, _)| one == mark).map(|(_, entry)| *entry);
            let members = tree::select(&table, *root, known, marked);
            for member in members.iter().filter(|member| !member.zombie) {
                tree::signal(Identity::from(member), Signal::KILL);
                look = Look::Alive;
            }
            known.extend(members.iter().map(Identity::from));
        }
        match sweep.looked(began.elapsed(), look) {
            Next::Again(again) => sweep = again,
            Next::Done | Next::GiveUp => return,
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ralph, who adopted orphans, is dead: one may be anywhere, so everybody is asked for marks, but only once.
fn find_marked<'a>(
    table: &'a Table,
    oldest: u64,
    trees: &HashSet<Mark>,
    strangers: &mut HashSet<Identity>,
) -> Vec<(Mark, &'a Entry)> {
    let mut found = Vec::new();
    for entry in table.all().filter(|entry| entry.started >= oldest) {
        let identity = Identity::from(entry);
        if strangers.contains(&identity) {
            continue;
        }
        let Some(marks) = Mark::all_on(entry.pid) else { continue };
        let before = found.len();
        found.extend(marks.into_iter().filter(|mark| trees.contains(mark)).map(|mark| (mark, entry)));
        if found.len() == before {
            strangers.insert(identity);
        }
    }
    found
}

/// A closed terminal, or an agent that ends everything with our name, must not take the guardian first.
#[expect(unsafe_code, reason = "the dispositions of signals are not in rustix")]
fn ignore_signals() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::TSTP] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe_with(bytes: &[u8]) -> io::PipeReader {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        reader
    }

    #[test]
    fn duties_survive_the_way_over_the_pipe_however_it_is_cut() {
        let tree = Duty::Tree { mark: Mark(42), root: Identity { pid: 7, started: 99 } };
        let file = Duty::File(PathBuf::from("/a directory/with\nnewline"));
        let directory = Duty::Directory(PathBuf::from("/tmp/a directory"));
        let done = Duty::Tree { mark: Mark(43), root: Identity { pid: 8, started: 99 } };
        let group = Duty::Group(PathBuf::from("/sys/fs/cgroup/ralph.7.1"));
        let messages = [
            Message::Add(&done),
            Message::Add(&tree),
            Message::Add(&file),
            Message::Add(&directory),
            Message::Add(&Duty::Sleep),
            Message::Add(&group),
            Message::Remove(&done),
            Message::Remove(&Duty::Sleep),
        ];
        let mut bytes = vec![0];
        bytes.extend(messages.iter().flat_map(Message::encode));
        assert_eq!(listen(pipe_with(&bytes), None), [tree.clone(), file.clone(), directory.clone(), group.clone()]);
        // What was cut off by the death of ralph is no duty.
        let cut = Message::Add(&done).encode();
        bytes.extend(&cut[..cut.len() - 1]);
        assert_eq!(listen(pipe_with(&bytes), None), [tree, file, directory, group]);
    }

    #[test]
    fn what_is_no_message_is_ignored() {
        let mut duties = Vec::new();
        for message in [&b""[..], b"+", b"+tree", b"+tree x 1 2", b"+tree 1 2", b"hello", b"+tree 1 2 -3"] {
            learn(message, &mut duties);
        }
        assert_eq!(duties, []);
    }
}
