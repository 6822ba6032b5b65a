//! One iteration: the agent's process from start to end, its bytes kept, its events recorded.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Zoned;

use super::control::{Command, Inbox, Orders};
use super::decide::Report;
use super::filter::{Did, Display, Filter};
use super::handover::Handover;
use super::interrupt::{Action, Came, Interrupts};
use super::judge::judge;
use super::plan::{Room, Screen};
use super::reading::Reading;
use super::recorder::{Recorder, unrecorded};
use crate::error::UserError;
use crate::event::{Event, Stream};
use crate::journal::{Fact, Raw, Receipt};
use crate::process::{self, Clocks, Ended, Exit, Invocation, Output, Process, StopReason};
use crate::signals::Signal;
use crate::signals::promise::{Heard, Rule};
use crate::transcript::{Context, Selected};

/// What an iteration needs to know.
pub struct Iteration<'a> {
    /// Its number.
    pub number: u32,
    /// The most there will be.
    pub of: u32,
    /// What to run.
    pub invocation: Invocation,
    /// How long it may be silent; how long it may take in all is in [`Iteration::time`].
    pub clocks: Clocks,
    /// How long it may take.
    pub time: Time,
    /// How long the prompt is.
    pub prompt_bytes: usize,
    /// What reads its output.
    pub transcript: &'a Selected,
    /// What the adapter is told.
    pub context: Context,
    /// The longest line that is handed on in one part.
    pub line_cap: usize,
    /// The completion rule.
    pub rule: &'a Rule,
    /// Where the raw bytes go.
    pub raw: PathBuf,
    /// Where it works.
    pub workspace: &'a Path,
    /// Who plays it.
    pub agent: &'a str,
    /// The hat it wears.
    pub hat: Option<String>,
    /// The session it goes on with.
    pub resumes: Option<String>,
    /// Whether a status block means anything.
    pub status_blocks: StatusBlocks,
    /// What the agent hears beside the user's words; they are part of the prompt already.
    pub remarks: Vec<String>,
    /// What shows the output instead of ralph itself.
    pub display: Option<Display>,
    /// What its output is connected to.
    pub screen: Screen,
    /// How large a terminal of its own is.
    pub room: Room,
}

/// Whether a status block in the agent's words means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusBlocks {
    /// Under the driver contract.
    Count,
    /// Everywhere else.
    AreWords,
}

/// Who can speak to an iteration under way.
pub struct Ears<'a> {
    /// By a Unix signal.
    pub interrupts: &'a mut Interrupts,
    /// From another terminal.
    pub inbox: &'a mut Inbox,
    /// What was told, and is not done yet.
    pub orders: &'a mut Orders,
}

impl Ears<'_> {
    /// For as long as somebody else listens.
    pub fn lend(&mut self) -> Ears<'_> {
        Ears { interrupts: self.interrupts, inbox: self.inbox, orders: self.orders }
    }
}

/// How long an iteration may take: its own time, or what is left of the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// The agent's own limit.
    pub own: Option<Duration>,
    /// The limit of the run.
    pub run: Option<Duration>,
    /// How much of that was gone when the iteration began.
    pub gone: Duration,
}

/// Whose time is up when the total clock strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The iteration took too long.
    Iteration,
    /// The whole run has no time left.
    Run,
}

impl Time {
    /// What it may take in all, after somebody may have given the run more time.
    fn after(&mut self, command: &Command) -> Option<Duration> {
        if let Command::Limit { max_seconds: Some(seconds), .. } = command {
            self.run = Some(Duration::from_secs(*seconds));
        }
        self.total().0
    }

    fn total(self) -> (Option<Duration>, Whose) {
        let left = self.run.map(|most| most.saturating_sub(self.gone).max(Duration::from_millis(1)));
        match (self.own, left) {
            (Some(own), Some(left)) if left <= own => (Some(left), Whose::Run),
            (None, Some(left)) => (Some(left), Whose::Run),
            (own, _) => (own, Whose::Iteration),
        }
    }
}

