//! How fast each dialect is read: generated streams of the shapes that fill real ones, thread CPU time, one
//! core. `cargo bench --bench dialects [-- WORD]` prints megabytes in a second and the memory at its peak.
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs)]

use ralph::process::{Exit, Line, Lines};
use ralph::transcript::{Context, dialect};
use rustix::time::{ClockId, clock_gettime};

/// So much of each shape is read.
const BYTES: usize = 256 * 1024 * 1024;
/// As much as a pipe gives at once.
const CHUNK: usize = 64 * 1024;

struct Shape {
    name: &'static str,
    dialect: &'static str,
    /// What must be reached, in MB/s.
    wanted: f64,
    line: fn(usize) -> String,
}

const SHAPES: &[Shape] = &[
    Shape { name: "claude deltas of 120 bytes", dialect: "claude", wanted: 300.0, line: claude_delta },
    Shape { name: "claude messages of 64 KB", dialect: "claude", wanted: 600.0, line: claude_message },
    Shape { name: "claude tool results of 1 KB", dialect: "claude", wanted: 400.0, line: claude_result },
    // The hard case, for comparison: a text that is nearly all quotes and ends of lines.
    Shape { name: "claude messages, dense escapes", dialect: "claude", wanted: 0.0, line: claude_dense_message },
    Shape { name: "claude events that only count", dialect: "claude", wanted: 2000.0, line: claude_counted },
    Shape { name: "claude unknown events", dialect: "claude", wanted: 2000.0, line: claude_unknown },
    Shape { name: "gemini deltas of 120 bytes", dialect: "gemini", wanted: 150.0, line: gemini_delta },
    Shape { name: "gemini tool results of 1 KB", dialect: "gemini", wanted: 200.0, line: gemini_result },
    Shape { name: "codex messages of 64 KB", dialect: "codex", wanted: 300.0, line: codex_message },
    Shape { name: "codex commands with 1 KB", dialect: "codex", wanted: 200.0, line: codex_command },
    Shape { name: "opencode tools with 1 KB", dialect: "opencode", wanted: 150.0, line: opencode_tool },
    Shape { name: "copilot deltas of 120 bytes", dialect: "copilot", wanted: 150.0, line: copilot_delta },
    Shape { name: "copilot events that only count", dialect: "copilot", wanted: 1000.0, line: copilot_counted },
    Shape { name: "cline deltas of 120 bytes", dialect: "cline", wanted: 150.0, line: cline_delta },
    Shape { name: "pi deltas of 120 bytes", dialect: "pi", wanted: 150.0, line: pi_delta },
    Shape { name: "goose deltas of 120 bytes", dialect: "goose", wanted: 150.0, line: goose_delta },
    Shape { name: "droid messages of 4 KB", dialect: "droid", wanted: 300.0, line: droid_message },
    Shape { name: "plain lines of 80 bytes", dialect: "plain", wanted: 300.0, line: |_| words(80) },
];

fn main() {
    let word = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(&word)) {
        let (seconds, events) = read(shape);
        let speed = BYTES as f64 / 1e6 / seconds;
        let times = seconds / scan(shape);
        let verdict = if speed >= shape.wanted { "ok" } else { "TOO SLOW" };
        println!(
            "{:34} {speed:7.0} MB/s  wanted {:5.0}  {verdict:8}  {times:4.1} times a bare scan  {events} events, {} MB",
            shape.name,
            shape.wanted,
            peak()
        );
    }
}

fn block(shape: &Shape) -> String {
    let mut block = String::new();
    let mut at = 0;
    while block.len() < 8 * 1024 * 1024 {
        block.push_str(&(shape.line)(at));
        block.push('\n');
        at += 1;
    }
    block
}

