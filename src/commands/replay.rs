//! `ralph replay`: a run again, through the same views as live.

use std::io;
use std::time::Duration;

use jiff::Timestamp;

use crate::app::appearance::{Tense, line_view};
use crate::app::find::{Here, shown, unreadable};
use crate::cli::Output;
use crate::cli::history::Replay;
use crate::error::UserError;
use crate::event::{Event, Stream};
use crate::journal::{Body, Fact, Reader, Record, RunDirectory, raw};
use crate::process::Size;
use crate::redact::{Clean, Redactor};
use crate::stream::OutputStream;
use crate::transcript::{Choice, Context, PLAIN, Selected, select};
use crate::ui::out;
use crate::ui::{JsonView, View};

/// No pause is longer: nobody wants to watch an agent think.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a view updates its clock.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Replay) -> Result<u8, UserError> {
    let (_, run) = Here::run(args.which.id())?;
    let view: Box<dyn View> = match args.output {
        Output::Lines => {
            Box::new(line_view(&args.view, if args.speed.is_some() { Tense::Present } else { Tense::Past }))
        }
        Output::Json => Box::new(JsonView::new(io::BufWriter::with_capacity(256 * 1024, out::stdout()))),
    };
    let mut player = Player { view, speed: args.speed, before: None };
    let mut reader = Reader::open(&run.journal(), 0).map_err(|error| unreadable(&run, &error))?;
    let mut again = Again { run: &run, transcript: None, left: None };
    loop {
        match reader.read().map_err(|error| unreadable(&run, &error))? {
            None => break,
            // A line that no ralph can read is no reason to hide the rest.
            Some(Err(_)) => {}
            Some(Ok(record)) => {
                let played =
                    if args.with_adapter { again.record(&record, &mut player) } else { player.record(&record) };
                if let Err(error) = played {
                    return shown(Err(error));
                }
            }
        }
    }
    shown(player.view.close())
}

/// Shows records, with the pauses between them where a speed is given.
struct Player {
    view: Box<dyn View>,
    speed: Option<f64>,
    before: Option<Timestamp>,
}

impl Player {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        if let (Some(speed), Some(before)) = (self.speed, self.before.replace(record.at)) {
            let passed = Duration::try_from(record.at.duration_since(before)).unwrap_or(Duration::ZERO);
            self.pause(passed.div_f64(speed).min(LONGEST_PAUSE))?;
        }
        self.view.record(record)
    }

    fn pause(&mut self, mut pause: Duration) -> io::Result<()> {
        if pause.is_zero() {
            return Ok(());
        }
        self.view.flush()?;
        while pause > TICK {
            std::thread::sleep(TICK);
            self.view.tick()?;
            pause -= TICK;
        }
        std::thread::sleep(pause);
        Ok(())
    }
}

/// Reads the raw bytes again, in place of the events that were read from them at the time.
struct Again<'a> {
    run: &'a RunDirectory,
    transcript: Option<Choice>,
    /// The iteration whose events come from the raw file.
    left: Option<u32>,
}

impl Again<'_> {
    fn record(&mut self, record: &Record, player: &mut Player) -> io::Result<()> {
        match &record.body {
            Body::Loop(Fact::RunStart { transcript, .. }) => self.transcript = Some(Choice::from(transcript.as_str())),
            Body::Agent { iteration, from: Stream::Stdout, .. } if self.left == Some(*iteration) => return Ok(()),
            Body::Loop(Fact::IterationStart { iteration, terminal, .. }) => {
                player.record(record)?;
                return self.read(*iteration, *terminal, record.at, player);
            }
            _ => {}
        }
        player.record(record)
    }

    /// Shows what today's adapter makes of an iteration.
    fn read(
        &mut self,
        iteration: u32,
        terminal: Option<(u16, u16)>,
        at: Timestamp,
        player: &mut Player,
    ) -> io::Result<()> {
        let choice = self.transcript.clone().unwrap_or(Choice::Auto);
        let context = Context {
            prompts: std::fs::read_to_string(self.run.prompt(iteration)).into_iter().collect(),
            ..Context::default()
        };
        let selected = match select(&[choice], None) {
            // What a command made of it, only that command can make again.
            Ok(Selected::Command(_)) => return Ok(()),
            Ok(selected) => selected,
            Err(_) => Selected::Auto(&PLAIN),
        };
        let Some(file) = raw::stdouts(&self.run.raw(), Some(iteration))?.pop() else { return Ok(()) };
        self.left = Some(iteration);
        let mut input = raw::open(&file.path)?;
        // The file has no secrets, unless it was kept byte for byte.
        let redactor = Redactor::of_process();
        let size = terminal.map(|(rows, columns)| Size { rows, columns });
        let mut stream = OutputStream::new(&selected, &context, &redactor).on_terminal(size, &redactor);
        let mut events = Vec::new();
        let show = |events: &mut Vec<Clean<Event>>, player: &mut Player| {
            events.drain(..).try_for_each(|event| {
                let body = Body::Agent { iteration, from: Stream::Stdout, event: event.into_inner() };
                player.record(&Record { seq: 0, at, body })
            })
        };
        loop {
            let bytes = io::BufRead::fill_buf(&mut input)?;
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len();
            stream.push(Stream::Stdout, bytes, &mut events);
            io::BufRead::consume(&mut input, length);
            show(&mut events, player)?;
        }
        stream.end_bytes(&mut events, &mut Vec::new());
        stream.finish(None, &mut events);
        show(&mut events, player)
    }
}
