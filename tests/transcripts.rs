//! Captured runs of the real agents through their adapters: every event as a snapshot, and facts that
//! were not taken from our own output but from what the scripted model server sent. One test for each capture.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "transcripts/capture.rs"]
mod capture;
#[path = "transcripts/facts.rs"]
mod facts;

use std::fmt::Write as _;
use std::process::ExitCode;

use capture::{Capture, Summary};
use libtest_mimic::{Arguments, Failed, Trial};
use ralph::event::Event;
use serde_json::Value;

fn main() -> ExitCode {
    let captures = capture::all();
    let mut agents: Vec<String> = captures.iter().map(|capture| capture.agent.clone()).collect();
    agents.dedup();
    let names: Vec<(String, String)> =
        captures.iter().map(|capture| (capture.agent.clone(), capture.name.clone())).collect();
    let mut trials: Vec<Trial> =
        captures.into_iter().map(|capture| Trial::test(named(&capture), move || check(&capture))).collect();
    // Facts that nothing checks would be forgotten.
    trials.extend(agents.into_iter().map(|agent| {
        let known: Vec<String> = names.iter().filter(|(of, _)| *of == agent).map(|(_, name)| name.clone()).collect();
        Trial::test(format!("{agent}/facts.json"), move || {
            let unused: Vec<String> = facts::of(&agent).into_keys().filter(|name| !known.contains(name)).collect();
            if unused.is_empty() { Ok(()) } else { Err(format!("facts without a capture: {unused:?}").into()) }
        })
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One capture gives the same events as ever, has one terminal event and no open tool, and fits its facts.
fn check(capture: &Capture) -> Result<(), Failed> {
    let events = capture.events();
    let mut settings = insta::Settings::clone_current();
    let path = format!("transcripts/snapshots/{}/{}", capture.agent, capture.version);
    settings.set_snapshot_path(capture::root().parent().unwrap().join(path));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(capture.name.as_str(), shown(&events)));
    let summary = Summary::of(&events);
    assert_eq!(summary.ends.len(), 1, "terminal events");
    let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
    let starts = count(|event| matches!(event, Event::ToolStart { .. }));
    let ends = count(|event| matches!(event, Event::ToolEnd { .. }));
    assert_eq!(starts, ends, "tools that started, and that ended");
    let facts = facts::of(&capture.agent).remove(&capture.name).ok_or("no facts in facts.json")?;
    let broken = facts.broken(capture);
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n").into()) }
}

fn named(capture: &Capture) -> String {
    format!("{}/{}/{}", capture.agent, capture.version, capture.name)
}

/// One line for each event; long texts by their beginning, length and hash.
fn shown(events: &[Event]) -> String {
    let mut shown = String::new();
    for event in events {
        let mut value = serde_json::to_value(event).unwrap();
        shorten(&mut value);
        writeln!(shown, "{value}").unwrap();
    }
    shown
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.chars().count() > 300 => {
            let head: String = text.chars().take(100).collect();
            *text = format!("{head}… [{} bytes, {:016x}]", text.len(), fingerprint(text.as_bytes()));
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(object) => object.values_mut().for_each(shorten),
        _ => {}
    }
}

/// FNV-1a: the same on every machine and with every compiler.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
