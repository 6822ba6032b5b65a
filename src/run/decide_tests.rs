use super::*;
use crate::journal::{IterationOutcome, Receipt};

const MOST_TIME: Duration = Duration::from_secs(10_000);

pub(super) const POLICY: Policy = Policy {
    max_iterations: 10,
    max_time: Some(MOST_TIME),
    max_consecutive_failures: 3,
    max_wait: Duration::from_secs(6 * 3600),
    min_iterations: 1,
    confirmations: 1,
    max_tokens: None,
    max_cost_usd: None,
    max_stalled: 4,
    permission: Permission::Threshold,
    until: Until::Claim,
};

pub(super) fn failed(class: FailureClass) -> Report {
    Report { failure: Some(Failure { class, message: "why".into(), retry_after: None }), ..Report::default() }
}

pub(super) fn said(signal: Signal) -> Report {
    Report { signal: Some(signal), ..Report::default() }
}

pub(super) fn complete() -> Signal {
    Signal::Complete { marker: "LOOP_COMPLETE".into() }
}

pub(super) fn outcome(state: LoopState, report: &Report) -> Option<Outcome> {
    match decide(&POLICY, state, report, Duration::from_secs(1)).1 {
        Verdict::Finish { outcome, .. } => Some(outcome),
        Verdict::Again { .. } => None,
    }
}

#[test]
fn each_class_of_failure_has_its_own_rule() {
    use FailureClass as C;
    for (class, expected, counts) in [
        (C::Auth, Some(Outcome::AgentUnusable), true),
        (C::Config, Some(Outcome::AgentUnusable), true),
        (C::Permission, Some(Outcome::AgentUnusable), true),
        (C::Refusal, Some(Outcome::Human), true),
        (C::RateLimit, None, false),
        (C::Overload, None, false),
        (C::Network, None, false),
        (C::Context, None, true),
        (C::AgentLimit, None, true),
        (C::Agent, None, true),
    ] {
        let (state, verdict) = decide(&POLICY, LoopState::default(), &failed(class), Duration::ZERO);
        let found = match verdict {
            Verdict::Finish { outcome, .. } => Some(outcome),
            Verdict::Again { .. } => None,
        };
        assert_eq!(found, expected, "{class:?}");
        assert_eq!(state.iterations == 1, counts, "{class:?}");
    }
}

#[test]
fn a_claim_counts_only_when_the_iteration_succeeded() {
    assert_eq!(outcome(LoopState::default(), &said(complete())), Some(Outcome::Complete));
    let report = Report { signal: Some(complete()), ..failed(FailureClass::Agent) };
    assert_eq!(outcome(LoopState::default(), &report), None);
}

#[test]
fn completion_on_the_last_allowed_iteration_is_complete() {
    let state = LoopState { iterations: 9, ..LoopState::default() };
    assert_eq!(outcome(state, &said(complete())), Some(Outcome::Complete));
    assert_eq!(outcome(state, &Report::default()), Some(Outcome::Limit));
    assert_eq!(outcome(state, &failed(FailureClass::Agent)), Some(Outcome::Failed));
    assert_eq!(outcome(LoopState { iterations: 8, ..LoopState::default() }, &Report::default()), None);
}

#[test]
fn a_replan_and_an_interrupt_end_the_run() {
    assert_eq!(outcome(LoopState::default(), &said(Signal::Replan { marker: "m".into() })), Some(Outcome::Human));
    let interrupted = Report { interrupted: true, ..Report::default() };
    assert_eq!(outcome(LoopState::default(), &interrupted), Some(Outcome::Interrupted));
    let interrupted = Report { interrupted: true, ..failed(FailureClass::Auth) };
    assert_eq!(outcome(LoopState::default(), &interrupted), Some(Outcome::Interrupted));
    let finished = Report { interrupted: true, ..said(complete()) };
    assert_eq!(outcome(LoopState::default(), &finished), Some(Outcome::Complete), "what is done is done");
}

