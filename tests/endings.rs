//! A corpus of endings that fooled other loops, or could: no false completion, no missed one, no false limit.
//!
//! The cases are in `tests/endings/*.txt`, for people to add to.

#![allow(clippy::unwrap_used, missing_docs)]

use ralph::event::{Event, Known, Messages, Status, Tag};
use ralph::process::{Exit, Lines};
use ralph::signals::Signal;
use ralph::signals::promise::{Match, Rule, Watch};
use ralph::transcript::{Choice, Context, Selected, select};

/// The cases of a file: title and text.
fn cases(name: &str) -> Vec<(String, String)> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/endings").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let parts = text.split("\n%%%% ").skip(1);
    let cases = parts.map(|part| {
        let (title, body) = part.split_once('\n').unwrap_or((part, ""));
        (title.to_owned(), body.to_owned())
    });
    cases.collect()
}

/// The events of a case.
fn events(body: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let (mut words, mut fragments) = (String::new(), false);
    let say = |words: &mut String, delta: bool, events: &mut Vec<Event>| {
        if !words.is_empty() {
            let text = std::mem::take(words);
            let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
            events.push(if delta { Event::delta(Tag::Ai, text) } else { Event::text(Tag::Ai, text) });
        }
    };
    for line in body.split('\n') {
        let sign = line.strip_prefix('@').map(|rest| rest.split_once(' ').unwrap_or((rest, "")));
        let Some((sign, rest)) = sign else {
            words.push_str(line);
            words.push('\n');
            continue;
        };
        fragments |= sign == "delta";
        say(&mut words, fragments, &mut events);
        match sign {
            "delta" | "next" => {}
            "think" => events.push(Event::text(Tag::Think, rest)),
            "sys" => events.push(Event::text(Tag::Sys, rest)),
            "prompt" => events.push(Event::text(Tag::Prompt, rest)),
            "tool" => {
                events.push(Event::tool_start("t", rest, None));
                events.push(Event::tool_end("t", Status::Ok, None));
            }
            "output" => events.push(Event::tool_output("t", rest)),
            other => panic!("`@{other}` is no sign"),
        }
    }
    say(&mut words, fragments, &mut events);
    events
}

fn is_complete(body: &str) -> bool {
    let mut watch = Watch::new(Rule::new(None, Match::LastLine), Messages::Whole);
    for event in &events(body) {
        watch.see(event);
    }
    matches!(watch.end().signal, Some(Signal::Complete { .. }))
}

#[test]
fn no_completion_is_missed() {
    let missed: Vec<String> =
        cases("complete.txt").into_iter().filter(|(_, body)| !is_complete(body)).map(|(title, _)| title).collect();
    assert!(missed.is_empty(), "missed: {missed:#?}");
}

#[test]
fn no_completion_is_false() {
    let wrong: Vec<String> =
        cases("not_complete.txt").into_iter().filter(|(_, body)| is_complete(body)).map(|(title, _)| title).collect();
    assert!(wrong.is_empty(), "believed: {wrong:#?}");
}

/// The failure that a plain agent's output tells, with its exit code.
fn failure(output: &str, exit: i32) -> Option<String> {
    let Ok(Selected::Dialect(plain)) = select(&[Choice::from("plain")], None) else { panic!("plain is a dialect") };
    let mut adapter = (plain.adapter)(&Context::default());
    let (mut lines, mut events) = (Lines::default(), Vec::new());
    lines.push(output.as_bytes(), |line| adapter.line(line, &mut events));
    lines.finish(|line| adapter.line(line, &mut events));
    adapter.end(Some(Exit::Code(exit)), &mut events);
    events.iter().rev().find_map(|event| match event {
        Event::Meta { meta } => match meta.known() {
            Some(Known::Error { class, .. }) => Some(class.name().to_owned()),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn no_limit_is_false() {
    for (title, body) in cases("no_failure.txt") {
        assert_eq!(failure(&body, 0), None, "{title}");
    }
}

#[test]
fn a_failure_is_named_by_its_last_words() {
    for (title, body) in cases("failure.txt") {
        let expected = title.split(':').next().unwrap();
        let found = failure(&body, 1).unwrap_or_else(|| "agent".to_owned());
        assert_eq!(found, expected, "{title}");
    }
}

#[test]
fn the_corpus_is_large() {
    let files = ["complete.txt", "not_complete.txt", "no_failure.txt", "failure.txt"];
    assert!(files.iter().map(|name| cases(name).len()).sum::<usize>() >= 200);
}
