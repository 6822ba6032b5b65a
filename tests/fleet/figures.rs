//! Figures of a fleet, on one server on loopback: what NATS itself takes, and what a task costs beyond a local one.

#![allow(clippy::cast_precision_loss)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{self, RetentionPolicy};
use futures_util::StreamExt as _;

use super::world::World;

const TASKS: usize = 20_000;
const RUNS: usize = 60;
const PARTS: usize = 400;

/// Seconds of processor time of a process and of the children that it has waited for.
fn processor_time(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields.iter().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10).as_secs_f64()
}

pub fn measure(servers: usize) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load before: {}", load.split_whitespace().next().unwrap_or_default());
    let mut tasks = String::from("tasks:\n");
    for number in 0..RUNS {
        let _ = writeln!(tasks, "  - {{id: t{number}, title: T, prompt: 'write:t{number} steps:1'}}");
    }
    let world = World::new(servers, &tasks);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(queue(&world.urls(), servers));
    runtime.block_on(journal(&world.urls(), servers));

    let worker = world.worker("worker-1", &world.urls(), "2", &[]);
    world.wait_for("waiting for tasks", Duration::from_secs(20));
    let began = Instant::now();
    let (code, submitter) = timed(&world, &["--on", &world.urls(), "--repo", &world.repo()], "submitter");
    assert_eq!(code, Some(0), "{}", world.said());
    let (took, cpu) = (began.elapsed(), submitter + processor_time(worker.child.id()));
    let nats: f64 = world.servers.iter().filter_map(super::world::Server::pid).map(processor_time).sum();
    drop(worker);
    let began = Instant::now();
    let (code, local) = timed(&world, &["-j", "2"], "local");
    assert_eq!(code, Some(0));
    let each = |seconds: f64| 1000.0 * seconds / RUNS as f64;
    println!(
        "a task: {:.0} ms CPU on a fleet (worker, its runs and the submitter; {:.0} ms of it submitter), {:.0} ms CPU in a local batch; {:.0} s and {:.0} s for {RUNS}; NATS in all {nats:.1} s CPU",
        each(cpu),
        each(submitter),
        each(local),
        took.as_secs_f64(),
        began.elapsed().as_secs_f64(),
    );
}

/// Runs a batch and gives its processor time with all its children.
fn timed(world: &World, more: &[&str], state: &str) -> (Option<i32>, f64) {
    let mut args = vec!["batch", "tasks.yml", "--agent", "steps"];
    args.extend(more);
    let ralph = world.command(state, &args);
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", "\"$@\" >/dev/null 2>&1; code=$?; times; exit $code", "bash"]).arg(ralph.get_program());
    shell.args(ralph.get_args()).current_dir(world.work());
    for (name, value) in ralph.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let done = shell.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let seconds = |word: &str| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').unwrap_or(("0", "0"));
        60.0 * minutes.parse::<f64>().unwrap_or(0.0) + seconds.parse::<f64>().unwrap_or(0.0)
    };
    let children = text.lines().nth(1).unwrap_or_default();
    (done.status.code(), children.split_whitespace().map(seconds).sum())
}