#[test]
fn failures_in_a_row_end_the_run_and_a_success_forgives() {
    let mut state = LoopState::default();
    for _ in 0..2 {
        state = decide(&POLICY, state, &failed(FailureClass::Agent), Duration::ZERO).0;
    }
    assert_eq!(outcome(state, &failed(FailureClass::Agent)), Some(Outcome::Failed));
    let state = decide(&POLICY, state, &Report::default(), Duration::ZERO).0;
    assert_eq!(state.failures, 0);
    assert_eq!(outcome(state, &failed(FailureClass::Agent)), None);
}

#[test]
fn waits_for_limits_double_and_end_at_the_allowed_wait() {
    let mut state = LoopState::default();
    let mut waits = Vec::new();
    let policy = Policy { max_time: None, ..POLICY };
    let last = loop {
        match decide(&policy, state, &failed(FailureClass::RateLimit), Duration::ZERO) {
            (next, Verdict::Again { after, .. }) => {
                waits.push(after.as_secs());
                state = LoopState { waited: next.waited + after, ..next };
            }
            (_, Verdict::Finish { outcome, .. }) => break outcome,
        }
    };
    assert_eq!(waits, [300, 600, 1200, 2400, 3600, 3600, 3600, 3600]);
    assert_eq!(last, Outcome::RateLimited);
    assert_eq!(state.iterations, 0);
}

#[test]
fn an_iteration_limit_after_the_agent_gave_up_is_a_failure() {
    let signal = Signal::Failed { marker: "m".into(), reason: "no access".into() };
    let report = Report { signal: Some(signal), ..Report::default() };
    let (_, verdict) = decide(&Policy { max_iterations: 1, ..POLICY }, LoopState::default(), &report, Duration::ZERO);
    assert!(matches!(&verdict, Verdict::Finish { outcome: Outcome::Failed, reason } if reason.contains("no access")));
}

#[test]
fn an_iteration_that_a_person_cut_off_does_not_count_and_what_it_spent_does() {
    let spent = Spent { tokens: 7, iterations: 1, ..Spent::default() };
    let report = Report { interrupted: true, spent, ..failed(FailureClass::Agent) };
    let (state, _) = decide(&POLICY, LoopState { iterations: 2, ..LoopState::default() }, &report, Duration::ZERO);
    assert_eq!((state.iterations, state.spent.tokens), (2, 7));
    let mut receipt = Receipt { class: Some(FailureClass::Agent), ..Receipt::default() };
    report.complete(&mut receipt);
    assert_eq!((receipt.outcome, receipt.class), (IterationOutcome::Interrupted, None));
}

#[test]
fn a_claim_that_was_not_accepted_is_rejected() {
    let refuted = Verification::Failed { summary: "s".into() };
    for (report, expected) in [
        (said(complete()), IterationOutcome::Ok),
        (Report { verification: refuted, ..said(complete()) }, IterationOutcome::Rejected),
        (Report { veto: Some("open items".into()), ..said(complete()) }, IterationOutcome::Rejected),
        (Report { veto: Some("open items".into()), ..Report::default() }, IterationOutcome::Ok),
        (failed(FailureClass::Agent), IterationOutcome::Failed),
    ] {
        let mut receipt = Receipt::default();
        report.complete(&mut receipt);
        assert_eq!(receipt.outcome, expected, "{report:?}");
    }
}

#[test]
fn a_known_reset_time_is_waited_for_with_a_margin() {
    let mut report = failed(FailureClass::RateLimit);
    report.failure.as_mut().unwrap().retry_after = Some(Duration::from_secs(100));
    let (_, verdict) = decide(&POLICY, LoopState::default(), &report, Duration::ZERO);
    assert!(matches!(verdict, Verdict::Again { after, .. } if after == Duration::from_secs(130)), "{verdict:?}");
}

#[test]
fn back_offs_end_after_eight() {
    for (class, expected) in [(FailureClass::Overload, Outcome::RateLimited), (FailureClass::Network, Outcome::Failed)]
    {
        let mut state = LoopState::default();
        for _ in 0..7 {
            let (next, verdict) = decide(&POLICY, state, &failed(class), Duration::ZERO);
            assert!(matches!(verdict, Verdict::Again { .. }));
            state = next;
        }
        assert_eq!(outcome(state, &failed(class)), Some(expected));
    }
}

