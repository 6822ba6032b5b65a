//! Two real CLIs in one run: one works in a worktree, checks run, the other one judges, and `ralph merge` puts the result on a base
//! branch that has moved meanwhile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fake_model::{Bounds, Scenario, Server};
use serde_json::{Value, json};

use crate::clis::Cli;
use crate::install::{Version, install};
use crate::place::Place;
use crate::processes;
use crate::stage::{Problem, Stage};
use crate::trial::{alone, lines};

/// The worker claims to be done twice; what the judge found comes between.
const WORKER: &str = r#"
turns:
  - text: I write a first version.
    calls: [{shell: {command: "echo draft > feature.txt && git add feature.txt && git -c user.name=a -c user.email=a@b.invalid commit -qm 'Add the feature'"}}]
  - text: "All done.\n<promise>COMPLETE</promise>"
  - text: The judge is right.
    calls: [{shell: {command: "echo final > feature.txt && git -c user.name=a -c user.email=a@b.invalid commit -qam 'Finish the feature'"}}]
  - text: "Now it is done.\n<promise>COMPLETE</promise>"
"#;

const FINDING: &str = "feature.txt is only a draft";

const JUDGE: &str = r#"
turns:
  - text: '{"verdict": "reject", "findings": ["feature.txt is only a draft"], "criteria": [{"text": "feature.txt is final", "verdict": "reject"}]}'
  - text: '{"verdict": "accept", "findings": [], "criteria": [{"text": "feature.txt is final", "verdict": "accept"}]}'
"#;

const PROMPT: &str = "Do what the script says.\n\n## Acceptance\n- [ ] feature.txt is final\n";

const PATIENCE: Duration = Duration::from_secs(120);

