//! Secrets go into a run everywhere they can, and come out nowhere.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "support/commands.rs"]
mod commands;
mod support;

use std::path::Path;

use fake_agent::{Dialect, Script, says};
use ralph::redact::Redactor;
use serde_json::json;
use support::{Ran, Test, run_directory};

const DONE: &str = "All done.\n<promise>COMPLETE</promise>";
/// The value of a secret-looking variable, with characters that JSON and URLs escape.
const VALUE: &str = "s3cr3t/va\"lue+Zz9%Q";
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const KEY: &str = "sk-ant-api03-Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lz-Xc9Vb8Nm7";
/// `printf '%s' 'user:s3cr3t/va"lue+Zz9%Q' | base64`, without the first characters.
const BASE64: &str = "dXNlcjpzM2NyM3QvdmEibHVlK1p6OSVR";
const URL: &str = "s3cr3t%2Fva%22lue%2BZz9%25Q";

/// Every form in which a secret must not appear.
fn forms() -> Vec<String> {
    let escaped = serde_json::to_string(VALUE).unwrap();
    let mut forms = vec![VALUE.to_owned(), escaped.trim_matches('"').to_owned(), URL.to_owned()];
    forms.extend([TOKEN.to_owned(), KEY.to_owned(), BASE64[8..28].to_owned()]);
    forms
}

/// Looks through everything that ralph wrote and showed.
#[track_caller]
fn is_clean(ran: &Ran) {
    let mut texts = vec![("stdout".to_owned(), ran.stdout()), ("stderr".to_owned(), ran.stderr())];
    let mut directories = vec![ran.test.workspace().join(".ralph"), ran.test.state()];
    while let Some(directory) = directories.pop() {
        // A run that was refused has written nothing.
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                texts.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
    }
    for (place, text) in &texts {
        for form in forms() {
            assert!(!text.contains(&form), "{form} is in {place}:\n{text}");
        }
    }
}

fn everything(dialect: Dialect) -> Script {
    let all = format!("env {VALUE} token {TOKEN} key {KEY} basic {BASE64} url {URL}");
    let input = json!({"command": format!("curl -H 'x: {TOKEN}' https://u:{URL}@h"), VALUE: [VALUE]});
    let iteration = says(&all).complains(&all).thinks(&all).says(&all).in_pieces(40);
    let iteration = iteration.runs_tool("Bash", input).printing(&all).says(DONE);
    Script::new().dialect(dialect).iteration(iteration)
}

#[test]
fn no_secret_of_a_run_is_written_or_shown() {
    for dialect in
        [Dialect::Plain, Dialect::Claude, Dialect::ClaudePartial, Dialect::Codex, Dialect::Gemini, Dialect::Rtf1]
    {
        for output in ["lines", "json"] {
            let ran = Test::new()
                .prompt(&format!("Use {VALUE} and {TOKEN}."))
                .env("SERVICE_TOKEN", VALUE)
                .args(&["--output", output, "--transcript", dialect_name(dialect)])
                .agent(everything(dialect))
                .run()
                .complete();
            is_clean(&ran);
            assert!(ran.stdout().contains("[redacted:github-token]"), "{}", ran.stdout());
            assert!(ran.stdout().contains("[redacted:SERVICE_TOKEN]"), "{}", ran.stdout());
            assert!(ran.heard(0).contains(VALUE), "the agent itself gets the real prompt");
        }
    }
}

fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Claude | Dialect::ClaudePartial => "claude",
        Dialect::Codex => "codex",
        Dialect::Gemini => "gemini",
        Dialect::Rtf1 => "rtf1",
        _ => "plain",
    }
}

#[test]
fn a_secret_that_is_cut_by_the_pipe_is_found() {
    let mut iteration = says("It is:");
    for character in TOKEN.chars() {
        iteration = iteration.prints_raw(character).sleeps(1);
    }
    let ran = Test::new().agent(iteration.prints_raw("\n").says(DONE)).run().complete();
    is_clean(&ran);
    assert!(ran.stdout().contains("[redacted:github-token]"), "{}", ran.stdout());
}

#[test]
fn a_command_line_and_an_error_message_are_clean() {
    let ran =
        Test::new().env("SERVICE_TOKEN", VALUE).command(&format!("printf '%s' '{VALUE}' {TOKEN}")).args(&["-n", "1"]);
    is_clean(&ran.run().exits(5));
    let ran = Test::new().env("SERVICE_TOKEN", VALUE).command(&format!("./no-such-{TOKEN}")).run().exits(4);
    is_clean(&ran);
}

