//! `ralph as-claude AGENT`: any agent, spoken to and heard as if it were Claude Code.
//!
//! Standard output has Claude's stream-json and nothing else; the exit code is 0 unless the caller's run must stop.

mod arguments;
mod plan_mode;

use std::io::{Read as _, Write as _};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::agent::{Agent, Permissions, Phase, Session, Turn};
use crate::app::choose::{Purpose, choose};
use crate::app::repository;
use crate::app::warn;
use crate::app::working_directory;
use crate::config::{self, Layer, Origin, Setting};
use crate::emit::claude::{Claude, FORMAT_VERSION, Form, Tools};
use crate::error::{UserError, exit_code};
use crate::event::{Event, FailureClass, Known, Tag};
use crate::process::{self, Clocks, Output, Process, StopReason, runtime};
use crate::redact::Redactor;
use crate::run::{Came, Interrupts, how_it_ended};
use crate::stream::OutputStream;
use crate::transcript::{Context, Selected, select};
use crate::ui::out::{self, Data};
use arguments::{Arguments, Format, Input};
use plan_mode::{PlanMode, Step};

/// Something is said at least this often, so that nobody takes silence for death.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Plays Claude; `words` are the arguments after the agent's name, which Claude would get.
pub(crate) fn run(agent: &str, words: &[String]) -> Result<u8, UserError> {
    if let [only] = words
        && ["-v", "--version"].contains(&only.as_str())
    {
        // Callers look whether Claude Code is new enough; the number is that of the format.
        let _ = out::print(&format!("{FORMAT_VERSION} (ralph {} as Claude Code)\n", env!("CARGO_PKG_VERSION")));
        return Ok(0);
    }
    let arguments = Arguments::read(words);
    process::protect(process::own_program());
    let mut out = Voice::new(&arguments);
    match play(agent, &arguments, &mut out) {
        Ok(success) => Ok(if success { exit_code::COMPLETE } else { exit_code::FAILED }),
        Err(error) => {
            // Told in the stream too: whoever reads it may not look at standard error.
            let mut message = error.message.clone();
            for hint in &error.hints {
                message.push('\n');
                message.push_str(hint);
            }
            Redactor::of_process().clean(&mut message);
            let class = FailureClass::Config;
            let known =
                Known::Error { class, message, status: None, resets_at: None, retry_after_ms: None, resets: None };
            out.event(&known.into());
            out.event(&Known::TurnEnd { success: Some(false), reason: Some("not started".to_owned()) }.into());
            out.finish(Duration::ZERO, None);
            out.writer.close_now();
            Err(error)
        }
    }
}

/// The agent behind a link that is called `AGENT-as-claude`.
pub(crate) fn agent_of_link(program: &std::ffi::OsStr) -> Option<String> {
    let name = std::path::Path::new(program).file_name()?.to_str()?;
    name.strip_suffix("-as-claude").filter(|agent| !agent.is_empty()).map(str::to_owned)
}

/// Gives whether the turn succeeded.
fn play(name: &str, arguments: &Arguments, out: &mut Voice) -> Result<bool, UserError> {
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
    repository::consent(&settings, &file, &workspace)?;
    let agent = choose(&settings, &file, &workspace, Purpose::Run)?.agent;
    let mut agent = with_what_it_takes(agent);
    // The wrappers grant everything where nothing else is said.
    agent.options.permissions.get_or_insert(Permissions::Full);
    if arguments.asks {
        agent.definition.arguments.grant(Vec::new());
    }
    let prompt = prompt(arguments, out)?;
    let phase = Phase::of(&prompt);
    let variable = |name: &str| std::env::var(name).ok();
    let before = agent.like_its_wrapper(phase, variable);
    let prompt = if before.is_empty() { prompt } else { format!("{before}\n{prompt}") };
    if agent.wrapper_is_verbose(variable) {
        out.tools_as_text();
    }
    if phase == Phase::Plan && agent.definition.as_claude.plan.is_some() {
        out.plan_mode = Some(PlanMode::default());
    }
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
        // Before the agent starts, so that no Unix signal ends ralph without it.
        let interrupts = Interrupts::listen()
            .map_err(|error| UserError::failed(format!("cannot listen for Unix signals: {error}")))?;
        let process = process::start(invocation, clocks).map_err(|error| crate::run::start_error(&error))?;
        speak(process, interrupts, &selected, &prompt, out).await
    })
}

