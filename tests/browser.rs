//! The page in a real browser: live, steering, hostile text, phones, and the exported file. Without a Chromium the tests
//! are ignored; with `RALPH_REQUIRE_BROWSER` that is a failure.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "browser/server.rs"]
#[allow(dead_code)]
mod server;
mod support;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chromium::{BROWSERS, Browser, installed};
use fake_agent::{Script, says};
use libtest_mimic::{Arguments, Trial};
use server::Server;
use support::Test;

const AGENT: &str = include_str!("browser/agent.sh");
/// Every text that is visible, with its contrast to what is behind it; and what a screen reader would miss.
const AUDIT: &str = include_str!("browser/audit.js");

type Check = fn(&str);

const TESTS: [(&str, Check); 6] = [
    ("an_exported_page_shows_the_run_from_disk", an_exported_page_shows_the_run_from_disk),
    ("a_live_page_follows_a_run_and_steers_it", a_live_page_follows_a_run_and_steers_it),
    ("hostile_text_is_inert", hostile_text_is_inert),
    ("a_hundred_thousand_tools_stay_smooth", a_hundred_thousand_tools_stay_smooth),
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
    let running = scripted("5").start();
    let server = Server::start(running.test.tool(), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    assert_eq!(browser.eval("location.search"), "", "the token does not stay in the address");
    browser.wait_for_text("Make the CSV reader keep quoted fields");
    browser.click(".card-run", "");
    browser.wait_for_text("cargo test --workspace");
    browser.wait_for_text("running");
    browser.click(".steer .btn", "Pause");
    browser.click("dialog .btn", "Pause");
    browser.wait_for_text("pausing after this iteration");
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

fn hostile_text_is_inert(program: &str) {
    let hostile = "<script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=document.title='owned'>\
        <svg onload=document.title='owned'></svg> [x](javascript:document.title='owned') </script><!-- \u{202e}desrever";
    let script = Script::new()
        .iteration(says(hostile).writes_file("<img src=x>.txt", &format!("{hostile}\n")))
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
    let flood = r#"cat >/dev/null; awk 'BEGIN { for (n = 1; n <= 100000; n++) { h = "@@RALPH@@ {\"type\":\"tool_";
        i = "\"tool\":{\"id\":\"c" n "\"";
        print h "start\"," i ",\"name\":\"Bash\",\"input\":{\"command\":\"echo " n "\"}}}";
        print h "output\"," i "},\"text\":\"line " n "\"}"; print h "end\"," i ",\"status\":\"ok\"}}" }
        print "All done."; print "<promise>COMPLETE</promise>" }'"#;
    let ran = Test::new().file("flood.sh", flood).command("sh flood.sh").args(&["--transcript", "rtf1", "-q"]);
    let ran = ran.run().complete();
    let server = Server::start(ran.test.tool(), &[]);
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
                std::thread::sleep(std::time::Duration::from_millis(300));
                let faults = browser.eval(AUDIT);
                assert_eq!(faults.as_array().map(Vec::len), Some(0), "{width} {scheme} {place}: {faults:#}");
            }
        }
    }
    is_clean(&browser);
}

/// `UPDATE_GENERATED=1` keeps them for the documents.
fn pictures_of_the_page(program: &str) {
    let keep = std::env::var_os("UPDATE_GENERATED").is_some();
    let temporary = tempfile::tempdir().unwrap();
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    let place = if keep { images.as_path() } else { temporary.path() };
    let running = scripted("60").start();
    running.until("the second iteration", |running| running.journal().contains("cargo test --workspace"));
    let server = Server::start(running.test.tool(), &[]);
    let mut browser = Browser::start(program);
    browser.open(&server.address);
    browser.wait("document.querySelector('.card-run')");
    for (width, height, device) in [(1280, 900, "desk"), (360, 800, "phone")] {
        browser.size(width, height);
        for scheme in ["light", "dark"] {
            browser.scheme(scheme);
            for (name, prepare) in
                [("home", "location.hash = '#/'"), ("run", "location.hash = document.querySelector('.card-run').hash")]
            {
                browser.eval(prepare);
                let shown = if name == "home" { ".card-run" } else { ".iter .tool" };
                browser.wait(&format!("document.querySelector('{shown}')"));
                browser.eval("view.toggle && view.nodes.size > 1 && !view.open.has(0) && view.toggle(0)");
                std::thread::sleep(std::time::Duration::from_millis(500));
                browser.eval("scrollTo(0, 0)");
                std::thread::sleep(std::time::Duration::from_millis(200));
                let length = browser.screenshot(&place.join(format!("page-{name}-{device}-{scheme}.png")));
                assert!(length > 10_000, "{length}");
            }
        }
    }
    is_clean(&browser);
    running.tells(&["stop", "--now"]);
    running.wait();
}
