use std::io::Write as _;

use super::*;
use crate::event::{Event, Stream, Tag};
use crate::journal::Journal;

fn iteration(journal: &mut Journal, iteration: u32, texts: &[String]) {
    let start = Fact::iteration_start(iteration, 9);
    journal.append(Body::Loop(start)).unwrap();
    for text in texts {
        let event = Event::text(Tag::Ai, text.as_str());
        journal.append(Body::Agent { iteration, from: Stream::Stdout, event }).unwrap();
    }
    let receipt = Box::new(Receipt { iteration, duration_ms: 5, ..Receipt::default() });
    journal.append(Body::Loop(Fact::IterationEnd { receipt })).unwrap();
}

fn read(index: &mut Index) {
    while index.advance(Duration::ZERO).unwrap() != Reach::Same {}
}

#[test]
fn pages_cover_the_journal_without_gaps_and_stay_small() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.jsonl");
    let mut journal = Journal::create(&path).unwrap();
    journal.append(Body::Loop(Fact::Notice { message: "first".into() })).unwrap();
    let mut index = Index::new(&path);
    let texts: Vec<String> = (0..700).map(|number| format!("{number} {}", "x".repeat(1000))).collect();
    iteration(&mut journal, 1, &texts);
    read(&mut index);
    iteration(&mut journal, 2, &texts[..1]);
    // A line that is not finished is none.
    std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"seq\":").unwrap();
    read(&mut index);
    assert_eq!(index.entry_count(), 3);
    let mut end = 0;
    for page in 0..index.page_count() {
        let range = index.page(page);
        assert_eq!(range.start, end);
        assert!(range.end - range.start < 2 * PAGE, "{range:?}");
        end = range.end;
    }
    assert_eq!(end, journal.length());
    assert_eq!(index.pages_of(0), 0..1);
    assert_eq!(index.pages_of(2).end, index.page_count());
    for page in 0..index.page_count() {
        assert!(index.pages_of(index.entry_of(page)).contains(&page));
        assert_eq!(index.page_at(index.page(page).start), page);
    }
    assert_eq!(index.receipt(2).unwrap().iteration, 2);
    assert!(index.receipt(0).is_none());
}

#[test]
fn a_journal_that_comes_later_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.jsonl");
    let mut index = Index::new(&path);
    assert_eq!(index.advance(Duration::ZERO).unwrap(), Reach::Same);
    let mut journal = Journal::create(&path).unwrap();
    iteration(&mut journal, 1, &["x".repeat(3 * BLOCK)]);
    read(&mut index);
    assert_eq!((index.entry_count(), index.known()), (2, journal.length()));
}
