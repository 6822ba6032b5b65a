//! A fleet under fire: workers are killed, stopped past their lease and continued, cut from the network, and a server is killed; every
//! task must be merged exactly once all the same.
//!
//!     cargo test --release --features fleet --test fleet_chaos -- --servers 3 --workers 6 --tasks 300 [--seed N]
//!
//! `--figures` measures instead: the queue, the journal, and the processor time of a task against a local batch.
//! Without arguments it plays a short form: one server, two workers, 20 tasks, one kill.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "fleet/world.rs"]
#[allow(dead_code)]
mod world;

#[path = "fleet/figures.rs"]
mod figures;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use world::{Proxy, Running, World};

const SLOTS: &str = "4";
/// Longer than the lease and the wait of the queue together.
const STOPPED: Duration = Duration::from_secs(75);
const CUT: Duration = Duration::from_secs(45);
const SERVER_AWAY: Duration = Duration::from_secs(25);
const PATIENCE: Duration = Duration::from_secs(40 * 60);

struct Chance(u64);

impl Chance {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % count
    }
}

/// A worker and what was done to it.
struct Worker {
    name: String,
    url: String,
    running: Option<Running>,
    stopped: Option<Instant>,
}

fn option(name: &str) -> Option<usize> {
    let words: Vec<String> = std::env::args().collect();
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1)?.parse().ok()
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--list") {
        println!("fleet_chaos: test");
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|word| word == "--figures") {
        figures::measure(option("--servers").unwrap_or(1));
        return ExitCode::SUCCESS;
    }
    let (servers, workers) = (option("--servers").unwrap_or(1), option("--workers").unwrap_or(2));
    let tasks = option("--tasks").unwrap_or(20);
    let seed = option("--seed").unwrap_or_else(|| std::process::id() as usize);
    println!("seed {seed}: {servers} servers, {workers} workers, {tasks} tasks");
    play(servers, workers, tasks, seed as u64);
    ExitCode::SUCCESS
}

fn play(servers: usize, workers: usize, tasks: usize, seed: u64) {
    let long = servers > 1;
    let mut chance = Chance(seed);
    let mut text = String::from("tasks:\n");
    for number in 0..tasks {
        let (steps, pause) = (1 + chance.below(3), if long { 1 + chance.below(4) } else { 1 });
        let _ = writeln!(
            text,
            "  - {{id: t.{number}, title: T{number}, prompt: 'write:t{number} steps:{steps} pause:{pause}'}}"
        );
    }
    let mut world = World::new(servers, &text);
    // The first worker reaches a server through a proxy only.
    let proxy = Proxy::to(world.servers[0].port);
    let through = format!("nats://127.0.0.1:{}", proxy.port);
    let mut fleet: Vec<Worker> = (0..workers)
        .map(|number| {
            let url = if number == 0 { through.clone() } else { world.urls() };
            Worker { name: format!("worker-{number}"), url, running: None, stopped: None }
        })
        .collect();
    let began = Instant::now();
    let mut batch = world.batch(&[]);
    for worker in &mut fleet {
        worker.running = Some(world.worker(&worker.name, &worker.url, SLOTS, &[]));
    }
    let mut kills: Vec<(Instant, Vec<String>)> = Vec::new();
    let (mut stops, mut cuts, mut servers_killed) = (0, 0, 0);
    let (mut cut_since, mut server_since): (Option<Instant>, Option<(usize, Instant)>) = (None, None);
    let mut next = Instant::now() + Duration::from_secs(4);
    while batch.child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < PATIENCE, "it does not end:\n{}", world.said());
        std::thread::sleep(Duration::from_millis(200));
        for worker in &mut fleet {
            if worker.stopped.is_some_and(|since| since.elapsed() > STOPPED) {
                worker.running.as_ref().unwrap().halt(false);
                worker.stopped = None;
            }
        }
        if cut_since.is_some_and(|since| since.elapsed() > CUT) {
            proxy.cut(false);
            cut_since = None;
        }
        if let Some((number, since)) = server_since
            && since.elapsed() > SERVER_AWAY
        {
            world.servers[number].start();
            server_since = None;
        }
        if Instant::now() < next {
            continue;
        }
        next = Instant::now() + Duration::from_secs(3 + chance.below(6) as u64);
        if !long {
            if kills.is_empty() {
                kill(&world, &mut fleet[1], &mut kills);
            }
            continue;
        }
        let chosen = chance.below(workers);
        match chance.below(10) {
            // At least half of the workers go on.
            0..=2 if fleet.iter().filter(|it| it.stopped.is_some()).count() < workers / 3 => {
                let worker = &mut fleet[chosen];
                if worker.stopped.is_none() {
                    worker.running.as_ref().unwrap().halt(true);
                    worker.stopped = Some(Instant::now());
                    stops += 1;
                }
            }
            3 if cut_since.is_none() => {
                proxy.cut(true);
                cut_since = Some(Instant::now());
                cuts += 1;
            }
            4 if server_since.is_none() => {
                let number = chance.below(servers);
                world.servers[number].kill();
                server_since = Some((number, Instant::now()));
                servers_killed += 1;
            }
            5..=7 if fleet[chosen].stopped.is_none() => kill(&world, &mut fleet[chosen], &mut kills),
            _ => {}
        }
    }
    let took = began.elapsed();
    proxy.cut(false);
    for worker in &mut fleet {
        if worker.stopped.take().is_some() {
            worker.running.as_ref().unwrap().halt(false);
        }
    }
    assert_eq!(batch.wait(Duration::from_secs(1)), 0, "{}", world.said());
    world.assert_complete(tasks);
    assert_nothing_left(&world, &mut fleet);
    println!(
        "{tasks} tasks merged once each in {:.0} s: {} workers killed, {stops} stopped past their lease, {cuts} cuts, {servers_killed} servers killed",
        took.as_secs_f64(),
        kills.len()
    );
    let fenced = report(&world, &kills, long);
    assert!(!long || fenced > 0 || stops == 0, "nothing was fenced:\n{}", world.said());
}

