//! The stand-in for ralph: runs a handful of agents at once, keeps their bytes, and writes down how each ended.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ralph::process::{
    Clocks, Ended, Exit, Invocation, Output, StopReason, StopStep, Stream, UnixSignal, own_program, protect, start,
};

use super::plan::{Kind, Plan, Stop};

/// `host SEED FIRST COUNT DIRECTORY`
pub fn main(words: &[&str]) -> ExitCode {
    let [seed, first, count, directory] = words else { return ExitCode::from(99) };
    let (seed, first, count): (u64, u64, u64) = (seed.parse().unwrap(), first.parse().unwrap(), count.parse().unwrap());
    protect(own_program());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let directory = PathBuf::from(directory);
    for number in first..first + count {
        let directory = directory.clone();
        local.spawn_local(async move { play(Plan::new(seed, number), seed, &directory).await });
    }
    runtime.block_on(local);
    let children = children();
    if !children.is_empty() {
        std::fs::write(directory.join("children"), children.join("\n")).unwrap();
    }
    ExitCode::SUCCESS
}

async fn play(plan: Plan, seed: u64, directory: &Path) {
    let mut raw = File::create(directory.join(format!("{}.raw", plan.number))).unwrap();
    let clocks = Clocks {
        total: match plan.stop {
            Stop::Total(after) => Some(after),
            _ => None,
        },
        ..Clocks::default()
    };
    let asked = match plan.stop {
        Stop::Ask(after) | Stop::Kill(after) => after,
        _ => Duration::from_secs(3600),
    };
    let mut asking = Box::pin(tokio::time::sleep(asked));
    let mut process = start(invocation(plan, seed, directory), clocks).unwrap();
    let mut is_asked = false;
    let ended = loop {
        tokio::select! {
            biased;
            () = &mut asking, if !is_asked => {
                is_asked = true;
                match plan.stop {
                    Stop::Kill(_) => process.kill(),
                    _ => process.stop(StopReason::Asked),
                }
            }
            output = process.next() => match output {
                Output::Bytes { from: Stream::Stdout, bytes } => raw.write_all(bytes).unwrap(),
                Output::Bytes { from: Stream::Stderr, bytes } => panic!("{plan:?}: {}", String::from_utf8_lossy(bytes)),
                Output::Ended(ended) => break ended,
            },
        }
    };
    // Whole or not at all: this process may be killed at any moment.
    let path = directory.join(format!("{}.outcome", plan.number));
    std::fs::write(path.with_extension("torn"), outcome(&ended)).unwrap();
    std::fs::rename(path.with_extension("torn"), path).unwrap();
}

fn invocation(plan: Plan, seed: u64, directory: &Path) -> Invocation {
    let program = std::env::current_exe().unwrap();
    let arguments = ["agent".into(), seed.to_string().into(), plan.number.to_string().into(), directory.into()];
    let mut invocation = Invocation::new(program.clone(), "/");
    invocation.args = arguments.to_vec();
    if plan.kind == Kind::IgnoreTerm {
        invocation = Invocation::new("sh", "/");
        invocation.args = vec!["-c".into(), "trap '' INT TERM; exec \"$0\" \"$@\"".into(), program.into()];
        invocation.args.extend(arguments);
    }
    let grace = Duration::from_millis(300);
    invocation.stop = [UnixSignal::Int, UnixSignal::Term].map(|signal| StopStep { signal, grace }).to_vec();
    invocation
}

/// One line: how it ended, why, how many were left behind, how many could not be ended, whether the output ended.
fn outcome(ended: &Ended) -> String {
    let exit = match ended.exit {
        Exit::Code(code) => format!("code{code}"),
        Exit::Signal(number) => format!("signal{number}"),
    };
    let stopped = ended.stopped.map_or_else(|| "None".to_owned(), |why| format!("{why:?}"));
    format!(
        "{exit} {stopped} {} {} {}",
        ended.left_behind.len(),
        ended.survivors.len(),
        if ended.pipes_closed { "closed" } else { "open" }
    )
}

/// All children of this process but the guardian; there must be none, dead or alive.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let numbers = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    numbers
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?;
            (parent == own && !command.contains("guard-agents-of")).then_some(stat)
        })
        .collect()
}