#[test]
fn a_full_context_starts_afresh_once() {
    let resumed = Report { resumed: true, ..failed(FailureClass::Context) };
    let (state, verdict) = decide(&POLICY, LoopState::default(), &resumed, Duration::ZERO);
    assert!(matches!(verdict, Verdict::Again { .. }));
    assert_eq!((state.iterations, state.failures), (0, 0));
    let (state, _) = decide(&POLICY, state, &resumed, Duration::ZERO);
    assert_eq!((state.iterations, state.failures), (1, 1));
    let (state, _) = decide(&POLICY, LoopState::default(), &failed(FailureClass::Context), Duration::ZERO);
    assert_eq!((state.iterations, state.failures), (1, 1), "a fresh session does not help a fresh session");
}

#[test]
fn time_runs_out_before_a_wait_that_would_pass_it() {
    let (_, verdict) = decide(&POLICY, LoopState::default(), &Report::default(), MOST_TIME);
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::Limit, .. }));
    let (_, verdict) =
        decide(&POLICY, LoopState::default(), &failed(FailureClass::RateLimit), Duration::from_secs(9_800));
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::RateLimited, .. }), "{verdict:?}");
    let (_, verdict) = decide(&POLICY, LoopState::default(), &failed(FailureClass::Agent), MOST_TIME);
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::Limit, .. }), "{verdict:?}");
}

fn verdict(policy: &Policy, state: LoopState, report: &Report) -> (LoopState, Option<Outcome>, String) {
    match decide(policy, state, report, Duration::ZERO) {
        (state, Verdict::Finish { outcome, reason }) => (state, Some(outcome), reason),
        (state, Verdict::Again { reason, .. }) => (state, None, reason),
    }
}

#[test]
fn a_claim_needs_the_plan_the_commands_and_the_confirmations() {
    let vetoed = Report { veto: Some("one item is open".into()), ..said(complete()) };
    let (state, outcome, reason) = verdict(&POLICY, LoopState::default(), &vetoed);
    assert_eq!((state.claims, outcome), (0, None));
    assert!(reason.contains("one item is open"), "{reason}");

    let failed = Verification::Failed { summary: "`make`: exit code 2".into() };
    let refuted = Report { verification: failed, ..said(complete()) };
    let mut state = LoopState::default();
    for times in 1..=3 {
        let (next, outcome, reason) = verdict(&POLICY, state, &refuted);
        assert_eq!((next.refuted, outcome), (times, None));
        assert_eq!(reason.contains("in a row"), times >= LOUD_CLAIMS, "{reason}");
        state = next;
    }
    assert_eq!(verdict(&POLICY, state, &said(complete())).0.refuted, 0);

    let twice = Policy { confirmations: 2, ..POLICY };
    let (state, outcome, _) = verdict(&twice, LoopState::default(), &said(complete()));
    assert_eq!(outcome, None);
    assert_eq!(verdict(&twice, state, &said(complete())).1, Some(Outcome::Complete));
    let (state, ..) = verdict(&twice, state, &Report::default());
    assert_eq!(verdict(&twice, state, &said(complete())).1, None, "in a row");

    let third = Policy { min_iterations: 3, ..POLICY };
    assert_eq!(verdict(&third, LoopState::default(), &said(complete())).1, None);
    let state = LoopState { iterations: 2, ..LoopState::default() };
    assert_eq!(verdict(&third, state, &said(complete())).1, Some(Outcome::Complete));
}

#[test]
fn an_unasked_verification_is_no_completion() {
    let report = Report { verification: Verification::NotAsked, interrupted: true, ..said(complete()) };
    assert_eq!(verdict(&POLICY, LoopState::default(), &report).1, Some(Outcome::Interrupted));
}

#[test]
fn what_an_agent_says_to_a_person_ends_the_run() {
    let asks = Signal::Question { text: "Which?".into() };
    assert_eq!(outcome(LoopState::default(), &said(asks)), Some(Outcome::Human));
    let blocked = Signal::Blocked { reason: "no key".into() };
    assert_eq!(outcome(LoopState::default(), &said(blocked)), Some(Outcome::Human));
    let gives_up = || said(Signal::Failed { marker: "m".into(), reason: "no way".into() });
    let (state, first, _) = verdict(&POLICY, LoopState::default(), &gives_up());
    assert_eq!((state.failures, first), (1, None), "tried again first");
    let state = LoopState { failures: 2, ..state };
    let (_, outcome, reason) = verdict(&POLICY, state, &gives_up());
    assert_eq!(outcome, Some(Outcome::Failed));
    assert!(reason.contains("no way"), "{reason}");
}

