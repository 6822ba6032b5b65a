//! `ralph as-claude AGENT`: any agent, spoken to and heard as if it were Claude Code.
//!
//! Standard output has Claude's stream-json and nothing else; the exit code is 0 unless the caller's run must stop.

mod arguments;

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use super::choose::choose;
use super::run::working_directory;
use super::{runtime, warn};
use crate::agent::{Agent, Session, Turn};
use crate::config::{self, Layer, Origin, Setting};
use crate::emit::claude::{Claude, Form, Tools};
use crate::error::UserError;
use crate::event::{Event, FailureClass, Known, Stream};
use crate::process::{self, Clocks, Lines, Output, Process, StopReason};
use crate::run::{Came, Interrupts, how_it_ended};
use crate::transcript::{Context, Selected, auto, select};
use arguments::{Arguments, Format, Input};

/// The version of Claude Code whose format is written.
const FORMAT_VERSION: &str = "2.1.0";

/// Something is said at least this often, so that nobody takes silence for death.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Plays Claude; `words` are the arguments after the agent's name, which Claude would get.
pub fn run(agent: &str, words: &[String]) -> Result<u8, UserError> {
    if let [only] = words
        && ["-v", "--version"].contains(&only.as_str())
    {
        // Callers look whether Claude Code is new enough; the number is that of the format.
        let _ = writeln!(std::io::stdout(), "{FORMAT_VERSION} (ralph {} as Claude Code)", env!("CARGO_PKG_VERSION"));
        return Ok(0);
    }
    let arguments = Arguments::read(words);
    process::protect(process::own_program());
    let mut out = Voice::new(&arguments);
    match play(agent, &arguments, &mut out) {
        Ok(()) => Ok(0),
        Err(error) => {
            // Told in the stream too: whoever reads it may not look at standard error.
            let mut message = error.message.clone();
            for hint in &error.hints {
                message.push('\n');
                message.push_str(hint);
            }
            let class = FailureClass::Config;
            let known =
                Known::Error { class, message, status: None, resets_at: None, retry_after_ms: None, resets: None };
            out.event(&known.into());
            out.event(&Known::TurnEnd { success: Some(false), reason: Some("not started".to_owned()) }.into());
            out.finish(Duration::ZERO, None);
            Err(error)
        }
    }
}

/// The agent behind a link that is called `AGENT-as-claude`.
pub fn agent_of_link(program: &std::ffi::OsStr) -> Option<String> {
    let name = std::path::Path::new(program).file_name()?.to_str()?;
    name.strip_suffix("-as-claude").filter(|agent| !agent.is_empty()).map(str::to_owned)
}

fn play(name: &str, arguments: &Arguments, out: &mut Voice) -> Result<(), UserError> {
    let workspace = working_directory()?;
    let file = config::nearest_file(None, &workspace)?;
    warn(&file.warnings);
    let flag = |what: &'static str| Origin::Flag(what);
    let mut layer = Layer {
        agent: Some(Setting::new(name.to_owned(), flag("as-claude"))),
        model: arguments.model.clone().map(|model| Setting::new(Some(model), flag("--model"))),
        effort: arguments.effort.clone().map(|effort| Setting::new(Some(effort), flag("--effort"))),
        ..Layer::default()
    };
    if !arguments.tools.is_empty() {
        layer.tools = Some(Setting::new(arguments.tools.clone(), flag("--allowedTools")));
    }
    // Model, effort and dialect in the file belong to the agent of the file.
    let other = file.layer.agent.as_ref().is_none_or(|agent| agent.value != name);
    let mut below = file.layer.clone();
    if other {
        below = Layer { model: None, effort: None, tools: None, transcript: None, ..below };
    }
    let settings = layer.over(below).settle();
    let agent = choose(&settings, &file, &workspace)?.agent;
    let mut agent = with_what_it_takes(agent);
    if arguments.asks {
        agent.definition.arguments.approve.clear();
    }
    let prompt = prompt(arguments, out)?;
    let session = match (&arguments.resume, &arguments.session_id) {
        (Some(id), _) if agent.definition.session.resume.is_some() => Session::Resume(id.clone()),
        (None, Some(id)) if agent.definition.session.given.is_some() => Session::Given(id.clone()),
        _ => Session::New,
    };
    let turn = Turn { session, ..Turn::new(&prompt, &workspace) };
    let invocation = agent.invocation(&turn)?;
    let selected = select(std::slice::from_ref(&settings.transcript.value), Some(&agent.definition.dialect))
        .map_err(|error| UserError::usage(error.to_string()))?;
    runtime()?.block_on(async {
        let own = file.adapter(agent.id()).timeout.and_then(|timeout| timeout.value);
        let total = own.unwrap_or(settings.timeout.value);
        let clocks = Clocks { total: (!total.is_zero()).then_some(total), ..Clocks::default() };
        let process = process::start(invocation, clocks).map_err(|error| crate::run::start_error(&error))?;
        speak(process, &selected, &prompt, out).await
    })
}

/// An agent that has no argument for a wish goes without it: Claude's callers pass flags that others do not have.
fn with_what_it_takes(mut agent: Agent) -> Agent {
    let arguments = &agent.definition.arguments;
    if arguments.model.is_empty() {
        agent.options.model = None;
    }
    if arguments.effort.is_empty() {
        agent.options.effort = None;
    }
    if arguments.tools.is_empty() {
        agent.options.tools.clear();
    }
    agent
}

