//! The page in a real browser: live, steering, hostile text, phones, and the exported file. Without a Chromium the tests
//! are ignored; with `RALPH_REQUIRE_BROWSER` that is a failure.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "tui/history.rs"]
#[allow(dead_code)]
mod history;
#[path = "browser/server.rs"]
#[allow(dead_code)]
mod server;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use chromium::{BROWSERS, Browser, installed};
use fake_agent::{Script, says};
use history::{History, ID, receipt};
use libtest_mimic::{Arguments, Trial};
use ralph::event::{Event, Status, Tag};
use ralph::journal::{Outcome, Summary};
use serde_json::json;
use server::Server;
use support::Test;

const AGENT: &str = include_str!("browser/agent.sh");
/// Every text that is visible, with its contrast to what is behind it; and what a screen reader would miss.
const AUDIT: &str = include_str!("browser/audit.js");

type Check = fn(&str);

const TESTS: [(&str, Check); 10] = [
    ("an_exported_page_shows_the_run_from_disk", an_exported_page_shows_the_run_from_disk),
    ("a_live_page_follows_a_run_and_steers_it", a_live_page_follows_a_run_and_steers_it),
    ("a_batch_is_followed_and_steered", a_batch_is_followed_and_steered),
    ("hostile_text_is_inert", hostile_text_is_inert),
    ("a_hundred_thousand_tools_stay_smooth", a_hundred_thousand_tools_stay_smooth),
    ("first_content_is_there_within_a_second", first_content_is_there_within_a_second),
    ("an_answer_on_the_page_resumes_the_run", an_answer_on_the_page_resumes_the_run),
    ("a_running_run_and_its_dialogs_are_readable_and_named", a_running_run_and_its_dialogs_are_readable_and_named),
    ("everything_is_readable_and_named_on_phones_and_desks", everything_is_readable_and_named_on_phones_and_desks),
    ("pictures_of_the_page", pictures_of_the_page),
];

fn main() -> ExitCode {
    let browser = installed();
    let missing = browser.is_none() && std::env::var_os("RALPH_REQUIRE_BROWSER").is_none();
    let trials = TESTS.map(|(name, check)| {
        let browser = browser.clone();
        let trial = Trial::test(name, move || {
            check(&browser.ok_or_else(|| format!("no browser among {BROWSERS:?}"))?);
            Ok(())
        });
        trial.with_ignored_flag(missing)
    });
    let mut arguments = Arguments::from_args();
    // Browsers are heavy, and one of them at a time shows the truth about time.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// A run of the scripted agent: its first claim is rejected, its second is accepted.
fn scripted(slow: &str) -> Test {
    Test::new()
        .file("agent.sh", AGENT)
        .file("src/csv.rs", "pub fn split(line: &str) -> Vec<&str> {\n    line.split(',').collect()\n}\n")
        .repository()
        .prompt("Make the CSV reader keep quoted fields")
        .command("sh agent.sh")
        .env("SLOW", slow)
        .args(&["--transcript", "rtf1", "--verify", "test -e done", "--max-cost", "2", "-n", "8"])
}

fn exported(test: &Test) -> PathBuf {
    let page = test.workspace().join("run.html");
    assert!(test.tool().args(["export", "--html", "-f", "run.html"]).status().unwrap().success());
    page
}

/// ralph beside a journal that no run wrote.
fn looks_at(history: &History) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ralph"));
    command.current_dir(history.workspace()).env("RALPH_STATE_DIR", history.directory.path().join("state"));
    command
}

