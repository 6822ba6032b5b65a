use super::*;

fn read(output: &str) -> Vec<String> {
    let mut adapter = Rtf1::new(&Context { prompts: vec!["the prompt".to_owned()], ..Context::default() });
    let mut out = Vec::new();
    for line in output.lines() {
        adapter.line(Line::whole(line.as_bytes()), &mut out);
    }
    adapter.end(None, &mut out);
    out.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

const END: &str = r#"{"type":"meta","meta":{"kind":"turn_end","success":null,"reason":"end of output"}}"#;

#[test]
fn the_documents_example_comes_out_as_it_stands() {
    let lines = [
        r#"{"type":"text","tag":"THINK","text":"Plan: inspect auth layer"}"#,
        r#"{"type":"tool_start","tool":{"id":"t1","name":"shell","input":{"cmd":"rg -n authz -S ."}}}"#,
        r#"{"type":"tool_end","tool":{"id":"t1","status":"ok","duration_ms":218}}"#,
        r#"{"type":"usage","usage":{"prompt_tokens":1234,"completion_tokens":567,"total_tokens":1801}}"#,
    ];
    let raw: String = lines.iter().flat_map(|line| [SENTINEL, line, "\n"]).collect();
    let mut expected = lines.to_vec();
    expected.push(END);
    assert_eq!(read(&raw), expected);
}

#[test]
fn other_lines_are_ai_and_a_sentinel_inside_a_line_is_text() {
    assert_eq!(
        read("hello\nsee @@RALPH@@ {\"type\":\"meta\",\"meta\":{}}\n@@RALPH@@{}\nthe prompt"),
        [
            r#"{"type":"text","tag":"AI","text":"hello"}"#,
            r#"{"type":"text","tag":"AI","text":"see @@RALPH@@ {\"type\":\"meta\",\"meta\":{}}"}"#,
            r#"{"type":"text","tag":"AI","text":"@@RALPH@@{}"}"#,
            r#"{"type":"text","tag":"PROMPT","text":"the prompt"}"#,
            END,
        ]
    );
}

#[test]
fn a_broken_line_is_told_and_shown() {
    for (json, message) in [
        (r#"{"type":"text""#, "not JSON: EOF while parsing an object at column 14"),
        (r"[1]", "expected an object, found an array"),
        (r"{}", "`type` is missing"),
        (
            r#"{"type":"nope"}"#,
            "`type` must be one of text, tool_start, tool_output, tool_end, usage, meta, found `\"nope\"`",
        ),
        (
            r#"{"type":"text","tag":"BOSS","text":"x"}"#,
            "`tag` must be one of AI, THINK, SYS, TOOL, PROMPT, USER, found `\"BOSS\"`",
        ),
        (r#"{"type":"text","text":"x"}"#, "`tag` is missing"),
        (r#"{"type":"text","tag":"AI"}"#, "`text` is missing"),
        (r#"{"type":"text","tag":"AI","text":5}"#, "`text` must be a string, found `5`"),
        (r#"{"type":"tool_start"}"#, "`tool` is missing"),
        (r#"{"type":"tool_start","tool":{"id":"a"}}"#, "`tool.name` is missing"),
        (r#"{"type":"tool_start","tool":{"name":"a"}}"#, "`tool.id` is missing"),
        (r#"{"type":"tool_start","tool":{"id":1,"name":"a"}}"#, "`tool.id` must be a string, found `1`"),
        (
            r#"{"type":"tool_start","tool":{"id":"a","name":"b","input":[]}}"#,
            "`tool.input` must be an object, found an array",
        ),
        (r#"{"type":"tool_output","tool":{"id":"a"}}"#, "`text` is missing"),
        (
            r#"{"type":"tool_end","tool":{"id":"a","status":"done"}}"#,
            "`tool.status` must be one of ok, fail, unknown, found `\"done\"`",
        ),
        (r#"{"type":"tool_end","tool":{"id":"a"}}"#, "`tool.status` is missing"),
        (
            r#"{"type":"tool_end","tool":{"id":"a","status":"ok","duration_ms":-1}}"#,
            "`tool.duration_ms` must be a whole number of 0 or more, found `-1`",
        ),
        (r#"{"type":"usage"}"#, "`usage` is missing"),
        (
            r#"{"type":"usage","usage":{"prompt_tokens":"9"}}"#,
            "`usage.prompt_tokens` must be a whole number of 0 or more, found `\"9\"`",
        ),
        (r#"{"type":"meta"}"#, "`meta` is missing"),
        (r#"{"type":"meta","meta":"x"}"#, "`meta` must be an object, found `\"x\"`"),
        (r#"{"type":"meta","type":"meta","meta":{}}"#, "duplicate field `type` at column 21"),
    ] {
        let line = format!("{SENTINEL}{json}");
        let error = Event::from(Known::ParseError { message: message.to_owned(), line: line.clone() });
        let shown = Event::text(Tag::Sys, line.clone());
        let expected = [error, shown].map(|event| serde_json::to_string(&event).unwrap());
        assert_eq!(read(&line)[..2], expected, "{json}");
    }
}

#[test]
fn odd_tool_ends_are_passed_on_with_a_warning() {
    let end = r#"{"type":"tool_end","tool":{"id":"a","status":"ok"}}"#;
    let warning = |message: &str| format!(r#"{{"type":"meta","meta":{{"kind":"warning","message":"{message}"}}}}"#);
    assert_eq!(read(&format!("{SENTINEL}{end}")), [&warning("tool `a` ended without a start"), end, END]);
    let start = r#"{"type":"tool_start","tool":{"id":"a","name":"b"}}"#;
    assert_eq!(
        read(&format!("{SENTINEL}{start}\n{SENTINEL}{end}\n{SENTINEL}{end}")),
        [start, end, &warning("tool `a` ended twice"), end, END]
    );
}

#[test]
fn an_open_tool_is_closed_as_unknown() {
    let start = r#"{"type":"tool_start","tool":{"id":"a","name":"b"},"parent":"p"}"#;
    let end = r#"{"type":"tool_end","tool":{"id":"a","status":"unknown"},"parent":"p"}"#;
    assert_eq!(read(&format!("{SENTINEL}{start}")), [start, end, END]);
}

#[test]
fn exactly_one_turn_end() {
    let turn = r#"{"type":"meta","meta":{"kind":"turn_end","success":true,"reason":"done"}}"#;
    let read = read(&format!("{SENTINEL}{turn}\n{SENTINEL}{turn}"));
    assert_eq!(read[0], turn);
    assert!(read[1].contains("second"), "{}", read[1]);
    assert_eq!(read.len(), 2);
}

#[test]
fn a_fact_of_a_known_kind_that_does_not_fit_is_told_and_passed_on() {
    let error = |more: &str| format!(r#"{SENTINEL}{{"type":"meta","meta":{{"kind":"error",{more}}}}}"#);
    for (more, message) in [
        (r#""class":"rate_limit","message":"m","resets_at":{"in":5}"#, "`meta.resets_at` must be a time"),
        (r#""class":"rate_limit","message":"m","resets_at":true"#, "`meta.resets_at` must be a time"),
        (r#""class":"rate_limit","message":"m","resets_at":["2030-01-01"]"#, "`meta.resets_at` must be a time"),
        (r#""class":"rate_limit","message":"m","resets_at":"soon""#, "`meta.resets_at` must be a time"),
        (r#""class":"rate_limit","message":"m","resets_at":1e300"#, "`meta.resets_at` must be a time"),
        (r#""class":"nope","message":"m""#, "unknown variant `nope`"),
        (r#""class":"rate_limit","message":"m","retry_after_ms":"5s""#, "invalid type"),
    ] {
        let read = read(&error(more));
        assert!(read[0].contains("parse_error") && read[0].contains(message), "{more}: {read:?}");
    }
    let heeded = [
        r#""class":"rate_limit","message":"m","resets_at":"2030-01-01T00:00:00Z""#,
        r#""class":"rate_limit","message":"m","resets_at":1893456000"#,
        r#""class":"rate_limit","message":"m","resets_at":1893456000000"#,
        r#""class":"rate_limit","message":"m","resets_at":null"#,
        r#""class":"rate_limit","message":"m""#,
    ];
    for more in heeded {
        assert_eq!(read(&error(more)).len(), 2, "{more}: {:?}", read(&error(more)));
    }
    assert_eq!(read(&format!(r#"{SENTINEL}{{"type":"meta","meta":{{"kind":"mood","level":3}}}}"#)).len(), 2);
}
