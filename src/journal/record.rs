//! One line of the journal.
//!
//! A line is an RTF1 object with a header in front: `seq`, `at`, and `by`, which says whether the agent or
//! ralph speaks. Agents cannot write headers, so no output of an agent can pass for a record of ralph.

use std::io::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::compared::Compared;
use super::judgement::Judgement;
use super::receipt::{Asked, Changed, CheckResult, Cost, Receipt, is_zero};
use crate::control::Order;
use crate::event::{Event, Meta, SchemaError, Stream, Topic, Usage};
use crate::signals::Signal;

/// The version of the format. A reader refuses to write to a newer one.
pub(crate) const VERSION: u32 = 1;

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its place in the journal, from 0.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub body: Body,
}

/// Who speaks, and what.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// An event of the agent.
    Agent {
        /// In which iteration.
        iteration: u32,
        /// On which stream.
        from: Stream,
        /// The event.
        event: Event,
    },
    /// A fact of the loop.
    Loop(Fact),
    /// A record that this version does not know: it is kept, and shown as such.
    Unknown {
        /// What it calls itself.
        kind: String,
        /// The line as it is.
        line: String,
    },
}

/// What ralph itself records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    /// The run begins.
    RunStart {
        /// The format of this journal.
        version: u32,
        /// ralph's version.
        ralph: String,
        /// The run's id.
        run: String,
        /// ralph's process.
        pid: u32,
        /// The agent's name.
        agent: String,
        /// Its command line, without the prompt.
        command: Vec<String>,
        /// What reads its output.
        transcript: String,
        /// Where it works.
        workspace: String,
        /// Where the prompt comes from.
        prompt: String,
        /// The most iterations.
        max_iterations: u32,
        /// The most time.
        max_seconds: Option<u64>,
        /// Maximum cost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_cost_usd: Option<f64>,
    },
    /// An iteration begins.
    IterationStart {
        /// In which iteration.
        iteration: u32,
        /// The most there will be.
        of: u32,
        /// The agent's process.
        pid: Option<u32>,
        /// How long the prompt is.
        prompt_bytes: usize,
        /// Who plays it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The hat it wears.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hat: Option<String>,
        /// The session it continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumes: Option<String>,
        /// The rows and columns of the agent's terminal, when it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        terminal: Option<(u16, u16)>,
        /// True when the agent's own program had the user's terminal.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interactive: bool,
        /// True when a display of the agent's own is shown instead of its events.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        display: bool,
    },
    /// What the agent's own display shows.
    Display {
        /// In which iteration.
        iteration: u32,
        /// Text for people.
        text: String,
    },
    /// What the agent said to the loop.
    Signal {
        /// From 1.
        iteration: u32,
        /// The signal.
        #[serde(flatten)]
        signal: Signal,
    },
    /// An iteration is over.
    IterationEnd {
        /// The summary.
        #[serde(flatten)]
        receipt: Box<Receipt>,
    },
    /// What happens next, and why.
    Decision {
        /// `again`, `wait` or `finish`.
        verdict: String,
        /// Why.
        reason: String,
        /// How long to wait before the next iteration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// How the run ends, when it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Everything that a run needs to continue from here, in a form that only the loop reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory: Option<serde_json::Value>,
    },
    /// The user's own commands were asked.
    Verification {
        /// After which iteration; 0 before the first one.
        iteration: u32,
        /// Why.
        #[serde(default, skip_serializing_if = "Asked::is_claim")]
        asked: Asked,
        /// True when every command that decides something exited with 0.
        passed: bool,
        /// Each command.
        checks: Vec<CheckResult>,
    },
    /// Another agent begins to judge a claim. Its events follow, up to its judgement.
    JudgeStart {
        /// After which iteration.
        iteration: u32,
        /// Who judges.
        agent: String,
        /// Its model, where the user names one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The first or the second try.
        attempt: u32,
        /// Its process.
        pid: Option<u32>,
        /// How long its prompt is.
        prompt_bytes: usize,
    },
    /// What a judge said.
    Judged {
        /// The judgement.
        #[serde(flatten)]
        judgement: Box<Judgement>,
    },
    /// An event was published, by the agent's words or by `ralph emit`.
    Published {
        /// Of which iteration.
        iteration: u32,
        /// The event.
        #[serde(flatten)]
        event: Topic,
        /// Who said it: a hat, or the agent.
        by: String,
        /// The hats that hear it.
        heard_by: Vec<String>,
    },
    /// A person gave the running loop an order.
    Control {
        /// The order.
        #[serde(flatten)]
        order: Order,
    },
    /// The run is paused until someone continues it.
    Paused,
    /// A person interrupted.
    Interrupt {
        /// The Unix signal.
        unix_signal: String,
        /// What ralph did about it.
        action: String,
    },
    /// Something a person should know.
    Notice {
        /// What.
        message: String,
    },
    /// The wall around the agent refused something, or found something changed.
    Sandbox {
        /// In which iteration.
        iteration: u32,
        /// What happened.
        event: SandboxEvent,
        /// The host or the path.
        subject: String,
        /// The same in words, with what to do.
        message: String,
    },
    /// The run is over.
    RunEnd {
        /// How.
        outcome: Outcome,
        /// Why.
        reason: String,
        /// The exit code that tells it.
        exit_code: u8,
        /// How many iterations counted.
        iterations: u32,
        /// How long it took.
        duration_ms: u64,
        /// What all iterations reported together.
        usage: Usage,
        /// What they cost together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
        /// How many iterations reported no cost.
        #[serde(default, skip_serializing_if = "is_zero")]
        unpriced: u32,
        /// What the agent wants to know, when the run ended with a question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
        /// What the run changed, as far as that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<Changed>,
        /// The checks at the start, where they were run, and as they were run last.
        #[serde(default, skip_serializing_if = "Compared::is_empty")]
        compared: Compared,
    },
}