#[test]
fn nothing_moves_for_too_long() {
    let still = Report { progress: Progress::None, ..Report::default() };
    let mut state = LoopState::default();
    for _ in 0..3 {
        let (next, outcome, _) = verdict(&POLICY, state, &still);
        assert_eq!(outcome, None);
        state = next;
    }
    assert_eq!(verdict(&POLICY, state, &still).1, Some(Outcome::NoProgress));
    let last = LoopState { iterations: 9, ..state };
    assert_eq!(verdict(&POLICY, last, &still).1, Some(Outcome::NoProgress), "it wins over the limit of iterations");
    let moved = Report { progress: Progress::Made, ..Report::default() };
    assert_eq!(verdict(&POLICY, state, &moved).0.stalled, 0);
    for progress in [Progress::Unknown, Progress::Nudge] {
        assert_eq!(verdict(&POLICY, state, &Report { progress, ..Report::default() }).0.stalled, 3);
    }
    let never = Policy { max_stalled: 0, ..POLICY };
    assert_eq!(verdict(&never, state, &still).1, None);
    let done = Report { progress: Progress::None, ..said(complete()) };
    assert_eq!(verdict(&POLICY, state, &done).1, Some(Outcome::Complete), "what is done need not move");
}

#[test]
fn denials_stop_a_run_by_the_users_word() {
    let denied = Report { denied: vec!["Bash".into()], progress: Progress::None, ..Report::default() };
    let (state, first, _) = verdict(&POLICY, LoopState::default(), &denied);
    assert_eq!(first, None);
    let (_, second, reason) = verdict(&POLICY, state, &denied);
    assert_eq!(second, Some(Outcome::AgentUnusable));
    assert!(reason.contains("Bash"), "{reason}");
    let moved = Report { progress: Progress::Made, ..denied.clone() };
    assert_eq!(verdict(&POLICY, state, &moved).1, None);
    let halt = Policy { permission: Permission::Halt, ..POLICY };
    assert_eq!(verdict(&halt, LoopState::default(), &denied).1, Some(Outcome::AgentUnusable));
    let on = Policy { permission: Permission::Continue, ..POLICY };
    assert_eq!(verdict(&on, state, &denied).1, None);
    let done = Report { denied: vec!["Bash".into()], ..said(complete()) };
    assert_eq!(verdict(&halt, LoopState::default(), &done).1, Some(Outcome::Complete), "denials do not void a claim");
}

#[test]
fn tokens_and_money_are_limits() {
    let spent = Spent { tokens: 600, usd: 3.0, iterations: 1, reported: true, ..Spent::default() };
    let report = Report { spent, ..Report::default() };
    for policy in [Policy { max_tokens: Some(1000), ..POLICY }, Policy { max_cost_usd: Some(5.0), ..POLICY }] {
        let (state, first, _) = verdict(&policy, LoopState::default(), &report);
        assert_eq!(first, None);
        assert_eq!(verdict(&policy, state, &report).1, Some(Outcome::Limit));
    }
}

#[test]
fn a_substitute_takes_over_without_an_iteration() {
    for class in [FailureClass::Auth, FailureClass::RateLimit] {
        let report = Report { substitute: Some("codex".into()), ..failed(class) };
        let (state, outcome, reason) = verdict(&POLICY, LoopState::default(), &report);
        assert_eq!((state.iterations, outcome), (0, None));
        assert!(reason.contains("`codex` takes over"), "{reason}");
    }
}

#[test]
fn failures_in_a_row_are_tried_again_after_a_growing_pause() {
    let mut state = LoopState::default();
    let policy = Policy { max_consecutive_failures: 9, ..POLICY };
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let (next, verdict) = decide(&policy, state, &failed(FailureClass::Agent), Duration::ZERO);
        if let Verdict::Again { after, .. } = verdict {
            pauses.push(after.as_secs());
        }
        state = next;
    }
    assert_eq!(pauses, [0, 1, 2, 4, 8, 10, 10]);
}