/// What each task goes through in NATS: entry, message, pull, lease, result, acknowledgement.
async fn queue(urls: &str, num_replicas: usize) {
    let context = async_nats::jetstream::new(async_nats::connect(urls.split(',').next().unwrap()).await.unwrap());
    let config = stream::Config {
        name: "FIGURES".to_owned(),
        subjects: vec!["figures.>".to_owned()],
        retention: RetentionPolicy::WorkQueue,
        num_replicas,
        ..stream::Config::default()
    };
    let tasks = context.create_stream(config).await.unwrap();
    let bucket = stream::Config {
        name: "KV_figures".to_owned(),
        subjects: vec!["$KV.figures.>".to_owned()],
        max_messages_per_subject: 1,
        allow_rollup: true,
        allow_direct: true,
        num_replicas,
        ..stream::Config::default()
    };
    context.create_stream(bucket).await.unwrap();
    let state = context.get_key_value("figures").await.unwrap();
    let consumer =
        pull::Config { durable_name: Some("w".to_owned()), ack_policy: AckPolicy::Explicit, ..Default::default() };
    let consumer = tasks.create_consumer(consumer).await.unwrap();
    let payload = "x".repeat(600);
    let began = Instant::now();
    // As many at once as a fleet of eight workers with four slots.
    let submit = futures_util::stream::iter(0..TASKS).for_each_concurrent(32, |number| {
        let (context, state, payload) = (context.clone(), state.clone(), payload.clone());
        async move {
            state.update(format!("state.{number}"), payload.clone().into(), 0).await.unwrap();
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Msg-Id", format!("{number}"));
            context
                .publish_with_headers(format!("figures.{number}"), headers, payload.into())
                .await
                .unwrap()
                .await
                .unwrap();
        }
    });
    submit.await;
    let submitted = began.elapsed();
    let began = Instant::now();
    let messages = consumer.messages().await.unwrap().take(TASKS);
    let work = messages.for_each_concurrent(32, |message| {
        let (state, payload) = (state.clone(), payload.clone());
        async move {
            let message = message.unwrap();
            let key = message.subject.replace("figures", "state");
            let entry = state.entry(key.clone()).await.unwrap().unwrap();
            let lease = state.update(key.clone(), payload.clone().into(), entry.revision).await.unwrap();
            state.update(key, payload.into(), lease).await.unwrap();
            message.double_ack().await.unwrap();
        }
    });
    work.await;
    println!(
        "queue: {:.0} tasks/s submitted, {:.0} tasks/s taken, leased, recorded and acknowledged ({TASKS} tasks, 32 at once)",
        TASKS as f64 / submitted.as_secs_f64(),
        TASKS as f64 / began.elapsed().as_secs_f64()
    );
}

/// Parts of a journal as a worker sends them: one after the other, each acknowledged.
async fn journal(urls: &str, num_replicas: usize) {
    let context = async_nats::jetstream::new(async_nats::connect(urls.split(',').next().unwrap()).await.unwrap());
    let config = stream::Config {
        name: "FIGURES_JOURNAL".to_owned(),
        subjects: vec!["figures_journal.>".to_owned()],
        num_replicas,
        ..stream::Config::default()
    };
    context.create_stream(config).await.unwrap();
    // Real output of agents, as the text of records; every part is another one.
    let words = captures();
    let mut parts = Vec::new();
    let mut records = 0_usize;
    let mut words = words.lines().filter(|line| !line.is_empty());
    'all: while parts.len() < PARTS {
        let mut lines = String::new();
        while lines.len() < 256 * 1024 {
            let Some(text) = words.next() else { break 'all };
            let record = serde_json::json!({"seq": records, "at": "2026-11-18T10:21:31.343Z", "by": "agent", "iteration": 1, "type": "text", "tag": "AI", "text": text});
            let _ = writeln!(lines, "{record}");
            records += 1;
        }
        parts.push(lines);
    }
    let bytes: usize = parts.iter().map(String::len).sum();
    let (mut packed_bytes, began) = (0, Instant::now());
    for (number, part) in parts.iter().enumerate() {
        let packed = zstd::bulk::compress(part.as_bytes(), 3).unwrap();
        packed_bytes += packed.len();
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", format!("{number}"));
        context.publish_with_headers("figures_journal.a", headers, packed.into()).await.unwrap().await.unwrap();
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "journal, NATS and zstd alone: {:.0} MB/s, {:.0} records/s, {} parts of 256 KiB that become {} KiB",
        bytes as f64 / seconds / 1e6,
        records as f64 / seconds,
        parts.len(),
        packed_bytes / parts.len().max(1) / 1024
    );
}

/// What real agents printed.
fn captures() -> String {
    let (mut text, mut open) =
        (String::new(), vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else if let Ok(content) = std::fs::read_to_string(entry.path()) {
                text.push_str(&content);
            }
        }
    }
    text
}
