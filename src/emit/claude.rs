//! Canonical events as Claude's stream-json, so that whatever can only drive Claude Code can drive every agent.
//!
//! What Claude's format can say is said in its own words: messages, tools, the result. What it cannot say goes along as
//! `system` lines of the subtype `ralph_event`, which other readers skip; so that reading it back gives the same events.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::event::{Event, FailureClass, Known, Object, Status, Tag, Usage, write_string, write_value};

/// Which lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Fragments as they come, as with `--include-partial-messages`.
    pub partial: bool,
    /// Tools as blocks of messages, or as lines of progress.
    pub tools: Tools,
}

/// How tool activity is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// As `tool_use` and `tool_result`.
    Blocks,
    /// As `system/task_progress`, for readers that want text only.
    Progress,
    /// As messages: the command and what it printed.
    Text,
}

/// The longest message and tool output that is held: a longer message continues in the next one, of an output the rest is
/// left out.
const LONGEST: usize = 4 * 1024 * 1024;

/// The version of Claude Code whose format is written. Its clients refuse what they think is too old.
pub(crate) const FORMAT_VERSION: &str = "2.1.0";

/// What replaces the rest.
const CUT: &str = "\n… (the rest is left out)";

/// Writes one stream.
#[derive(Debug)]
pub struct Claude {
    pub(crate) form: Form,
    session: Option<String>,
    model: Option<String>,
    version: Option<String>,
    begun: bool,
    /// The message that is being said in fragments.
    open: Option<OpenMessage>,
    messages: u64,
    /// What tools have printed so far.
    outputs: BTreeMap<String, String>,
    usage: BTreeMap<String, Usage>,
    denials: Vec<Value>,
    /// The last words, which the result repeats.
    last: String,
    error: Option<Failure>,
    ended: Option<(Option<bool>, Option<String>)>,
}

#[derive(Debug)]
struct Failure {
    class: FailureClass,
    message: String,
    status: Option<u16>,
}

#[derive(Debug)]
struct OpenMessage {
    tag: Tag,
    parent: Option<String>,
    text: String,
}

impl Claude {
    /// Nothing is written yet.
    pub fn new(form: Form) -> Self {
        Self {
            form,
            session: None,
            model: None,
            version: None,
            begun: false,
            open: None,
            messages: 0,
            outputs: BTreeMap::new(),
            usage: BTreeMap::new(),
            denials: Vec::new(),
            last: String::new(),
            error: None,
            ended: None,
        }
    }

