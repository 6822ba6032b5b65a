//! Runs that were never run: journals written record by record, with times that never change.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use ralph::event::{Event, Stream, Topic, Usage};
use ralph::journal::{
    Asked, Body, CheckResult, Compared, Cost, CostSource, Fact, Outcome, Receipt, Record, RunDirectory, State, Store,
};

pub const ID: &str = "20261115-201500-test";

/// A working directory with one run.
pub struct History {
    pub directory: tempfile::TempDir,
    out: BufWriter<File>,
    seq: u64,
    at: Timestamp,
    line: Vec<u8>,
}

impl History {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        let run = run_of(&directory.path().join("work"));
        std::fs::create_dir_all(run.raw()).unwrap();
        let out = BufWriter::with_capacity(1 << 20, File::create(run.journal()).unwrap());
        let at = "2026-11-15T20:15:00Z".parse().unwrap();
        let mut history = Self { directory, out, seq: 0, at, line: Vec::new() };
        history.fact(Fact::RunStart {
            version: 1,
            ralph: "0.1.0".into(),
            run: ID.into(),
            pid: 4242,
            agent: "demo".into(),
            command: vec!["demo".into(), "--json".into()],
            transcript: "rtf1".into(),
            workspace: "/home/user/project".into(),
            prompt: "PROMPT.md".into(),
            max_iterations: 100,
            max_seconds: Some(14_400),
            max_cost_usd: Some(5.0),
        });
        history
    }

    pub fn run(&self) -> RunDirectory {
        run_of(&self.workspace())
    }

    pub fn workspace(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// The time of the newest record.
    pub const fn now(&self) -> Timestamp {
        self.at
    }

    pub fn body(&mut self, body: Body) -> &mut Self {
        self.at = self.at.checked_add(Duration::from_millis(250)).unwrap();
        self.line.clear();
        Record { seq: self.seq, at: self.at, body }.write_line(&mut self.line).unwrap();
        self.out.write_all(&self.line).unwrap();
        self.seq += 1;
        self
    }

    pub fn fact(&mut self, fact: Fact) -> &mut Self {
        self.body(Body::Loop(fact))
    }

    pub fn event(&mut self, iteration: u32, event: Event) -> &mut Self {
        self.body(Body::Agent { iteration, from: Stream::Stdout, event })
    }

    pub fn start(&mut self, iteration: u32, hat: Option<&str>) -> &mut Self {
        self.begin(iteration, hat, None)
    }

    /// An iteration whose agent has a terminal of so many rows and columns, and told it these bytes.
    pub fn drawn(&mut self, iteration: u32, terminal: (u16, u16), bytes: &[u8]) -> &mut Self {
        self.raw(&format!("{iteration}.stdout"), bytes);
        self.begin(iteration, None, Some(terminal)).end(iteration, receipt(iteration))
    }

    fn begin(&mut self, iteration: u32, hat: Option<&str>, terminal: Option<(u16, u16)>) -> &mut Self {
        self.fact(Fact::IterationStart {
            iteration,
            of: 100,
            pid: Some(4243),
            prompt_bytes: 492,
            agent: Some("demo".into()),
            hat: hat.map(str::to_owned),
            resumes: None,
            display: false,
            terminal,
            interactive: false,
        })
    }

    pub fn end(&mut self, iteration: u32, receipt: Receipt) -> &mut Self {
        let receipt = Receipt { iteration, ..receipt };
        self.fact(Fact::IterationEnd { receipt: Box::new(receipt) });
        let (verdict, reason) = ("again".into(), String::new());
        self.fact(Fact::Decision { verdict, reason, wait_ms: None, outcome: None, memory: None })
    }

    /// One iteration with these events.
    pub fn iteration(&mut self, iteration: u32, events: Vec<Event>) -> &mut Self {
        self.start(iteration, None);
        for event in events {
            self.event(iteration, event);
        }
        self.end(iteration, receipt(iteration))
    }

    pub fn over(&mut self, outcome: Outcome, question: Option<&str>) -> &mut Self {
        self.fact(Fact::RunEnd {
            outcome,
            reason: "the agent said `<promise>COMPLETE</promise>`".into(),
            exit_code: if outcome == Outcome::Complete { 0 } else { 3 },
            iterations: 3,
            duration_ms: 252_000,
            usage: Usage::default(),
            cost: None,
            unpriced: 0,
            question: question.map(str::to_owned),
            changed: None,
            compared: Compared::default(),
        });
        self.flush()
    }

    pub fn flush(&mut self) -> &mut Self {
        self.out.flush().unwrap();
        self
    }

    pub fn raw(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.run().raw().join(name), bytes).unwrap();
    }
}

