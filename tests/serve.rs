//! The wire of `ralph serve`: who is answered, who is refused, and that nobody can hold it up.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/commands.rs"]
mod commands;
#[path = "browser/server.rs"]
#[allow(dead_code)]
mod server;
mod support;

use std::fs::File;
use std::io::{BufRead as _, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use fake_agent::{Script, says};
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
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nX-").unwrap();
    }
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

#[test]
fn a_reader_that_takes_nothing_is_dropped_after_ten_seconds() {
    let (ran, _) = finished();
    let server = Server::start(ran.test.tool(), &[]);
    let mut stream = TcpStream::connect(&server.host).unwrap();
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    // More answers than the buffers of both sides hold, and nobody reads them.
    let request = format!("GET /page.js HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n", server.host, server.cookie());
    let (start, mut stuck, mut sent) = (Instant::now(), None, 0);
    let dropped = loop {
        match stream.write(request.as_bytes()) {
            Ok(written) => sent += written,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                stuck.get_or_insert_with(Instant::now);
            }
            Err(_) => break start.elapsed(),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "it is never dropped, after {sent} bytes");
        if stuck.is_some() && sent > 0 {
            assert_eq!(status(&server.ask("GET /api/runs", &[&server.cookie()], "")), "200", "others are answered");
            sent = 0;
        }
    };
    assert!(stuck.is_some(), "it never stalled");
    assert!(dropped > Duration::from_secs(9) && dropped < Duration::from_secs(45), "{dropped:?}");
}

