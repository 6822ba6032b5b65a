//! Captured runs of the real agents through their adapters: every event as a snapshot, and facts that
//! were not taken from our own output but from what the scripted model server sent.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "transcripts/capture.rs"]
mod capture;
#[path = "transcripts/facts.rs"]
mod facts;

use std::fmt::Write as _;

use capture::{Capture, Summary};
use ralph::event::Event;
use serde_json::Value;

#[test]
fn every_capture_gives_the_same_events_as_ever() {
    for capture in capture::all() {
        let mut settings = insta::Settings::clone_current();
        let path = format!("transcripts/snapshots/{}/{}", capture.agent, capture.version);
        settings.set_snapshot_path(capture::root().parent().unwrap().join(path));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(capture.name.as_str(), shown(&capture.events())));
    }
}

#[test]
fn every_capture_has_exactly_one_terminal_fact_and_no_open_tool() {
    for capture in capture::all() {
        let events = capture.events();
        let summary = Summary::of(&events);
        assert_eq!(summary.ends.len(), 1, "{}", named(&capture));
        let count = |wanted: fn(&Event) -> bool| events.iter().filter(|event| wanted(event)).count();
        let starts = count(|event| matches!(event, Event::ToolStart { .. }));
        let ends = count(|event| matches!(event, Event::ToolEnd { .. }));
        assert_eq!(starts, ends, "{}", named(&capture));
    }
}

#[test]
fn every_capture_keeps_to_the_facts() {
    let captures = capture::all();
    let mut agents: Vec<&str> = captures.iter().map(|capture| capture.agent.as_str()).collect();
    agents.dedup();
    let mut broken = Vec::new();
    for agent in agents {
        let mut facts = facts::of(agent);
        for capture in captures.iter().filter(|capture| capture.agent == agent) {
            match facts.remove(&capture.name) {
                Some(facts) => broken.extend(facts.broken(capture)),
                None => broken.push(format!("{}: no facts", named(capture))),
            }
        }
        broken.extend(facts.keys().map(|name| format!("{agent}/{name}: facts without a capture")));
    }
    assert!(broken.is_empty(), "{} claims are broken\n{}", broken.len(), broken.join("\n"));
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