/// An iteration that is over.
#[derive(Debug)]
pub struct Played {
    /// For the decision.
    pub report: Report,
    /// For the journal.
    pub receipt: Receipt,
    /// How long it stood still with ralph itself.
    pub suspended: Duration,
    /// What the agent's own words say to the loop.
    pub heard: Heard,
    /// What it did with its tools, as one number.
    pub work: Option<u64>,
    /// True when the agent did or said anything at all.
    pub answered: bool,
    /// How its process ended.
    pub process: Ended,
    /// True when a failure is only assumed, because the dialect's terminal event did not come.
    pub assumed: bool,
}

/// Leaves at once: the third Unix signal.
#[derive(Debug)]
pub enum Halt {
    /// Something that must end the run.
    Error(UserError),
    /// The user wants out now.
    Leave,
}

impl From<UserError> for Halt {
    fn from(error: UserError) -> Self {
        Self::Error(error)
    }
}

impl Iteration<'_> {
    /// Plays it to its end.
    pub async fn play(self, recorder: &mut Recorder, ears: Ears<'_>) -> Result<Played, Halt> {
        let Ears { interrupts, inbox, orders } = ears;
        let mut raw = recorder.raw(self.number)?;
        if let Some(prompt) = self.context.prompts.first() {
            recorder.prompt(self.number, prompt)?;
        }
        let (about, beginning) = (self.about(), self.beginning());
        let output = Raw::stdout(&self.raw, self.number);
        let (mut filter, mut display) = readers(self.transcript, self.display, self.workspace, &output)?;
        let reading = Reading::new(self.transcript, &self.context, self.rule, self.line_cap);
        let mut reading = reading.on_terminal(self.invocation.link.size());
        let mut time = self.time;
        let clocks = Clocks { total: time.total().0, ..self.clocks };
        let mut process =
            process::start(self.invocation, clocks).map_err(|error| super::explain::start_error(&error))?;
        recorder.fact(beginning(process.pid()))?;
        let mut handover = Handover::begin(self.screen, recorder);
        let mut events = Vec::new();
        let (mut interrupted, mut suspended) = (false, Duration::ZERO);
        let mut ended = None;
        while ended.is_none() || !Filter::is_done(filter.as_ref()) || !Filter::is_done(display.as_ref()) {
            let held_up = Handover::is_full(handover.as_ref());
            let next = tokio::select! {
                biased;
                came = interrupts.next() => Next::Came(came),
                pressed = Handover::next(&mut handover) => pressed.map_or_else(|| Next::Came(interrupts.pressed()), Next::Pressed),
                output = process.next(), if ended.is_none() && !held_up => match output {
                    Output::Bytes { from, bytes } => {
                        Handover::show(&mut handover, bytes);
                        let written = raw.write(from, bytes).map_err(|error| unrecorded(&error))?;
                        let is_told = from == Stream::Stdout;
                        filter.iter_mut().chain(&mut display).filter(|_| is_told).for_each(|reader| reader.more(written));
                        if filter.is_none() || !is_told {
                            reading.push(from, bytes, &mut events);
                        }
                        Next::Read(from)
                    }
                    Output::Ended(ended) => Next::Ended(ended),
                },
                did = Filter::next(&mut filter) => Next::Filtered(did),
                did = Filter::next(&mut display) => Next::Filtered(did),
                command = inbox.next() => Next::Told(command),
            };
            match next {
                Next::Read(from) => record(recorder, self.number, from, &mut events)?,
                Next::Filtered(Did::Shown(text)) => recorder.fact(Fact::Display { iteration: self.number, text })?,
                Next::Filtered(did) => {
                    filtered(did, &mut reading, &mut events);
                    record(recorder, self.number, Stream::Stdout, &mut events)?;
                }
                Next::Pressed(keys) => process.press(&keys),
                Next::Told(command) => {
                    told(&command, recorder)?;
                    if command == (Command::Stop { now: true }) && ended.is_none() {
                        interrupted = true;
                        process.stop(StopReason::Asked);
                    }
                    process.allow(time.after(&command));
                    orders.take(command);
                }
                Next::Came(Came::Retry) => {}
                Next::Came(Came::Suspend) => {
                    // The shell must find its terminal as it was.
                    drop(handover.take());
                    suspended += suspend(&mut process, &mut reading, self.room);
                    handover = Handover::begin(self.screen, recorder);
                }
                Next::Came(Came::Resized) => resized(&process, &mut reading, self.room),
                Next::Came(Came::Interrupt(interrupt, action)) => {
                    interrupted = true;
                    let unix_signal = interrupt.name().to_owned();
                    recorder.fact(Fact::Interrupt { unix_signal, action: action.done().to_owned() })?;
                    if ended.is_some() {
                        filter.iter_mut().chain(&mut display).for_each(Filter::kill);
                    } else {
                        obey(action, &mut process)?;
                    }
                }
                Next::Ended(how) => {
                    ended = Some(how);
                    // What is told from here on is told on the user's terminal.
                    handover = None;
                    let written = raw.finish().map_err(|error| unrecorded(&error))?;
                    filter.iter_mut().chain(&mut display).for_each(|filter| filter.complete(written));
                }
            }
            if reading.tally.turn_end.is_some() {
                process.turn_ended();
            } else if ended.is_none() && self.screen != Screen::Users && reading.is_stuck() {
                process.stop(StopReason::Stuck);
            }
        }
        let mut ended = ended.ok_or_else(|| UserError::failed("the agent's process has no end"))?;
        let about = about.of_silence(&mut ended);
        for (from, mut rest) in reading.finish(Some(ended.exit)) {
            record(recorder, self.number, from, &mut rest)?;
        }
        let mut played = played(self.number, reading, &ended, interrupted, self.status_blocks);
        played.report.out_of_time = time.total().1 == Whose::Run && ended.stopped == Some(StopReason::Total);
        about.complete(&mut played);
        Ok(Played { suspended, ..played })
    }

    /// What the journal says when it begins, once its process is known.
    fn beginning(&self) -> impl FnOnce(u32) -> Fact + use<> {
        let (iteration, of, prompt_bytes) = (self.number, self.of, self.prompt_bytes);
        let (display, interactive) = (self.display.is_some(), self.screen == Screen::Users);
        let terminal = self.invocation.link.size().map(|size| (size.rows, size.columns));
        let (agent, hat, resumes) = (Some(self.agent.to_owned()), self.hat.clone(), self.resumes.clone());
        move |process| {
            let pid = Some(process);
            Fact::IterationStart {
                iteration,
                of,
                pid,
                prompt_bytes,
                agent,
                hat,
                resumes,
                terminal,
                interactive,
                display,
            }
        }
    }

    fn about(&self) -> About {
        About {
            agent: self.agent.to_owned(),
            hat: self.hat.clone(),
            resumed: self.resumes.is_some(),
            left_running: self.invocation.leave_running,
            silence: if self.screen == Screen::Users { Silence::EndsTurn } else { Silence::IsFailure },
        }
    }
}