/// The prompt: an argument, standard input, or the first message of the control protocol.
fn prompt(arguments: &Arguments, out: &mut Voice) -> Result<String, UserError> {
    let mut words = match (&arguments.prompt, arguments.input) {
        (_, Input::StreamJson) => out.first_message()?,
        (Some(prompt), Input::Text) => prompt.clone(),
        (None, Input::Text) => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| UserError::usage(format!("cannot read the prompt from standard input: {error}")))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if words.trim().is_empty() {
        return Err(UserError::usage("no prompt was given").hint("give it with `-p PROMPT`, or on standard input"));
    }
    if let Some(more) = &arguments.append_system_prompt {
        words = format!("{more}\n\n{words}");
    }
    Ok(words)
}

/// Reads the agent to its end. A Unix signal ends the whole tree at once.
async fn speak(mut process: Process, selected: &Selected, prompt: &str, out: &mut Voice) -> Result<(), UserError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| UserError::failed(format!("cannot listen for Unix signals: {error}")))?;
    let context = Context { prompts: vec![prompt.to_owned()], ..Context::default() };
    let mut adapter = match selected {
        Selected::Dialect(dialect) => (dialect.adapter)(&context),
        Selected::Auto(expected) => auto(expected, &context),
        Selected::Command(_) => {
            return Err(UserError::usage("`transcript: {command: …}` cannot be used by `as-claude`"));
        }
    };
    let (mut stdout, mut stderr, mut events) = (Lines::default(), Lines::default(), Vec::new());
    let start = Instant::now();
    let ended = loop {
        tokio::select! {
            biased;
            came = interrupts.next() => if let Came::Interrupt(interrupt, _) = came {
                process.kill();
                while !matches!(process.next().await, Output::Ended(_)) {}
                process::die_by(interrupt.number());
            },
            output = process.next() => match output {
                Output::Bytes { from: Stream::Stdout, bytes } => {
                    stdout.push(bytes, |line| adapter.line(line, &mut events));
                }
                Output::Bytes { bytes, .. } => stderr.push(bytes, |line| adapter.stderr(line, &mut events)),
                Output::Ended(ended) => break ended,
            },
            () = tokio::time::sleep(KEEP_ALIVE) => out.keep_alive(),
        }
        if events.iter().any(|event| matches!(event, Event::Meta { meta } if meta.kind() == Some("turn_end"))) {
            process.turn_ended();
        }
        events.drain(..).for_each(|event| out.event(&event));
        out.flush();
    };
    stdout.finish(|line| adapter.line(line, &mut events));
    stderr.finish(|line| adapter.stderr(line, &mut events));
    adapter.end(Some(ended.exit), &mut events);
    events.drain(..).for_each(|event| out.event(&event));
    let well = ended.exit.success() && matches!(ended.stopped, None | Some(StopReason::AfterEnd));
    let trouble = (!well).then(|| format!("the agent failed: {}", how_it_ended(&ended)));
    out.finish(start.elapsed(), trouble.as_deref());
    Ok(())
}

/// What the caller hears.
struct Voice {
    claude: Option<Claude>,
    format: Format,
    bytes: Vec<u8>,
}

impl Voice {
    fn new(arguments: &Arguments) -> Self {
        let tools = if arguments.text_only { Tools::Progress } else { Tools::Blocks };
        let form = Form { partial: arguments.partial, tools };
        Self { claude: Some(Claude::new(form)), format: arguments.format, bytes: Vec::new() }
    }

    fn event(&mut self, event: &Event) {
        if let Some(claude) = &mut self.claude {
            claude.event(event, &mut self.bytes);
        }
    }

    fn keep_alive(&mut self) {
        if let Some(claude) = &mut self.claude {
            claude.keep_alive(&mut self.bytes);
        }
        self.flush();
    }

    fn flush(&mut self) {
        if self.format == Format::StreamJson {
            let mut stdout = std::io::stdout().lock();
            // A caller that has gone ends us by a signal, or lets the agent finish its work.
            let _ = stdout.write_all(&self.bytes).and_then(|()| stdout.flush());
            self.bytes.clear();
        }
    }

    fn finish(&mut self, took: Duration, trouble: Option<&str>) {
        if self.format != Format::StreamJson {
            self.bytes.clear();
        }
        let Some(claude) = self.claude.take() else { return };
        claude.finish(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), trouble, &mut self.bytes);
        match self.format {
            Format::StreamJson => self.flush(),
            Format::Json | Format::Text => {
                let last = self.bytes.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
                let text = match self.format {
                    Format::Text => serde_json::from_slice::<serde_json::Value>(last)
                        .ok()
                        .and_then(|result| Some(result.get("result")?.as_str()?.to_owned()))
                        .unwrap_or_default(),
                    _ => String::from_utf8_lossy(last).into_owned(),
                };
                let _ = writeln!(std::io::stdout(), "{text}");
            }
        }
    }

    /// The control protocol of Claude's own client: its greeting is answered, its first message is the prompt.
    fn first_message(&mut self) -> Result<String, UserError> {
        for line in std::io::stdin().lines() {
            let line = line.map_err(|error| UserError::usage(format!("cannot read standard input: {error}")))?;
            let Ok(value) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
            match value["type"].as_str() {
                Some("control_request") => {
                    let answer = serde_json::json!({
                        "type": "control_response",
                        "response": {"subtype": "success", "request_id": value["request_id"], "response": {
                            "commands": [], "output_style": "default", "available_output_styles": ["default"],
                            "models": [], "account": {},
                        }},
                    });
                    self.bytes.extend_from_slice(answer.to_string().as_bytes());
                    self.bytes.push(b'\n');
                    self.flush();
                }
                Some("user") => return Ok(message_text(&value["message"]["content"])),
                _ => {}
            }
        }
        Err(UserError::usage("standard input ended before a message came"))
    }
}

fn message_text(content: &serde_json::Value) -> String {
    match content {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