/// Plays it with the first CLI as the worker and the second one as the judge.
pub fn run(clis: &[Cli], version: Version) -> Result<(), Problem> {
    let [worker, judge, ..] = clis else { return Err(Problem::Wrong("two CLIs are needed".to_owned())) };
    let stage = Stage::open()?;
    let ralph = Stage::ralph()?;
    let (works, judges) = (install(&stage, worker, version)?, install(&stage, judge, version)?);
    let place = Place::fresh(&stage, &format!("merge-{}-{}", worker.agent, judge.agent))?;
    let bounds = Bounds { lifetime: PATIENCE * 2, requests: 200 };
    let script = |text: &str| Scenario::parse(text).map_err(Problem::Wrong);
    let of_worker = Server::start(script(WORKER)?, &place.work, bounds, 0)?;
    let of_judge = Server::start(script(JUDGE)?, &place.work, bounds, 0)?;
    worker.settle(&place, &of_worker.address(), None)?;
    judge.settle(&place, &of_judge.address(), None)?;
    let prompt = place.home.join("prompt.md");
    std::fs::write(&prompt, PROMPT)?;
    let adapters: serde_json::Map<String, Value> = [worker, judge]
        .into_iter()
        .map(|cli| (cli.agent.clone(), json!({"extra_args": cli.extra_args(None)})))
        .collect();
    let config = place.home.join("ralph.yml");
    std::fs::write(&config, json!({"adapters": adapters}).to_string())?;
    let mark = processes::mark();
    let path = std::env::join_paths([works.programs.as_path(), judges.programs.as_path()]).unwrap_or_default();
    let path = [path, Stage::path(Path::new("/usr/bin"))].join(std::ffi::OsStr::new(":"));
    let command = |words: &[&str]| {
        let mut command = Command::new(&ralph);
        alone(&mut command, worker, &works.programs, &place, &of_worker.address())
            .envs(judge.variables(&place, &of_judge.address()))
            .env("PATH", &path)
            .env(processes::MARK, &mark)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let begun = Instant::now();
    let base = git(&place.work, &["rev-parse", "HEAD"])?;
    let (file, config) = (prompt.to_string_lossy().into_owned(), config.to_string_lossy().into_owned());
    let mut words = vec!["run", "--output", "json", "--worktree=feature", "-n", "4", "--agent", worker.agent.as_str()];
    words.extend(["--judge", judge.agent.as_str(), "--verify", "test -s feature.txt", "--prompt-file", file.as_str()]);
    words.extend(["--config", config.as_str()]);
    let (ended, records, complaint) = watched(&mut command(&words))?;
    let mut wrong = Vec::new();
    let mut unless = |good: bool, why: String| {
        if !good {
            wrong.push(why);
        }
    };
    let reason = meta(&records, "run_end").last().map(|end| end["reason"].to_string());
    unless(ended == Some(0), format!("the run ended with {ended:?}: {reason:?} {complaint}"));
    let verdicts: Vec<&Value> = meta(&records, "judged").map(|judged| &judged["verdict"]).collect();
    unless(verdicts == ["reject", "accept"], format!("the verdicts are {verdicts:?}"));
    let outcomes: Vec<&Value> = meta(&records, "iteration_end").map(|end| &end["outcome"]).collect();
    unless(outcomes == ["rejected", "ok"], format!("the iterations ended with {outcomes:?}"));
    let heard =
        |server: &Server, needle: &str| server.exchanges().iter().any(|exchange| exchange.body.contains(needle));
    unless(heard(&of_worker, FINDING), "the worker was not told what the judge found".to_owned());
    unless(heard(&of_judge, "+draft"), "the judge was not shown the change".to_owned());
    unless(heard(&of_judge, "feature.txt is final"), "the judge was not given the criteria".to_owned());
    unless(git(&place.work, &["rev-parse", "HEAD"])? == base, "the run changed the checkout".to_owned());
    std::fs::write(place.work.join("other.txt"), "other\n")?;
    git(&place.work, &["add", "other.txt"])?;
    git(&place.work, &["commit", "-qm", "Meanwhile"])?;
    let (ended, _, complaint) = watched(&mut command(&["merge"]))?;
    unless(ended == Some(0), format!("the merge ended with {ended:?}: {complaint}"));
    let log = git(&place.work, &["log", "--format=%s"])?;
    unless(log == "Finish the feature\nAdd the feature\nMeanwhile\nBegin", format!("the log is {log:?}"));
    let file = std::fs::read_to_string(place.work.join("feature.txt")).unwrap_or_default();
    unless(file == "final\n", format!("feature.txt is {file:?}"));
    let trees = git(&place.work, &["worktree", "list"])?;
    unless(trees.lines().count() == 1, format!("worktrees are left: {trees}"));
    let left = processes::left(&mark, Duration::from_millis(500));
    unless(left.is_empty(), format!("left behind: {}", left.join(", ")));
    let said = if wrong.is_empty() { "ok" } else { "WRONG" };
    println!(
        "{} works, {} judges, merged after a rebase: {:.1} s  {said}",
        worker.agent,
        judge.agent,
        begun.elapsed().as_secs_f64()
    );
    if wrong.is_empty() { Ok(()) } else { Err(Problem::Wrong(wrong.join("\n       "))) }
}

/// Runs ralph, for as long as it may take: exit code, records, standard error.
fn watched(command: &mut Command) -> Result<(Option<i32>, Vec<Value>, String), Problem> {
    let mut child = command.spawn()?;
    let (records, deadline) = (lines(&mut child), Instant::now() + PATIENCE);
    let mut seen = Vec::new();
    while let Ok(record) = records.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        seen.push(record);
    }
    if Instant::now() >= deadline {
        child.kill()?;
    }
    let output = child.wait_with_output()?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim_end().replace('\n', " / ");
    Ok((output.status.code(), seen, complaint))
}

fn meta<'a>(records: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    records.iter().map(|record| &record["meta"]).filter(move |meta| meta["kind"] == kind)
}

fn git(directory: &Path, words: &[&str]) -> Result<String, Problem> {
    let identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid"];
    let output = Command::new("git").args(identity).args(words).current_dir(directory).output()?;
    if !output.status.success() {
        return Err(Problem::Wrong(format!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
