//! How many lines a second go through the display and the extractor of an agent script: the bridge's own `jq` against a
//! process for each line. `cargo bench --bench bridge`.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss, missing_docs)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ralph::agent::script::{Beginning, Script};
use ralph::agent::{Contract, Foreign, Live};
use ralph::process::{Environment, Invocation, Stdin, capture};

const LINES: usize = 10_000;

fn main() {
    // The bridge starts its own program again as the jq service, and here that is this bench: it must not start over.
    if std::env::args().nth(1).as_deref() == Some("jq-service") {
        let _ = ralph::commands::dispatch(<ralph::cli::Cli as clap::Parser>::parse());
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scripts/streams.sh");
    let path = place.path().join("streams.sh");
    let text = std::fs::read_to_string(fixture).unwrap().replace("AGENT_CLI=\"streams\"", "AGENT_CLI=cat");
    std::fs::write(&path, &text).unwrap();
    let line = format!(
        r#"{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"text","text":"{}"}}]}},"session_id":"x"}}"#,
        "words of the agent ".repeat(9)
    );
    let output = place.path().join("output");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&output).unwrap());
    (0..LINES).for_each(|_| writeln!(file, "{line}").unwrap());
    drop(file);
    println!("{LINES} lines of {} bytes", line.len() + 1);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let foreign = Foreign {
            contract: Contract::Script,
            path: path.clone(),
            globals: vec![],
            exports: vec![],
            live: Live::Wanted,
        };
        let mut script = Script::load(&foreign, place.path(), Environment::default()).await.unwrap();
        let Beginning { invocation, state } = script.display().await.unwrap();
        let stdin = [state.as_slice(), &std::fs::read(&output).unwrap()].concat();
        let start = Instant::now();
        let shown =
            capture(Invocation { stdin: Stdin::Bytes(stdin.into()), ..invocation }, Duration::from_secs(600), 1 << 26)
                .await
                .unwrap();
        report("display, jq in the bridge", LINES, start.elapsed());
        assert_eq!(shown.stdout.iter().filter(|&&byte| byte == b'\n').count(), LINES);
    });

    let few = 300;
    let text = std::fs::read_to_string(&output).unwrap();
    let head: String = text.split_inclusive('\n').take(few).collect();
    let start = Instant::now();
    let script = format!("source {}; agent_format_display", path.display());
    let mut child =
        Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(head.as_bytes()).unwrap();
    child.wait().unwrap();
    report("display, a process for each line", few, start.elapsed());
}

fn report(what: &str, lines: usize, took: Duration) {
    println!("{what:<34} {:>8.0} lines/s   ({took:.1?})", lines as f64 / took.as_secs_f64());
}