/// What is known of an iteration before it begins, for its receipt.
struct About {
    agent: String,
    hat: Option<String>,
    resumed: bool,
    left_running: bool,
    silence: Silence,
}

/// What it means that an agent was stopped because it was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    IsFailure,
    /// A program for a person does not end by itself.
    EndsTurn,
    /// And so it was.
    EndedTurn,
}

impl About {
    /// Silence that ends a turn is an end like any other.
    fn of_silence(mut self, ended: &mut Ended) -> Self {
        if self.silence == Silence::EndsTurn && ended.stopped == Some(StopReason::Idle) {
            (ended.stopped, ended.exit) = (None, Exit::Code(0));
            self.silence = Silence::EndedTurn;
        }
        self
    }

    fn complete(self, played: &mut Played) {
        let receipt = &mut played.receipt;
        if self.silence == Silence::EndedTurn && receipt.success {
            "the agent was silent: its turn is over".clone_into(&mut receipt.ended);
        }
        // On its screen the prompt stands too, and the marker in it.
        if self.silence != Silence::IsFailure && matches!(played.report.signal, Some(Signal::NearMiss { .. })) {
            played.report.signal = None;
        }
        (receipt.agent, receipt.hat) = (self.agent, self.hat);
        (receipt.left_running, receipt.resumed) = (self.left_running, self.resumed);
        played.report.resumed = self.resumed;
    }
}

