//! Gemini's `generateContent`.

use serde_json::{Value, json};

use super::{Dialect, Frame, Part, Reply, pieces};
use crate::scenario::FaultKind;
use crate::tools::{Form, Offered};

/// Gemini.
pub struct Gemini;

impl Gemini {
    fn answer(reply: &Reply, parts: &[Value], end: bool) -> Value {
        let usage = reply.usage;
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if end {
            candidate["finishReason"] = json!("STOP");
        }
        json!({
            "candidates": [candidate], "modelVersion": reply.model, "responseId": reply.id("resp", 0),
            "usageMetadata": {
                "promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
                "totalTokenCount": usage.input + usage.output, "cachedContentTokenCount": usage.cached,
            },
        })
    }

    fn parts(part: &Part) -> Vec<Value> {
        match part {
            Part::Thinking(text) => vec![json!({"text": text, "thought": true})],
            Part::Text(text) => pieces(text).into_iter().map(|piece| json!({"text": piece})).collect(),
            Part::Call(call) => vec![
                json!({"functionCall": {"name": call.name, "args": call.input}, "thoughtSignature": "c2NyaXB0ZWQ="}),
            ],
        }
    }
}

impl Dialect for Gemini {
    fn offered(&self, body: &Value) -> Vec<Offered> {
        let groups = body["tools"].as_array().into_iter().flatten();
        let declared = groups.flat_map(|group| group["functionDeclarations"].as_array().into_iter().flatten());
        let offered = |tool: &Value| {
            let name = tool["name"].as_str()?.to_owned();
            let schema = ["parametersJsonSchema", "parameters"]
                .map(|key| &tool[key])
                .into_iter()
                .find(|schema| schema.is_object());
            Some(Offered { name, form: Form::Function, schema: schema.cloned().unwrap_or_default() })
        };
        declared.filter_map(offered).collect()
    }

    fn whole(&self, reply: &Reply) -> Value {
        let parts: Vec<Value> = reply.parts.iter().flat_map(Self::parts).collect();
        Self::answer(reply, &parts, true)
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let mut parts: Vec<Value> = reply.parts.iter().flat_map(Self::parts).collect();
        if parts.is_empty() {
            parts.push(json!({"text": ""}));
        }
        let last = parts.len() - 1;
        let frame = |(at, part): (usize, Value)| Frame::plain(&Self::answer(reply, &[part], at == last));
        parts.into_iter().enumerate().map(frame).collect()
    }

    fn refusal(&self, kind: FaultKind) -> (u16, Value) {
        let (status, name, message) = match kind {
            FaultKind::Unauthorized => (401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
            FaultKind::RateLimit => (
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota, please check your plan. Please retry in 1s.",
            ),
            FaultKind::Overloaded => (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            FaultKind::Context => (
                400,
                "INVALID_ARGUMENT",
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            FaultKind::ServerError | FaultKind::Cut | FaultKind::Hang => {
                (500, "INTERNAL", "An internal error has occurred.")
            }
        };
        let mut error = json!({"code": status, "message": message, "status": name});
        if kind == FaultKind::RateLimit {
            error["details"] = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}]);
        }
        (status, json!({"error": error}))
    }

    fn wanted<'a>(&self, body: &'a Value) -> &'a Value {
        let wishes = &body["generationConfig"];
        if wishes["responseJsonSchema"].is_object() { &wishes["responseJsonSchema"] } else { &wishes["responseSchema"] }
    }
}
