//! How many lines a second go through the display of an agent script: a loop that is one filter, a loop that asks the
//! bridge's own `jq`, and a process for each line. `cargo bench --bench bridge`.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ralph::agent::{Contract, Live, PluginFile};
use ralph::plugin::script::{Beginning, Script};
use ralph::process::{Environment, Invocation, Stdin, capture};

const LINES: usize = 10_000;

fn main() {
    // The bridge starts its own program again as the jq service, and here that is this bench: it must not start over.
    assert_ne!(std::env::args().nth(1).as_deref(), Some("jq-service"), "the service is the `ralph` binary");
    let place = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scripts/streams.sh");
    let text = std::fs::read_to_string(fixture).unwrap().replace("AGENT_CLI=\"streams\"", "AGENT_CLI=cat");
    let line = format!(
        r#"{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":"{}"}}]}},"session_id":"x"}}"#,
        "words of the agent ".repeat(9)
    );
    let output = format!("{line}\n").repeat(LINES);
    println!("{LINES} lines of {} bytes", line.len() + 1);

    let path = place.path().join("streams.sh");
    std::fs::write(&path, &text).unwrap();
    display("one filter for the loop", &path, &output);

    // Something else in the loop: then each line is a question.
    let other = place.path().join("other.sh");
    std::fs::write(&other, text.replace("read -r line; do", "read -r line; do :")).unwrap();
    display("a question for each line", &other, &output);

    let few = 300;
    let head: String = output.split_inclusive('\n').take(few).collect();
    let start = Instant::now();
    let script = format!("source {}; agent_format_display", path.display());
    let mut child =
        Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(head.as_bytes()).unwrap();
    child.wait().unwrap();
    report("a process for each line", few, start.elapsed());
}

/// Runs the display of a script on the output.
fn display(what: &str, path: &Path, output: &str) {
    let foreign = PluginFile {
        contract: Contract::Script,
        path: path.to_owned(),
        globals: vec![],
        exports: vec![],
        live: Live::Wanted,
        helper: env!("CARGO_BIN_EXE_ralph").into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let workspace = path.parent().unwrap();
        let mut script = Script::load(&foreign, workspace, Environment::default()).await.unwrap();
        let Beginning { invocation, state } = script.display().await.unwrap();
        let stdin = Stdin::Bytes([state.as_slice(), output.as_bytes()].concat().into());
        let start = Instant::now();
        let shown = capture(Invocation { stdin, ..invocation }, Duration::from_secs(600), 1 << 26).await.unwrap();
        report(what, LINES, start.elapsed());
        assert_eq!(shown.stdout.iter().filter(|&&byte| byte == b'\n').count(), LINES);
    });
}

fn report(what: &str, lines: usize, took: Duration) {
    println!("{what:<34} {:>8.0} lines/s   ({took:.1?})", lines as f64 / took.as_secs_f64());
}
