//! The server as a client sees it: every protocol streams the script, every fault looks as it should, every bound holds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fake_model::{Bounds, Scenario, Server};
use serde_json::{Value, json};

const TOOL: &str = include_str!("../scenarios/tool.yml");

fn serve(script: &str) -> Server {
    Server::start(Scenario::parse(script).unwrap(), Path::new("/place"), Bounds::default(), 0).unwrap()
}

/// Status, head and body of one answer.
fn ask(server: &Server, path: &str, body: &Value) -> (u16, String, String) {
    let mut stream = TcpStream::connect(server.address().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let body = body.to_string();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    (head.split(' ').nth(1).unwrap_or("0").parse().unwrap(), head.to_owned(), body.to_owned())
}

/// The objects behind `data:`.
fn data(stream: &str) -> Vec<Value> {
    stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter_map(|d| serde_json::from_str(d).ok()).collect()
}

/// Each protocol: its path, a request that offers a tool for files, a request that offers none.
fn protocols() -> Vec<(&'static str, Value)> {
    let schema = json!({"type": "object", "required": ["file_path", "content", "mode"],
        "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}, "mode": {"enum": ["append", "create"]}}});
    vec![
        ("/v1/messages", json!({"model": "m", "stream": true, "tools": [{"name": "Write", "input_schema": schema}]})),
        (
            "/v1/chat/completions",
            json!({"model": "m", "stream": true, "tools": [{"type": "function", "function": {"name": "write", "parameters": schema}}]}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "stream": true, "tools": [{"type": "function", "name": "write_file", "parameters": schema}]}),
        ),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"tools": [{"functionDeclarations": [{"name": "write_file", "parametersJsonSchema": schema}]}]}),
        ),
    ]
}

#[test]
fn every_protocol_streams_thought_words_and_a_call_of_the_tool_that_was_offered() {
    for (path, body) in protocols() {
        let server = serve(TOOL);
        let (status, _, stream) = ask(&server, path, &body);
        assert_eq!(status, 200, "{path}");
        // Pieces are put together again by taking the quotes and keys of the protocol away.
        for needle in ["First the ", "I w", "/place/hello.txt", "create"] {
            let whole = stream.replace("\\\"", "\"").contains(needle);
            let joined: String = data(&stream).iter().map(strings).collect();
            assert!(whole || joined.contains(needle), "{path} does not say `{needle}`: {stream}");
        }
        let (_, _, second) = ask(&server, path, &body);
        let joined: String = data(&second).iter().map(strings).collect();
        assert!(joined.contains("Done."), "{path}: {second}");
        let turns: Vec<_> = server.exchanges().into_iter().map(|exchange| exchange.turn).collect();
        assert_eq!(turns, [Some(0), Some(1)], "{path}");
    }
}

/// The pieces of a stream, in order.
fn strings(value: &Value) -> String {
    let known = [
        "/delta/text",
        "/delta/thinking",
        "/delta/partial_json",
        "/delta",
        "/choices/0/delta/content",
        "/choices/0/delta/reasoning_content",
        "/choices/0/delta/tool_calls/0/function/arguments",
        "/candidates/0/content/parts/0/text",
    ];
    known.iter().filter_map(|place| value.pointer(place)?.as_str()).collect()
}

#[test]
fn an_answer_in_one_piece_says_the_same() {
    for (path, mut body) in protocols() {
        let path = path.replace("streamGenerateContent?alt=sse", "generateContent");
        if let Some(streams) = body.get_mut("stream") {
            *streams = json!(false);
        }
        let (status, _, answer) = ask(&serve(TOOL), &path, &body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(status, 200);
        assert!(answer.to_string().contains("/place/hello.txt"), "{path}: {answer}");
    }
}

#[test]
fn a_request_without_tools_takes_no_turn_and_gets_the_form_it_asks_for() {
    let server = serve(TOOL);
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer"}}});
    let body = json!({"model": "m", "response_format": {"json_schema": {"schema": schema}}});
    let (_, _, answer) = ask(&server, "/v1/chat/completions", &body);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], r#"{"title":"scripted","n":1}"#);
    assert_eq!(server.exchanges()[0].turn, None);
}

