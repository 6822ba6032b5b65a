//! Runs that are over, or under way in another terminal: listed, shown, followed, replayed, exported, taken up again.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use fake_agent::{Script, says, silent, thinks};
use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Ran, Running, Test, run_directory};

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";

fn ralph(test: &Test, args: &[&str]) -> Output {
    test.tool().args(args).output().unwrap()
}

#[track_caller]
fn says_of(ran: &Ran, args: &[&str]) -> String {
    said(&ran.test, args)
}

#[track_caller]
fn said(test: &Test, args: &[&str]) -> String {
    let output = ralph(test, args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{args:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn id(ran: &Ran) -> String {
    run_directory(&ran.test.workspace()).unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

fn two_iterations() -> Ran {
    let first = thinks("A deep thought.").runs_tool("Bash", json!({"command": "ls"})).printing("a file").says("One.");
    let script = Script::new().dialect(fake_agent::Dialect::Rtf1).iteration(first.uses(10, 5)).iteration(says(DONE));
    Test::new().prompt("Mend the tests, please.").agent(script).args(&["--transcript", "rtf1"]).run().complete()
}

#[test]
fn eighty_columns_are_enough_for_the_table_and_the_last_lines() {
    let ran = two_iterations();
    let narrow = |args: &[&str], columns: usize| {
        let output = ran.test.tool().env("COLUMNS", columns.to_string()).args(args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&id(&ran)), "{text}");
        // The command line is as long as the paths in it.
        let lines = text.lines().filter(|line| !line.starts_with("command: "));
        let widest = lines.map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns, "{widest} columns:\n{text}");
        text
    };
    let table = narrow(&["runs"], 80);
    assert!(!table.contains("STARTED") && table.contains("Mend"), "the id says when it was started:\n{table}");
    assert!(narrow(&["runs"], 120).contains("STARTED"));
    assert!(!narrow(&["runs"], 40).contains("PROMPT"));
    let lines = narrow(&["logs"], 80);
    assert!(lines.contains("`ralph show") && lines.contains("`ralph diff"), "{lines}");
}

#[test]
fn a_run_is_listed_shown_and_found_by_parts_of_its_id() {
    let ran = two_iterations();
    let id = id(&ran);
    let table = says_of(&ran, &["runs"]);
    assert!(table.contains(&id) && table.contains("complete") && table.contains("Mend the tests, please."), "{table}");
    let rows: Value = serde_json::from_str(&says_of(&ran, &["runs", "--json"])).unwrap();
    assert_eq!((&rows[0]["iterations"], &rows[0]["outcome"]), (&json!(2), &json!("complete")));
    let letters = id.rsplit('-').next().unwrap();
    for part in [&id[..], &id[..8], letters] {
        assert!(says_of(&ran, &["show", part]).contains(&id));
    }
    let shown: Value = serde_json::from_str(&says_of(&ran, &["show", "--json"])).unwrap();
    assert_eq!(shown["iterations"][0]["receipt"]["tools"], 1);
    assert_eq!(shown["end"]["outcome"], "complete");
    assert!(says_of(&ran, &["show", "--markdown"]).contains("| 2 | ok |"));
    let unknown = ralph(&ran.test, &["show", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no run has the id `nothing`"));
}

#[test]
fn logs_show_what_is_asked_for() {
    let ran = two_iterations();
    let all = says_of(&ran, &["logs"]);
    assert!(all.contains("A deep thought.") && all.contains("One.") && all.contains("All done."), "{all}");
    let second = says_of(&ran, &["logs", "--iteration", "2"]);
    assert!(!second.contains("One.") && second.contains("All done."), "{second}");
    let thoughts = says_of(&ran, &["logs", "--tag", "think"]);
    assert!(thoughts.contains("A deep thought.") && !thoughts.contains("One."), "{thoughts}");
    let tools = says_of(&ran, &["logs", "--tool", "bash"]);
    assert!(tools.contains("Bash") && !tools.contains("One."), "{tools}");
    assert!(says_of(&ran, &["logs", "--raw", "--iteration", "1"]).contains("@@RALPH@@ "));
    assert!(!ralph(&ran.test, &["logs", "--iteration", "9"]).status.success());
}

#[test]
fn a_replay_looks_like_the_run_and_reads_the_raw_bytes_anew() {
    let ran = two_iterations();
    assert_eq!(says_of(&ran, &["replay"]), ran.stdout());
    assert_eq!(says_of(&ran, &["replay", "--with-adapter"]), ran.stdout());
    let journal = std::fs::read_to_string(run_directory(&ran.test.workspace()).unwrap().join("journal.jsonl")).unwrap();
    assert_eq!(says_of(&ran, &["export", "--to", "jsonl"]), journal);
}

#[test]
fn a_replay_has_no_pauses_unless_a_speed_is_given() {
    let script = Script::new().iteration(says("First words.").sleeps(1500).says(DONE));
    let ran = Test::new().agent(script).run().complete();
    let takes = |words: &[&str]| {
        let begun = std::time::Instant::now();
        assert!(says_of(&ran, words).contains("All done."));
        begun.elapsed().as_millis()
    };
    let (at_once, real) = (takes(&["replay"]), takes(&["replay", "--speed", "1x"]));
    assert!(real >= 1400, "--speed 1x left a pause of 1.5 s out: {real} ms");
    assert!(at_once + 700 < real, "{at_once} ms without pauses, {real} ms with them");
}

#[test]
fn a_run_is_followed_from_another_terminal() {
    let script = Script::new().iteration(says("First words.").sleeps(1500).says(DONE));
    let running = Test::new().agent(script).start();
    running.until("the agent speaks", |running| running.journal().contains("First words."));
    let followed = said(&running.test, &["logs", "-f"]);
    assert!(followed.contains("First words.") && followed.contains("All done."), "{followed}");
    running.wait().complete();
}

#[test]
fn files_of_a_run_are_private() {
    let ran = two_iterations();
    let mut places = vec![ran.test.state()];
    while let Some(place) = places.pop() {
        let mode = std::fs::metadata(&place).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if place.is_dir() { 0o700 } else { 0o600 }, "{}", place.display());
        if place.is_dir() {
            places.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn an_export_needs_nothing_and_runs_nothing() {
    let hostile = "<script>alert(1)</script><img src=\"http://evil.example/x\" onerror=alert(1)>";
    let ran = Test::new().agent(says(hostile).says(DONE)).run().complete();
    let page = says_of(&ran, &["export", "--to", "html"]);
    assert!(page.contains("default-src 'none'"), "{page}");
    for forbidden in ["<script>alert", "<img", "<link rel=\"stylesheet", "href=\"http", "src=\"", "@import", "url("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let spans: Value = serde_json::from_str(&says_of(&ran, &["export", "--to", "otlp"])).unwrap();
    let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    assert_eq!(spans[0]["name"], "invoke_workflow ralph");
    assert_eq!(spans[1]["parentSpanId"], spans[0]["spanId"]);
    assert_eq!(spans[0]["traceId"].as_str().unwrap().len(), 32);
    assert!(!serde_json::to_string(&spans).unwrap().contains("alert"), "no words of the agent are in spans");
}

#[test]
fn cleaning_spares_runs_that_could_go_on() {
    let ran = two_iterations();
    let unfinished = support::store(&ran.test.workspace()).path().join("runs/20200101-000000-aaaa");
    std::fs::create_dir(&unfinished).unwrap();
    std::fs::write(unfinished.join("journal.jsonl"), "").unwrap();
    let dry = says_of(&ran, &["clean", "--keep", "0", "--dry-run"]);
    assert!(dry.contains("would remove") && run_directory(&ran.test.workspace()).is_some());
    says_of(&ran, &["clean", "--keep", "0"]);
    assert_eq!(run_directory(&ran.test.workspace()).unwrap(), unfinished);
    says_of(&ran, &["clean", "--keep", "0", "--all"]);
    assert!(run_directory(&ran.test.workspace()).is_none());
    // A run that the screen has offered to resume is kept too, also by `keep_runs`.
    let limited = Test::new().file("ralph.yml", "journal: {keep_runs: 1}\n").agent(says("Hm.")).args(&["-n", "1"]);
    let limited = limited.run().exits(5).shows("ralph resume");
    let first = run_directory(&limited.test.workspace()).unwrap();
    assert!(limited.test.ralph().status().unwrap().code() == Some(5) && first.exists());
    assert!(said(&limited.test, &["clean", "--keep", "0"]).starts_with("0 removed"));
    assert!(first.exists());
}

/// Kills ralph the hard way, in the middle of its second iteration.
fn killed(script: Script, args: &[&str]) -> Test {
    let running: Running = Test::new().agent(script).args(args).start();
    running.until("the second iteration", |running| running.journal().contains("Two begins."));
    running.signal(Signal::KILL);
    running.wait().dies_by(9).test
}

fn three() -> Script {
    Script::new()
        .iteration(says("One."))
        .iteration(says("Two begins.").sleeps(700).says("Two ends."))
        .iteration(says(DONE))
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let test = killed(three(), &["-n", "7"]);
    assert!(said(&test, &["runs"]).contains("unfinished"));
    let output = ralph(&test, &["resume"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ran = Ran { test, output };
    let ends: Vec<Value> = ran.facts("iteration_end").iter().map(|end| end["iteration"].clone()).collect();
    assert_eq!(ends, [1, 2, 3], "the first is not repeated, the second is");
    assert_eq!(ran.facts("iteration_start").last().unwrap()["of"], 7, "the same settings");
    assert!(ran.heard(2).contains("interrupted in the middle of iteration 2"), "{}", ran.heard(2));
    let again = ralph(&ran.test, &["resume"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is complete"));
}

#[test]
fn the_tries_of_an_iteration_are_shown_without_the_run_around_them() {
    let running = Test::new().agent(three()).start();
    running.until("the second iteration", |running| running.journal().contains("Two begins."));
    running.signal(Signal::INT);
    let test = running.wait().dies_by(2).test;
    said(&test, &["resume"]);
    let second = said(&test, &["logs", "--iteration", "2"]);
    let lines: Vec<&str> = second.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let heads = lines.iter().filter(|line| line.contains("iteration 2 of 100")).count();
    assert_eq!(heads, 2, "each try has its head:\n{second}");
    assert!(lines[0].contains("iteration 2 of 100"), "{second}");
    for other in ["resume: `ralph resume`", "details: `ralph show", "ralph 0", "One.", "All done."] {
        assert!(!second.contains(other), "{other}:\n{second}");
    }
    let third = said(&test, &["logs", "--iteration", "3"]);
    assert!(third.contains("All done.") && !third.contains("details: `ralph show"), "{third}");
    let whole = said(&test, &["logs"]);
    assert!(whole.contains("resume: `ralph resume`") && whole.contains("details: `ralph show"), "{whole}");
}

#[test]
fn a_limited_run_goes_on_when_it_is_allowed_more() {
    let script = Script::new().iteration(says("One.")).iteration(says("Two.")).iteration(says(DONE));
    let ran = Test::new().agent(script).args(&["-n", "2"]).run().exits(5);
    let refused = ralph(&ran.test, &["resume"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has reached its limit of 2 iterations"));
    let output = ralph(&ran.test, &["resume", "-n", "5"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ran { test: ran.test, output }.after_iterations(3);
}

fn git(directory: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
    let output = std::process::Command::new("git").args(identity).args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_tree_that_moved_away_is_not_worked_on() {
    let script = Script::new()
        .iteration(says("One.").writes_file("a.txt", "a").commits("add a"))
        .iteration(says("Two begins.").sleeps(700))
        .iteration(says(DONE));
    let test = Test::new().agent(script);
    git(&test.workspace(), &["init", "-q"]);
    git(&test.workspace(), &["config", "user.name", "t"]);
    git(&test.workspace(), &["config", "user.email", "t@example.com"]);
    git(&test.workspace(), &["commit", "-q", "--allow-empty", "-m", "first"]);
    let running = test.start();
    running.until("the second iteration", |running| running.journal().contains("Two begins."));
    running.signal(Signal::KILL);
    let test = running.wait().dies_by(9).test;
    assert!(said(&test, &["diff", &id_of(&test), "-i", "1"]).contains("+++ b/a.txt"));
    git(&test.workspace(), &["reset", "-q", "--hard", "HEAD~1"]);
    let refused = ralph(&test, &["resume"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("HEAD has moved"), "{refused:?}");
    assert!(ralph(&test, &["resume", "--force"]).status.success());
}

fn id_of(test: &Test) -> String {
    run_directory(&test.workspace()).unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn others_get_a_copy_of_what_is_said_and_published() {
    let script = Script::new().iteration(says("One.\n<event topic=\"build.done\">ok</event>")).iteration(says(DONE));
    let ran = Test::new()
        .repository()
        .agent(script)
        .file("ralph.yml", "journal: {events_file: .agent/events.jsonl}\nno_progress: 2\n")
        .run()
        .complete();
    let text = std::fs::read_to_string(ran.test.workspace().join(".agent/events.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: String =
        events.iter().filter(|event| event["tag"] == "AI").map(|event| event["text"].as_str().unwrap()).collect();
    assert!(said.starts_with("One.") && said.ends_with("<promise>COMPLETE</promise>"), "{said}");
    assert!(events.iter().any(|event| event["meta"]["kind"] == "published" && event["meta"]["topic"] == "build.done"));
    assert!(
        ran.facts("iteration_end").iter().all(|receipt| receipt["progress"] == json!(false)),
        "the copy is no progress"
    );
    let status =
        std::process::Command::new("git").args(["status", "--porcelain"]).current_dir(ran.test.workspace()).output();
    let status = String::from_utf8(status.unwrap().stdout).unwrap();
    assert!(!status.contains(".agent"), "git does not see it: {status}");
}

#[test]
fn a_copy_that_cannot_be_written_is_told_before_anything_runs() {
    let ran = Test::new()
        .agent(says(DONE))
        .file("ralph.yml", "journal: {events_file: taken/events.jsonl}\n")
        .file("taken", "a file")
        .run()
        .exits(2)
        .complains("cannot write `journal.events_file`");
    assert!(ran.recorded().is_empty());
}

#[test]
fn work_that_nobody_committed_is_shown_as_a_difference() {
    let script = Script::new()
        .iteration(says("One.").writes_file("a.txt", "first\n"))
        .iteration(says("Two.").writes_file("a.txt", "second\n").writes_file("b.txt", "new\n").commits("b"))
        .iteration(says(DONE));
    let ran = Test::new().repository().agent(script).run().complete();
    let id = run_directory(&ran.test.workspace()).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let objects = || std::fs::read_dir(ran.test.workspace().join(".git/objects")).unwrap().count();
    let before = objects();
    let first = says_of(&ran, &["diff", &id, "-i", "1"]);
    assert!(first.contains("+first") && !first.contains("second"), "{first}");
    let second = says_of(&ran, &["diff", &id, "-i", "2"]);
    assert!(second.contains("-first\n+second") && second.contains("+new"), "{second}");
    assert!(says_of(&ran, &["diff", &id, "-i", "3"]).contains("no change"));
    let all = says_of(&ran, &["diff", &id]);
    assert!(all.contains("+second") && !all.contains("first"), "{all}");
    assert_eq!(before, objects(), "the repository itself is not touched");
    // Without them the names are told.
    let script = Script::new().iteration(says(DONE).writes_file("a.txt", "first\n"));
    let test = Test::new().repository().agent(script).file("ralph.yml", "journal: {keep_diffs: false}\n");
    let ran = test.run().complete();
    let run = run_directory(&ran.test.workspace()).unwrap();
    assert!(!run.join("diffs").exists());
    let told = says_of(&ran, &["diff", run.file_name().unwrap().to_str().unwrap()]);
    assert!(told.contains("a.txt") && !told.contains("+first"), "{told}");
}

#[test]
fn a_run_is_not_taken_up_on_another_branch() {
    let script = Script::new().iteration(says("One.").writes_file("a.txt", "x").commits("one")).iteration(says(DONE));
    let ran = Test::new().repository().agent(script).args(&["-n", "1"]).run().exits(5);
    let workspace = ran.test.workspace();
    support::git(&workspace, &["switch", "-c", "other"]);
    let told = ralph(&ran.test, &["resume", "-n", "5"]);
    let told = String::from_utf8(told.stderr).unwrap();
    assert!(told.contains("wrong branch") && told.contains("`other`") && told.contains("git switch"), "{told}");
    assert!(ralph(&ran.test, &["resume", "-n", "5", "--force"]).status.success());
}

#[test]
fn a_run_that_was_cut_off_after_its_last_decision_is_over() {
    let ran = Test::new().agent(says(DONE)).run().complete();
    let run = run_directory(&ran.test.workspace()).unwrap();
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let cut: String =
        journal.lines().filter(|line| !line.contains("run_end")).fold(String::new(), |text, line| text + line + "\n");
    std::fs::write(run.join("journal.jsonl"), cut).unwrap();
    std::fs::remove_file(run.join("summary.json")).unwrap();
    assert!(says_of(&ran, &["runs"]).contains("complete"));
    let told = ralph(&ran.test, &["resume"]);
    assert_eq!(told.status.code(), Some(2));
    assert!(String::from_utf8(told.stderr).unwrap().contains("is complete"));
    assert_eq!(ran.recorded().len(), 1, "nothing is played again");
}

#[test]
fn spans_are_sent_to_a_collector() {
    use std::io::{Read as _, Write as _};
    let ran = Test::new().agent(says(DONE)).run().complete();
    for (status, code) in [("200 OK", 0), ("503 Service Unavailable", 1)] {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut bytes = Vec::new();
            let mut part = [0; 4096];
            while !(bytes.windows(4).any(|four| four == b"\r\n\r\n") && bytes.trim_ascii_end().ends_with(b"}")) {
                let count = stream.read(&mut part).unwrap();
                bytes.extend_from_slice(&part[..count]);
            }
            stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).unwrap();
            String::from_utf8(bytes).unwrap()
        });
        let told = ralph(&ran.test, &["export", "--to", "otlp", "--endpoint", &url]);
        assert_eq!(told.status.code(), Some(code), "{}", String::from_utf8_lossy(&told.stderr));
        let request = served.join().unwrap();
        assert!(request.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{request}");
        let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert!(body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len() >= 2);
    }
    let told = ralph(&ran.test, &["export", "--to", "html", "--endpoint", "http://localhost:1"]);
    assert_eq!(told.status.code(), Some(2));
}

#[test]
fn ids_complete_in_the_shell() {
    let ran = Test::new().agent(says(DONE)).run().complete();
    let id = run_directory(&ran.test.workspace()).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let script = "source /dev/stdin <<< \"$($RALPH completions bash)\"; COMP_WORDS=($RALPH show ''); COMP_CWORD=2; \
                  _ralph_with_ids ralph '' show; echo \"${COMPREPLY[@]}\"";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script]).env("RALPH", env!("CARGO_BIN_EXE_ralph")).current_dir(ran.test.workspace());
    bash.env("RALPH_STATE_DIR", ran.test.state());
    let said = bash.output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains(&id), "{said:?}");
    for shell in ["zsh", "fish"] {
        assert!(says_of(&ran, &["completions", shell]).contains("runs --ids"));
    }
}

#[test]
fn raw_files_are_packed_while_a_later_run_is_under_way() {
    let script =
        |sleep| Script::new().iteration(silent().prints_raw("words\n".repeat(50_000)).sleeps(sleep).says(DONE));
    let ran = Test::new().agent(script(1)).args(&["--transcript", "plain"]).run();
    let raw = run_directory(&ran.test.workspace()).unwrap().join("raw");
    assert!(raw.join("1.stdout").exists());
    let test = ran.test.agent(script(8000));
    assert!(test.ralph().output().unwrap().status.success());
    assert!(!raw.join("1.stdout").exists());
    let mut read = String::new();
    let mut packed = ralph::journal::raw::open(&raw.join("1.stdout.zst")).unwrap();
    std::io::Read::read_to_string(&mut packed, &mut read).unwrap();
    assert!(read.starts_with("words\nwords\n"), "{}", &read[..100]);
}

#[test]
fn files_of_a_run_are_kept_as_configured() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    let line = format!("{secret}\n");
    let script = || Script::new().iteration(silent().prints_raw(line.repeat(5000)).says(DONE));
    let run = |config: &str| {
        let ran = Test::new().agent(script()).file("ralph.yml", config).args(&["--transcript", "plain"]).run();
        let raw = run_directory(&ran.test.workspace()).unwrap().join("raw");
        let mut names: Vec<_> =
            std::fs::read_dir(&raw).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        (ran, raw, names)
    };
    let (_ran, raw, names) = run("journal: {compress: false}\n");
    assert_eq!(names, ["1.stderr", "1.stdout"]);
    assert!(!String::from_utf8(std::fs::read(raw.join("1.stdout")).unwrap()).unwrap().contains(secret));
    let (_ran, raw, _) = run("journal: {compress: false, raw: exact}\n");
    assert!(String::from_utf8(std::fs::read(raw.join("1.stdout")).unwrap()).unwrap().contains(secret));
    let (ran, _, names) = run("journal: {keep_runs: 2}\n");
    assert_eq!(names, ["1.stderr", "1.stdout"], "packing is never in the way of a run's end");
    for _ in 0..3 {
        assert!(ran.test.ralph().output().unwrap().status.code().is_some());
    }
    assert_eq!(says_of(&ran, &["runs", "--ids"]).lines().count(), 2);
}

#[test]
fn secrets_of_the_run_are_not_in_what_it_keeps_of_changes() {
    let script = Script::new().iteration(says(DONE).writes_file("settings", "password=tangerine-moonbeam-77\n"));
    let test = Test::new().repository().agent(script).env("MY_SERVICE_PASSWORD", "tangerine-moonbeam-77");
    let ran = test.run().complete();
    let run = run_directory(&ran.test.workspace()).unwrap();
    assert!(!run.join("objects").exists(), "trees go with the run");
    let kept = std::fs::read_to_string(run.join("diffs/1.patch")).unwrap();
    assert!(kept.contains("+password=[redacted:MY_SERVICE_PASSWORD]"), "{kept}");
    let mut export = ran.test.tool();
    let page = export.env_remove("MY_SERVICE_PASSWORD").args(["export", "--to", "html"]).output().unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    assert!(page.contains("password=[redacted") && !page.contains("tangerine"), "{page}");
}

#[test]
fn looking_at_changes_runs_no_hook_and_blames_nobody_for_a_check() {
    let script =
        Script::new().iteration(says("One.").writes_file("a", "1\n")).iteration(says(DONE).writes_file("b", "2\n"));
    let test = Test::new().repository().agent(script);
    let hook = test.workspace().join(".git/hooks/post-index-change");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho ran >> hooked\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = test.args(&["--verify", "date > made_by_verify; test -f b"]).run().complete();
    assert!(!ran.test.workspace().join("hooked").exists());
    let id = run_directory(&ran.test.workspace()).unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert!(!says_of(&ran, &["diff", &id]).contains("made_by_verify"));
}

#[test]
fn a_secret_in_the_configuration_does_not_stand_in_the_way_of_going_on() {
    let script = || Script::new().iteration(says("One.")).iteration(says(DONE));
    let config = "verify:\n  - {name: says, command: 'echo ghp_0123456789abcdefghijABCDEFGHIJ456789'}\n";
    let ran = Test::new().agent(script()).file("ralph.yml", config).args(&["-n", "1"]).run().exits(5);
    let told = ralph(&ran.test, &["resume", "-n", "3"]);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}

#[test]
fn a_copy_stays_out_of_git_and_is_no_way_to_other_files() {
    let script = || Script::new().iteration(says(DONE).writes_file("a", "x").commits("all"));
    let config = "journal: {events_file: .agent/events.jsonl}\n";
    let ran = Test::new().repository().agent(script()).file(".agent/notes.md", "mine").file("ralph.yml", config).run();
    let ran = ran.complete();
    let committed = std::process::Command::new("git").args(["ls-files"]).current_dir(ran.test.workspace()).output();
    let committed = String::from_utf8(committed.unwrap().stdout).unwrap();
    assert!(committed.contains("notes.md") && !committed.contains("events.jsonl"), "{committed}");
    let test = Test::new().agent(script()).file("ralph.yml", config).file(".agent/x", "").file("victim", "");
    std::os::unix::fs::symlink(test.workspace().join("victim"), test.workspace().join(".agent/events.jsonl")).unwrap();
    let ran = test.run().exits(2);
    assert_eq!(std::fs::read(ran.test.workspace().join("victim")).unwrap(), b"");
    let test = Test::new().agent(script()).file("ralph.yml", config).file(".agent/x", "");
    let pipe = test.workspace().join(".agent/events.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    test.run().exits(2);
}

#[test]
fn an_iteration_that_a_person_stopped_is_played_again() {
    let script = Script::new().counting().iteration(says("One.")).iteration(says("Two.").hangs()).iteration(says(DONE));
    let running = Test::new().agent(script).start();
    running.until("the second is under way", |running| running.journal().contains("Two."));
    running.signal(Signal::INT);
    let ran = running.wait().dies_by(2).shows("resume: `ralph resume`");
    assert!(ralph(&ran.test, &["resume"]).status.success());
    let numbers: Vec<_> = ran.facts("iteration_start").iter().map(|start| start["iteration"].clone()).collect();
    assert_eq!(numbers, [json!(1), json!(2), json!(2)]);
    assert!(ran.heard(2).contains("in the middle of iteration 2"), "{}", ran.heard(2));
    assert_eq!(ran.facts("run_end").last().unwrap()["iterations"], 2);
}

#[test]
fn following_a_resumed_run_does_not_end_where_it_stopped_before() {
    let script = Script::new()
        .counting()
        .iteration(says("First words."))
        .iteration(says("Second words.").sleeps(2_500).says("All done.\n<promise>COMPLETE</promise>"));
    let ran = Test::new().agent(script).args(&["-n", "1"]).run().exits(5);
    let mut resumed = ran.test.tool().args(["resume", "-n", "5"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let path = run_directory(&ran.test.workspace()).unwrap().join("journal.jsonl");
    let start = std::time::Instant::now();
    while !std::fs::read_to_string(&path).unwrap().contains("Second words.") {
        assert!(start.elapsed() < std::time::Duration::from_secs(30));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let table = said(&ran.test, &["runs"]);
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert!(row.contains(&"running") && row.contains(&"2"), "{table}");
    let followed = said(&ran.test, &["logs", "-f"]);
    assert!(followed.contains("All done."), "{followed}");
    assert!(resumed.wait().unwrap().success());
}

#[test]
fn a_live_run_has_a_time_and_says_that_it_waits_or_is_paused() {
    let script = Script::new().counting().iteration(says("One.").sleeps(1_500)).iteration(says("Two.").hangs());
    let running = Test::new().agent(script).start();
    running.until("it runs", |running| running.journal().contains("One."));
    running.tells(&["pause"]);
    running.until("it is paused", |running| running.journal().contains("\"kind\":\"paused\""));
    let rows: serde_json::Value = serde_json::from_str(&said(&running.test, &["runs", "--json"])).unwrap();
    assert_eq!((rows[0]["outcome"].as_str(), rows[0]["iterations"].as_u64()), (Some("paused"), Some(1)));
    assert!(rows[0]["duration_ms"].as_u64().unwrap() >= 1_000, "{rows}");
    running.tells(&["stop", "--now"]);
    running.wait();
}