/// An agent that does not support a wish goes without it: Claude's callers pass flags that others do not have.
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
                .map_err(|error| UserError::usage(format!("cannot read the prompt from stdin: {error}")))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    if words.trim().is_empty() {
        return Err(UserError::usage("no prompt").hint("use `-p PROMPT`, or pass it on stdin"));
    }
    if let Some(more) = &arguments.append_system_prompt {
        words = format!("{more}\n\n{words}");
    }
    Ok(words)
}

/// Reads the agent to its end. A Unix signal ends the whole tree at once, also while nobody reads what is written.
async fn speak(
    mut process: Process,
    mut interrupts: Interrupts,
    selected: &Selected,
    prompt: &str,
    out: &mut Voice,
) -> Result<bool, UserError> {
    if matches!(selected, Selected::Command(_)) {
        return Err(UserError::usage("`transcript: {command: …}` does not work with `as-claude`"));
    }
    let context = Context { prompts: vec![prompt.to_owned()], ..Context::default() };
    let mut stream = OutputStream::new(selected, &context, &Redactor::of_process());
    let mut events = Vec::new();
    let mut is_silent = false;
    let start = Instant::now();
    let ended = loop {
        let (is_waiting, is_full) = (out.writer.is_waiting(), out.writer.is_full());
        tokio::select! {
            biased;
            came = interrupts.next() => die(came, &mut process).await,
            () = out.writer.write(), if is_waiting => {}
            output = process.next(), if !is_full => match output {
                // The raw bytes are nobody's here.
                Output::Bytes { from, bytes } => drop(stream.push(from, bytes, &mut events)),
                Output::Ended(ended) => break ended,
            },
            () = tokio::time::sleep(KEEP_ALIVE), if !is_full => is_silent = true,
        }
        if std::mem::take(&mut is_silent) {
            out.keep_alive();
        }
        if events.iter().any(|event| matches!(&**event, Event::Meta { meta } if meta.kind() == Some("turn_end"))) {
            process.turn_ended();
        }
        if events.drain(..).any(|event| out.event(&event) == Flow::Over) {
            // It asked or planned: the person's turn. What it does after that is not wanted.
            process.kill();
            while !matches!(process.next().await, Output::Ended(_)) {}
            return Ok(finish(out, &mut process, start.elapsed(), None, &mut interrupts).await);
        }
    };
    let mut stderr = Vec::new();
    stream.end_bytes(&mut events, &mut stderr);
    events.append(&mut stderr);
    stream.finish(Some(ended.exit), &mut events);
    events.drain(..).for_each(|event| {
        out.event(&event);
    });
    let well = ended.exit.success() && matches!(ended.stopped, None | Some(StopReason::AfterEnd));
    let trouble = (!well).then(|| format!("the agent failed: {}", how_it_ended(&ended)));
    Ok(finish(out, &mut process, start.elapsed(), trouble.as_deref(), &mut interrupts).await)
}

/// Writes the result, and waits until all of it is read.
async fn finish(
    out: &mut Voice,
    process: &mut Process,
    took: Duration,
    trouble: Option<&str>,
    interrupts: &mut Interrupts,
) -> bool {
    let success = out.finish(took, trouble);
    let closed = out.writer.close();
    tokio::pin!(closed);
    loop {
        tokio::select! {
            biased;
            came = interrupts.next() => die(came, process).await,
            () = &mut closed => return success,
        }
    }
}

/// Ends the agent, then ralph, as the Unix signal asks for.
async fn die(came: Came, process: &mut Process) {
    if let Came::Interrupt(interrupt, _) = came {
        process.kill();
        while !matches!(process.next().await, Output::Ended(_)) {}
        process::die_by(interrupt.number());
    }
}

/// Standard output, written by a thread of its own: a reader that stalls holds up nothing but the agent.
struct Writer {
    /// What was not handed to the thread yet.
    bytes: Vec<u8>,
    thread: Option<(mpsc::Sender<Vec<u8>>, JoinHandle<()>)>,
}

impl Writer {
    /// The agent waits while more than this is unwritten.
    const MOST: usize = 256 * 1024;

    fn is_full(&self) -> bool {
        self.bytes.len() > Self::MOST
    }