/// The commands that read the raw output: an adapter, and a display.
fn readers(
    transcript: &Selected,
    display: Option<Display>,
    workspace: &Path,
    output: &Path,
) -> Result<(Option<Filter>, Option<Filter>), UserError> {
    let filter = match transcript {
        Selected::Command(argv) => Some(Filter::start(argv, workspace, output)?),
        Selected::Dialect(_) | Selected::Auto(_) => None,
    };
    Ok((filter, display.map(|display| Filter::display(display, output)).transpose()?))
}

enum Next {
    Came(Came),
    Pressed(Vec<u8>),
    Filtered(Did),
    Told(Command),
    Read(Stream),
    Ended(Ended),
}

/// Records what somebody told the loop. Events are recorded when they are published.
pub fn told(command: &Command, recorder: &mut Recorder) -> Result<(), UserError> {
    if matches!(command, Command::Emit { .. }) {
        return Ok(());
    }
    recorder.fact(Fact::Control { command: command.name().to_owned(), words: command.words() })
}

fn filtered(did: Did, reading: &mut Reading, events: &mut Vec<Event>) {
    match did {
        Did::Printed(bytes) => reading.push(Stream::Stdout, &bytes, events),
        Did::Event(event) => reading.add(event, events),
        Did::Shown(_) | Did::Took => {}
    }
}

fn record(recorder: &mut Recorder, iteration: u32, from: Stream, events: &mut Vec<Event>) -> Result<(), UserError> {
    events.drain(..).try_for_each(|event| recorder.event(iteration, from, event))
}

/// Does to an agent what a Unix signal asks for.
fn obey(action: Action, process: &mut Process) -> Result<(), Halt> {
    match action {
        Action::Ask => process.stop(StopReason::Asked),
        Action::Kill => process.kill(),
        Action::Leave => return Err(Halt::Leave),
    }
    Ok(())
}

/// The user's terminal has another size: so has the agent's, where it is as large as that.
fn resized(process: &Process, reading: &mut Reading, room: Room) {
    if matches!(room, Room::Part(_)) {
        return;
    }
    let size = process::terminal_size();
    // A terminal that is gone meanwhile needs no size.
    let _ = process.resize(size);
    reading.resize(size);
}

/// Ctrl-Z: the agent halts with its clocks, then ralph itself, until the shell lets it go on. Says how long that was.
fn suspend(process: &mut Process, reading: &mut Reading, room: Room) -> Duration {
    let start = Instant::now();
    process.pause();
    process::suspend_self();
    process.resume();
    resized(process, reading, room);
    start.elapsed()
}

fn played(number: u32, reading: Reading, ended: &Ended, interrupted: bool, blocks: StatusBlocks) -> Played {
    let authority = reading.authority();
    let (tally, mut heard, stall, status) = reading.end();
    let signal = heard.signal.take();
    // The status block is the driver contract's; elsewhere it is words like any others.
    let signal = match status {
        Some(block) if blocks == StatusBlocks::Count => block.over(signal),
        _ => signal,
    };
    let assumed = tally.assumed;
    let answered = tally.answered || tally.tools > 0;
    let judgement = judge(&tally, authority, ended, &Zoned::now());
    let receipt = Receipt {
        iteration: number,
        success: judgement.failure.is_none(),
        ended: judgement.ended.clone(),
        class: judgement.failure.as_ref().map(|failure| failure.class),
        duration_ms: u64::try_from(ended.active.as_millis()).unwrap_or(u64::MAX),
        usage: tally.usage,
        tools: tally.tools,
        tools_failed: tally.tools_failed,
        unparsed: tally.unparsed,
        session: tally.session,
        context: tally.context,
        left_running: false,
        denied: tally.denied.clone(),
        left_behind: ended.left_behind.iter().map(|stray| format!("{} ({})", stray.command, stray.pid)).collect(),
        ..Receipt::default()
    };
    let report = Report {
        failure: judgement.failure,
        signal,
        interrupted,
        ended: judgement.ended,
        denied: tally.denied,
        ..Report::default()
    };
    Played {
        report,
        receipt,
        suspended: Duration::ZERO,
        heard,
        work: stall.work(),
        answered,
        process: ended.clone(),
        assumed,
    }
}
