//! One running agent: a state machine that is driven by [`Process::next`] and owns everything about its process.
//!
//! All state is in the handle, none in a future, so a call that is dropped half-way loses nothing. It must never wait
//! without a bound, and never stop reading while it waits.

use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as StdInstant};

use rustix::process::Signal;
use tokio::time::{Instant, Sleep};

use super::abandon::end_detached;
use super::clocks::{Clocks, Due, LOOK, Stopwatch, Watch};
use super::exit::Root;
use super::group::Group;
use super::invocation::{Invocation, Link, Size, StopStep, UnixSignal};
use super::link::Ends;
use super::mark::Mark;
use super::pty::Terminal;
use super::stop::{Look, Next, Phase, Sweep, next_settle_look};
use super::tree::{self, Exited, Identity, Tree};
use super::wall::{self, Prepared};
use super::{Ended, Exit, Output, PrivateFile, StartError, StopReason, Stray, Stream, guardian, pty, resolve, spawn};

/// As much as a pipe holds.
const BUFFER: usize = 64 * 1024;

/// The most that is read of an output that someone keeps open on purpose, once all is over.
const REST: usize = 1024 * 1024;

/// The longest time for which output is handed out without a pause, so that orders, signals and clocks get a turn.
const LONGEST_BURST: Duration = Duration::from_millis(10);

/// A started process. Dropping it kills it and all that it started.
#[derive(Debug)]
pub struct Process {
    root: Root,
    tree: Tree,
    exited: bool,
    ends: Ends,
    /// Which stream is asked first: they take turns.
    turn: usize,
    buffer: Box<[u8]>,
    rest: usize,
    stopwatch: Stopwatch,
    watch: Watch,
    next_look: Duration,
    /// When the caller last had to wait, if anything came since.
    burst: Option<StdInstant>,
    drain: Duration,
    sleep: Pin<Box<Sleep>>,
    phase: Phase,
    ladder: Vec<StopStep>,
    leave_running: bool,
    stopped: Option<StopReason>,
    stopped_after: Option<Duration>,
    left_behind: Vec<Stray>,
    survivors: Vec<Stray>,
    unseen: bool,
    ended: Option<Ended>,
    _kept: (Vec<PrivateFile>, Option<Arc<Prepared>>),
}

/// Starts a process; call it inside a tokio runtime with time and I/O.
pub fn start(invocation: Invocation, clocks: Clocks) -> Result<Process, StartError> {
    start_as(invocation, clocks, Group::create)
}

/// The same for a small command that is trusted to start nothing of its own: without a control group.
pub(super) fn start_small(invocation: Invocation, clocks: Clocks) -> Result<Process, StartError> {
    start_as(invocation, clocks, |_| None)
}

fn start_as(
    invocation: Invocation,
    clocks: Clocks,
    group: impl FnOnce(Mark) -> Option<(Group, OwnedFd)>,
) -> Result<Process, StartError> {
    let path = resolve::program(&invocation)?;
    let mark = Mark::new();
    let wall = wall::prepare(&invocation, mark)?;
    let _announced = guardian::announce(mark);
    let (group, procs) = group(mark).unzip();
    let explain = |error| resolve::explain(error, &invocation, &path);
    let (spawned, terminal) = match invocation.link {
        Link::Pipe | Link::Inherited => {
            spawn::on_pipes(&invocation, &path, mark, procs.as_ref(), wall.as_ref()).map(|spawned| (spawned, None))
        }
        Link::Pty(size) => pty::open(size, &invocation.stdin).and_then(|(ours, theirs)| {
            Ok((spawn::on_terminal(&invocation, &path, mark, procs.as_ref(), wall.as_ref(), theirs)?, Some(ours)))
        }),
    }
    .map_err(|error| {
        group.iter().for_each(Group::abandon);
        explain(error)
    })?;
    drop(procs);
    let tree = Tree::new(spawned.pid, mark, group);
    let connected = || -> io::Result<_> {
        let root = Root::new(spawned.pid)?;
        let ends = match terminal {
            Some(ours) => Ends::terminal(ours, &invocation.stdin)?,
            None => Ends::pipes(spawned, &invocation.stdin)?,
        };
        Ok((root, ends))
    };
    let (root, ends) = match connected() {
        Ok(connected) => connected,
        Err(error) => {
            end_detached(tree);
            return Err(explain(error));
        }
    };
    Ok(Process {
        root,
        tree,
        exited: false,
        ends,
        turn: 0,
        buffer: vec![0; BUFFER].into_boxed_slice(),
        rest: REST,
        stopwatch: Stopwatch::start(),
        watch: Watch::new(clocks),
        next_look: LOOK,
        burst: None,
        drain: clocks.drain,
        sleep: Box::pin(tokio::time::sleep_until(Instant::now())),
        phase: Phase::Running,
        ladder: invocation.stop,
        leave_running: invocation.leave_running,
        stopped: None,
        stopped_after: None,
        left_behind: Vec::new(),
        survivors: Vec::new(),
        unseen: false,
        ended: None,
        _kept: (invocation.files, wall),
    })
}

