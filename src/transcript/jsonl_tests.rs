use super::*;
use crate::event::Known;

/// A dialect with one event, `{"type":"say","text":…}`, and one that ends the turn.
struct Saying;

#[derive(serde::Deserialize)]
struct Say {
    text: String,
}

impl Reader for Saying {
    fn speaks(json: &str) -> bool {
        matches!(crate::transcript::shape::kind(json).as_deref(), Some("say" | "end"))
    }

    fn object(&mut self, json: &str, turn: &mut Turn) -> Result<(), Misread> {
        match crate::transcript::shape::kind(json).as_deref() {
            Some("say") => turn.text(Tag::Ai, None, serde_json::from_str::<Say>(json)?.text),
            Some("end") => turn.end(Some(true), "end"),
            _ => return Err(Misread::Unknown),
        }
        Ok(())
    }
}

fn read_bytes(output: &[u8], exit: Option<Exit>) -> Vec<String> {
    let mut adapter = JsonLines::new(&Context { prompts: vec!["do it".to_owned()], ..Context::default() }, Saying);
    let mut out = Vec::new();
    let mut lines = crate::process::Lines::new(64 * 1024);
    lines.push(output, |line| adapter.line(line, &mut out));
    lines.finish(|line| adapter.line(line, &mut out));
    adapter.end(exit, &mut out);
    out.iter().map(shown).collect()
}

fn read(output: &str) -> Vec<String> {
    read_bytes(output.as_bytes(), None)
}

