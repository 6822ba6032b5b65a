//! Batches on workers, with a real NATS server, real git and real processes. `tests/fleet_chaos.rs` kills and cuts them.
//!
//!     cargo test --features fleet --test fleet

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "fleet/world.rs"]
#[allow(dead_code)]
mod world;

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use futures_util::StreamExt as _;
use world::World;

const MINUTE: Duration = Duration::from_secs(60);

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn tasks_are_worked_on_elsewhere_and_merged_here() {
    let tasks = "tasks:
  - {id: a.b, title: A, prompt: 'write:a steps:2'}
  - {id: b.lock, title: B, prompt: 'write:b steps:3'}
  - {id: c, title: C, prompt: 'write:c', needs: [b.lock, a.b]}
";
    let world = World::new(1, tasks);
    let worker = world.worker("worker-1", &world.urls(), "2", &[]);
    let code = world.batch(&[]).wait(MINUTE);
    assert_eq!(code, 0, "{}", world.said());
    world.assert_complete(3);
    drop(worker);
    assert_eq!(world.worktrees(), 0);
}

#[test]
fn a_conflict_goes_back_to_a_worker() {
    let tasks = "tasks:
  - {id: a, title: A, prompt: 'write:a append:one'}
  - {id: b, title: B, prompt: 'write:b append:two'}
  - {id: c, title: C, prompt: 'write:c append:three'}
";
    let world = World::new(1, tasks);
    let _worker = world.worker("worker-1", &world.urls(), "3", &[]);
    assert_eq!(world.batch(&[]).wait(2 * MINUTE), 0, "{}", world.said());
    assert!(world.said().contains("did not merge: conflict"), "{}", world.said());
    let branch = format!("ralph/batch/{}", world.status()["batch"].as_str().unwrap());
    let shared = world.git(&["show", &format!("{branch}:shared.txt")]);
    for line in ["one", "two", "three"] {
        assert!(shared.lines().any(|found| found == line), "{shared}");
    }
    world.assert_complete(3);
}

#[test]
fn a_worker_that_ends_gives_its_task_back_and_another_continues() {
    let world = World::new(1, "tasks: [{id: a, title: A, prompt: 'write:a steps:3 pause:2'}]");
    let mut first = world.worker("worker-1", &world.urls(), "1", &[]);
    let mut batch = world.batch(&[]);
    world.wait_for("worker-1: a: started", MINUTE);
    // The first iteration is pushed.
    let began = Instant::now();
    while world.git(&["ls-remote", "--heads", "../bare.git"]).lines().count() < 2 {
        assert!(began.elapsed() < MINUTE);
        std::thread::sleep(Duration::from_millis(100));
    }
    first.signal("-TERM");
    assert_eq!(first.wait(MINUTE), 143);
    let _second = world.worker("worker-2", &world.urls(), "1", &[]);
    world.wait_for("worker-2: a: started (continued)", Duration::from_secs(20));
    assert_eq!(batch.wait(MINUTE), 0, "{}", world.said());
    world.assert_complete(1);
    let branch = format!("ralph/batch/{}", world.status()["batch"].as_str().unwrap());
    let last = world.git(&["show", &format!("{branch}:a-3.txt")]);
    assert!(last.parse::<u32>().unwrap() >= 3, "iterations were counted from the beginning: {last}");
}