/// Random runs: whatever comes, a run ends, within its limits, by one verdict.
#[test]
fn any_run_ends_within_its_limits() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let classes = [
        FailureClass::Auth,
        FailureClass::RateLimit,
        FailureClass::Overload,
        FailureClass::Context,
        FailureClass::Permission,
        FailureClass::Network,
        FailureClass::Refusal,
        FailureClass::Config,
        FailureClass::AgentLimit,
        FailureClass::Agent,
    ];
    for run in 0..5000 {
        let policy = Policy {
            max_iterations: 1 + u32::try_from(next(30)).unwrap(),
            max_time: (next(4) > 0).then(|| Duration::from_secs(100 + next(100_000))),
            max_consecutive_failures: 1 + u32::try_from(next(5)).unwrap(),
            max_wait: Duration::from_secs(next(20_000)),
            min_iterations: u32::try_from(next(5)).unwrap(),
            confirmations: 1 + u32::try_from(next(3)).unwrap(),
            max_tokens: (next(2) == 0).then(|| 1 + next(100_000)),
            max_cost_usd: None,
            max_stalled: u32::try_from(next(6)).unwrap(),
            permission: [Permission::Continue, Permission::Halt, Permission::Threshold]
                [usize::try_from(next(3)).unwrap()],
            until: if run % 2 == 0 { Until::Claim } else { Until::Checks },
        };
        let (mut state, mut elapsed, mut steps) = (LoopState::default(), Duration::ZERO, 0);
        let outcome = loop {
            steps += 1;
            assert!(steps < 2000, "run {run} does not end: {policy:?} {state:?}");
            elapsed += Duration::from_secs(next(600));
            let mut report = Report { ended: "x".into(), ..Report::default() };
            if next(3) == 0 {
                let class = classes[usize::try_from(next(10)).unwrap()];
                let retry_after = (next(3) == 0).then(|| Duration::from_secs(next(4000)));
                report.failure = Some(Failure { class, message: "m".into(), retry_after });
                report.resumed = next(2) == 0;
            }
            report.signal = match next(12) {
                0 => Some(complete()),
                1 => Some(Signal::Replan { marker: "m".into() }),
                2 => Some(Signal::Failed { marker: "m".into(), reason: "r".into() }),
                _ => None,
            };
            if report.is_claim() {
                report.verification = match next(3) {
                    0 => Verification::None,
                    1 => Verification::Passed,
                    _ => Verification::Failed { summary: "s".into() },
                };
                report.veto = (next(4) == 0).then(|| "v".into());
            }
            report.progress =
                [Progress::Made, Progress::None, Progress::Unknown, Progress::Nudge][usize::try_from(next(4)).unwrap()];
            if next(8) == 0 {
                report.denied.push("tool".into());
            }
            report.spent = Spent { tokens: next(5000), iterations: 1, ..Spent::default() };
            let before = state;
            let (after, verdict) = decide(&policy, state, &report, elapsed);
            assert!(after.iterations - before.iterations <= 1, "one step is at most one iteration");
            assert!(after.iterations <= policy.max_iterations, "{policy:?}");
            state = after;
            match verdict {
                Verdict::Finish { outcome, reason } => {
                    assert!(!reason.is_empty());
                    if outcome == Outcome::Complete {
                        let held = !matches!(report.verification, Verification::Failed { .. }) && report.veto.is_none();
                        assert!(report.may_complete(policy.until) && held && state.iterations >= policy.min_iterations);
                    }
                    break outcome;
                }
                Verdict::Again { after, .. } => {
                    if report.failure.as_ref().is_some_and(|failure| failure.class == FailureClass::RateLimit) {
                        state.waited += after;
                    }
                    assert!(state.waited <= policy.max_wait, "{policy:?} {state:?}");
                    assert!(policy.max_tokens.is_none_or(|most| state.spent.tokens < most), "past the limit of tokens");
                    elapsed += after;
                    assert!(policy.max_time.is_none_or(|most| elapsed < most), "past the time limit");
                }
            }
        };
        assert_ne!(outcome, Outcome::Interrupted, "nobody interrupted run {run}");
    }
}