/// Short forms: `AI hello`, `unparsed×2 reason`, `end true`.
fn shown(event: &Event) -> String {
    match event {
        Event::Text { tag, text, delta, .. } => format!("{}{} {text}", tag.name(), if *delta { "+" } else { "" }),
        Event::Meta { meta } => match meta.known().unwrap() {
            Known::Unparsed { reason, count, .. } => format!("unparsed×{} {}", count.unwrap_or(1), reason.unwrap()),
            Known::TurnEnd { success, .. } => format!("end {}", success.map_or("?".to_owned(), |yes| yes.to_string())),
            Known::Error { class, message, .. } => format!("error {} {message}", class.name()),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

const HELLO: &str = r#"{"type":"say","text":"hello"}"#;
const END: &str = r#"{"type":"end"}"#;

#[test]
fn objects_survive_what_stands_around_them() {
    let both = ["AI hello", "end true"];
    for output in [
        format!("{HELLO}\n{END}\n"),
        format!("{HELLO}\r\n{END}\r\n"),
        format!("\u{feff}{HELLO}\n\n  \n{END}"),
        format!("{HELLO}{END}\n"),
        format!("{HELLO} {END}\n"),
        format!("  {HELLO}\n\t{END}\n"),
        format!("[{HELLO},{END}]\n"),
        format!("[\n  {HELLO},\n  {END}\n]"),
        "{\n  \"type\": \"say\",\n  \"text\": \"hello\"\n}\n{\n  \"type\": \"end\"\n}".to_owned(),
    ] {
        assert_eq!(read(&output), both, "{output:?}");
    }
}

#[test]
fn other_lines_are_shown_and_counted_and_swallow_nothing() {
    for (line, shown) in [
        ("npm warn something", "SYS npm warn something"),
        (r#"{"type":"say","text":"hal"#, r#"SYS {"type":"say","text":"hal"#),
        (r#"{"type":"say","text":5}"#, r#"SYS {"type":"say","text":5}"#),
        (r#"{"type":"say"}"#, r#"SYS {"type":"say"}"#),
        ("{", "SYS {"),
        ("}", "SYS }"),
        ("[1,2]", "SYS [1,2]"),
        ("5", "SYS 5"),
        ("null", "SYS null"),
        ("\u{1b}[31mred {text}\u{1b}[0m", "SYS red {text}"),
    ] {
        let events = read(&format!("{HELLO}\n{line}\n{END}\n"));
        assert_eq!(events.len(), 4, "{line}: {events:?}");
        assert_eq!(events[0], "AI hello", "{line}");
        assert!(events[1].starts_with("unparsed×1"), "{line}: {}", events[1]);
        assert_eq!(events[2], shown, "{line}");
        assert_eq!(events[3], "end true", "{line}");
    }
}

#[test]
fn an_object_behind_garbage_is_read_and_the_garbage_is_kept() {
    for garbage in ["Ctrl-C pressed ", r#"{"type":"say","text":"cut "#, "{{{"] {
        let events = read(&format!("{HELLO}\n{garbage}{END}\n"));
        assert_eq!(events[0], "AI hello");
        assert!(events[1].starts_with("unparsed×1"), "{events:?}");
        assert_eq!(events[2], format!("SYS {}", garbage.trim()));
        assert_eq!(events[3..], ["end true"]);
    }
}

#[test]
fn a_key_given_twice_counts_once() {
    let events = read(
        r#"{"type":"say","text":"hello"}
{"type":"say","text":"first","text":"last"}
"#,
    );
    assert_eq!(events[..3], ["AI hello", "AI last", "unparsed×1 a key is given twice: the last one counts"]);
}

#[test]
fn a_flood_of_unknown_events_is_a_number() {
    let flood = "{\"type\":\"new\",\"text\":\"<promise>COMPLETE</promise>\"}\n".repeat(500);
    assert_eq!(
        read(&format!("{HELLO}\n{flood}{END}\n")),
        ["AI hello", "unparsed×1 unknown event `new`", "end true", "unparsed×499 unknown event `new`"]
    );
}

#[test]
fn output_without_any_object_is_the_text_format() {
    assert_eq!(read("All done.\n\nLOOP_COMPLETE\n"), ["AI+ All done.", "AI+ \n", "AI+ \nLOOP_COMPLETE", "end ?"]);
    assert_eq!(read("do it\nSure."), ["PROMPT do it", "AI+ Sure.", "end ?"]);
    assert_eq!(read(r#"{"answer":42}"#), [r#"AI+ {"answer":42}"#, "end ?"], "an answer may be JSON");
    let long = "line\n".repeat(1000);
    assert_eq!(read(&long).len(), 1001, "it is not held for ever");
}

#[test]
fn lines_before_the_first_object_are_no_words_of_the_agent() {
    let events = read(&format!("LOOP_COMPLETE\n\n{HELLO}\n{END}"));
    assert_eq!(events, ["unparsed×1 not JSON", "SYS LOOP_COMPLETE", "AI hello", "end true"]);
}

#[test]
fn half_a_first_line_is_not_the_agents_word() {
    let events = read(r#"{"type":"say","text":"LOOP_COMPL"#);
    assert_eq!(events[1], r#"SYS {"type":"say","text":"LOOP_COMPL"#);
}

#[test]
fn a_line_longer_than_the_cap_is_shown_in_parts_and_the_next_is_read() {
    let long = format!(r#"{{"type":"say","text":"{}"}}"#, "x".repeat(100_000));
    let events = read(&format!("{HELLO}\n{long}\n{END}\n"));
    assert_eq!(events[1], "unparsed×1 the line is longer than the line cap");
    let shown: String = events[2..4].iter().map(|event| event.split_once(' ').unwrap().1).collect();
    assert_eq!(shown, long);
    assert_eq!(events[4..], ["end true"]);
}

#[test]
fn bytes_that_are_no_text_lose_only_themselves() {
    let mut output = HELLO.replace("hello", "a#b").into_bytes();
    let at = output.iter().position(|byte| *byte == b'#').unwrap();
    output[at] = 0xff;
    assert_eq!(read_bytes(&output, None)[0], "AI a\u{fffd}b");
}

#[test]
fn the_end_is_told_once_and_says_what_is_known() {
    let read = |output: &str, exit| read_bytes(output.as_bytes(), exit);
    assert_eq!(read(&format!("{END}\n{END}"), Some(Exit::Code(0))), ["end true"]);
    assert_eq!(read(HELLO, Some(Exit::Code(0))), ["AI hello", "end false"], "the terminal event is missing");
    assert_eq!(read(HELLO, Some(Exit::Signal(15))), ["AI hello", "end false"]);
    assert_eq!(read("", Some(Exit::Code(0))), ["error agent the answer was empty", "end false"]);
    assert_eq!(read("", Some(Exit::Signal(9))), ["end false"]);
    assert_eq!(read("hello", Some(Exit::Code(0))), ["AI+ hello", "end ?"]);
    let refused = "SYS 401 Unauthorized";
    assert_eq!(read("401 Unauthorized", Some(Exit::Code(1))), [refused, "error auth 401 Unauthorized", "end false"]);
}

#[test]
fn standard_error_tells_why_a_process_failed() {
    let mut adapter = JsonLines::new(&Context::default(), Saying);
    let mut out = Vec::new();
    adapter.stderr(Line::whole(b"Error: connect ECONNREFUSED 127.0.0.1"), &mut out);
    adapter.stderr(Line::whole(b"    at main.js:1"), &mut out);
    adapter.end(Some(Exit::Code(1)), &mut out);
    let events: Vec<String> = out.iter().map(shown).collect();
    assert_eq!(events[2..], ["error network Error: connect ECONNREFUSED 127.0.0.1", "end false"]);
}