#[cfg(test)]
impl Fact {
    /// An iteration of the agent that was chosen, without a hat or a terminal.
    pub(crate) fn iteration_start(iteration: u32, of: u32) -> Self {
        Self::IterationStart {
            iteration,
            of,
            pid: None,
            prompt_bytes: 0,
            agent: None,
            hat: None,
            resumes: None,
            terminal: None,
            interactive: false,
            display: false,
        }
    }
}

/// What the wall around the agent has to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxEvent {
    /// A host was refused.
    RefusedHost,
    /// A file could not be read or changed.
    RefusedFile,
    /// Something was changed that is run or obeyed outside.
    Tampered,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work is complete.
    Complete,
    /// The run failed.
    Failed,
    /// The agent asks for a replan or for a human.
    Human,
    /// The agent is not usable.
    AgentUnusable,
    /// A limit was reached.
    Limit,
    /// No progress.
    NoProgress,
    /// Rate-limited beyond the allowed wait.
    RateLimited,
    /// A person stopped it.
    Interrupted,
}

#[derive(Deserialize)]
struct Header {
    seq: u64,
    at: Timestamp,
    by: By,
    iteration: Option<u32>,
    from: Option<Stream>,
    r#type: Option<String>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum By {
    Agent,
    Ralph,
    /// Someone of a later version.
    #[serde(other)]
    Other,
}

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The header is not readable.
    #[error("no journal record: {0}")]
    Header(serde_json::Error),
    /// The event is not readable.
    #[error("no journal record: {0}")]
    Event(SchemaError),
}

