//! One iteration: the agent's process from start to end, its bytes kept, its events recorded.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::about::{About, Silence};
use super::filter::{Did, Display, Filter};
use super::handover::Handover;
use super::interrupt::{Action, Came, Interrupts};
use super::iteration_result::{IterationResult, result_of};
use super::observed::Observed;
use super::plan::{Room, Screen};
use super::reading::{How, Reading};
use super::recorder::{Recorder, unrecorded};
use crate::control::{Inbox, Order, Orders, Received};
use crate::error::UserError;
use crate::event::{Event, Stream};
use crate::journal::{Fact, Raw};
use crate::process::{self, Clocks, Ended, Invocation, Output, Process, StopReason};
use crate::redact::Clean;
use crate::signals::promise::Rule;
use crate::transcript::{Context, Selected};

/// What an iteration needs to know.
pub(crate) struct Iteration<'a> {
    pub number: u32,
    /// What its process is for.
    pub part: Part,
    /// The most there will be.
    pub of: u32,
    pub invocation: Invocation,
    /// How long it may be silent; how long it may take in all is in [`Iteration::time`].
    pub clocks: Clocks,
    /// How long it may take.
    pub time: Time,
    /// How long the prompt is.
    pub prompt_bytes: usize,
    /// What reads its output.
    pub transcript: &'a Selected,
    /// What the adapter knows beforehand.
    pub context: Context,
    /// The longest line that is handed on in one part.
    pub line_cap: usize,
    pub rule: &'a Rule,
    /// Where the raw bytes go.
    pub raw: PathBuf,
    pub workspace: &'a Path,
    pub agent: &'a str,
    pub hat: Option<String>,
    /// The session it continues.
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

/// What a process of an agent is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Work,
    /// It judges the work of the iteration.
    Judge {
        attempt: u32,
        model: Option<String>,
    },
}

/// Whether a status block in the agent's words means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusBlocks {
    /// Under the driver contract.
    Count,
    AreWords,
}

/// Who can speak to an iteration under way.
pub(crate) struct Inputs<'a> {
    pub interrupts: &'a mut Interrupts,
    /// From another terminal.
    pub inbox: &'a mut Inbox<Order>,
    /// What was reported, and is not done yet.
    pub orders: &'a mut Orders,
    /// When the time of the run is over, for what runs beside its agents.
    pub deadline: Option<tokio::time::Instant>,
}

impl Inputs<'_> {
    /// For as long as someone else listens.
    pub(crate) fn lend(&mut self) -> Inputs<'_> {
        Inputs { interrupts: self.interrupts, inbox: self.inbox, orders: self.orders, deadline: self.deadline }
    }
}

/// How long an iteration may take: its own time, or what is left of the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
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
    /// What it may take in all, after someone may have given the run more time.
    fn after(&mut self, order: &Order) -> Option<Duration> {
        if let Order::Limit { max_seconds: Some(seconds), .. } = order {
            self.run = Some(Duration::from_secs(*seconds));
        }
        self.total().0
    }

    /// What was left of the run's time when the iteration began.
    fn left(self) -> Option<Duration> {
        self.run.map(|most| most.saturating_sub(self.gone).max(Duration::from_millis(1)))
    }

    fn total(self) -> (Option<Duration>, Whose) {
        match (self.own, self.left()) {
            (Some(own), Some(left)) if left <= own => (Some(left), Whose::Run),
            (None, Some(left)) => (Some(left), Whose::Run),
            (own, _) => (own, Whose::Iteration),
        }
    }
}

/// Why a run ends in the middle of something.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Something that must end the run.
    Error(UserError),
    /// The time of the run is over.
    OutOfTime,
    /// The user wants out now.
    Leave,
}

impl From<UserError> for Halt {
    fn from(error: UserError) -> Self {
        Self::Error(error)
    }
}