#[test]
fn commands_beside_the_run_are_clean_too() {
    let all = format!("env {VALUE} token {TOKEN} key {KEY} basic {BASE64} url {URL}");
    let test = Test::new().env("SERVICE_TOKEN", VALUE).file("input.txt", &all).stands_for(
        "codex",
        &format!(
            "cat <<'END'\n{}\n{}\nEND\ncat >&2 <<'END'\n{all}\nEND",
            json!({"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": all}}),
            json!({"type": "turn.completed", "usage": {"input_tokens": 1}}),
        ),
    );
    for args in [
        &["translate", "--from", "plain", "input.txt"][..],
        &["translate", "--from", "plain", "--to", "claude", "input.txt"],
        &["translate", "--from", "plain", "--explain", "input.txt"],
        &["as-claude", "codex", "-p", "x"],
        &["as-claude", "codex", "--output-format", "text", "-p", "x"],
    ] {
        let output = test.tool().env("SERVICE_TOKEN", VALUE).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(text.contains("[redacted:SERVICE_TOKEN]"), "{args:?}: {text}");
        for form in forms() {
            assert!(!text.contains(&form), "{form} is in the output of {args:?}: {text}");
        }
    }
}

#[test]
fn what_the_configuration_hands_to_an_agent_is_secret_and_a_model_is_not() {
    let config = "adapters:\n  custom:\n    env: {HANDED_ON: Qz7handed-over9Kx, MODEL: claude-sonnet-4-5}\n";
    let agent =
        "sh -c 'echo \"$HANDED_ON and $MODEL.\"; echo \"$HANDED_ON\" >&2; echo \"<promise>COMPLETE</promise>\"'";
    let ran = Test::new().file("ralph.yml", config).command(agent).run().complete();
    assert!(ran.stdout().contains("[redacted:HANDED_ON] and claude-sonnet-4-5."), "{}", ran.stdout());
    let mut files = vec![run_directory(&ran.test.workspace()).unwrap()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains("handed-over"), "{}: {text}", path.display());
        }
    }
}

#[test]
fn a_token_of_any_length_is_taken_out() {
    let payload = "Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lz".repeat(160);
    let token = format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIx{payload}.c2lnbmF0dXJlLXNpZ25hdHVyZQ");
    for dialect in [Dialect::Plain, Dialect::ClaudePartial] {
        let iteration = says(format!("It is {token} indeed.")).says(DONE);
        let script = Script::new().dialect(dialect).iteration(iteration);
        let ran = Test::new().args(&["--transcript", dialect_name(dialect)]).agent(script).run().complete();
        let raw = run_directory(&ran.test.workspace()).unwrap().join("raw/1.stdout");
        let raw = std::fs::read_to_string(raw).unwrap();
        assert!(!raw.contains("Ty6Ui5Op4") && !ran.stdout().contains("Ty6Ui5Op4"), "{raw}");
        assert!(raw.contains("[redacted:json-web-token]"), "{raw}");
    }
}

#[test]
fn pieces_of_a_secret_do_not_stay_in_the_raw_file() {
    let text = format!("Before it there are words, then {TOKEN} and {VALUE}, and after it more words.");
    let script = Script::new().dialect(Dialect::ClaudePartial).iteration(says(&text).in_pieces(60).says(DONE));
    let test = Test::new().env("SERVICE_TOKEN", VALUE).args(&["--transcript", "claude"]);
    let ran = test.agent(script).run().complete();
    let raw = std::fs::read(run_directory(&ran.test.workspace()).unwrap().join("raw/1.stdout")).unwrap();
    let mut joined = String::new();
    for line in raw.split(|&byte| byte == b'\n') {
        if let Ok(line) = serde_json::from_slice::<serde_json::Value>(line) {
            joined.push_str(line["event"]["delta"]["text"].as_str().unwrap_or_default());
        }
    }
    assert!(joined.contains("there are words") && joined.contains("more words"), "{joined}");
    let letters = |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
    assert!(!letters(&joined).contains("2c6912E7") && !letters(&joined).contains("lueZz9"), "{joined}");
    assert!(joined.contains("[redacted]"), "{joined}");
}

#[test]
fn warnings_are_clean() {
    let test = Test::new().env("SERVICE_TOKEN", VALUE).file("ralph.yml", format!("event_loop:\n  {TOKEN}: 1\n"));
    let output = test.tool().arg("config").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("[redacted:github-token]") && !text.contains(TOKEN), "{text}");
}

#[test]
fn captured_transcripts_pass_untouched() {
    let redactor = Redactor::new(std::iter::empty::<(String, String)>());
    let mut files = 0;
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            let clean = redactor.text(&text);
            let changed = clean.iter().flat_map(|clean| clean.lines()).find(|line| line.contains("[redacted:"));
            assert!(changed.is_none(), "{}: {changed:?}", path.display());
            files += 1;
        }
    }
    assert!(files > 100, "the captures are there: {files}");
}
