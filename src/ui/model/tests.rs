use super::*;
use crate::control::Order;
use crate::event::{Event, Status, Stream};
use crate::journal::{Cost, CostSource, Receipt};

fn fact(model: &mut Model, fact: Fact) {
    model.apply(&Record { seq: 0, at: Timestamp::UNIX_EPOCH, body: Body::Loop(fact) });
}

fn start(model: &mut Model, iteration: u32) {
    fact(model, Fact::iteration_start(iteration, 9));
}

fn event(model: &mut Model, seq: u64, event: Event) {
    let at = Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap();
    model.apply(&Record { seq, at, body: Body::Agent { iteration: 1, from: Stream::Stdout, event } });
}

#[test]
fn calls_are_bounded_and_only_the_newest_output_is_kept() {
    let mut model = Model::new();
    start(&mut model, 1);
    let long = "a line\n".repeat(10_000);
    for seq in 0..10_000 {
        let id = format!("call {seq}");
        event(&mut model, 3 * seq, Event::tool_start(&id, "Bash", None));
        event(&mut model, 3 * seq + 1, Event::tool_output(&id, if seq < 3 { long.as_str() } else { "x" }));
        if seq != 5 {
            event(&mut model, 3 * seq + 2, Event::tool_end(&id, Status::Ok, None));
        }
    }
    let calls = &model.iteration.calls;
    assert_eq!((calls.count(), calls.running().count()), (10_000, 1));
    assert!(calls.kept().len() <= 2001, "{}", calls.kept().len());
    assert_eq!((calls.kept()[0].id.as_str(), calls.kept()[0].lines), ("call 0", 10_000));
    assert!(calls.kept()[0].excerpt(1, 1).first.is_empty(), "its output is forgotten");
    let newest = calls.find("call 9999").unwrap();
    assert_eq!(
        (newest.excerpt(1, 0).first, newest.took_ms(), newest.duration_ms),
        (vec!["x".into()], Some(2000), None)
    );
    fact(&mut model, Fact::IterationEnd { receipt: Box::default() });
    let open: Vec<&str> =
        model.iteration.calls.kept().iter().filter(|call| call.cut_off).map(|call| call.id.as_str()).collect();
    assert_eq!((open, model.iteration.calls.running().count()), (vec!["call 5"], 0));
    start(&mut model, 2);
    assert_eq!(model.iteration.calls.count(), 0, "the next iteration begins with nothing");
}

#[test]
fn a_run_says_what_it_does_and_what_it_used() {
    let mut model = Model::new();
    let state = |model: &Model| RunState::of(&model.run, true);
    start(&mut model, 1);
    assert_eq!((state(&model), model.under_way().map(|tried| tried.iteration)), (RunState::Running, Some(1)));
    fact(&mut model, Fact::Control { order: Order::Pause });
    assert_eq!(state(&model), RunState::Pausing);
    let cost = Some(Cost { usd: 0.5, source: CostSource::Computed });
    let receipt = Receipt { outcome: IterationOutcome::Rejected, cost, files: vec!["a".into()], ..Receipt::default() };
    fact(&mut model, Fact::IterationEnd { receipt: Box::new(receipt) });
    assert!(model.under_way().is_none());
    let tried = &model.run.iterations[0];
    assert_eq!((IterationState::of(tried, true), model.run.cost()), (IterationState::Rejected, cost));
    assert!(tried.receipt.is_none(), "a view of a run of any length keeps no receipts");
    fact(&mut model, Fact::Paused);
    assert_eq!(state(&model), RunState::Paused);
    let (verdict, reason) = ("wait".to_owned(), String::new());
    fact(&mut model, Fact::Decision { verdict, reason, wait_ms: Some(5000), outcome: None, memory: None });
    assert_eq!(state(&model), RunState::Waiting { until: Timestamp::from_second(5).unwrap() });
    assert_eq!(RunState::of(&model.run, false), RunState::Unfinished);
    let outcome = Some(Outcome::Complete);
    let (verdict, reason) = ("finish".to_owned(), String::new());
    fact(&mut model, Fact::Decision { verdict, reason, wait_ms: None, outcome, memory: None });
    assert_eq!(RunState::of(&model.run, false), RunState::Ended(Outcome::Complete), "it was decided before the cut");
}

#[test]
fn an_interrupted_iteration_did_not_fail_and_a_rejected_one_is_not_complete() {
    use IterationOutcome::{Failed, Interrupted, Ok, Rejected};
    let of = |outcome, said, verified| {
        let ended = Receipt { outcome, verified, ..Receipt::default() };
        let ended = Some((&ended).into());
        IterationState::of(&IterationSummary { said, ended, ..IterationSummary::default() }, true)
    };
    for (outcome, said, verified, expected) in [
        (Ok, None, None, IterationState::Ok),
        (Ok, Some(Said::Complete), None, IterationState::Complete),
        (Ok, Some(Said::Complete), Some(false), IterationState::Rejected),
        (Rejected, Some(Said::Complete), None, IterationState::Rejected),
        (Ok, Some(Said::NearMiss), None, IterationState::Unclear),
        (Interrupted, Some(Said::Complete), None, IterationState::Unclear),
        (Failed, Some(Said::Complete), None, IterationState::Failed),
    ] {
        assert_eq!(of(outcome, said, verified), expected, "{outcome:?} {said:?} {verified:?}");
    }
    assert_eq!(IterationState::of(&IterationSummary::default(), true), IterationState::Running);
    assert_eq!(IterationState::of(&IterationSummary::default(), false), IterationState::Unclear);
}

#[test]
fn a_run_whose_newest_claim_was_rejected_says_so_until_one_is_accepted() {
    use crate::ui::history::RunDetails;
    use crate::ui::words;
    let claim = |outcome, said| {
        let ended = Some((&Receipt { outcome, ..Receipt::default() }).into());
        IterationSummary { said, ended, ..IterationSummary::default() }
    };
    let (ok, rejected, complete) = (IterationOutcome::Ok, IterationOutcome::Rejected, Some(Said::Complete));
    for (claims, word) in [
        (vec![claim(rejected, complete)], "running, rejected"),
        (vec![claim(rejected, complete), claim(ok, None)], "running, rejected"),
        (vec![claim(rejected, complete), claim(ok, complete)], "running"),
        (vec![claim(ok, None)], "running"),
    ] {
        let mut summary = Summary::light();
        summary.iterations = claims;
        let run = RunDetails { summary, state: RunState::Running, words: String::new(), place: None };
        assert_eq!(words::state_in_full(&run).0, word);
    }
    let interrupted = claim(IterationOutcome::Interrupted, complete);
    assert_eq!(words::iteration_word(&interrupted, true).0, "interrupted");
    assert_eq!(words::iteration_word(&IterationSummary::default(), false).0, "unfinished");
}