impl Record {
    /// Appends the line, newline included.
    pub fn write_line(&self, line: &mut Vec<u8>) -> std::io::Result<()> {
        let start = line.len();
        if let Body::Unknown { line: kept, .. } = &self.body {
            line.extend_from_slice(kept.as_bytes());
            line.push(b'\n');
            return Ok(());
        }
        write!(line, r#"{{"seq":{},"at":"{:.3}","by":""#, self.seq, self.at)?;
        match &self.body {
            Body::Agent { iteration, from, event } => {
                write!(line, r#"agent","iteration":{iteration}"#)?;
                if *from == Stream::Stderr {
                    line.extend_from_slice(br#","from":"stderr""#);
                }
                splice(line, event);
            }
            Body::Loop(fact) => {
                line.extend_from_slice(br#"ralph""#);
                let meta = match serde_json::to_value(fact)? {
                    serde_json::Value::Object(object) => Meta(object),
                    _ => Meta::default(),
                };
                splice(line, &Event::Meta { meta });
            }
            Body::Unknown { .. } => {}
        }
        line.push(b'\n');
        debug_assert!(!line[start..line.len() - 1].contains(&b'\n'), "one record, one line");
        Ok(())
    }

    /// Reads one line. What a newer ralph has written and this one does not know is [`Body::Unknown`].
    pub fn read_line(line: &[u8]) -> Result<Self, RecordError> {
        // Nearly every record is an agent's event, and its header has a fixed form: no need to read the line twice.
        if let Some((seq, at, iteration, from)) = agent_header(line)
            && let Ok(event) = Event::from_json(line)
        {
            return Ok(Self { seq, at, body: Body::Agent { iteration, from, event } });
        }
        let header: Header = serde_json::from_slice(line).map_err(RecordError::Header)?;
        let unknown = |kind: String| Body::Unknown { kind, line: String::from_utf8_lossy(line).trim_end().to_owned() };
        let body = match (header.by, Event::from_json(line)) {
            (By::Ralph, Ok(Event::Meta { meta })) => {
                let kind = meta.kind().unwrap_or("?").to_owned();
                let fact = serde_json::from_value(serde_json::Value::Object(meta.0));
                fact.map_or_else(|_| unknown(kind), Body::Loop)
            }
            (By::Agent, Ok(event)) => Body::Agent {
                iteration: header.iteration.unwrap_or(0),
                from: header.from.unwrap_or(Stream::Stdout),
                event,
            },
            (_, Err(SchemaError::Json(error))) => return Err(RecordError::Event(SchemaError::Json(error))),
            (By::Ralph | By::Agent | By::Other, _) => unknown(header.r#type.unwrap_or_else(|| "?".to_owned())),
        };
        Ok(Self { seq: header.seq, at: header.at, body })
    }
}

/// The header of an agent's event exactly as it is written; `None` for everything else.
fn agent_header(line: &[u8]) -> Option<(u64, Timestamp, u32, Stream)> {
    let rest = line.strip_prefix(br#"{"seq":"#)?;
    let (seq, rest) = digits(rest)?;
    let rest = rest.strip_prefix(br#","at":""#)?;
    let (at, rest) = rest.split_at_checked("2026-11-15T20:00:00.123Z".len())?;
    let rest = rest.strip_prefix(br#"","by":"agent","iteration":"#)?;
    let (iteration, rest) = digits(rest)?;
    let (from, rest) = match rest.strip_prefix(br#","from":"stderr""#) {
        Some(rest) => (Stream::Stderr, rest),
        None => (Stream::Stdout, rest),
    };
    // What follows is the event: its first field is its type, so that no other field can pass for the header.
    rest.strip_prefix(br#","type":""#)?;
    let at = std::str::from_utf8(at).ok()?.parse().ok()?;
    Some((seq, at, u32::try_from(iteration).ok()?, from))
}

/// A whole number at the beginning, and the rest.
fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(length);
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest))
}

/// Puts the event's fields behind the header: `{"seq":…` + `,` + `"type":…}`.
fn splice(line: &mut Vec<u8>, event: &Event) {
    let brace = line.len();
    event.write_json(line);
    line[brace] = b',';
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Tag;

    fn line(body: Body) -> String {
        let record = Record { seq: 7, at: "2026-11-15T20:00:00.123Z".parse().unwrap(), body };
        let mut line = Vec::new();
        record.write_line(&mut line).unwrap();
        assert_eq!(Record::read_line(&line).unwrap(), record);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn an_event_is_rtf1_behind_a_header() {
        let event = Event::text(Tag::Ai, "two\nlines");
        assert_eq!(
            line(Body::Agent { iteration: 2, from: Stream::Stdout, event: event.clone() }),
            "{\"seq\":7,\"at\":\"2026-11-15T20:00:00.123Z\",\"by\":\"agent\",\"iteration\":2,\
             \"type\":\"text\",\"tag\":\"AI\",\"text\":\"two\\nlines\"}\n"
        );
        assert!(line(Body::Agent { iteration: 2, from: Stream::Stderr, event }).contains("\"from\":\"stderr\""));
    }

    #[test]
    fn the_short_way_to_read_an_event_gives_what_the_long_way_gives() {
        let written = r#"{"seq":7,"at":"2026-11-15T20:00:00.123Z","by":"agent","iteration":2,"from":"stderr","type":"text","tag":"SYS","text":"x"}"#;
        // A blank keeps the short way away.
        let spaced = written.replacen("{\"seq\"", "{ \"seq\"", 1);
        assert!(agent_header(written.as_bytes()).is_some() && agent_header(spaced.as_bytes()).is_none());
        assert_eq!(Record::read_line(written.as_bytes()).unwrap(), Record::read_line(spaced.as_bytes()).unwrap());
        let forged = written.replace("\"type\"", "\"seq\":9,\"type\"");
        assert!(agent_header(forged.as_bytes()).is_none());
    }

    #[test]
    fn an_agent_cannot_forge_a_record_of_ralph() {
        let forged = r#"{"type":"meta","by":"ralph","seq":1,"meta":{"kind":"run_end","outcome":"complete"}}"#;
        let event = Event::from_json(forged.as_bytes()).unwrap();
        let line = line(Body::Agent { iteration: 1, from: Stream::Stdout, event });
        assert!(matches!(Record::read_line(line.as_bytes()).unwrap().body, Body::Agent { .. }));
    }

    #[test]
    fn records_of_a_newer_version_are_kept_word_for_word() {
        let header = r#"{"seq":7,"at":"2026-11-15T20:00:00.123Z""#;
        for (rest, kind) in [
            (r#","by":"ralph","type":"meta","meta":{"kind":"moon_phase","full":true}}"#, "moon_phase"),
            (r#","by":"agent","iteration":1,"type":"hologram","beam":[1,2]}"#, "hologram"),
            (r#","by":"moon","type":"text","tag":"AI","text":"x"}"#, "text"),
            (r#","by":"ralph","type":"meta","meta":{"kind":"run_end","outcome":"ascended"}}"#, "run_end"),
        ] {
            let text = format!("{header}{rest}\n");
            let record = Record::read_line(text.as_bytes()).unwrap();
            assert!(matches!(&record.body, Body::Unknown { kind: found, .. } if found == kind), "{record:?}");
            let mut line = Vec::new();
            record.write_line(&mut line).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), text);
        }
        assert!(Record::read_line(b"{\"seq\":7").is_err());
    }

    #[test]
    fn facts_of_the_loop_survive_the_disk() {
        let signal = Signal::NearMiss { marker: "m".into(), reason: "r".into(), line: "l".into() };
        let text = line(Body::Loop(Fact::Signal { iteration: 1, signal }));
        assert!(
            text.contains(r#""by":"ralph","type":"meta","meta":{"kind":"signal","iteration":1,"signal":"near_miss""#)
        );
        line(Body::Loop(Fact::IterationEnd { receipt: Box::new(Receipt { iteration: 3, ..Receipt::default() }) }));
    }
}