/// The same bytes, only looked through for lines, text and JSON, and nothing kept: what the machine can do at this moment.
fn scan(shape: &Shape) -> f64 {
    let block = block(shape);
    let mut lines = Lines::default();
    let began = cpu();
    let (mut read, mut valid) = (0, 0_usize);
    while read < BYTES {
        for chunk in block.as_bytes().chunks(CHUNK) {
            lines.push(chunk, |line| {
                let text = std::str::from_utf8(line.bytes).unwrap_or_default();
                valid += usize::from(serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
            });
            read += chunk.len();
        }
    }
    std::hint::black_box(valid);
    (cpu() - began) * BYTES as f64 / read as f64
}

fn read(shape: &Shape) -> (f64, usize) {
    let block = block(shape);
    let mut adapter = (dialect(shape.dialect).unwrap().adapter)(&Context::default());
    // Real streams begin with a line that shows what they are.
    let first: &[u8] = match shape.dialect {
        "claude" => b"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}",
        "gemini" => b"{\"type\":\"init\",\"session_id\":\"s\"}",
        "codex" => b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}",
        "pi" => b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\".\"}",
        _ => b"",
    };
    let mut lines = Lines::default();
    let mut events = 0;
    let mut out = Vec::new();
    adapter.line(Line::whole(first), &mut out);
    let began = cpu();
    let mut read = 0;
    while read < BYTES {
        for chunk in block.as_bytes().chunks(CHUNK) {
            lines.push(chunk, |line| adapter.line(line, &mut out));
            events += out.len();
            out.clear();
            read += chunk.len();
        }
    }
    let seconds = cpu() - began;
    adapter.end(Some(Exit::Code(0)), &mut out);
    (seconds * BYTES as f64 / read as f64, events)
}

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Memory at its peak so far, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn words(bytes: usize) -> String {
    "The quick brown fox jumps over the lazy dog and goes on. ".chars().cycle().take(bytes).collect()
}

/// Text as it stands in JSON, with an escape every 25 bytes: as many as source code has. Captured texts and tool
/// outputs of claude, codex and gemini have one every 55.
fn escaped(bytes: usize) -> String {
    const LINE: &str = "    let total = items.iter().map(|item| item.price).sum::<u64>(); // \\\"all\\\"\\n";
    LINE.repeat(bytes / LINE.len())
}

const SESSION: &str = "\"session_id\":\"9df844a5-6fe9-4c85-936f-cc9534b0cc7e\",\"parent_tool_use_id\":null,\"uuid\":\"ebe7fc2f-a39e-4064-bcd1-ed6516b3e553\"";

fn claude_delta(at: usize) -> String {
    // Every two hundred fragments a new block begins.
    if at.is_multiple_of(200) {
        return format!(
            "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}},{SESSION}}}"
        );
    }
    format!(
        "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{}\"}}}},{SESSION}}}",
        words(120)
    )
}

fn claude_message(_: usize) -> String {
    claude_text(&escaped(64 * 1024))
}

/// An escape every 14 bytes.
fn claude_dense_message(_: usize) -> String {
    const LINE: &str = "let x = \\\"a\\\";\\n    println!(\\\"{x}\\\"); // the quick brown fox jumps over the dog\\n";
    claude_text(&LINE.repeat(64 * 1024 / LINE.len()))
}

fn claude_text(text: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"message\":{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"stop_reason\":null,\"usage\":{{\"input_tokens\":1200,\"output_tokens\":1}}}},{SESSION}}}"
    )
}

fn claude_result(at: usize) -> String {
    let id = at / 2;
    if at.is_multiple_of(2) {
        return format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_{id}\",\"name\":\"Bash\",\"input\":{{\"command\":\"cargo test\",\"description\":\"Run the tests\"}}}}],\"stop_reason\":null}},{SESSION}}}"
        );
    }
    let output = escaped(1024);
    format!(
        "{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{id}\",\"type\":\"tool_result\",\"content\":\"{output}\",\"is_error\":false}}]}},{SESSION},\"timestamp\":\"2026-11-15T19:24:58.071Z\",\"tool_use_result\":{{\"stdout\":\"{output}\",\"stderr\":\"\",\"interrupted\":false}}}}"
    )
}

fn claude_counted(_: usize) -> String {
    format!(
        "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}}},{SESSION}}}",
        words(120)
    )
}

fn claude_unknown(_: usize) -> String {
    format!("{{\"type\":\"something_new\",\"data\":{{\"text\":\"{}\"}},{SESSION}}}", words(200))
}

fn gemini_delta(_: usize) -> String {
    format!(
        "{{\"type\":\"message\",\"timestamp\":\"2026-11-15T19:33:25.917Z\",\"role\":\"assistant\",\"content\":\"{}\",\"delta\":true}}",
        words(120)
    )
}

fn gemini_result(at: usize) -> String {
    let id = at / 2;
    if at.is_multiple_of(2) {
        return format!(
            "{{\"type\":\"tool_use\",\"timestamp\":\"2026-11-15T19:33:26.814Z\",\"tool_name\":\"run_shell_command\",\"tool_id\":\"run_shell_command_{id}\",\"parameters\":{{\"command\":\"cargo test\"}}}}"
        );
    }
    format!(
        "{{\"type\":\"tool_result\",\"timestamp\":\"2026-11-15T19:33:28.552Z\",\"tool_id\":\"run_shell_command_{id}\",\"status\":\"success\",\"output\":\"{}\"}}",
        escaped(1024)
    )
}