/// What one step of the state machine has for the caller.
enum Step {
    Bytes(Stream, usize),
    Ended(Ended),
}

impl Process {
    /// Its number. It stays reserved until [`Output::Ended`] was handed out.
    pub fn pid(&self) -> u32 {
        self.root.pid().as_raw_nonzero().get().unsigned_abs()
    }

    /// The next bytes, or the end. Cancel-safe. After the end it hands out the end again.
    pub async fn next(&mut self) -> Output<'_> {
        match poll_fn(|context| self.poll_step(context)).await {
            Step::Bytes(from, count) => Output::Bytes { from, bytes: &self.buffer[..count] },
            Step::Ended(ended) => Output::Ended(ended),
        }
    }

    /// Begins to stop it, as its ladder says. Output is handed out all the while; the first reason stays.
    pub fn stop(&mut self, why: StopReason) {
        if self.phase != Phase::Running {
            return;
        }
        self.stopped = Some(why);
        self.resume();
        // Whoever loses its parents to the first signal must be known before.
        let _ = self.tree.members();
        let now = self.stopwatch.look();
        self.stopped_after = Some(now);
        self.climb(now, 0);
    }

    /// Kills it and all that it started, at once.
    pub fn kill(&mut self) {
        if self.phase.is_patient() {
            self.stopped.get_or_insert(StopReason::Asked);
            self.resume();
            let now = self.stopwatch.look();
            self.stopped_after.get_or_insert(now);
            self.begin_sweep(now);
        }
    }

    /// It has said its last word: from now on it has [`Clocks::after_end`] to end by itself.
    pub fn turn_ended(&mut self) {
        let now = self.stopwatch.look();
        self.watch.turn_ended(now);
    }

    /// Gives it another time in all, counted from its start.
    pub(crate) fn allow(&mut self, total: Option<Duration>) {
        self.watch.allow(total);
    }

    /// Halts it and all that it started, and all clocks with it.
    pub fn pause(&mut self) {
        if !self.stopwatch.is_paused() && self.phase == Phase::Running {
            self.stopwatch.pause();
            self.signal_all(Signal::STOP);
        }
    }

    /// Lets it go on.
    pub fn resume(&mut self) {
        if self.stopwatch.is_paused() {
            self.signal_all(Signal::CONT);
            self.stopwatch.resume();
        }
    }

    /// Gives its terminal another size; the program gets SIGWINCH. Without a terminal nothing happens.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        self.ends.terminal.as_ref().map_or(Ok(()), |terminal| terminal.resize(size))
    }

    /// Types keys into its terminal, if it takes keys. Without a terminal nothing happens.
    pub(crate) fn press(&mut self, keys: &[u8]) {
        let now = self.stopwatch.look();
        self.watch.touched(now);
        self.ends.press(keys);
    }

    /// Signals the group of the process, and the one that has its terminal.
    fn signal_groups(&self, signal: Signal) {
        self.tree.signal_group(signal);
        let foreground = self.ends.terminal.as_ref().and_then(Terminal::foreground);
        if let Some(group) = foreground.filter(|group| *group != self.root.pid()) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    fn signal_all(&mut self, signal: Signal) {
        self.tree.signal_group(signal);
        for member in self.tree.members().iter().flatten().filter(|member| !member.zombie) {
            tree::signal(Identity::from(member), signal);
        }
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        loop {
            if let Some(ended) = &self.ended {
                return Poll::Ready(Step::Ended(ended.clone()));
            }
            if !self.exited && self.root.poll_exit(context).is_ready() {
                self.exited = true;
                self.root_exited();
            }
            if self.ends.input.as_mut().is_some_and(|input| input.poll(context).is_ready()) {
                // Closing our end is the end of file that the agent waits for.
                self.ends.input = None;
            }
            if self.burst.is_some_and(|began| began.elapsed() >= LONGEST_BURST) {
                self.burst = None;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Poll::Ready((from, count)) = self.poll_output(context) {
                self.burst.get_or_insert_with(StdInstant::now);
                self.heard();
                // Under a flood the clocks must be looked at too.
                self.advance();
                return Poll::Ready(Step::Bytes(from, count));
            }
            if self.advance() == Progress::Made {
                continue;
            }
            if let Some((from, count)) = self.read_rest() {
                return Poll::Ready(Step::Bytes(from, count));
            }
            if let Phase::Closing { until } = self.phase
                && (self.is_closed() || self.stopwatch.look() >= until)
            {
                self.finish();
                continue;
            }
            if self.poll_sleep(context).is_pending() {
                self.burst = None;
                return Poll::Pending;
            }
        }
    }

    fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<(Stream, usize)> {
        self.turn = 1 - self.turn;
        for index in [self.turn, 1 - self.turn] {
            let Some(source) = &self.ends.outputs[index] else { continue };
            match source.poll_read(context, &mut self.buffer) {
                Poll::Ready(0) => self.ends.outputs[index] = None,
                Poll::Ready(count) => return Poll::Ready((STREAMS[index], count)),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// When time is up for an output that is still open, takes what is in it without waiting for the reactor.
    fn read_rest(&mut self) -> Option<(Stream, usize)> {
        let Phase::Closing { until } = self.phase else { return None };
        if self.stopwatch.look() < until {
            return None;
        }
        for (index, output) in self.ends.outputs.iter_mut().enumerate() {
            match output.as_ref().and_then(|source| source.read_now(&mut self.buffer)) {
                Some(0) => *output = None,
                Some(count) if self.rest > 0 => {
                    self.rest = self.rest.saturating_sub(count);
                    return Some((STREAMS[index], count));
                }
                _ => {}
            }
        }
        None
    }

    fn poll_sleep(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.stopwatch.is_paused() {
            return Poll::Pending;
        }
        let deadline = match self.phase {
            Phase::Running => {
                Some(self.watch.deadline().map_or(self.next_look, |deadline| deadline.min(self.next_look)))
            }
            Phase::Draining { next, .. } if self.is_closed() => Some(next),
            phase => phase.deadline(),
        };
        let Some(deadline) = deadline else { return Poll::Pending };
        self.stopwatch.look();
        let at = self.stopwatch.instant(deadline);
        if self.sleep.deadline() != at {
            self.sleep.as_mut().reset(at);
        }
        self.sleep.as_mut().poll(context)
    }

    fn heard(&mut self) {
        let now = self.stopwatch.look();
        self.watch.heard(now);
    }

    fn is_closed(&self) -> bool {
        self.ends.outputs.iter().all(Option::is_none)
    }

    /// Does what is due. [`Progress::Made`] when the phase may have changed.
    fn advance(&mut self) -> Progress {
        if self.stopwatch.is_paused() {
            return Progress::None;
        }
        let now = self.stopwatch.look();
        match self.phase {
            Phase::Running => match self.watch.due(now) {
                Some(Due::Stop(why)) => self.stop(why),
                Some(Due::Sample) => {
                    // What cannot be measured is taken for work: the other clocks still run.
                    let used = self.tree.used().unwrap_or(Duration::MAX);
                    self.watch.sampled(now, used);
                    if self.watch.due(now) == Some(Due::Stop(StopReason::Idle)) {
                        self.stop(StopReason::Idle);
                    }
                }
                None if now >= self.next_look => {
                    self.next_look = now + LOOK;
                    self.tree.learn();
                }
                None => return Progress::None,
            },
            Phase::Asking { step, until } if now >= until => self.climb(now, step + 1),
            Phase::Draining { until, next } if now >= until || (self.is_closed() && now >= next) => {
                self.settle(now, until);
            }
            Phase::Sweeping(sweep) if Phase::Sweeping(sweep).deadline().is_some_and(|next| now >= next) => {
                self.sweep(now, sweep);
            }
            _ => return Progress::None,
        }
        Progress::Made
    }

    /// Takes a step of the ladder; after the last one comes the kill.
    fn climb(&mut self, now: Duration, step: usize) {
        match self.ladder.get(step) {
            Some(StopStep { signal, grace }) if *signal != UnixSignal::Kill => {
                self.signal_groups((*signal).into());
                // One that is halted would receive it only when it continues.
                self.signal_groups(Signal::CONT);
                self.phase = Phase::Asking { step, until: now + *grace };
            }
            _ => self.begin_sweep(now),
        }
    }

    fn root_exited(&mut self) {
        let now = self.stopwatch.look();
        match &mut self.phase {
            Phase::Running | Phase::Asking { .. } => {
                self.phase = Phase::Draining { until: now + self.drain, next: now };
            }
            Phase::Sweeping(sweep) => sweep.hurry(now),
            _ => {}
        }
    }

    /// The process has ended, and its output too or the time for it is up: what is left of its tree?
    fn settle(&mut self, now: Duration, until: Duration) {
        // What cannot be seen is not gone: then the sweep looks again.
        let Ok(mut members) = self.tree.members() else { return self.begin_sweep(now) };
        members.retain(|member| member.pid != self.tree.root().pid);
        let alive: Vec<_> = members.iter().filter(|member| !member.zombie).collect();
        if !alive.is_empty() && now < until {
            self.phase = Phase::Draining { until, next: next_settle_look(now, until, self.drain) };
            return;
        }
        self.left_behind = alive.into_iter().map(tree::describe).collect();
        if self.leave_running || members.is_empty() {
            self.phase = Phase::Closing { until: now };
        } else {
            self.begin_sweep(now);
        }
    }

    fn begin_sweep(&mut self, now: Duration) {
        self.tree.kill_groups();
        self.phase = Phase::Sweeping(Sweep::start(now));
    }

    fn sweep(&mut self, now: Duration, sweep: Sweep) {
        if sweep.is_stubborn() {
            self.tree.kill_groups();
            self.tree.chase();
        }
        let seen = self.tree.sweep(Exited::Keep);
        // One that was dead already may have left a child since it was looked for. And the root is over when its exit was
        // seen, not when it looks dead: its status comes with the exit.
        let look = match &seen {
            Err(_) => Look::Unknown,
            Ok(swept) if swept.alive.is_empty() && swept.reaped.is_empty() && self.exited => Look::Clean,
            Ok(_) => Look::Alive,
        };
        self.phase = match sweep.looked(now, look) {
            Next::Again(sweep) => Phase::Sweeping(sweep),
            Next::Done => Phase::Closing { until: now + self.drain },
            Next::GiveUp => {
                self.unseen = seen.is_err();
                let swept = seen.unwrap_or_default();
                // Where all are dead by the time they are looked at, the last one counts for those that follow it.
                let left = if swept.alive.is_empty() { &swept.reaped } else { &swept.alive };
                self.survivors = left.iter().map(tree::describe).collect();
                Phase::Closing { until: now }
            }
        };
    }

    fn finish(&mut self) {
        let pipes_closed = self.is_closed();
        self.ends.outputs = [None, None];
        self.ends.input = None;
        self.phase = Phase::Over;
        // One that hangs in the kernel has no status; what it will die of is known.
        let exit = self.root.reap().unwrap_or(Exit::Signal(Signal::KILL.as_raw()));
        match (self.exited && self.survivors.is_empty(), self.leave_running && !self.left_behind.is_empty()) {
            (true, true) => self.tree.leave(),
            (true, false) => self.tree.release(),
            (false, _) => end_detached(self.tree.clone()),
        }
        let active = self.stopwatch.look();
        self.ended = Some(Ended {
            exit,
            stopped: self.stopped,
            left_behind: std::mem::take(&mut self.left_behind),
            survivors: std::mem::take(&mut self.survivors),
            unseen: self.unseen,
            pipes_closed,
            active,
            stopped_after: self.stopped_after.unwrap_or(active),
        });
    }
}

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Made,
    None,
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            end_detached(self.tree.clone());
        }
    }
}