#[test]
fn the_connection_after_the_256th_waits_until_one_is_closed() {
    let (ran, _) = finished();
    let server = Server::start(ran.test.tool(), &[]);
    let mut held: Vec<TcpStream> = (0..256).map(|_| TcpStream::connect(&server.host).unwrap()).collect();
    let mut next = TcpStream::connect(&server.host).unwrap();
    write!(next, "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.host).unwrap();
    next.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = [0; 12];
    assert!(next.read(&mut answer).is_err(), "one more than 256 was answered");
    held.pop();
    next.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    next.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 401");
}

#[test]
fn beyond_loopback_there_is_a_token_too_and_a_warning() {
    let (ran, id) = finished();
    for token in [None, Some("chosen-by-a-person")] {
        let more: Vec<&str> =
            ["--bind", "0.0.0.0"].into_iter().chain(token.iter().flat_map(|it| ["--token", it])).collect();
        let mut server = Server::start(ran.test.tool(), &more);
        assert_eq!(server.token, token.unwrap_or(&server.token));
        assert!(server.token.len() >= 16, "{}", server.address);
        assert!(!server.host.starts_with("0.0.0.0"), "nobody can visit {}", server.address);
        server.host = format!("127.0.0.1:{}", server.host.rsplit(':').next().unwrap());
        assert_eq!(status(&server.ask("GET /api/runs", &[], "")), "401");
        assert!(server.ask("GET /api/runs", &[&server.cookie()], "").contains(&id));
        let warned = server.complaints();
        assert!(warned.contains("anyone in your network who has this address can use the page"), "{warned}");
    }
    let server = Server::start(ran.test.tool(), &[]);
    assert!(server.host.starts_with("127.0.0.1:"));
    assert_eq!(server.complaints(), "");
}

#[test]
fn an_answer_resumes_the_run_that_asked() {
    let done = says("Blue it is.\n<promise>COMPLETE</promise>");
    let script = Script::new().iteration(says("Red or blue?\n<promise>BLOCKED</promise>")).iteration(done);
    let ran = Test::new().agent(script).run().exits(3);
    let id = support::run_directory(&ran.test.workspace()).unwrap();
    let id = id.file_name().unwrap().to_str().unwrap().to_owned();
    let server = Server::start(ran.test.tool(), &[]);
    let (cookie, own) = (server.cookie(), format!("Origin: http://{}", server.host));
    let headers = [own.as_str(), &cookie, "Content-Type: application/json"];
    let answer = |words: &str| {
        server.ask(
            &format!("POST /api/runs/{id}/order"),
            &headers,
            &format!(r#"{{"order":"answer","words":"{words}"}}"#),
        )
    };
    assert_eq!(status(&answer("  ")), "409");
    let told = answer("--blue, please");
    assert!(status(&told) == "200" && told.contains("resumed with your answer"), "{told}");
    let start = Instant::now();
    while !server.ask(&format!("GET /api/runs/{id}"), &[&cookie], "").contains(r#""state":"complete""#) {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(ran.heard(1).contains("a person answers your question: --blue, please"), "{}", ran.heard(1));
    assert_eq!(status(&answer("again")), "409", "it has not asked again");
}

#[test]
fn a_run_with_serve_prints_the_address_and_answers_there() {
    let test = Test::new().agent(says("working").sleeps(30_000)).args(&["--serve", "--qr", "-n", "2"]);
    let said = test.workspace().join("said");
    let mut run = test.ralph().stdout(Stdio::null()).stderr(File::create(&said).unwrap()).spawn().unwrap();
    let start = Instant::now();
    let visit = |address: &str, path: &str| {
        let (host, token) = address.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET {path}?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let address = loop {
        let text = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
        if let Some((_, rest)) = text.split_once("page: ").filter(|_| text.contains('█')) {
            break rest.lines().next().unwrap().to_owned();
        }
        assert!(start.elapsed() < Duration::from_secs(30), "no address in {text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");
    assert!(visit(&address, "/").contains("<title>ralph</title>"));
    while !visit(&address, "/api/runs").contains(r#""state":"running""#) {
        assert!(start.elapsed() < Duration::from_secs(30), "{}", visit(&address, "/api/runs"));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(test.tool().args(["stop", "--now"]).output().unwrap().status.success());
    assert!(run.wait().unwrap().code().is_some_and(|code| code != 0));
}

#[test]
fn the_qr_code_is_that_of_the_address() {
    let mut server = Server::start(Test::new().tool(), &["--qr"]);
    let code = qrcode::QrCode::new(&server.address).unwrap();
    let (width, colors) = (code.width(), code.to_colors());
    let mut modules = Vec::new();
    for _ in 0..(width + 4).div_ceil(2) {
        let mut line = String::new();
        server.printed.read_line(&mut line).unwrap();
        let line = line.trim_end_matches('\n');
        assert_eq!(line.chars().count(), width + 4, "{line}");
        modules.push(line.chars().map(|half| matches!(half, '█' | '▀')).collect::<Vec<bool>>());
        modules.push(line.chars().map(|half| matches!(half, '█' | '▄')).collect::<Vec<bool>>());
    }
    for (at, color) in colors.iter().enumerate() {
        let (x, y) = (at % width + 2, at / width + 2);
        assert_eq!(modules[y][x], *color == qrcode::Color::Light, "row {y}, column {x}");
    }
    assert!(modules[0].iter().chain(&modules[1]).all(|light| *light), "a border");
}

#[test]
fn open_starts_the_opener_with_the_address() {
    let test = Test::new().stands_for("xdg-open", "");
    let server = Server::start(test.tool(), &["--open"]);
    let start = Instant::now();
    while status(&server.ask("GET /api/runs", &[&server.cookie()], "")) != "200" {
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    let given = std::fs::read_to_string(test.bin().join("log.1")).unwrap();
    assert_eq!(given.trim_end_matches('\0'), server.address);
    assert_eq!(server.complaints(), "");
    let test = Test::new().stands_for("xdg-open", "exit 3");
    let server = Server::start(test.tool(), &["--open"]);
    assert_eq!(status(&server.ask("GET /api/runs", &[&server.cookie()], "")), "200", "a machine without a browser");
    assert!(server.complaints().contains("could not open a browser: open the address yourself"));
}