    fn is_waiting(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Hands everything to the thread as soon as that has room. Cancel-safe.
    async fn write(&mut self) {
        let (sender, _) = self.thread.get_or_insert_with(|| {
            let (sender, mut receiver) = mpsc::channel::<Vec<u8>>(1);
            let thread = std::thread::spawn(move || {
                while let Some(bytes) = receiver.blocking_recv() {
                    // A caller that has gone ends us by a signal, or lets the agent finish its work.
                    let mut stdout = Data::on_stdout();
                    let _ = stdout.write_all(&bytes).and_then(|()| stdout.flush());
                }
            });
            (sender, thread)
        });
        match sender.reserve().await {
            Ok(permit) => permit.send(std::mem::take(&mut self.bytes)),
            Err(_) => self.bytes.clear(),
        }
    }

    /// Waits until everything is written.
    async fn close(&mut self) {
        while self.is_waiting() {
            self.write().await;
        }
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            while !thread.is_finished() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// The same where nothing else is to be done meanwhile.
    fn close_now(&mut self) {
        let mut stdout = Data::on_stdout();
        let _ = stdout.write_all(&std::mem::take(&mut self.bytes)).and_then(|()| stdout.flush());
    }
}

/// What the caller hears.
struct Voice {
    claude: Option<Claude>,
    format: Format,
    writer: Writer,
    plan_mode: Option<PlanMode>,
}

/// Whether the agent is to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    Over,
}

impl Voice {
    fn new(arguments: &Arguments) -> Self {
        let tools = if arguments.text_only { Tools::Progress } else { Tools::Blocks };
        let form = Form { partial: arguments.partial, tools };
        let writer = Writer { bytes: Vec::new(), thread: None };
        Self { claude: Some(Claude::new(form)), format: arguments.format, writer, plan_mode: None }
    }

    /// Tool activity as text, for readers that know nothing else.
    fn tools_as_text(&mut self) {
        if let Some(claude) = &mut self.claude {
            claude.form.tools = Tools::Text;
        }
    }

    fn event(&mut self, event: &Event) -> Flow {
        let Some(mode) = &mut self.plan_mode else {
            self.write(event);
            return Flow::On;
        };
        match mode.take(event) {
            Step::Hold => Flow::On,
            Step::Pass => {
                let is_message = matches!(event, Event::Text { tag: Tag::Ai, parent: None, .. });
                let held = mode.rest().filter(|_| !is_message);
                if let Some(held) = held {
                    self.write(&held);
                }
                self.write(event);
                Flow::On
            }
            Step::End(last) => {
                let _ = mode.rest();
                self.write(&last);
                self.write(&Known::TurnEnd { success: Some(true), reason: Some("a person's turn".to_owned()) }.into());
                Flow::Over
            }
        }
    }

    fn write(&mut self, event: &Event) {
        if let Some(claude) = &mut self.claude {
            claude.event(event, &mut self.writer.bytes);
        }
        // Of all lines, the other formats have only the result.
        if self.format != Format::StreamJson {
            self.writer.bytes.clear();
        }
    }

    fn keep_alive(&mut self) {
        if let Some(claude) = self.claude.as_mut().filter(|_| self.format == Format::StreamJson) {
            claude.keep_alive(&mut self.writer.bytes);
        }
    }

    /// Gives whether the turn succeeded.
    fn finish(&mut self, took: Duration, trouble: Option<&str>) -> bool {
        if let Some(held) = self.plan_mode.as_mut().and_then(PlanMode::rest) {
            self.write(&held);
        }
        let Some(claude) = self.claude.take() else { return false };
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if self.format == Format::StreamJson {
            return claude.finish(took, trouble, &mut self.writer.bytes);
        }
        let mut lines = Vec::new();
        let success = claude.finish(took, trouble, &mut lines);
        let last = lines.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let text = match self.format {
            Format::Text => serde_json::from_slice::<serde_json::Value>(last)
                .ok()
                .and_then(|result| Some(result.get("result")?.as_str()?.to_owned()))
                .unwrap_or_default(),
            _ => String::from_utf8_lossy(last).into_owned(),
        };
        self.writer.bytes = text.into_bytes();
        self.writer.bytes.push(b'\n');
        success
    }

    /// The control protocol of Claude's own client: its greeting is answered, its first message is the prompt.
    fn first_message(&mut self) -> Result<String, UserError> {
        for line in std::io::stdin().lines() {
            let line = line.map_err(|error| UserError::usage(format!("cannot read stdin: {error}")))?;
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
                    self.writer.bytes.extend_from_slice(answer.to_string().as_bytes());
                    self.writer.bytes.push(b'\n');
                    self.writer.close_now();
                }
                Some("user") => return Ok(message_text(&value["message"]["content"])),
                _ => {}
            }
        }
        Err(UserError::usage("stdin ended before a message was read"))
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