    /// Appends what an event makes.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::Text { tag: tag @ (Tag::Ai | Tag::Think), text, delta: true, parent } => {
                self.fragment(*tag, parent.as_deref(), text, out);
            }
            // An empty message is none in Claude's format.
            Event::Text { tag: tag @ (Tag::Ai | Tag::Think), text, parent, .. } if !text.is_empty() => {
                self.close(out);
                self.message(*tag, parent.as_deref(), text, out);
            }
            Event::ToolStart { tool, parent } => {
                self.close(out);
                self.tool_start(&tool.id, &tool.name, tool.input.as_ref(), parent.as_deref(), out);
            }
            Event::ToolOutput { tool, text, .. } if self.outputs.contains_key(&tool.id) => {
                let output = self.outputs.entry(tool.id.clone()).or_default();
                if output.len() + text.len() <= LONGEST {
                    output.push_str(text);
                } else if !output.ends_with(CUT) {
                    output.push_str(CUT);
                }
            }
            Event::ToolEnd { tool, parent } if self.outputs.contains_key(&tool.id) => {
                self.close(out);
                self.tool_end(&tool.id, tool.status, tool.duration_ms, parent.as_deref(), out);
            }
            Event::Usage { usage } => {
                let model = usage.model.clone().or_else(|| self.model.clone()).unwrap_or_default();
                self.usage.entry(model).or_default().add(usage);
                self.along(event, out);
            }
            Event::Meta { meta } => match meta.known() {
                Some(Known::Session { id }) => {
                    self.session = Some(id);
                    // An agent may complain before it says who it is, or continue in another session.
                    if self.begun {
                        self.along(event, out);
                    }
                }
                Some(Known::Model { model }) if !self.begun && self.model.is_none() => self.model = Some(model),
                Some(Known::Version { version }) if !self.begun && self.version.is_none() => {
                    self.version = Some(version);
                }
                Some(Known::TurnEnd { success, reason }) => self.ended = Some((success, reason)),
                Some(Known::Error { class, message, status, .. }) => {
                    self.error = Some(Failure { class, message, status });
                    self.along(event, out);
                }
                Some(Known::Permission { tool, id, .. }) => {
                    self.denials.push(json!({"tool_name": tool, "tool_use_id": id, "tool_input": {}}));
                    self.along(event, out);
                }
                _ => self.along(event, out),
            },
            _ => self.along(event, out),
        }
    }

    /// Something to say while the agent is silent.
    pub(crate) fn keep_alive(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(b"{\"type\":\"keep_alive\"}\n");
    }

    /// Appends the result: the last line, exactly once. `trouble` says how the process failed, when it did; it counts where
    /// the agent itself reports no end. Gives whether the turn succeeded.
    pub fn finish(mut self, duration_ms: u64, trouble: Option<&str>, out: &mut Vec<u8>) -> bool {
        self.close(out);
        self.begin(out);
        let (success, reason) = self.ended.take().unwrap_or((None, None));
        let failed = success == Some(false) || success.is_none() && (self.error.is_some() || trouble.is_some());
        let mut status = None;
        let answer = match self.error.take() {
            Some(failure) if failed => {
                let spoken = failure.in_claudes_words();
                status = failure.status.or(spoken.status);
                self.synthetic(&spoken, out);
                spoken.text
            }
            None if failed && trouble.is_some() => trouble.unwrap_or_default().to_owned(),
            _ => std::mem::take(&mut self.last),
        };
        let mut total = Usage::default();
        self.usage.values().for_each(|usage| total.add(usage));
        let models: Object = self.usage.iter().map(|(model, usage)| (model.clone(), model_usage(usage))).collect();
        // Claude itself calls an error of the API `success`.
        let subtype = if failed && status.is_none() { "error_during_execution" } else { "success" };
        let mut line = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": failed,
            "duration_ms": duration_ms,
            "duration_api_ms": duration_ms,
            "num_turns": self.messages.max(1),
            "result": answer,
            "session_id": self.session.clone().unwrap_or_default(),
            "usage": api_usage(&total),
            "modelUsage": models,
            "permission_denials": self.denials,
            "ralph": {"success": success, "reason": reason},
        });
        if let Some(status) = status {
            line["api_error_status"] = json!(status);
        }
        if let Some(cost) = total.cost_usd {
            line["total_cost_usd"] = json!(cost);
        }
        put(&line, out);
        !failed
    }

    /// A failure of the API is a message of the model `<synthetic>`: readers look for it there.
    fn synthetic(&mut self, spoken: &Spoken, out: &mut Vec<u8>) {
        let Some(error) = spoken.error else { return };
        self.messages += 1;
        let line = json!({
            "type": "assistant",
            "message": {
                "id": format!("msg_{}", self.messages), "type": "message", "role": "assistant", "model": "<synthetic>",
                "stop_reason": "stop_sequence", "stop_sequence": "",
                "usage": {"input_tokens": 0, "output_tokens": 0},
                "content": [{"type": "text", "text": spoken.text}],
            },
            "parent_tool_use_id": null,
            "session_id": self.session.clone().unwrap_or_default(),
            "error": error,
        });
        put(&line, out);
    }

    /// The first line, before anything else.
    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let line = json!({
            "type": "system",
            "subtype": "init",
            "emitter": "ralph",
            "cwd": std::env::current_dir().unwrap_or_default().to_string_lossy(),
            "session_id": self.session,
            "tools": [],
            "mcp_servers": [],
            "model": self.model,
            "permissionMode": "bypassPermissions",
            "apiKeySource": "none",
            "claude_code_version": FORMAT_VERSION,
            "agent_version": self.version,
        });
        put(&line, out);
    }

    fn fragment(&mut self, tag: Tag, parent: Option<&str>, text: &str, out: &mut Vec<u8>) {
        let is_full = self.open.as_ref().is_some_and(|open| open.text.len() + text.len() > LONGEST);
        if is_full || self.open.as_ref().is_none_or(|open| open.tag != tag || open.parent.as_deref() != parent) {
            self.close(out);
            self.begin(out);
            self.open = Some(OpenMessage { tag, parent: parent.map(str::to_owned), text: String::new() });
            if self.form.partial {
                let id = self.messages + 1;
                let message = json!({
                    "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": self.model,
                    "content": [], "stop_reason": null, "usage": {"input_tokens": 0, "output_tokens": 0},
                });
                self.stream_event(&json!({"type": "message_start", "message": message}), parent, out);
                let block = match tag {
                    Tag::Think => json!({"type": "thinking", "thinking": ""}),
                    _ => json!({"type": "text", "text": ""}),
                };
                self.stream_event(
                    &json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    parent,
                    out,
                );
            }
        }
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        if self.form.partial {
            out.extend_from_slice(
                br#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":"#,
            );
            out.extend_from_slice(match tag {
                Tag::Think => &br#"{"type":"thinking_delta","thinking":"#[..],
                _ => br#"{"type":"text_delta","text":"#,
            });
            write_string(text, out);
            out.extend_from_slice(b"}}");
            self.ending(parent, out);
        }
    }

    /// Ends the open message: it is repeated as a whole.
    fn close(&mut self, out: &mut Vec<u8>) {
        let Some(OpenMessage { tag, parent, text }) = self.open.take() else { return };
        self.message(tag, parent.as_deref(), &text, out);
        if self.form.partial {
            self.stream_event(&json!({"type": "content_block_stop", "index": 0}), parent.as_deref(), out);
            self.stream_event(&json!({"type": "message_stop"}), parent.as_deref(), out);
        }
    }

    fn message(&mut self, tag: Tag, parent: Option<&str>, text: &str, out: &mut Vec<u8>) {
        self.assistant(out);
        out.extend_from_slice(match tag {
            Tag::Think => &br#"{"type":"thinking","thinking":"#[..],
            _ => br#"{"type":"text","text":"#,
        });
        write_string(text, out);
        out.extend_from_slice(if tag == Tag::Think { &br#","signature":""}"#[..] } else { b"}" });
        out.extend_from_slice(b"]}");
        self.ending(parent, out);
        if tag == Tag::Ai && parent.is_none() {
            text.clone_into(&mut self.last);
        }
    }

    /// An assistant's line up to its first block.
    fn assistant(&mut self, out: &mut Vec<u8>) {
        use std::io::Write as _;
        self.begin(out);
        self.messages += 1;
        // Writing to memory cannot fail.
        let _ = write!(
            out,
            r#"{{"type":"assistant","message":{{"id":"msg_{}","type":"message","role":"assistant","model":"#,
            self.messages
        );
        write_string(self.model.as_deref().unwrap_or("unknown"), out);
        out.extend_from_slice(br#","stop_reason":null,"content":["#);
    }

    fn tool_start(&mut self, id: &str, name: &str, input: Option<&Object>, parent: Option<&str>, out: &mut Vec<u8>) {
        self.outputs.insert(id.to_owned(), String::new());
        if self.form.tools == Tools::Text {
            self.message(Tag::Ai, parent, &format!("$ {name}{}\n", input.map_or_else(String::new, described)), out);
            return;
        }
        if self.form.tools == Tools::Progress {
            self.progress("task_started", &format!("{name}{}", input.map_or_else(String::new, described)), out);
            return;
        }
        self.assistant(out);
        out.extend_from_slice(br#"{"type":"tool_use","id":"#);
        write_string(id, out);
        out.extend_from_slice(br#","name":"#);
        write_string(name, out);
        if let Some(input) = input {
            out.extend_from_slice(br#","input":"#);
            write_value(input, out);
        }
        out.extend_from_slice(b"}]}");
        self.ending(parent, out);
    }

    fn tool_end(
        &mut self,
        id: &str,
        status: Status,
        duration_ms: Option<u64>,
        parent: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let output = self.outputs.remove(id).unwrap_or_default();
        if self.form.tools == Tools::Text {
            if !output.is_empty() {
                self.message(Tag::Ai, parent, &output, out);
            }
            return;
        }
        if self.form.tools == Tools::Progress {
            if status == Status::Fail {
                self.progress("task_progress", &format!("failed: {}", first_line(&output)), out);
            }
            return;
        }
        self.begin(out);
        out.extend_from_slice(
            br#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"#,
        );
        write_string(id, out);
        out.extend_from_slice(br#","content":"#);
        write_string(&output, out);
        out.extend_from_slice(if status == Status::Fail { br#","is_error":true"# } else { br#","is_error":false"# });
        if status == Status::Unknown {
            out.extend_from_slice(br#","status":"unknown""#);
        }
        if let Some(duration) = duration_ms {
            out.extend_from_slice(br#","duration_ms":"#);
            write_value(&duration, out);
        }
        out.extend_from_slice(b"}]}");
        self.ending(parent, out);
    }

    fn progress(&mut self, subtype: &str, description: &str, out: &mut Vec<u8>) {
        self.begin(out);
        let session = self.session.clone().unwrap_or_default();
        put(&json!({"type": "system", "subtype": subtype, "description": description, "session_id": session}), out);
    }

    /// What Claude's format cannot say.
    fn along(&mut self, event: &Event, out: &mut Vec<u8>) {
        self.close(out);
        self.begin(out);
        out.extend_from_slice(br#"{"type":"system","subtype":"ralph_event","event":"#);
        event.write_json(out);
        self.ending(None, out);
    }

    fn stream_event(&self, event: &Value, parent: Option<&str>, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"type":"stream_event","event":"#);
        write_value(event, out);
        self.ending(parent, out);
    }

    /// What every line ends with.
    fn ending(&self, parent: Option<&str>, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","parent_tool_use_id":"#);
        match parent {
            Some(parent) => write_string(parent, out),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(br#","session_id":"#);
        write_string(self.session.as_deref().unwrap_or_default(), out);
        out.extend_from_slice(b"}\n");
    }
}

/// A failure as Claude Code would report it.
struct Spoken {
    text: String,
    /// The kind of error on the synthetic message; none where Claude has none.
    error: Option<&'static str>,
    status: Option<u16>,
}

impl Failure {
    /// In the words that tools around Claude look for.
    fn in_claudes_words(&self) -> Spoken {
        let message = &self.message;
        let (text, error, status) = match self.class {
            FailureClass::RateLimit => (format!("You've hit your limit: {message}"), Some("rate_limit"), Some(429)),
            FailureClass::Overload => (format!("API Error: 529 {message}"), Some("server_error"), Some(529)),
            FailureClass::Network => {
                (format!("API Error: Unable to connect to API: {message}"), Some("server_error"), None)
            }
            FailureClass::Auth => (format!("Not logged in: {message}"), Some("authentication_failed"), Some(401)),
            FailureClass::Context => (format!("Prompt is too long: {message}"), Some("invalid_request"), Some(400)),
            _ => (message.clone(), None, None),
        };
        Spoken { text, error, status }
    }
}

fn described(input: &Object) -> String {
    let keys = ["description", "command", "file_path", "path", "pattern", "query", "url", "prompt"];
    let text = keys.iter().find_map(|key| input.get(*key)).and_then(Value::as_str).map(first_line);
    text.map_or_else(String::new, |text| format!(": {text}"))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

fn api_usage(usage: &Usage) -> Value {
    let cached = usage.cached_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    json!({
        "input_tokens": usage.prompt_tokens.unwrap_or(0).saturating_sub(cached).saturating_sub(written),
        "output_tokens": usage.completion_tokens.unwrap_or(0),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    })
}

fn model_usage(usage: &Usage) -> Value {
    let api = api_usage(usage);
    let mut line = json!({
        "inputTokens": api["input_tokens"], "outputTokens": api["output_tokens"],
        "cacheReadInputTokens": api["cache_read_input_tokens"],
        "cacheCreationInputTokens": api["cache_creation_input_tokens"], "webSearchRequests": 0, "contextWindow": 0,
    });
    // An unknown cost is not 0.
    if let Some(cost) = usage.cost_usd {
        line["costUSD"] = json!(cost);
    }
    line
}

fn put(line: &Value, out: &mut Vec<u8>) {
    write_value(line, out);
    out.push(b'\n');
}