#[test]
fn refused_tasks_are_kept_with_the_reason() {
    let tasks = "tasks:
  - {id: agent, title: A, prompt: 'write:a', agent: claude}
  - {id: fine, title: B, prompt: 'write:b'}
";
    let world = World::new(1, tasks);
    let _worker = world.worker("worker-1", &world.urls(), "2", &[]);
    assert_eq!(world.batch(&[]).wait(MINUTE), 1, "{}", world.said());
    let states = world.states();
    assert_eq!(states["fine"].0, "merged");
    assert!(states["agent"].1.contains("does not allow the agent `claude`"), "{states:?}");
    // What no submitter of ours would send.
    let version = env!("CARGO_PKG_VERSION");
    let valid = r#"{"batch":"b","task":{"id":"t","title":"T","prompt":"p"},"attempt":1,"round":1,"repo":"REPO","base":"0123456789012345678901234567890123456789"}"#;
    let dead = block_on(async {
        let client = async_nats::connect(world.urls()).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let mut payloads = Vec::new();
        for (number, (version, payload)) in [
            (Some(version), "rubbish".to_owned()),
            (Some("0.0.1"), valid.replace("REPO", &world.repo())),
            (None, valid.replace("REPO", &world.repo())),
            (Some(version), valid.replace("REPO", "https://example.com/other.git")),
            (Some(version), valid.replace("REPO", "ext::touch%20/tmp/owned")),
            (Some(version), valid.replace("REPO", &world.repo()).replacen('{', r#"{"env":{"A":"b"},"#, 1)),
        ]
        .into_iter()
        .enumerate()
        {
            let mut headers = HeaderMap::new();
            if let Some(version) = version {
                headers.insert("Ralph-Version", version);
            }
            let payload = payload.replace(r#""id":"t""#, &format!(r#""id":"t{number}""#));
            payloads.push(payload.clone());
            let sent = context.publish_with_headers(format!("ralph.tasks.b.t{number}"), headers, payload.into()).await;
            sent.unwrap().await.unwrap();
        }
        let dead = context.get_stream("RALPH_DEAD").await.unwrap();
        let config = async_nats::jetstream::consumer::pull::OrderedConfig {
            filter_subject: "ralph.dead.b.*".to_owned(),
            ..Default::default()
        };
        let mut messages = dead.create_consumer(config).await.unwrap().messages().await.unwrap();
        let mut found = Vec::new();
        while found.len() < payloads.len() {
            let message = tokio::time::timeout(MINUTE, messages.next()).await.unwrap().unwrap().unwrap();
            let why = message.headers.as_ref().unwrap().get("Ralph-Why").unwrap().to_string();
            assert!(payloads.contains(&String::from_utf8(message.payload.to_vec()).unwrap()), "payload changed");
            found.push((message.subject.to_string(), why));
        }
        let began = Instant::now();
        while context.get_stream("RALPH_TASKS").await.unwrap().get_info().await.unwrap().state.messages > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "not terminated");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        found.sort();
        found
    });
    let whys: Vec<&str> = dead.iter().map(|(_, why)| why.as_str()).collect();
    assert!(whys[0].contains("not a task"), "{whys:?}");
    assert!(whys[1].contains("0.0.1") && whys[1].contains(version), "{whys:?}");
    assert!(whys[2].contains("version"), "{whys:?}");
    assert!(whys[3].contains("does not allow the repository"), "{whys:?}");
    assert!(whys[4].contains("helper program"), "{whys:?}");
    assert!(whys[5].contains("env"), "{whys:?}");
    assert!(!std::path::Path::new("/tmp/owned").exists());
}

#[test]
fn wrong_credentials_end_with_4_and_are_not_shown() {
    let world = World::without_servers("tasks: [{id: a, title: A, prompt: 'write:a'}]");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut server = std::process::Command::new(std::env::var("NATS_SERVER").unwrap_or("nats-server".into()))
        .args(["-js", "-a", "127.0.0.1", "--auth", "right-token-4711", "-p", &port.to_string(), "-sd"])
        .arg(world.path("nats"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let (repo, url) = (world.repo(), format!("nats://127.0.0.1:{port}"));
    let in_url = format!("nats://wrong-token-0815@127.0.0.1:{port}");
    let worker = ["worker", "--allow-repo", &repo, "--on"];
    let batch = ["batch", "tasks.yml", "--agent", "steps", "--repo", &repo, "--on"];
    for (words, address) in [(&worker[..], &url), (&worker, &in_url), (&batch, &url), (&batch, &in_url)] {
        let mut command = world.command("any", &[words, &[address.as_str()]].concat());
        if address == &url {
            command.env("NATS_TOKEN", "wrong-token-0815");
        }
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        assert_eq!(done.status.code(), Some(4), "{said}");
        assert!(said.contains("refused the credentials") && !said.contains("0815"), "{said}");
    }
    // The right one works, from a variable, and the agent does not get it.
    let mut command = world.command("worker-1", &[&worker[..], &[url.as_str()]].concat());
    command.env("NATS_TOKEN", "right-token-4711");
    let running = world.spawn("worker-1", command);
    let done = world
        .command("submitter", &[&batch[..], &[url.as_str()]].concat())
        .env("NATS_TOKEN", "right-token-4711")
        .output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}{}", String::from_utf8_lossy(&done.stderr), world.said());
    drop(running);
    let _ = (server.kill(), server.wait());
    let journal = world.path("submitter/projects");
    let found = std::process::Command::new("grep")
        .args(["-rhoE", "NATS: [0-9]+|right-token-4711"])
        .arg(journal)
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.lines().count() > 0 && found.lines().all(|line| line == "NATS: 0"), "{found}");
}

#[test]
fn nothing_is_allowed_by_default() {
    let world = World::without_servers("tasks: []");
    std::fs::write(world.path("config/ralph/ralph.yml"), "").unwrap();
    // What a repository says does not count.
    std::fs::write(world.work().join("ralph.yml"), "worker: {repos: ['/*'], agents: [steps]}\n").unwrap();
    let done = world.ralph(&["worker", "--on", "nats://127.0.0.1:1"]);
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("allows no repository"));
    let repo = "https://user:secret-4711@example.com/r.git";
    let done = world.ralph(&["batch", "tasks.yml", "--on", "nats://127.0.0.1:1", "--repo", repo]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2));
    assert!(said.contains("secrets do not travel") && !said.contains("4711"), "{said}");
}