fn is_clean(browser: &Browser) {
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

fn an_exported_page_shows_the_run_from_disk(program: &str) {
    let ran = scripted("").run().complete();
    let page = exported(&ran.test);
    let mut browser = Browser::start(program);
    browser.open(&format!("file://{}", page.display()));
    for text in ["Iteration 1", "Iteration 2", "rejected", "complete", "Everything is done.", "Plan · 3 of 4"] {
        browser.wait_for_text(text);
    }
    // Each of two tools at the same time has its own output, and a failed one is open.
    browser.click(".fold", "▶");
    browser.wait("document.querySelectorAll('.tool').length === 3");
    let inner = |browser: &mut Browser, at: usize| {
        browser.eval(&format!(
            "(() => {{ const it = document.querySelectorAll('.tool')[{at}]; it.open = true; return it; }})(), 0"
        ));
        browser.wait(&format!("document.querySelectorAll('.tool')[{at}].querySelector('.inner')"));
        browser.eval(&format!("document.querySelectorAll('.tool')[{at}].innerText")).to_string()
    };
    let (first, second) = (inner(&mut browser, 0), inner(&mut browser, 1));
    assert!(first.contains("csv::quoted ... FAILED") && !first.contains("pub fn split"), "{first}");
    assert!(second.contains("pub fn split") && !second.contains("FAILED"), "{second}");
    browser.eval("location.hash = `#/run/${view.id}/files`");
    browser.wait_for_text("All changes of this run");
    browser.wait_for_text("Fields in quotes may contain commas.");
    browser.eval("location.hash = `#/run/${view.id}`");
    browser.eval("view.search('survive')");
    browser.wait_for_text("1 match");
    assert_eq!(browser.eval("document.querySelectorAll('.steer .btn').length"), 0, "a file steers nothing");
    is_clean(&browser);
}

fn a_live_page_follows_a_run_and_steers_it(program: &str) {
    // A browser takes a while to start, and the run does not wait for it.
    let mut browser = Browser::start(program);
    let running = scripted("60").start();
    // Whoever comes now looks at the second iteration, and follows.
    running.until("it works", |running| running.journal().contains("cargo test --workspace"));
    let server = Server::start(running.test.tool(), &[]);
    browser.open(&server.address);
    assert_eq!(browser.eval("location.search"), "", "the token does not stay in the address");
    browser.wait_for_text("Make the CSV reader keep quoted fields");
    browser.click(".card-run", "");
    browser.wait_for_text("cargo test --workspace");
    browser.wait_for_text("running");
    browser.click(".steer .btn", "Pause");
    browser.click("dialog .btn", "Pause");
    browser.wait_for_text("pausing after this iteration");
    std::fs::write(running.test.workspace().join("../go"), "").unwrap();
    browser
        .wait("document.querySelector('.pill').innerText.startsWith('paused') && document.title.startsWith('paused')");
    assert!(running.tells(&["status"]).starts_with("paused"), "the run itself is paused");
    browser.wait_for_text("Line ends are handled.");
    browser.click(".steer .btn", "Hint");
    browser.eval("document.querySelector('dialog textarea').value = 'mind the <b>quotes</b>'");
    browser.click("dialog .btn", "Send");
    browser.wait_for_text("you: hint: mind the <b>quotes</b>");
    browser.click(".steer .btn", "Limit");
    browser.eval("document.querySelector('dialog input').value = '$7'");
    browser.click("dialog .btn", "Change");
    browser.wait_for_text("of $7.00");
    browser.click(".steer .btn", "Continue");
    browser.click("dialog .btn", "Continue");
    browser.wait("document.querySelector('.pill').innerText === 'complete'");
    browser.wait_for_text("Everything is done.");
    assert_eq!(browser.eval("document.querySelectorAll('.steer .btn').length"), 0);
    running.wait().complete();
    is_clean(&browser);
}

/// A process that does not outlive its test.
struct Started(std::process::Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_batch_is_followed_and_steered(program: &str) {
    let agent = "#!/bin/sh\ncase \"$(cat)\" in *hold*) while [ ! -e ../go ]; do sleep 0.1; done ;; *fail*) exit 1 ;; esac\n\
                 echo x > $$.txt\necho '<promise>COMPLETE</promise>'\n";
    let tasks = "tasks:\n  - {id: first, title: '<img src=x onerror=document.title=1>', prompt: hold}\n  \
                 - {id: second, prompt: two, needs: [first]}\n  - {id: broken, prompt: fail}\n";
    let test = Test::new()
        .file("../agent.sh", agent.replace("../go", "$GO"))
        .file("tasks.yml", tasks)
        .file("ralph.yml", "event_loop: {max_consecutive_failures: 1}\n")
        .repository();
    let go = test.workspace().join("../go");
    let test = test.env("GO", go.to_str().unwrap());
    let agent = format!("sh {}", test.workspace().join("../agent.sh").display());
    let mut command = test.tool();
    command.args(["batch", "--into", "-j", "2", "--agent-cmd", &agent]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut batch = Started(command.spawn().unwrap());
    let server = Server::start(test.tool(), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    browser.wait_for_text("Batch of 3 tasks");
    browser.click(".card-run h3", "Batch of 3 tasks");
    browser.wait_for_text("needs first");
    browser.wait("document.querySelector('section[aria-label=stuck] .task')");
    browser.click(".steer .btn", "Pause");
    browser.click("dialog .btn", "Pause");
    browser.wait("document.querySelector('.pill').innerText === 'paused'");
    std::fs::write(&go, "").unwrap();
    browser.click(".steer .btn", "Continue");
    browser.click("dialog .btn", "Continue");
    browser.wait("document.querySelectorAll('section[aria-label=merged] .task').length === 2");
    browser.wait("document.querySelector('.bar .pill').innerText === 'stuck'");
    assert_eq!(batch.0.wait().unwrap().code(), Some(1));
    assert_ne!(browser.eval("document.title"), "1");
    for (width, scheme) in [(360, "light"), (1280, "dark")] {
        browser.size(width, 800);
        browser.scheme(scheme);
        audit(&mut browser, &format!("batch {width} {scheme}"));
    }
    browser.click("section[aria-label=merged] a.task", "");
    browser.wait_for_text("Iteration 1");
    is_clean(&browser);
}

fn hostile_text_is_inert(program: &str) {
    let hostile = "<script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=document.title='owned'>\
        <svg onload=document.title='owned'></svg> [x](javascript:document.title='owned') </script><!-- \u{202e}desrever";
    let script = Script::new()
        .iteration(says(hostile).writes_file("<img src=x>.txt", format!("{hostile}\n")))
        .iteration(says(format!("{}\n\nAll done.\n<promise>COMPLETE</promise>", "x".repeat(5 << 20))));
    let ran = Test::new().repository().agent(script).prompt(hostile).run().complete();
    let server = Server::start(ran.test.tool(), &[]);
    let page = exported(&ran.test);
    let mut browser = Browser::start(program);
    let id = support::run_directory(&ran.test.workspace()).unwrap();
    let id = id.file_name().unwrap().to_str().unwrap().to_owned();
    for address in [format!("{}#/run/{id}", server.address), format!("file://{}", page.display())] {
        browser.open(&address);
        browser.wait_for_text("Iteration 2");
        browser.click("#i0 .fold", "▶");
        browser.wait_for_text("<svg onload");
        browser.eval("location.hash = `#/run/${view.id}/files`");
        browser.wait_for_text("<img src=x>.txt");
        assert!(browser.eval("document.title").as_str().unwrap().starts_with("complete"));
        let made =
            "document.querySelectorAll('main img, main svg:not(.chart), main script, [onerror], [onload]').length";
        assert_eq!(browser.eval(made), 0);
        let links = "[...document.links].filter((link) => !/^(https?|file):/.test(link.href)).length";
        assert_eq!(browser.eval(links), 0, "no link leads to a script");
        assert_eq!(browser.eval("document.body.innerText.includes('\\u202e')"), false);
    }
    is_clean(&browser);
}

fn a_hundred_thousand_tools_stay_smooth(program: &str) {
    let mut history = History::new();
    history.start(1, None);
    for number in 1..=100_000 {
        let (id, input) = (format!("c{number}"), json!({ "command": format!("echo {number}") }));
        history.event(1, Event::tool_start(&id, "Bash", input.as_object().cloned()));
        history.event(1, Event::tool_output(&id, format!("line {number}")));
        history.event(1, Event::tool_end(&id, Status::Ok, Some(1)));
    }
    history.end(1, receipt(1)).over(Outcome::Complete, None);
    let server = Server::start(looks_at(&history), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    browser.click(".list a", "");
    browser.wait_for_text("echo 100");
    // To the end of many pages: what is far away is dropped again.
    browser.wait("(scrollTo(0, document.body.scrollHeight), view.open.get(0).pages.length > 5)");
    let nodes = browser.eval("document.querySelectorAll('*').length").as_u64().unwrap();
    assert!(nodes < 30_000, "{nodes} elements");
    let longest = browser.eval(
        "new Promise((done) => { let last = performance.now(), most = 0, count = 0; const tick = (now) => { \
         most = Math.max(most, now - last); last = now; scrollBy(0, -400); ++count < 60 ? requestAnimationFrame(tick) : done(most); }; \
         requestAnimationFrame(tick); })",
    );
    assert!(longest.as_f64().unwrap() < 1000.0, "a frame took {longest} ms");
    browser.eval("view.search('echo 99999')");
    browser.wait_for_text("1 match");
    browser.click(".results a", "1/1");
    browser.wait("document.querySelector('.tool.target')?.innerText.includes('99999')");
    is_clean(&browser);
}

/// `RALPH_PAGE_JOURNAL_MB=1000 cargo test --release --test browser first_content -- --nocapture` measures a long run.
fn first_content_is_there_within_a_second(program: &str) {
    let wanted = std::env::var("RALPH_PAGE_JOURNAL_MB").ok();
    let megabytes: u64 = wanted.as_ref().map_or(24, |text| text.parse().unwrap());
    // A default run shares its machine with other tests.
    let most = Duration::from_secs(if wanted.is_some() { 1 } else { 5 });
    let mut history = History::new();
    let output = "A line that a tool has printed, with a path/to/a/file.rs:120 in it.\n".repeat(60);
    let (mut iteration, mut length) = (0, 0);
    while length < megabytes * 1_000_000 {
        iteration += 1;
        history.start(iteration, None);
        for call in 0..500 {
            let id = format!("{iteration}-{call}");
            history.event(iteration, Event::text(Tag::Ai, format!("Words about call {id} of this run.")));
            history.event(iteration, Event::tool_start(&id, "Bash", None));
            history.event(iteration, Event::tool_output(&id, &output));
            history.event(iteration, Event::tool_end(&id, Status::Ok, Some(12)));
        }
        history.end(iteration, receipt(iteration)).flush();
        length = std::fs::metadata(history.run().journal()).unwrap().len();
    }
    history.over(Outcome::Limit, None);
    let mut browser = Browser::start(program);
    for kept in [false, true] {
        if kept {
            let summary = Summary::of(&history.run()).unwrap();
            std::fs::write(history.run().path.join("summary.json"), summary.to_json()).unwrap();
        }
        for place in ["", &format!("#/run/{ID}")] {
            let server = Server::start(looks_at(&history), &[]);
            let start = Instant::now();
            browser.open(&format!("{}{place}", server.address));
            browser.wait(&format!(
                "document.querySelector('{}')",
                if place.is_empty() { ".list a" } else { ".iter .block" }
            ));
            let took = start.elapsed();
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!(
                "{megabytes} MB, {} summary, {}: {took:?} (load {})",
                if kept { "with its" } else { "without a" },
                if place.is_empty() { "all runs" } else { "the run" },
                load.split(' ').next().unwrap_or_default(),
            );
            assert!(took < most, "{took:?}");
            // A page that is open complains when its server is gone.
            browser.open("about:blank");
        }
    }
    is_clean(&browser);
}

fn an_answer_on_the_page_resumes_the_run(program: &str) {
    let done = says("Blue it is.\n<promise>COMPLETE</promise>");
    let script = Script::new().iteration(says("Red or blue?\n<promise>BLOCKED</promise>")).iteration(done);
    let ran = Test::new().agent(script).prompt("Paint the door").run().exits(3);
    let server = Server::start(ran.test.tool(), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    browser.click(".list a", "needs a human");
    browser.wait_for_text("The agent asks: Red or blue?");
    browser.click(".steer .btn", "Answer");
    browser.eval("document.querySelector('dialog textarea').value = 'blue, please'");
    browser.click("dialog .btn", "Answer and resume");
    browser.wait("document.querySelector('.pill').innerText === 'complete'");
    browser.wait_for_text("Blue it is.");
    assert!(ran.heard(1).contains("a person answers your question: blue, please"), "{}", ran.heard(1));
    is_clean(&browser);
}

fn a_running_run_and_its_dialogs_are_readable_and_named(program: &str) {
    let running = scripted("120").start();
    running.until("the second iteration", |running| running.journal().contains("cargo test --workspace"));
    let server = Server::start(running.test.tool(), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    for (width, height) in [(360, 800), (1280, 900)] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            browser.eval("location.hash = '#/'");
            browser.wait("document.querySelector('.card-run')");
            audit(&mut browser, &format!("{width} {scheme} home"));
            browser.click(".card-run", "");
            browser.wait("document.querySelectorAll('.steer .btn').length === 4 && document.querySelector('.tool')");
            browser.wait("document.querySelector('.head').innerText.includes('branch')");
            audit(&mut browser, &format!("{width} {scheme} run"));
            for name in ["Pause", "Hint", "Limit", "Stop"] {
                browser.click(".steer .btn", name);
                browser.wait("document.querySelector('dialog').open");
                audit(&mut browser, &format!("{width} {scheme} {name}"));
                browser.click("dialog .btn", "Cancel");
                browser.wait("!document.querySelector('dialog').open");
            }
            browser.eval("document.dispatchEvent(new KeyboardEvent('keydown', { key: '?' }))");
            browser.wait("document.querySelector('dialog').open");
            audit(&mut browser, &format!("{width} {scheme} keys"));
            browser.click("dialog .btn", "Close");
        }
    }
    is_clean(&browser);
    running.tells(&["stop", "--now"]);
    running.wait();
}

fn audit(browser: &mut Browser, place: &str) {
    std::thread::sleep(Duration::from_millis(150));
    let faults = browser.eval(AUDIT);
    assert_eq!(faults.as_array().map(Vec::len), Some(0), "{place}: {faults:#}");
}

fn everything_is_readable_and_named_on_phones_and_desks(program: &str) {
    let ran = scripted("").run().complete();
    let server = Server::start(ran.test.tool(), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    let id = browser.eval("fetch('api/runs').then((it) => it.json()).then((it) => it.runs[0].id)");
    let id = id.as_str().unwrap().to_owned();
    for (width, height) in [(360, 800), (1280, 900)] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            for place in
                ["#/".to_owned(), format!("#/run/{id}"), format!("#/run/{id}/i/0"), format!("#/run/{id}/files")]
            {
                browser.eval(&format!("location.hash = '{place}'"));
                browser.wait("document.querySelector('.list a, .iter .body, .file')");
                std::thread::sleep(Duration::from_millis(150));
                audit(&mut browser, &format!("{width} {scheme} {place}"));
            }
        }
    }
    is_clean(&browser);
}

/// `UPDATE_GENERATED=1` keeps those for the documents; `RALPH_PAGE_PICTURES` names a directory for all of them.
fn pictures_of_the_page(program: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let all = std::env::var_os("RALPH_PAGE_PICTURES").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let keep = std::env::var_os("UPDATE_GENERATED").is_some();
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    let test = scripted("60");
    // Two runs that are over, and one that is not.
    for (goal, most, ending) in
        [("Read files with a byte order mark", "1", 5), ("Write fields with line breaks", "8", 0)]
    {
        let args =
            ["run", goal, "--agent-cmd", "sh agent.sh", "--transcript", "rtf1", "--verify", "test -e done", "-n", most];
        let ran = test.tool().args(args).env_remove("SLOW").output().unwrap();
        assert_eq!(ran.status.code(), Some(ending), "{}", String::from_utf8_lossy(&ran.stderr));
        support::git(&test.workspace(), &["checkout", "-q", "."]);
        support::git(&test.workspace(), &["clean", "-fdq"]);
    }
    let running = test.start();
    running.until("the second iteration", |running| running.journal().contains("cargo test --workspace"));
    let mut tool = running.test.tool();
    tool.env("HOME", running.workspace().parent().unwrap());
    let server = Server::start(tool, &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    browser.wait("document.querySelector('.card-run')");
    let run = "location.hash = document.querySelector('.card-run').hash";
    for (width, height, device) in [(1280, 900, "desk"), (360, 800, "phone")] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            for (name, prepare, shown) in [
                ("home", "0", ".card-run"),
                ("run", run, ".iter .tool"),
                ("dialog", run, ".iter .tool"),
                (
                    "rejected",
                    "location.hash = [...document.querySelectorAll('.list a')].find((it) => it.innerText.includes('rejected')).hash",
                    ".iter .card",
                ),
            ] {
                browser.eval("location.hash = '#/'");
                browser
                    .wait("document.querySelector('.card-run') && document.querySelectorAll('.list a').length === 2");
                browser.eval(prepare);
                browser.wait(&format!("document.querySelector('{shown}')"));
                browser.eval("view.toggle && view.nodes.size > 1 && !view.open.has(0) && view.toggle(0)");
                std::thread::sleep(Duration::from_millis(400));
                if name == "dialog" {
                    browser.click(".steer .btn", "Hint");
                }
                browser.eval("scrollTo(0, 0)");
                std::thread::sleep(Duration::from_millis(200));
                assert!(
                    !browser.eval("document.body.innerText").as_str().unwrap().contains("/tmp"),
                    "a path of this machine"
                );
                let is_kept = keep && ["home", "run"].contains(&name);
                let place = if is_kept { &images } else { &all };
                let length = browser.screenshot(&place.join(format!("page-{name}-{device}-{scheme}.png")));
                assert!(length > 10_000, "{length}");
                browser.eval("document.querySelector('dialog').open && document.querySelector('dialog .btn').click()");
            }
        }
    }
    is_clean(&browser);
    running.tells(&["stop", "--now"]);
    running.wait();
}
