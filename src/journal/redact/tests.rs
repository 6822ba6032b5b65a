use proptest::prelude::*;

use super::*;
use crate::event::{Event, Stream, Tag};
use crate::journal::Body;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
const VALUE: &str = "Tr0ub4dor&3 \"quoted\"/x";

fn redactor() -> Redactor {
    Redactor::new([("DEPLOY_TOKEN".to_owned(), VALUE.to_owned())])
}

fn streamed(redactor: &Redactor, parts: &[&[u8]]) -> String {
    let mut stream = Streaming::new(redactor);
    let mut out = Vec::new();
    for part in parts {
        stream.write(part, &mut out).unwrap();
    }
    stream.finish(&mut out).unwrap();
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

    let mut records = Records::new(redactor);
    let mut out = Vec::new();
    for line in PEM.lines().chain(["after the key"]) {
        let event = Event::text(Tag::Ai, line);
        records.take(Body::Agent { iteration: 1, from: Stream::Stdout, event }, &mut out);
    }
    let shown = format!("{out:?}");
    assert!(!shown.contains("MIIE") && !shown.contains("abcdef") && !shown.contains("Q29k"), "{shown}");
    assert!(shown.contains("after the key"), "{shown}");
}

#[test]
fn a_secret_that_is_cut_between_fragments_is_found() {
    for secret in [TOKEN, VALUE] {
        for cut in 1..secret.len() {
            let mut records = Records::new(redactor());
            let mut out = Vec::new();
            let (head, tail) = secret.split_at(cut);
            let fragments = [format!("see {head}"), tail.to_owned(), " and on".to_owned()];
            for text in fragments {
                let event = Event::delta(Tag::Ai, text);
                records.take(Body::Agent { iteration: 1, from: Stream::Stdout, event }, &mut out);
                let event = Event::text(Tag::Sys, "meanwhile");
                records.take(Body::Agent { iteration: 1, from: Stream::Stderr, event }, &mut out);
            }
            records.finish(&mut out);
            let text: String = out
                .iter()
                .filter_map(|body| match body {
                    Body::Agent { from: Stream::Stdout, event: Event::Text { text, .. }, .. } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let name = if secret == TOKEN { "github-token" } else { "DEPLOY_TOKEN" };
            assert_eq!(text, format!("see [redacted:{name}] and on"), "cut at {cut}");
        }
    }
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
fn values_can_be_put_back_where_the_environment_still_has_them() {
    let redactor = redactor();
    let clean = redactor.text(&format!("run --with '{VALUE}'")).unwrap();
    assert_eq!(redactor.restore(&clean, |_| Some(VALUE.to_owned())), format!("run --with '{VALUE}'"));
    assert_eq!(redactor.restore(&clean, |_| None), clean);
}

proptest! {
    #[test]
    fn cutting_a_stream_anywhere_changes_nothing(
        words in prop::collection::vec(prop_oneof![
            Just(TOKEN.to_owned()), Just(VALUE.to_owned()), Just(PEM.to_owned()), Just("-----BEGIN ".to_owned()),
            Just("sk-ant-api03-".to_owned()), "[a-zA-Z0-9 _.\\\\n\"-]{0,12}",
        ], 0..8),
        cuts in prop::collection::vec(1_usize..40, 0..30),
    ) {
        let redactor = redactor();
        let text = words.concat();
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
