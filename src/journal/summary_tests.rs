use super::*;
use crate::event::{Event, Stream, Tag};
use crate::journal::Journal;

#[test]
fn a_kept_summary_and_the_rest_of_the_journal_are_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDirectory { id: "r".into(), path: directory.path().to_owned() };
    let mut journal = Journal::create(&run.journal()).unwrap();
    let mut kept = Summary::default();
    for iteration in 1..=3 {
        let start = Fact::iteration_start(iteration, 3);
        let receipt = Receipt { iteration, duration_ms: 5, ..Receipt::default() };
        let event = Event::text(Tag::Ai, "words");
        let bodies = [
            Body::Loop(start),
            Body::Agent { iteration, from: Stream::Stdout, event },
            Body::Loop(Fact::IterationEnd { receipt: Box::new(receipt) }),
        ];
        for body in bodies {
            let appended = journal.append(body).unwrap();
            if iteration < 3 {
                kept.see(&appended.record, appended.start, appended.end);
            }
        }
    }
    let whole = Summary::of(&run).unwrap();
    std::fs::write(run.summary(), kept.to_json()).unwrap();
    assert_eq!(Summary::of(&run).unwrap(), whole);
    assert_eq!(whole.iterations.len(), 3);
    assert_eq!(whole.duration_ms(), 15);
    let length = std::fs::metadata(run.journal()).unwrap().len();
    assert_eq!((whole.iterations[2].to, whole.covers), (length, length));
    for damaged in [&b"{}"[..], b"", b"{\"form\":2,\"covers\":99999999"] {
        std::fs::write(run.summary(), damaged).unwrap();
        assert_eq!(Summary::of(&run).unwrap(), whole);
    }
}