#[test]
fn orders_reach_the_worker_and_an_interrupt_cancels() {
    let world = World::new(1, "tasks: [{id: a.b, title: A, prompt: 'write:a steps:6 pause:4'}]");
    let _worker = world.worker("worker-1", &world.urls(), "1", &[]);
    let mut batch = world.batch(&[]);
    world.wait_for("worker-1: a.b: started", MINUTE);
    let id = world.status()["batch"].as_str().unwrap().to_owned();
    block_on(async {
        let client = async_nats::connect(world.urls()).await.unwrap();
        let bucket = async_nats::jetstream::new(client).get_key_value("ralph").await.unwrap();
        let order = r#"{"orders":[{"loop":{"command":"hint","words":"a special hint"}}]}"#;
        bucket.put(format!("orders.{id}.a=2Eb"), order.into()).await.unwrap();
    });
    // The hint is in the prompt of a later iteration, and the branch that is pushed shows it.
    let began = Instant::now();
    loop {
        let _ = std::process::Command::new("git")
            .args(["fetch", "-q", "../bare.git", &format!("ralph/{id}/a.b")])
            .current_dir(world.work())
            .output();
        let files = std::process::Command::new("git")
            .args(["ls-tree", "--name-only", "FETCH_HEAD"])
            .current_dir(world.work())
            .output()
            .unwrap();
        if String::from_utf8_lossy(&files.stdout).contains("hinted.txt") {
            break;
        }
        assert!(began.elapsed() < MINUTE, "{}", world.said());
        std::thread::sleep(Duration::from_millis(300));
    }
    batch.signal("-INT");
    assert_eq!(batch.wait(MINUTE), 130, "{}", world.said());
    assert!(world.left().iter().all(|name| !name.contains("agent.sh")), "{:?}", world.left());
    // It can be resumed, and continues.
    let mut again = world.spawn("resume", world.command("submitter", &["batch", "resume"]));
    assert_eq!(again.wait(2 * MINUTE), 0, "{}", world.said());
    world.assert_complete(1);
}

#[test]
fn a_label_chooses_the_worker() {
    let world = World::new(1, "tasks: [{id: a, title: A, prompt: 'write:a'}]");
    let _plain = world.worker("worker-1", &world.urls(), "1", &[]);
    let mut batch = world.batch(&["--label", "gpu"]);
    std::thread::sleep(Duration::from_secs(4));
    assert!(batch.child.try_wait().unwrap().is_none(), "{}", world.said());
    let _labelled = world.worker("worker-2", &world.urls(), "1", &["--labels", "linux,gpu"]);
    assert_eq!(batch.wait(MINUTE), 0, "{}", world.said());
    assert!(world.said().contains("worker-2: a: done"), "{}", world.said());
}

#[test]
fn a_submitter_that_is_killed_finds_its_tasks_again() {
    let tasks: Vec<String> =
        (0..6).map(|n| format!("  - {{id: t{n}, title: T, prompt: 'write:t{n} steps:2 pause:1'}}\n")).collect();
    let world = World::new(1, &format!("tasks:\n{}", tasks.concat()));
    let _worker = world.worker("worker-1", &world.urls(), "3", &[]);
    let mut batch = world.batch(&[]);
    world.wait_for("worker-1: t1: started", MINUTE);
    let _ = (batch.child.kill(), batch.child.wait());
    std::thread::sleep(Duration::from_secs(3));
    let mut again = world.spawn("resume", world.command("submitter", &["batch", "resume"]));
    assert_eq!(again.wait(2 * MINUTE), 0, "{}", world.said());
    world.assert_complete(6);
    assert!(!world.said().contains("continued"), "work was done twice: {}", world.said());
}

#[test]
fn a_worker_that_returns_after_its_lease_changes_nothing() {
    let world = World::new(1, "tasks: [{id: a, title: A, prompt: 'write:a steps:3 pause:15'}]");
    let first = world.worker("worker-1", &world.urls(), "1", &[]);
    let mut batch = world.batch(&[]);
    world.wait_for("worker-1: a: started", MINUTE);
    std::thread::sleep(Duration::from_secs(3));
    first.halt(true);
    let second = world.worker("worker-2", &world.urls(), "1", &[]);
    world.wait_for("worker-2: a: started (continued)", Duration::from_secs(75));
    // The loop of the first one went on meanwhile, and has work that it would push.
    first.halt(false);
    world.wait_for("worker-1: a: left to another worker", Duration::from_secs(30));
    assert_eq!(batch.wait(3 * MINUTE), 0, "{}", world.said());
    assert!(world.said().contains("worker-2: a: done"), "{}", world.said());
    assert!(!world.said().contains("worker-1: a: done"), "{}", world.said());
    world.assert_complete(1);
    drop((first, second));
}