fn codex_message(at: usize) -> String {
    format!(
        "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{at}\",\"type\":\"agent_message\",\"text\":\"{}\"}}}}",
        escaped(64 * 1024)
    )
}

fn codex_command(at: usize) -> String {
    let id = at / 2;
    let (phase, output, code, status) = if at.is_multiple_of(2) {
        ("started", String::new(), "null", "in_progress")
    } else {
        ("completed", escaped(1024), "0", "completed")
    };
    format!(
        "{{\"type\":\"item.{phase}\",\"item\":{{\"id\":\"item_{id}\",\"type\":\"command_execution\",\"command\":\"/bin/bash -lc 'cargo test'\",\"aggregated_output\":\"{output}\",\"exit_code\":{code},\"status\":\"{status}\"}}}}"
    )
}

fn opencode_tool(at: usize) -> String {
    const ID: &str = "ses_e1f24b914ffesjP2kKAFvRHkDF";
    let output = escaped(1024);
    format!(
        "{{\"type\":\"tool_use\",\"timestamp\":1794773831970,\"sessionID\":\"{ID}\",\"part\":{{\"type\":\"tool\",\"tool\":\"bash\",\"callID\":\"call_{at}\",\"state\":{{\"status\":\"completed\",\"input\":{{\"command\":\"cargo test\"}},\"output\":\"{output}\",\"metadata\":{{\"output\":\"{output}\",\"exit\":0,\"truncated\":false}},\"title\":\"cargo test\",\"time\":{{\"start\":1794773831816,\"end\":1794773831952}}}},\"sessionID\":\"{ID}\"}}}}"
    )
}

const ENVELOPE: &str = "\"ephemeral\":true,\"id\":\"8147baba-9b27-4776-93b3-4f9ce73fe0eb\",\"timestamp\":\"2026-11-15T20:17:30.661Z\",\"parentId\":\"4aec402d-edb9-4260-ba12-b4bd9694e1fe\"";

fn copilot_delta(at: usize) -> String {
    // Every two hundred fragments a new message begins.
    if at.is_multiple_of(200) {
        return format!("{{\"type\":\"assistant.message_start\",\"data\":{{\"messageId\":\"m\"}},{ENVELOPE}}}");
    }
    format!(
        "{{\"type\":\"assistant.message_delta\",\"data\":{{\"messageId\":\"9fde660c-6fea-4a16-a740-c21111763258\",\"deltaContent\":\"{}\"}},{ENVELOPE}}}",
        words(120)
    )
}

fn copilot_counted(_: usize) -> String {
    format!("{{\"type\":\"session.background_tasks_changed\",\"data\":{{}},{ENVELOPE}}}")
}

fn cline_delta(_: usize) -> String {
    // What was said so far is repeated with each fragment.
    format!(
        "{{\"ts\":\"2026-11-15T20:17:23.716Z\",\"type\":\"agent_event\",\"event\":{{\"type\":\"content_start\",\"contentType\":\"text\",\"text\":\"{}\",\"accumulated\":\"{}\"}}}}",
        words(120),
        words(1200)
    )
}

fn pi_delta(at: usize) -> String {
    // The whole message is repeated twice with each fragment.
    let phase = if at.is_multiple_of(200) { "text_start" } else { "text_delta" };
    let message =
        format!("{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}", words(1200));
    format!(
        "{{\"type\":\"message_update\",\"assistantMessageEvent\":{{\"type\":\"{phase}\",\"contentIndex\":0,\"delta\":\"{}\",\"partial\":{message}}},\"message\":{message}}}",
        words(120)
    )
}

fn goose_delta(at: usize) -> String {
    format!(
        "{{\"type\":\"message\",\"message\":{{\"id\":\"chatcmpl-{}\",\"role\":\"assistant\",\"created\":1794771287,\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}],\"metadata\":{{\"userVisible\":true,\"agentVisible\":true,\"inference\":{{\"provider\":\"openai\",\"requestedModel\":\"fake-model\"}}}}}}}}",
        at / 200,
        words(120)
    )
}

fn droid_message(at: usize) -> String {
    format!(
        "{{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"m{at}\",\"text\":\"{}\",\"timestamp\":1794771903296,\"session_id\":\"2c018ff2-e450-4bc4-bec3-39ebf9ae7552\"}}",
        escaped(4096)
    )
}
