//! The exported page in a real browser. Without a Chromium the test is ignored; with `RALPH_REQUIRE_BROWSER` that is a
//! failure.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fake_agent::{Script, says};
use libtest_mimic::{Arguments, Trial};
use support::Test;

/// The browsers that would do.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<String> {
    let works = |name: &&str| {
        let version = Command::new(name).arg("--version").stdin(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    };
    BROWSERS.iter().find(|name| works(name)).map(|name| (*name).to_owned())
}

/// Opens a page and gives what the browser made of it, and what it complained about.
fn opened(browser: &str, page: &Path, more: &[&str]) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let out = profile.path().join("out");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(out.with_extension("err")).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the browser hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    (read(&out), read(&out.with_extension("err")))
}

fn main() -> ExitCode {
    let browser = browser();
    let missing = browser.is_none() && std::env::var_os("RALPH_REQUIRE_BROWSER").is_none();
    let trial = Trial::test("an_exported_page_shows_the_run_in_a_real_browser", move || {
        let browser = browser.ok_or_else(|| format!("no browser among {BROWSERS:?}"))?;
        an_exported_page_shows_the_run(&browser);
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial.with_ignored_flag(missing)]).exit_code()
}

fn an_exported_page_shows_the_run(browser: &str) {
    let hostile =
        "<script>document.title = 'owned'</script><img src=http://127.0.0.1:9/x onerror=document.title='owned'>";
    let script = Script::new()
        .iteration(says(format!("I write it. {hostile}")).writes_file("a.txt", "a first line\n"))
        .iteration(says("All done.\n<promise>COMPLETE</promise>"));
    let ran = Test::new().repository().agent(script).run().complete();
    let page = ran.test.workspace().join("run.html");
    let export = ran.test.tool().args(["export", "--to", "html", "--file", "run.html"]).status().unwrap();
    assert!(export.success());
    let (dom, complaints) = opened(browser, &page, &["--dump-dom"]);
    for expected in ["Iteration 1 of 100", "Iteration 2 of 100", "Timeline", "I write it.", "+a first line", "complete"]
    {
        assert!(dom.contains(expected), "no {expected:?} in\n{dom}\n{complaints}");
    }
    // What the agent wrote is text: the browser made no element of it, ran nothing and asked nobody.
    assert!(dom.contains("<title>ralph run"), "{dom}");
    assert!(!dom.contains("<script") && !dom.contains("<img"), "{dom}");
    assert!(!complaints.contains("CONSOLE"), "{complaints}");
    let picture = ran.test.workspace().join("run.png");
    let picture_argument = format!("--screenshot={}", picture.display());
    opened(browser, &page, &[&picture_argument, "--window-size=900,1200"]);
    let picture = std::fs::read(picture).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{} bytes", picture.len());
}
