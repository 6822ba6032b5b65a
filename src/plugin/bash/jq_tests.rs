//! What scripts rely on when they call `jq`.

use super::*;

fn run(args: &[&str], input: &str) -> Answer {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    Call::parse(&args).unwrap().compile().unwrap().run(input.as_bytes())
}

fn printed(args: &[&str], input: &str) -> String {
    String::from_utf8(run(args, input).stdout).unwrap()
}

#[test]
fn values_are_written_as_the_tool_writes_them() {
    for (args, input, expected) in [
        (&["-r", ".a"][..], r#"{"a":"x\ny"}"#, "x\ny\n"),
        (&["-j", ".a"], r#"{"a":"x"} {"a":"y"}"#, "xy"),
        (&[".a"], r#"{"a":"x"}"#, "\"x\"\n"),
        (&["."], r#"{"b":[1],"a":{}}"#, "{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}\n"),
        (&["-c", "."], r#"{"b": [1, 2]}"#, "{\"b\":[1,2]}\n"),
        (&["-cS", "."], r#"{"b":1,"a":2}"#, "{\"a\":2,\"b\":1}\n"),
        (&["-n", "1+1"], "", "2\n"),
        (&["-s", "length"], "1 2 3", "3\n"),
        (&["-R", "."], "a\nb", "\"a\"\n\"b\"\n"),
        (&["-Rs", "length"], "a\nb\n", "4\n"),
        (&["-r", "--arg", "n", "1", "$n"], "null", "1\n"),
        (&["--argjson", "n", "[1]", "$n[0]"], "null", "1\n"),
        (&["-r", ".s[0:2]"], "{\"s\":\"äöü\"}", "äö\n"),
        (&["-r", "--unbuffered", "."], "\"\u{2713}\"", "✓\n"),
    ] {
        assert_eq!(printed(args, input), expected, "{args:?}");
    }
}

#[test]
fn faults_have_the_statuses_of_the_tool_and_keep_what_came_before() {
    let bad = run(&["-r", ".a"], "{\"a\":1} {broken");
    assert_eq!((bad.stdout.as_slice(), bad.status), (&b"1\n"[..], 2));
    let wrong = run(&[".a.b"], "{\"a\":1}");
    assert_eq!(wrong.status, 5);
    assert!(wrong.stderr.starts_with("jq: error"), "{}", wrong.stderr);
    assert_eq!(run(&["-e", ".a"], "{}").status, 1);
    assert_eq!(run(&["-e", "empty"], "{}").status, 4);
    assert_eq!(run(&["-e", ".a"], "{\"a\":0}").status, 0);
}

#[test]
fn what_is_not_known_is_refused_and_never_guessed() {
    let parse = |args: &[&str]| Call::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>());
    assert!(parse(&["--stream", "."]).is_err());
    assert!(parse(&["-f", "x.jq"]).is_err());
    assert!(parse(&[]).is_err());
    assert!(parse(&["inputs"]).unwrap().compile().is_err());
    assert!(parse(&[".["]).unwrap().compile().is_err());
    let unknown = parse(&["nosuch(1)"]).unwrap().compile().err().unwrap();
    assert!(unknown.0.contains("`nosuch`"), "{}", unknown.0);
}

#[test]
fn the_filters_of_agent_scripts_work() {
    let display = r#"select(.type=="assistant") | .message.content[] |
        if .type == "thinking" then "[thinking] " + .thinking
        elif .type == "text" then .text
        elif .type == "tool_use" then "[tool] " + .name + ": " +
            ((.input | (.path // .cmd // .query // (tostring)) | tostring | .[0:200]))
        else empty end"#;
    let line = r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},
        {"type":"tool_use","name":"Bash","input":{"cmd":"ls"}},{"type":"tool_use","name":"X","input":{"z":1}},
        {"type":"text","text":"done"}]}}"#;
    assert_eq!(printed(&["-r", display], line), "[thinking] hm\n[tool] Bash: ls\n[tool] X: {\"z\":1}\ndone\n");
    assert_eq!(printed(&["-r", display], "{\"type\":\"user\"}"), "");
}