#[test]
fn a_cli_that_offers_only_a_shell_writes_files_with_it() {
    let schema = json!({"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]});
    let body = json!({"model": "m", "tools": [{"type": "function", "name": "exec_command", "parameters": schema}]});
    let (_, _, answer) = ask(&serve(TOOL), "/v1/responses", &body);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let call =
        answer["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap().clone();
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["cmd"], "cat > 'hello.txt' <<'END_OF_FILE'\nhello\nEND_OF_FILE");
}

#[test]
fn faults_have_the_status_of_their_protocol() {
    let table = [
        ("unauthorized", [401, 401, 401, 401]),
        ("rate-limit", [429, 429, 429, 429]),
        ("server-error", [500, 500, 500, 500]),
        ("overloaded", [529, 503, 503, 503]),
        ("context", [400, 400, 400, 400]),
    ];
    for (kind, statuses) in table {
        for ((path, body), wanted) in protocols().into_iter().zip(statuses) {
            let server =
                serve(&format!("turns: [{{fault: {{kind: {kind}, times: 1, retry_after: 3}}}}, {{text: fine}}]"));
            let (status, head, answer) = ask(&server, path, &body);
            assert_eq!(status, wanted, "{kind} {path}");
            assert!(head.contains("retry-after: 3"), "{head}");
            assert!(serde_json::from_str::<Value>(&answer).unwrap()["error"]["message"].is_string());
            assert_eq!(ask(&server, path, &body).0, 200, "the fault is over after one request");
        }
    }
}

#[test]
fn a_fault_without_a_number_stays_until_it_is_lifted() {
    let server = serve("turns: [{fault: {kind: overloaded}}, {text: fine}]");
    let (path, body) = protocols().remove(0);
    assert_eq!([0, 1, 2].map(|_| ask(&server, path, &body).0), [529; 3]);
    server.lift();
    let (status, _, stream) = ask(&server, path, &body);
    let said: String = data(&stream).iter().map(strings).collect();
    assert_eq!((status, said.as_str()), (200, "fine"));
}

#[test]
fn a_cut_stream_has_no_end() {
    for (path, body) in protocols() {
        let (status, _, stream) = ask(&serve("turns: [{fault: {kind: cut}}]"), path, &body);
        assert_eq!(status, 200);
        assert!(!stream.is_empty() && !stream.ends_with("0\r\n\r\n"), "{path}: {stream}");
        assert!(!stream.contains("stop_reason\":\"end_turn") && !stream.contains("STOP"), "{path}: {stream}");
    }
}

#[test]
fn a_hanging_stream_says_nothing_more_and_ends_with_the_server() {
    let script = Scenario::parse("turns: [{fault: {kind: hang}}]").unwrap();
    let bounds = Bounds { lifetime: Duration::from_millis(700), ..Bounds::default() };
    let server = Server::start(script, Path::new("/place"), bounds, 0).unwrap();
    let mut stream = TcpStream::connect(server.address().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let body = protocols().remove(0).1.to_string();
    write!(stream, "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let (begun, mut all) = (Instant::now(), Vec::new());
    stream.read_to_end(&mut all).unwrap();
    assert!(begun.elapsed() > Duration::from_millis(300), "it did not hang");
    assert!(String::from_utf8(all).unwrap().contains("message_start"));
}

#[test]
fn a_server_that_has_answered_enough_is_over() {
    let script = Scenario::parse("turns: [{text: one}]").unwrap();
    let server = Server::start(script, Path::new("/"), Bounds { requests: 2, ..Bounds::default() }, 0).unwrap();
    let (path, body) = protocols().remove(0);
    ask(&server, path, &body);
    assert!(!server.over());
    ask(&server, path, &body);
    assert!(server.over());
}

#[test]
fn the_program_ends_when_its_parent_lets_go_of_its_input() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/tool.yml");
    let mut program = Command::new(env!("CARGO_BIN_EXE_fake-model"))
        .args([script.as_os_str(), "--seconds".as_ref(), "20".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");
    let begun = Instant::now();
    drop(program.stdin.take());
    assert!(program.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(5));
}
