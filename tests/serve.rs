//! The wire of `ralph serve`: who is answered, who is refused, and that nobody can hold it up.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "browser/server.rs"]
#[allow(dead_code)]
mod server;
mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fake_agent::says;
use server::Server;
use support::{Ran, Test};

fn finished() -> (Ran, String) {
    let ran = Test::new().agent(says("All done.\n<promise>COMPLETE</promise>")).run().complete();
    let id = support::run_directory(&ran.test.workspace()).unwrap();
    let id = id.file_name().unwrap().to_str().unwrap().to_owned();
    (ran, id)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn nothing_is_answered_without_the_token() {
    let (ran, id) = finished();
    let server = Server::start(ran.test.tool(), &[]);
    let port = server.host.rsplit(':').next().unwrap().to_owned();
    for path in ["/", "/page.js", "/page.css", "/api/runs", "/api/live", "/nothing", "/?token=", "/?token=0", "/?x=1"] {
        let answer = server.ask(&format!("GET {path}"), &[], "");
        assert_eq!(status(&answer), "401", "{path}: {answer}");
        assert!(!answer.contains(&id) && !answer.contains("<html"), "{answer}");
    }
    for wrong in [server.token[1..].to_owned(), format!("{}0", server.token), "0".repeat(32)] {
        let cookie = format!("Cookie: ralph-{port}={wrong}");
        assert_eq!(status(&server.ask("GET /api/runs", &[&cookie], "")), "401");
    }
    let visit = server.ask(&format!("GET /?token={}", server.token), &[], "").to_lowercase();
    assert_eq!(status(&visit), "200");
    assert!(visit.contains("httponly; samesite=strict"), "{visit}");
    assert!(visit.contains("script-src 'self'") && !visit.contains("unsafe-inline"), "{visit}");
    let runs = server.ask("GET /api/runs", &[&server.cookie()], "");
    assert!(status(&runs) == "200" && runs.contains(&id), "{runs}");
}

#[test]
fn other_sites_and_rebound_names_are_refused() {
    let (ran, id) = finished();
    let server = Server::start(ran.test.tool(), &[]);
    let cookie = server.cookie();
    for host in ["Host: evil.example", "Host: 127.0.0.1.evil.example:7331", "Host:"] {
        assert_eq!(status(&server.ask("GET /api/runs", &[host, &cookie], "")), "403", "{host}");
    }
    let path = format!("POST /api/runs/{id}/order");
    let json = "Content-Type: application/json";
    let body = r#"{"order":"pause"}"#;
    for origin in ["Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:1"] {
        assert_eq!(status(&server.ask(&path, &[origin, &cookie, json], body)), "403", "{origin}");
    }
    assert_eq!(status(&server.ask(&path, &[&cookie, json], body)), "403", "no origin");
    let own = format!("Origin: http://{}", server.host);
    assert_eq!(status(&server.ask(&path, &[&own, &cookie, "Content-Type: text/plain"], body)), "415", "a form");
    assert_eq!(status(&server.ask(&path, &[&own, &cookie, json], body)), "409", "the run is over");
    let read_only = Server::start(ran.test.tool(), &["--read-only"]);
    let own = format!("Origin: http://{}", read_only.host);
    assert_eq!(status(&read_only.ask(&path, &[&own, &read_only.cookie(), json], body)), "403");
}

#[test]
fn paths_bodies_and_floods_are_bounded() {
    let (ran, id) = finished();
    let server = Server::start(ran.test.tool(), &[]);
    let (cookie, own) = (server.cookie(), format!("Origin: http://{}", server.host));
    for path in ["/../etc/passwd", "/api/runs/..%2f..%2fetc", "/api/runs/%2e%2e/rows", "/api/runs/-x", "//etc/passwd"] {
        assert_eq!(status(&server.ask(&format!("GET {path}"), &[&cookie], "")), "404", "{path}");
    }
    for query in
        ["rows?from=99999999999", "rows?before=99999999999", "row?at=7", "search?q=x&from=99999999", "rows?from=-1"]
    {
        let answer = server.ask(&format!("GET /api/runs/{id}/{query}"), &[&cookie], "");
        assert!(["200", "400", "404"].contains(&status(&answer)), "{query}: {answer}");
    }
    let large = format!(r#"{{"order":"hint","words":"{}"}}"#, "x".repeat(1 << 20));
    let headers = [own.as_str(), &cookie, "Content-Type: application/json"];
    let answer = server.ask(&format!("POST /api/runs/{id}/order"), &headers, &large);
    assert!(answer.is_empty() || status(&answer) == "413", "{answer}");
    // Ten thousand requests on a few connections, and it still answers.
    let mut stream = TcpStream::connect(&server.host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.host);
    let mut buffer = [0; 4096];
    for _ in 0..10_000 {
        stream.write_all(request.as_bytes()).unwrap();
        assert!(stream.read(&mut buffer).unwrap() > 0);
    }
    assert_eq!(status(&server.ask("GET /api/runs", &[&cookie], "")), "200");
}

#[test]
fn a_request_in_small_pieces_is_dropped_and_holds_up_nobody() {
    let (ran, _) = finished();
    let server = Server::start(ran.test.tool(), &[]);
    let mut slow: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&server.host).unwrap()).collect();
    let start = Instant::now();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET / HTTP/1.1\r\nX-").unwrap());
    assert_eq!(status(&server.ask("GET /api/runs", &[&server.cookie()], "")), "200");
    let mut one = slow.pop().unwrap();
    one.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    loop {
        let gone = one.write_all(b"a").is_err() || matches!(one.read(&mut [0; 256]), Ok(0));
        if gone {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(50), "it is never dropped");
    }
    assert!(start.elapsed() > Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn orders_reach_a_run_by_its_id_from_anywhere() {
    let running = Test::new().agent(says("working").sleeps(3000)).args(&["-n", "50"]).start();
    running.until("an iteration", |running| running.journal().contains("iteration_start"));
    let id = support::run_directory(&running.workspace()).unwrap();
    let id = id.file_name().unwrap().to_str().unwrap().to_owned();
    let elsewhere = tempfile::tempdir().unwrap();
    let ask = |args: &[&str]| {
        let out = running.test.tool().current_dir(elsewhere.path()).args(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    assert!(ask(&["hint", "--run", &id, "look here"]).contains("gets your hint"));
    assert!(ask(&["status", "--run", &id]).starts_with("running"));
    assert!(ask(&["pause", &id]).contains("pausing"));
    assert!(ask(&["runs", "--all"]).contains(&id));
    assert!(ask(&["stop", "--now", "--run", &id]).contains("stopping now"));
    running.wait();
}