pub fn run_of(workspace: &Path) -> RunDirectory {
    let store = store_of(workspace);
    store.create().unwrap();
    RunDirectory { id: ID.into(), path: store.path().join("runs").join(ID) }
}

/// The records of a working directory are in a state directory beside it.
pub fn store_of(workspace: &Path) -> Store {
    State::at(workspace.parent().unwrap().join("state")).store(workspace)
}

pub fn receipt(iteration: u32) -> Receipt {
    Receipt {
        iteration,
        ended: "exit code 0".into(),
        duration_ms: 1_000 + 700 * u64::from(iteration % 7),
        usage: Usage {
            prompt_tokens: Some(2_000 + 500 * u64::from(iteration % 5)),
            completion_tokens: Some(300),
            ..Usage::default()
        },
        cost: Some(Cost { usd: 0.02 * f64::from(iteration % 4 + 1), source: CostSource::Reported }),
        ..Receipt::default()
    }
}

/// A run with something for every pane.
pub fn rich() -> History {
    use ralph::event::{FileChange, Known, Status, Tag, TodoItem, TodoStatus};
    use serde_json::json;
    let mut history = History::new();
    let todo = |done: usize| {
        let items = ["mend the spelling", "add the exclamation mark", "run the test and commit"];
        let status = |at: usize| match at.cmp(&done) {
            std::cmp::Ordering::Less => TodoStatus::Done,
            std::cmp::Ordering::Equal => TodoStatus::InProgress,
            std::cmp::Ordering::Greater => TodoStatus::Pending,
        };
        let items = items.iter().enumerate();
        let items = items.map(|(at, text)| TodoItem { text: (*text).into(), status: status(at) }).collect();
        Event::from(Known::Todo { items })
    };
    let object = |value: serde_json::Value| value.as_object().cloned();
    for iteration in 1..=3 {
        history.start(iteration, Some(if iteration == 2 { "reviewer" } else { "builder" }));
        history.event(iteration, Known::Model { model: "demo-large".into() }.into());
        history.event(iteration, Event::text(Tag::Think, "The greeting is wrong.\nFirst see what the test expects."));
        history.event(iteration, todo(iteration as usize - 1));
        let input = json!({"command": "sh test.sh", "description": "run the test"});
        history.event(iteration, Event::tool_start("t1", "shell", object(input)));
        history.event(iteration, Event::tool_output("t1", "ok: spelling\nFAILED: punctuation, needle here"));
        history.event(iteration, Event::tool_end("t1", Status::Fail, Some(1_200)));
        let input = json!({"path": "greet.sh", "old_string": "Helo", "new_string": "Hello"});
        history.event(iteration, Event::tool_start("t2", "edit", object(input)));
        history.event(iteration, Event::tool_end("t2", Status::Ok, None));
        let change = FileChange { path: "greet.sh".into(), change: Some("update".into()) };
        history.event(iteration, Known::Files { changes: vec![change] }.into());
        history.event(iteration, Event::text(Tag::Ai, format!("This is report {iteration}: the spelling is mended.")));
        let event = Topic { topic: "build.done".into(), payload: format!("part {iteration}") };
        let (by, heard_by) = ("builder".into(), vec!["reviewer".into()]);
        history.fact(Fact::Published { iteration, event, by, heard_by });
        if iteration == 3 {
            let check = CheckResult {
                name: "test".into(),
                command: "cargo test".into(),
                passed: false,
                ended: "exit code 101".into(),
                duration_ms: 4_200,
                tail: "1 passed; 1 failed".into(),
                ..CheckResult::default()
            };
            history.fact(Fact::Verification { iteration, asked: Asked::Claim, passed: false, checks: vec![check] });
        }
        let receipt = Receipt {
            files: vec!["greet.sh".into()],
            verified: (iteration == 3).then_some(false),
            ..receipt(iteration)
        };
        history.end(iteration, receipt);
        history.raw(&format!("{iteration}.stdout"), format!("raw line of {iteration}\n").repeat(3).as_bytes());
        history.raw(&format!("{iteration}.stderr"), format!("complaint of {iteration}\n").as_bytes());
    }
    history
}
