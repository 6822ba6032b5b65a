//! Secrets go into a run everywhere they can, and come out nowhere.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use std::path::Path;

use fake_agent::{Dialect, Script, says};
use ralph::journal::Redactor;
use serde_json::json;
use support::{Ran, Test};

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
    let mut directories = vec![ran.test.workspace().join(".ralph")];
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