fn assert_nothing_left(world: &World, fleet: &mut [Worker]) {
    for worker in fleet {
        let mut running = worker.running.take().unwrap();
        running.signal("-TERM");
        assert_eq!(running.wait(Duration::from_secs(90)), 143, "{}", world.said());
    }
    let left: Vec<String> = world.left().into_iter().filter(|name| !name.contains("nats-server")).collect();
    assert_eq!(left, Vec::<String>::new(), "processes are left");
    assert_eq!(world.worktrees(), 0, "worktrees are left");
}

/// Prints the figures and gives how many workers came back too late.
fn report(world: &World, kills: &[(Instant, Vec<String>)], long: bool) -> usize {
    let said = world.said();
    let count = |what: &str| said.lines().filter(|line| line.contains(what)).count();
    println!(
        "continued on another worker: {}; workers that came back too late: {}",
        count("(continued)"),
        count("left to another worker")
    );
    let times = takeovers(world, kills);
    if !times.is_empty() {
        let median = times[times.len() / 2];
        println!("time to take over after a kill: median {median:.0} s, most {:.0} s", times[times.len() - 1]);
        assert!(long || times[times.len() - 1] < 60.0, "a dead worker's task must come back within a minute");
    }
    count("left to another worker")
}

/// Kills a worker with all that it works on, and starts it again.
fn kill(world: &World, worker: &mut Worker, kills: &mut Vec<(Instant, Vec<String>)>) {
    let said = world.said();
    let of_worker = said.lines().filter_map(|line| line.strip_prefix(&format!("{}: ", worker.name)));
    let mut held = Vec::new();
    for line in of_worker {
        match line.split_once(": ") {
            Some((task, state)) if state.starts_with("started") => held.push(task.to_owned()),
            Some((task, _)) => held.retain(|known| known != task),
            None => {}
        }
    }
    let mut running = worker.running.take().unwrap();
    let _ = (running.child.kill(), running.child.wait());
    kills.push((Instant::now(), held));
    worker.running = Some(world.worker(&worker.name, &worker.url, SLOTS, &[]));
}

/// Seconds from a kill to when another worker had the task.
fn takeovers(world: &World, kills: &[(Instant, Vec<String>)]) -> Vec<f64> {
    let log = world.log.lock().unwrap();
    let mut times = Vec::new();
    for (at, tasks) in kills {
        for task in tasks {
            let line = format!("{task}: started (continued)");
            times.extend(
                log.iter()
                    .find(|(then, _, said)| then > at && *said == line)
                    .map(|(then, ..)| (*then - *at).as_secs_f64()),
            );
        }
    }
    times.sort_by(f64::total_cmp);
    times
}
