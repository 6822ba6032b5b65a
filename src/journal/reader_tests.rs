use std::io::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::event::{Event, Stream, Tag};
use crate::journal::disk::RealDisk;
use crate::journal::{Body, Fact, Journal};

fn notice(message: &str) -> Body {
    Body::Loop(Fact::Notice { message: message.into() })
}

fn said(text: &str) -> Body {
    Body::Agent { iteration: 1, from: Stream::Stdout, event: Event::text(Tag::Ai, text) }
}

/// A journal with these records, and its bytes.
fn journal(directory: &tempfile::TempDir, bodies: Vec<Body>) -> (PathBuf, Vec<u8>) {
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    for body in bodies {
        journal.append(body).unwrap();
    }
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

#[test]
fn a_torn_tail_is_not_a_record_until_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    let first = journal.append(notice("one")).unwrap();
    let second = journal.append(notice("two")).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let torn = directory.path().join("torn.jsonl");
    let cut = whole.len() - 5;
    std::fs::write(&torn, &whole[..cut]).unwrap();

    let mut reader = Reader::open(&torn, 0).unwrap();
    assert_eq!(reader.read().unwrap().unwrap().unwrap(), first.record);
    assert!(reader.read().unwrap().is_none());
    std::fs::OpenOptions::new().append(true).open(&torn).unwrap().write_all(&whole[cut..]).unwrap();
    assert_eq!(reader.read().unwrap().unwrap().unwrap(), second.record);
    assert!(reader.read().unwrap().is_none());
    assert_eq!(reader.offset(), second.end);
}

#[test]
fn facts_are_read_without_what_agents_said() {
    let directory = tempfile::tempdir().unwrap();
    let forged = said(r#""by":"ralph" {"seq":0,"by":"ralph"}"#);
    let (path, _) = journal(&directory, vec![notice("one"), forged, said("words"), notice("two")]);
    let mut reader = Reader::open(&path, 0).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.read_fact().unwrap() {
        found.push(record.seq);
    }
    assert_eq!(found, [0, 3]);
}

#[test]
fn a_newer_journal_is_never_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let (path, bytes) = journal(&directory, vec![start(VERSION + 1), notice("one")]);
    let error = Journal::reopen(&RealDisk, &path).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

fn start(version: u32) -> Body {
    Body::Loop(Fact::RunStart {
        version,
        ralph: "9.9.9".into(),
        run: "r".into(),
        pid: 1,
        agent: "a".into(),
        command: Vec::new(),
        transcript: "plain".into(),
        workspace: "/w".into(),
        prompt: "p".into(),
        max_iterations: 1,
        max_seconds: None,
        max_cost_usd: None,
    })
}

proptest! {
    #[test]
    fn a_journal_that_was_cut_or_spoiled_at_its_end_goes_on(
        texts in prop::collection::vec("\\PC{0,40}", 1..12),
        cut in any::<prop::sample::Index>(),
        garbage in prop_oneof![
            Just(Vec::new()),
            Just(vec![0; 100]),
            Just(b"\0\0\n\0\n".to_vec()),
            prop::collection::vec(any::<u8>(), 0..40),
        ],
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (path, bytes) = journal(&directory, texts.iter().map(|text| said(text)).collect());
        let cut = cut.index(bytes.len() + 1);
        let whole = bytes[..cut].iter().filter(|&&byte| byte == b'\n').count();
        let mut spoiled = bytes[..cut].to_vec();
        spoiled.extend_from_slice(&garbage);
        std::fs::write(&path, spoiled).unwrap();

        let mut journal = Journal::reopen(&RealDisk, &path).unwrap();
        journal.append(notice("goes on")).unwrap();
        let mut reader = Reader::open(&path, 0).unwrap();
        for seq in 0..=whole {
            let record = reader.read().unwrap().unwrap().unwrap();
            prop_assert_eq!(record.seq, seq as u64);
            prop_assert_eq!(matches!(record.body, Body::Loop(_)), seq == whole);
        }
        prop_assert!(reader.read().unwrap().is_none());
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.jsonl");
        std::fs::write(&path, &bytes).unwrap();
        let mut reader = Reader::open(&path, 0).unwrap();
        let mut lines = 0;
        while reader.read().unwrap().is_some() {
            lines += 1;
        }
        prop_assert_eq!(lines, bytes.iter().filter(|&&byte| byte == b'\n').count());
        let end = last(&path).unwrap();
        prop_assert_eq!(end.length + end.torn, bytes.len() as u64);
    }
}