impl Iteration<'_> {
    pub(crate) async fn run(self, recorder: &mut Recorder, inputs: Inputs<'_>) -> Result<IterationResult, Halt> {
        let Inputs { interrupts, inbox, orders, .. } = inputs;
        let began = tokio::time::Instant::now();
        let mut raw = recorder.raw(&self.raw, self.number)?;
        if let Some(prompt) = self.context.prompts.first() {
            recorder.prompt(self.number, &self.part, prompt)?;
        }
        let (about, beginning) = (self.about(), self.beginning());
        let output = Raw::stdout(&self.raw, self.number);
        let mut reading = self.reading(recorder);
        let (mut filter, mut display) = readers(self.transcript, self.display, self.workspace, &output)?;
        let mut time = self.time;
        let clocks = Clocks { total: time.total().0, ..self.clocks };
        let mut process =
            process::start(self.invocation, clocks).map_err(|error| super::explain::start_error(&error))?;
        recorder.fact(beginning(process.pid()))?;
        let mut handover = Handover::begin(self.screen, recorder);
        let (mut events, mut observed) = (Vec::new(), Observed::default());
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
                        let clean = reading.push(from, bytes, &mut events);
                        let written = raw.write(from, &clean).map_err(|error| unrecorded(&error))?;
                        let is_told = from == Stream::Stdout;
                        filter.iter_mut().chain(&mut display).filter(|_| is_told).for_each(|reader| reader.more(written));
                        Next::Read(from)
                    }
                    Output::Ended(ended) => Next::Ended(ended),
                },
                did = Filter::next(&mut filter) => Next::Filtered(did),
                did = Filter::next(&mut display) => Next::Filtered(did),
                received = inbox.next() => Next::Ordered(received),
            };
            match next {
                Next::Read(from) => record(recorder, self.number, from, &mut events, &mut observed)?,
                Next::Filtered(Did::Shown(text)) => show(recorder, self.number, text, &mut observed)?,
                Next::Filtered(did) => {
                    filtered(did, &mut reading, &mut events);
                    record(recorder, self.number, Stream::Stdout, &mut events, &mut observed)?;
                }
                Next::Pressed(keys) => process.press(&keys),
                Next::Ordered(received) => {
                    let order = record_order(received, recorder)?;
                    if order == (Order::Stop { now: true }) && ended.is_none() {
                        interrupted = true;
                        process.stop(StopReason::Asked);
                    }
                    process.allow(time.after(&order));
                    orders.take(order);
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
                    let unix_signal = interrupt.name();
                    recorder.fact(Fact::Interrupt { unix_signal, action: action.done().to_owned() })?;
                    if ended.is_some() {
                        filter.iter_mut().chain(&mut display).for_each(Filter::kill);
                    } else {
                        obey(action, &mut process)?;
                    }
                }
                Next::Ended(how) => {
                    ended = Some(how);
                    // From here on, messages go to the user's terminal.
                    handover = None;
                    let [stdout, stderr] = reading.end_bytes();
                    raw.write(stderr.0, &stderr.1).map_err(|error| unrecorded(&error))?;
                    let written = raw.write(stdout.0, &stdout.1).map_err(|error| unrecorded(&error))?;
                    let until = time.left().and_then(|left| began.checked_add(left + suspended));
                    filter.iter_mut().chain(&mut display).for_each(|filter| filter.complete(written, until));
                }
            }
            if ended.is_none() {
                supervise(&mut process, &reading, &observed, self.screen);
            }
        }
        let mut ended = ended.ok_or_else(|| UserError::failed("the agent's process has no end"))?;
        let about = about.of_silence(&mut ended);
        finish(&mut reading, self.number, &ended, recorder, &mut observed)?;
        let refused = observed.refused_login(reading.authority()).filter(|_| !interrupted);
        let mut result = result_of(self.number, reading, &ended, interrupted, self.status_blocks);
        result.stopped_for_login(refused);
        result.report.out_of_time = time.total().1 == Whose::Run && ended.stopped == Some(StopReason::Total);
        about.complete(&mut result);
        result.displayed = display.is_none() || show_missed(recorder, &observed, &result)?;
        Ok(IterationResult { suspended, complaints: observed.complaints, ..result })
    }

    fn reading(&self, recorder: &Recorder) -> Reading {
        Reading::new(&How {
            transcript: self.transcript,
            context: &self.context,
            rule: self.rule,
            line_cap: self.line_cap,
            terminal: self.invocation.link.size(),
            redactor: recorder.redactor(),
            exact: recorder.is_exact(),
        })
    }

    /// What the journal says when it begins, once its process is known.
    fn beginning(&self) -> impl FnOnce(u32) -> Fact + use<> {
        let (iteration, of, prompt_bytes) = (self.number, self.of, self.prompt_bytes);
        let (display, interactive) = (self.display.is_some(), self.screen == Screen::Users);
        let terminal = self.invocation.link.size().map(|size| (size.rows, size.columns));
        let (agent, hat, resumes) = (Some(self.agent.to_owned()), self.hat.clone(), self.resumes.clone());
        let part = self.part.clone();
        move |process| {
            let pid = Some(process);
            if let Part::Judge { attempt, model } = part {
                let agent = agent.unwrap_or_default();
                return Fact::JudgeStart { iteration, agent, model, attempt, pid, prompt_bytes };
            }
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
    Ordered(Received<Order>),
    Read(Stream),
    Ended(Ended),
}

/// Records an order and then accepts it: whoever gave it may rely on it from here on. Events are recorded when they are
/// published.
pub(crate) fn record_order(received: Received<Order>, recorder: &mut Recorder) -> Result<Order, UserError> {
    if !matches!(received.order, Order::Emit { .. }) {
        recorder.fact(Fact::Control { order: received.order.clone() })?;
    }
    Ok(received.accept())
}

fn filtered(did: Did, reading: &mut Reading, events: &mut Vec<Clean<Event>>) {
    match did {
        Did::Printed(bytes) => reading.push_filtered(&bytes, events),
        Did::Event(event) => reading.add(event, events),
        Did::Shown(_) | Did::Took => {}
    }
}

/// Records what a display shows.
fn show(recorder: &mut Recorder, iteration: u32, text: String, observed: &mut Observed) -> Result<(), UserError> {
    observed.displayed = true;
    recorder.fact(Fact::Display { iteration, text })
}

/// Shows the agent's last words where its display understood nothing of them; true when it did.
fn show_missed(recorder: &mut Recorder, observed: &Observed, result: &IterationResult) -> Result<bool, UserError> {
    let words = result.heard.last_words.trim_end();
    if !observed.displayed && !words.is_empty() {
        recorder.fact(Fact::Display { iteration: result.receipt.iteration, text: format!("{words}\n") })?;
    }
    Ok(observed.displayed)
}

fn record(
    recorder: &mut Recorder,
    iteration: u32,
    from: Stream,
    events: &mut Vec<Clean<Event>>,
    observed: &mut Observed,
) -> Result<(), UserError> {
    for event in events.iter() {
        observed.see(from, event);
    }
    recorder.events(iteration, from, events.drain(..))
}

/// Records the last events, and what the agent has left.
fn finish(
    reading: &mut Reading,
    iteration: u32,
    ended: &Ended,
    recorder: &mut Recorder,
    observed: &mut Observed,
) -> Result<(), UserError> {
    let told = reading.tally.error.clone();
    for (from, mut rest) in reading.finish(Some(ended.exit)) {
        record(recorder, iteration, from, &mut rest, observed)?;
    }
    reading.tally.spoke &= observed.visible;
    // Whatever ralph itself did to the agent is the cause, not the text of a program that was killed.
    if !ended.ended_by_itself() {
        reading.tally.error = told;
    }
    ended.leftovers().into_iter().try_for_each(|message| recorder.fact(Fact::Notice { message }))
}

/// Ends a process whose turn is over, whose login was refused, or that does the same thing over and over.
fn supervise(process: &mut Process, reading: &Reading, observed: &Observed, screen: Screen) {
    if reading.tally.turn_end.is_some() {
        process.turn_ended();
    } else if observed.refused_login(reading.authority()).is_some() {
        process.stop(StopReason::Asked);
    } else if screen != Screen::Users && reading.is_stuck() {
        process.stop(StopReason::Stuck);
    }
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
    let size = crate::terminal::size();
    // A terminal that is gone meanwhile needs no size.
    let _ = process.resize(size);
    reading.resize(size);
}

/// Ctrl-Z: the agent halts with its clocks, then ralph itself, until the shell lets it go on. Says how long that was.
fn suspend(process: &mut Process, reading: &mut Reading, room: Room) -> Duration {
    process.pause();
    let suspended = super::wait::suspend();
    process.resume();
    resized(process, reading, room);
    suspended
}
