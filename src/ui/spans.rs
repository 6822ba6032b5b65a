//! One run as OpenTelemetry spans in OTLP's JSON: the run, its iterations, their tools. Names follow the semantic
//! conventions for generative AI, which are still in development; this file is the only place that knows them.
//!
//! Words of agents and people are never in it.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::View;
use crate::event::{Event, Status};
use crate::journal::{Body, Fact, Outcome, Receipt, Record};

/// Gathers spans, and writes them at the end.
pub struct SpanView<W> {
    out: W,
    run: String,
    version: String,
    started: Option<Timestamp>,
    newest: Option<Timestamp>,
    agent: String,
    /// The run's own span, once it is over.
    ended: Option<Outcome>,
    iteration: Option<OpenIteration>,
    tools: Vec<Tool>,
    spans: Vec<Value>,
}

struct OpenIteration {
    id: u64,
    number: u32,
    started: Timestamp,
}

struct Tool {
    id: String,
    name: String,
    started: Timestamp,
    number: u64,
}

impl<W: Write> SpanView<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self {
            out,
            run: String::new(),
            version: String::new(),
            started: None,
            newest: None,
            agent: String::new(),
            ended: None,
            iteration: None,
            tools: Vec::new(),
            spans: Vec::new(),
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.close_iteration(None);
        let (Some(started), Some(newest)) = (self.started, self.newest) else { return Ok(()) };
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "invoke_workflow"),
            attribute("gen_ai.workflow.name", "ralph"),
            attribute("gen_ai.conversation.id", self.run.as_str()),
        ];
        let failed = self.ended.filter(|outcome| *outcome != Outcome::Complete);
        if let Some(outcome) = failed {
            let name = serde_json::to_value(outcome).unwrap_or_default();
            attributes.push(attribute("error.type", name));
        }
        let root = Span { number: 0, parent: None, name: "invoke_workflow ralph", started, ended: newest, attributes };
        let root = self.write(&root, failed.is_some());
        self.spans.insert(0, root);
        let document = json!({"resourceSpans": [{
            "resource": {"attributes": [
                attribute("service.name", "ralph"),
                attribute("service.version", self.version.as_str()),
            ]},
            "scopeSpans": [{"scope": {"name": "ralph", "version": self.version}, "spans": self.spans}],
        }]});
        self.out.write_all(super::pretty(&document).as_bytes())?;
        self.out.flush()
    }

    /// A span as OTLP has it. Its ids come from the run's id: exported twice, it is the same span.
    fn write(&self, span: &Span<'_>, failed: bool) -> Value {
        let id = |number: u64| format!("{:016x}", hash(&format!("{} {number}", self.run)));
        let mut written = json!({
            "traceId": format!("{:016x}{:016x}", hash(&self.run), hash(&format!("{} trace", self.run))),
            "spanId": id(span.number),
            "name": span.name,
            "kind": 1,
            "startTimeUnixNano": span.started.as_nanosecond().to_string(),
            "endTimeUnixNano": span.ended.as_nanosecond().to_string(),
            "attributes": span.attributes,
            "status": {"code": if failed { 2 } else { 1 }},
        });
        if let Some(parent) = span.parent {
            written["parentSpanId"] = id(parent).into();
        }
        written
    }

    fn close_iteration(&mut self, receipt: Option<&Receipt>) {
        let Some(OpenIteration { id, number, started }) = self.iteration.take() else { return };
        let ended = self.newest.unwrap_or(started);
        for tool in std::mem::take(&mut self.tools) {
            self.tool(id, &tool, ended, Status::Unknown);
        }
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "invoke_agent"),
            attribute("gen_ai.agent.name", self.agent.as_str()),
            attribute("ralph.iteration", u64::from(number)),
        ];
        if let Some(receipt) = receipt {
            let usage = &receipt.usage;
            let known = [
                ("gen_ai.conversation.id", receipt.session.clone().map(Value::from)),
                ("gen_ai.response.model", usage.model.clone().map(Value::from)),
                ("gen_ai.usage.input_tokens", usage.prompt_tokens.map(Value::from)),
                ("gen_ai.usage.output_tokens", usage.completion_tokens.map(Value::from)),
                ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens.map(Value::from)),
                ("ralph.cost_usd", receipt.cost.map(|cost| cost.usd).or(usage.cost_usd).map(Value::from)),
                ("error.type", receipt.class.map(|class| class.name().into())),
            ];
            attributes.extend(known.into_iter().filter_map(|(key, value)| value.map(|value| attribute(key, value))));
        }
        let name = format!("invoke_agent {}", self.agent);
        let span = Span { number: id, parent: Some(0), name: &name, started, ended, attributes };
        let span = self.write(&span, receipt.is_none_or(|receipt| !receipt.success()));
        self.spans.push(span);
    }

    fn tool(&mut self, parent: u64, tool: &Tool, ended: Timestamp, status: Status) {
        let attributes = vec![
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", tool.name.as_str()),
            attribute("gen_ai.tool.call.id", tool.id.as_str()),
        ];
        let name = format!("execute_tool {}", tool.name);
        let number = tool.number;
        let span = Span { number, parent: Some(parent), name: &name, started: tool.started, ended, attributes };
        let span = self.write(&span, status == Status::Fail);
        self.spans.push(span);
    }
}

struct Span<'a> {
    number: u64,
    parent: Option<u64>,
    name: &'a str,
    started: Timestamp,
    ended: Timestamp,
    attributes: Vec<Value>,
}

impl<W: Write + Send> View for SpanView<W> {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        self.newest = Some(record.at);
        match &record.body {
            Body::Loop(Fact::RunStart { run, ralph, agent, .. }) if self.started.is_none() => {
                self.started = Some(record.at);
                self.run.clone_from(run);
                self.version.clone_from(ralph);
                self.agent.clone_from(agent);
            }
            Body::Loop(Fact::IterationStart { iteration, .. }) => {
                self.close_iteration(None);
                self.iteration = Some(OpenIteration { id: record.seq, number: *iteration, started: record.at });
            }
            Body::Loop(Fact::IterationEnd { receipt }) => self.close_iteration(Some(receipt)),
            Body::Loop(Fact::RunEnd { outcome, .. }) => self.ended = Some(*outcome),
            Body::Agent { event: Event::ToolStart { tool, .. }, .. } => {
                let (id, name) = (tool.id.clone(), tool.name.clone());
                self.tools.push(Tool { id, name, started: record.at, number: record.seq });
            }
            Body::Agent { event: Event::ToolEnd { tool, .. }, .. } => {
                if let (Some(at), Some(open)) = (self.tools.iter().position(|open| open.id == tool.id), &self.iteration)
                {
                    let (parent, begun) = (open.id, self.tools.remove(at));
                    self.tool(parent, &begun, record.at, tool.status);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn attribute(key: &str, value: impl Into<Value>) -> Value {
    let value = match value.into() {
        // OTLP writes whole numbers of 64 bits as text.
        Value::Number(number) if number.is_u64() => json!({"intValue": number.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::Bool(flag) => json!({"boolValue": flag}),
        other => json!({"stringValue": other}),
    };
    json!({"key": key, "value": value})
}

/// FNV-1a: the same on every machine.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
