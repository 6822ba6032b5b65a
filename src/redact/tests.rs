use proptest::prelude::*;

use super::streaming::LONGEST_HELD;
use super::*;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const VALUE: &str = "Tr0ub4dor&3 \"quoted\"/x";

fn redactor() -> Redactor {
    Redactor::new([("DEPLOY_TOKEN".to_owned(), VALUE.to_owned())])
}

fn streamed(redactor: &Redactor, parts: &[&[u8]]) -> String {
    let mut stream = Streaming::new(redactor);
    let mut out = Vec::new();
    for part in parts {
        out.extend_from_slice(&stream.push(part));
    }
    out.extend(stream.finish());
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn tokens_and_values_go_and_the_rest_stays() {
    let text = format!("key {TOKEN}, value {VALUE}; url %54 Tr0ub4dor%263%20%22quoted%22%2Fx end");
    let clean = redactor().text(&text).unwrap();
    assert_eq!(
        clean,
        "key [redacted:github-token], value [redacted:DEPLOY_TOKEN]; url %54 [redacted:DEPLOY_TOKEN] end"
    );
    assert_eq!(redactor().text("nothing here, ghp_ short"), None);
}

#[test]
fn json_stays_json() {
    let line = serde_json::json!({"text": format!("a\n{TOKEN}\n{VALUE}"), "n": 1}).to_string();
    let clean = streamed(&redactor(), &[line.as_bytes()]);
    let value: serde_json::Value = serde_json::from_str(&clean).unwrap();
    assert_eq!(value["text"], "a\n[redacted:github-token]\n[redacted:DEPLOY_TOKEN]");
}

const PEM: &str = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nMIIEowIBAAKCAQEAx2v7nJ5z0q1b5e6d7c8f9a0b\nabcdefABCDEF0123456789+/abcdefABCDEF\nQ29k==\n-----END RSA PRIVATE KEY-----";

#[test]
fn private_keys_go_in_one_piece_in_lines_and_in_json() {
    let redactor = redactor();
    assert_eq!(redactor.text(&format!("a\n{PEM}\nb")).unwrap(), "a\n[redacted:private-key]\nb");
    let json = serde_json::json!({ "key": PEM, "more": "x" }).to_string();
    assert_eq!(streamed(&redactor, &[json.as_bytes()]), r#"{"key":"[redacted:private-key]","more":"x"}"#);
    let prose = "-----BEGIN PRIVATE KEY----- is how such a file begins";
    assert_eq!(redactor.text(prose).unwrap(), "[redacted:private-key] is how such a file begins");
    assert_eq!(redactor.text("-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAx2v7nJ5z0q1b5e6d7c8f9a0b\n"), None);

    let lines: Vec<&[u8]> = PEM.split_inclusive('\n').map(str::as_bytes).chain([&b"\nafter the key"[..]]).collect();
    assert_eq!(streamed(&redactor, &lines), "[redacted:private-key]\nafter the key");
}

#[test]
fn what_looks_like_a_secret_only_from_afar_stays() {
    let plain = [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "session 0199c1f2-7b3a-7c21-9f10-8d2b7f1e6c55",
        "toolu_01A09q90qw90lq917835lq9 call_abc123 msg_013Zva2CMHLNnjNjJKqJ2EF",
        "let sk_test_helper = npm_config_registry; pat.matches(); data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA",
        "eyJhbGciOiJIUzI1NiJ9 alone is a header",
        "fn token(&self) -> Token { self.api_key.clone() }",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ];
    for text in plain {
        assert_eq!(redactor().text(text), None, "{text}");
    }
}

#[test]
fn a_secret_is_found_in_every_form_and_json_stays_json() {
    let coloured = VALUE.chars().map(|character| format!("\u{1b}[3{}m{character}", character as u32 % 8));
    let token = TOKEN.chars().map(|character| format!("{character}\u{1b}[0m"));
    let (coloured, token) = (coloured.collect::<Vec<_>>().concat(), token.collect::<Vec<_>>().concat());
    let (head, tail) = VALUE.split_at(9);
    let (begin, end) = TOKEN.split_at(12);
    for text in [
        coloured,
        token,
        format!("{head}\n{tail}"),
        format!("{head}\r\n{tail}"),
        format!("{}{begin}\n{end}", "x ".repeat(30)),
        "VHIwdWI0ZG9yJjMgInF1b3RlZCIveA==".to_owned(),
        "VHIwdWI0ZG9yJj\nMgInF1b3RlZCIveA==".to_owned(),
    ] {
        for text in [text.clone(), serde_json::json!({ "text": text }).to_string()] {
            let clean = streamed(&redactor(), &[text.as_bytes()]);
            assert!(clean.contains("[redacted:"), "{text:?} gave {clean:?}");
            assert!(!clean.contains("b4d") && !clean.contains("838347") && !clean.contains("F1b3R"), "{clean:?}");
            assert!(!text.starts_with('{') || serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean:?}");
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(3).collect();
            assert_eq!(streamed(&redactor(), &pieces), clean);
        }
    }
    let escaped = r#"{"text":"Tr0ub4dor\u00263 \"quoted\"\/x","more":"\u0067\u0068\u0070\u005f16C7e42F292c6912E7710c838347Ae178B4a"}"#;
    let clean = streamed(&redactor(), &[escaped.as_bytes()]);
    assert_eq!(clean, r#"{"text":"[redacted:DEPLOY_TOKEN]","more":"[redacted:github-token]"}"#);
}

#[test]
fn a_replacement_never_breaks_json() {
    let redactor = Redactor::new([
        ("A_TOKEN".to_owned(), "n0tAnewline99".to_owned()),
        ("B_TOKEN".to_owned(), "1234567890123456".to_owned()),
    ]);
    for text in [r#"{"a":"x\n0tAnewline99"}"#, r#"{"a":1234567890123456,"b":[1234567890123456 ]}"#] {
        let clean = streamed(&redactor, &[text.as_bytes()]);
        assert!(clean.contains("[redacted:"), "{clean}");
        assert!(serde_json::from_str::<serde_json::Value>(&clean).is_ok(), "{clean}");
    }
}

#[test]
fn a_token_of_any_length_goes_and_is_not_held() {
    let payload = "Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lz".repeat(160);
    let token = format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIx{payload}.c2lnbmF0dXJlLXNpZ25hdHVyZQ");
    let clean = streamed(&redactor(), &token.as_bytes().chunks(7).collect::<Vec<_>>());
    assert_eq!(clean, "[redacted:json-web-token]");
    let mut stream = Streaming::new(&redactor());
    stream.push(b"sk-ant-api03-Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lz");
    for _ in 0..100_000 {
        assert!(stream.push(b"Zx9Qw8Er7Ty6").is_empty() && stream.held.is_empty());
    }
    assert_eq!(&*stream.push(b" end!"), b" end!");
    // What only looks like the beginning of one does not stay forever.
    let mut stream = Streaming::new(&redactor());
    let mut out = 0;
    for _ in 0..10_000 {
        out += stream.push(b"eyJZx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0LzZx9Qw8Er7Ty6Ui5").len();
        assert!(stream.held.len() <= LONGEST_HELD + 100);
    }
    assert!(out > 0);
}

proptest! {
    #[test]
    fn cutting_a_stream_anywhere_changes_nothing(
        words in prop::collection::vec(prop_oneof![
            Just(TOKEN.to_owned()), Just(VALUE.to_owned()), Just(PEM.to_owned()), Just("-----BEGIN ".to_owned()),
            Just("sk-ant-api03-".to_owned()), Just("\u{1b}[31m".to_owned()), Just("\\u0041".to_owned()),
            Just("Tr0ub4dor\\u00263 ".to_owned()), "[a-zA-Z0-9 _.\\\\n\"-]{0,12}",
        ], 0..8),
        cuts in prop::collection::vec(1_usize..40, 0..30),
    ) {
        let redactor = redactor();
        // A token that is right behind another one is not known for sure.
        let text = words.join(" ");
        let whole = streamed(&redactor, &[text.as_bytes()]);
        let mut parts = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts {
            let (head, tail) = rest.split_at(cut.min(rest.len()));
            parts.push(head);
            rest = tail;
        }
        parts.push(rest);
        prop_assert_eq!(&streamed(&redactor, &parts), &whole);
        prop_assert!(!whole.contains(VALUE));
    }
}
