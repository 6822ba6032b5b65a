use super::tests::{POLICY, complete, failed, outcome, said};
use super::*;

#[test]
fn checks_alone_can_complete_a_run() {
    let policy = Policy { until: Until::Checks, ..POLICY };
    let failed_check = || Verification::Failed { summary: "`x`: exit code 1".into() };
    let near = Signal::NearMiss { marker: "m".into(), reason: "r".into(), line: "l".into() };
    let replan = Signal::Replan { marker: "m".into() };
    for (signal, verification, expected) in [
        (None, Verification::Passed, Some(Outcome::Complete)),
        (None, Verification::None, None),
        (Some(near), Verification::Passed, Some(Outcome::Complete)),
        (Some(complete()), Verification::Passed, Some(Outcome::Complete)),
        (None, failed_check(), None),
        (Some(complete()), failed_check(), None),
        (None, Verification::NotAsked, Some(Outcome::Interrupted)),
        (Some(replan), Verification::Passed, Some(Outcome::Human)),
    ] {
        let report = Report { signal: signal.clone(), verification, ..Report::default() };
        let (state, verdict) = decide(&policy, LoopState::default(), &report, Duration::ZERO);
        let found = match &verdict {
            Verdict::Finish { outcome, .. } => Some(*outcome),
            Verdict::Again { .. } => None,
        };
        assert_eq!(found, expected, "{signal:?} {verdict:?}");
        assert_eq!(state.refuted > 0, report.is_claim() && expected.is_none(), "only a claim is refuted: {signal:?}");
    }
    // Limits and the breaker work as ever.
    let report = Report { verification: failed_check(), progress: Progress::None, ..Report::default() };
    let last = LoopState { iterations: 9, ..LoopState::default() };
    let reason = "limit reached: 10 iterations; the last iteration: not done yet: `x`: exit code 1";
    assert_eq!(decide(&policy, last, &report, Duration::ZERO).1, finish(Outcome::Limit, reason.to_owned()));
    let still = LoopState { stalled: 3, ..LoopState::default() };
    let (_, verdict) = decide(&policy, still, &report, Duration::ZERO);
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::NoProgress, .. }), "{verdict:?}");
    // A failed iteration is not asked about.
    let broken = Report { verification: Verification::Passed, ..failed(FailureClass::Agent) };
    assert!(matches!(decide(&policy, LoopState::default(), &broken, Duration::ZERO).1, Verdict::Again { .. }));
}

#[test]
fn checks_at_the_end_decide_whether_it_is_complete() {
    let reason = || "done".to_owned();
    for (checks, expected) in [
        (Verification::None, Outcome::Complete),
        (Verification::Passed, Outcome::Complete),
        (Verification::NotAsked, Outcome::Interrupted),
        (Verification::Failed { summary: "`x`: exit code 1".into() }, Outcome::Failed),
    ] {
        assert_eq!(at_the_end(reason(), &checks).0, expected, "{checks:?}");
    }
}

#[test]
fn a_judge_has_the_last_word_on_a_claim() {
    let by = || "codex".to_owned();
    let rejected = |times| Judged::Rejected { by: by(), finding: "a test is missing".into(), times };
    let accepted = "the agent said `LOOP_COMPLETE`, all checks passed, and the judge `codex` accepted it";
    let again = "completion rejected by the judge `codex`: a test is missing";
    let stuck = "the judge `codex` rejected the same thing 3 times in a row: a test is missing";
    let none = Judged::NoVerdict { by: by(), reason: "its answer is too long".into() };
    let no_verdict = "the judge `codex` gave no verdict: its answer is too long";
    for (judged, expected, words) in [
        (Judged::Accepted { by: by() }, Some(Outcome::Complete), accepted),
        (rejected(1), None, again),
        (rejected(2), None, again),
        (rejected(3), Some(Outcome::Human), stuck),
        (none, Some(Outcome::Human), no_verdict),
        (Judged::Interrupted, Some(Outcome::Interrupted), "stopped by the user"),
        (Judged::OutOfTime, Some(Outcome::Limit), "time limit reached: 10000 s"),
    ] {
        let report = Report { judged: judged.clone(), verification: Verification::Passed, ..said(complete()) };
        let (state, verdict) = decide(&POLICY, LoopState::default(), &report, Duration::ZERO);
        let (found, reason) = match verdict {
            Verdict::Finish { outcome, reason } => (Some(outcome), reason),
            Verdict::Again { reason, .. } => (None, reason),
        };
        assert_eq!((found, reason.as_str()), (expected, words), "{judged:?}");
        assert_eq!(state.claims, u32::from(expected == Some(Outcome::Complete)), "{judged:?}");
    }
    // The checks come first.
    let failed_check = Verification::Failed { summary: "`x`: exit code 1".into() };
    let report = Report { judged: Judged::Accepted { by: by() }, verification: failed_check, ..said(complete()) };
    assert_eq!(outcome(LoopState::default(), &report), None);
    // Without checks, a judge is enough.
    let alone = Report { judged: Judged::Accepted { by: by() }, ..said(complete()) };
    let reason = "the agent said `LOOP_COMPLETE`, and the judge `codex` accepted it";
    let verdict = decide(&POLICY, LoopState::default(), &alone, Duration::ZERO).1;
    assert_eq!(verdict, finish(Outcome::Complete, reason.to_owned()));
}
