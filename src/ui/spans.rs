//! One run as OpenTelemetry spans in OTLP's JSON: the run, its iterations, their tools. Names follow the semantic
//! conventions for generative AI, which are still in development; this file is the only place that knows them.
//!
//! Words of agents and people are never in it.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::View;
use super::model::{Call, Model};
use crate::event::{Event, Status};
use crate::journal::{Body, Fact, Outcome, Receipt, Record};

/// Gathers spans, and writes them at the end.
pub struct SpanView<W> {
    out: W,
    model: Model,
    /// The number and the time of the record that started the open iteration.
    open: Option<(u64, Timestamp)>,
    spans: Vec<Value>,
}

impl<W: Write> SpanView<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, model: Model::new(), open: None, spans: Vec::new() }
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.close_iteration(None);
        let run = &self.model.run;
        let (Some(started), Some(newest)) = (run.started, self.model.newest) else { return Ok(()) };
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "invoke_workflow"),
            attribute("gen_ai.workflow.name", "ralph"),
            attribute("gen_ai.conversation.id", run.run.as_str()),
        ];
        let failed = run.end.as_ref().map(|end| end.outcome).filter(|outcome| *outcome != Outcome::Complete);
        if let Some(outcome) = failed {
            let name = serde_json::to_value(outcome).unwrap_or_default();
            attributes.push(attribute("error.type", name));
        }
        let root = Span { number: 0, parent: None, name: "invoke_workflow ralph", started, ended: newest, attributes };
        let root = self.write(&root, failed.is_some());
        self.spans.insert(0, root);
        let version = &self.model.run.ralph;
        let document = json!({"resourceSpans": [{
            "resource": {"attributes": [
                attribute("service.name", "ralph"),
                attribute("service.version", version.as_str()),
            ]},
            "scopeSpans": [{"scope": {"name": "ralph", "version": version}, "spans": self.spans}],
        }]});
        self.out.write_all(super::pretty(&document).as_bytes())?;
        self.out.flush()
    }

    /// A span as OTLP has it. Its ids come from the run's id: exported twice, it is the same span.
    fn write(&self, span: &Span<'_>, failed: bool) -> Value {
        let run = &self.model.run.run;
        let id = |number: u64| format!("{:016x}", hash(&format!("{run} {number}")));
        let mut written = json!({
            "traceId": format!("{:016x}{:016x}", hash(run), hash(&format!("{run} trace"))),
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
        let Some((id, started)) = self.open.take() else { return };
        let ended = self.model.newest.unwrap_or(started);
        let open = self.model.iteration.calls.kept().iter().filter(|call| call.cut_off || call.status.is_none());
        for call in open.cloned().collect::<Vec<_>>() {
            self.tool(id, &call, ended, Status::Unknown);
        }
        let agent = &self.model.run.agent;
        let number = self.model.run.iterations.last().map_or(0, |tried| tried.iteration);
        let mut attributes = vec![
            attribute("gen_ai.operation.name", "invoke_agent"),
            attribute("gen_ai.agent.name", agent.as_str()),
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
                ("ralph.cost_usd", receipt.known_cost().map(|cost| Value::from(cost.usd))),
                ("error.type", receipt.class.map(|class| class.name().into())),
            ];
            attributes.extend(known.into_iter().filter_map(|(key, value)| value.map(|value| attribute(key, value))));
        }
        let name = format!("invoke_agent {agent}");
        let span = Span { number: id, parent: Some(0), name: &name, started, ended, attributes };
        let span = self.write(&span, receipt.is_none_or(|receipt| !receipt.success()));
        self.spans.push(span);
    }

    fn tool(&mut self, parent: u64, tool: &Call, ended: Timestamp, status: Status) {
        let attributes = vec![
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", tool.name.as_str()),
            attribute("gen_ai.tool.call.id", tool.id.as_str()),
        ];
        let name = format!("execute_tool {}", tool.name);
        let number = tool.seq;
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
        let call = match &record.body {
            Body::Agent { event: Event::ToolEnd { tool, .. }, .. } => {
                let call = self.model.iteration.calls.find(&tool.id).filter(|call| call.status.is_none());
                call.cloned().map(|call| (call, tool.status))
            }
            Body::Loop(Fact::IterationStart { .. }) => {
                self.close_iteration(None);
                self.open = Some((record.seq, record.at));
                None
            }
            _ => None,
        };
        self.model.apply(record);
        if let Body::Loop(Fact::IterationEnd { receipt }) = &record.body {
            self.close_iteration(Some(receipt));
        }
        if let (Some((call, status)), Some((parent, _))) = (call, self.open) {
            self.tool(parent, &call, record.at, status);
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
