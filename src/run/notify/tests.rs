use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Instant;

use jiff::Timestamp;

use super::*;
use crate::event::Usage;
use crate::journal::Receipt;

fn end(outcome: Outcome) -> Fact {
    Fact::RunEnd {
        outcome,
        reason: "because".into(),
        exit_code: 3,
        iterations: 2,
        duration_ms: 1000,
        usage: Usage::default(),
        cost: None,
        unpriced: 0,
        question: Some("which one?".into()),
        changed: None,
        compared: crate::journal::Compared::default(),
    }
}

fn limited(wait_ms: u64) -> [Fact; 2] {
    let receipt = Receipt { class: Some(FailureClass::RateLimit), ..Receipt::default() };
    let decision = Fact::Decision {
        verdict: "wait".into(),
        reason: "limited".into(),
        wait_ms: Some(wait_ms),
        memory: None,
        outcome: None,
    };
    [Fact::IterationEnd { receipt: Box::new(receipt) }, decision]
}

/// Says what is worth telling of these facts; gives what went wrong.
fn told(notify: Notify, facts: &[Fact]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut notifier = Notifier::new(notify, directory.path().to_owned());
        for fact in facts {
            notifier.see(&Record { seq: 0, at: Timestamp::UNIX_EPOCH, body: Body::Loop(fact.clone()) });
        }
        tokio::time::timeout(Duration::from_secs(30), notifier.finish()).await.unwrap()
    })
}

fn by_command(script: &str) -> Notify {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    Notify { on: Moment::ALL.to_vec(), command: Some(command), ..Notify::default() }
}

#[test]
fn each_moment_is_told_once_with_its_facts() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("told");
    let script =
        format!("printf '%s|%s|' \"$RALPH_NOTICE\" \"$RALPH_EXIT_CODE\" >>{0}; cat >>{0}; echo >>{0}", file.display());
    for (facts, expected) in [
        (vec![end(Outcome::Complete)], Some("complete|3|")),
        (vec![end(Outcome::NoProgress)], Some("failed|3|")),
        (vec![end(Outcome::Human)], Some("blocked|3|")),
        (limited(5000).to_vec(), Some("waiting||")),
        (vec![end(Outcome::Interrupted)], None),
        (limited(5000)[1..].to_vec(), None),
    ] {
        let _ = std::fs::remove_file(&file);
        assert_eq!(told(by_command(&script), &facts), [""; 0]);
        let said = std::fs::read_to_string(&file).unwrap_or_default();
        let Some(expected) = expected else {
            assert_eq!(said, "");
            continue;
        };
        let json: Value =
            serde_json::from_str(said.strip_prefix(expected).unwrap_or_else(|| panic!("{said}"))).unwrap();
        assert_eq!(Some(json["notice"].as_str().unwrap()), expected.split('|').next());
        assert!(json["reason"].is_string());
    }
}

#[test]
fn what_nobody_asked_for_is_not_told() {
    let only = Notify { on: vec![Moment::Blocked], ..by_command("exit 1") };
    assert_eq!(told(only, &[end(Outcome::Complete)]), [""; 0]);
}

#[test]
fn a_command_that_fails_or_hangs_is_reported_and_nothing_more() {
    let failed = told(by_command("echo broken >&2; exit 3"), &[end(Outcome::Complete)]);
    assert!(failed[0].ends_with("failed: broken"), "{failed:?}");
    let missing = Notify { command: Some(vec!["no-such-command-anywhere".into()]), ..by_command("") };
    assert!(told(missing, &[end(Outcome::Complete)])[0].contains("no-such-command-anywhere"));
    let start = Instant::now();
    assert!(told(by_command("sleep 60"), &[end(Outcome::Complete)])[0].contains("stopped after 10 s"));
    assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
}

/// A web service that answers once; gives what it heard.
fn service(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?key=1", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut heard = Vec::new();
        let mut buffer = [0; 4096];
        while !heard.ends_with(b"}") {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                count => heard.extend_from_slice(&buffer[..count]),
            }
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(heard).unwrap()
    });
    (address, heard)
}

fn by_request(address: String) -> Notify {
    Notify { on: Moment::ALL.to_vec(), channels: vec![Channel::Webhook(address)], ..Notify::default() }
}

#[test]
fn a_web_service_gets_the_notice_as_json() {
    let (address, heard) = service("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(told(by_request(address), &[end(Outcome::Human)]), [""; 0]);
    let heard = heard.join().unwrap();
    assert!(heard.starts_with("POST /hook?key=1 HTTP/1.1\r\nHost: 127.0.0.1:"), "{heard}");
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    let json: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&json["notice"], &json["question"]), (&json!("blocked"), &json!("which one?")));
}

#[test]
fn a_web_service_that_refuses_is_named_without_its_secrets() {
    let (address, heard) = service("HTTP/1.1 500 Oops\r\n\r\n");
    let wrong = told(by_request(address), &[end(Outcome::Complete)]);
    heard.join().unwrap();
    assert!(wrong[0].ends_with("answers 500") && !wrong[0].contains("key=1"), "{wrong:?}");
    // Nobody listens there any more.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert!(
        told(by_request(address), &[end(Outcome::Complete)])[0].starts_with("webhook: cannot reach http://127.0.0.1:")
    );
}
