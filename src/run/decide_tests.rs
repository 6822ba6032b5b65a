use super::*;

const POLICY: Policy = Policy {
    max_iterations: 10,
    max_time: Duration::from_secs(10_000),
    max_consecutive_failures: 3,
    max_wait: Duration::from_secs(6 * 3600),
};

fn failed(class: FailureClass) -> Report {
    Report { failure: Some(Failure { class, message: "why".into(), retry_after: None }), ..Report::default() }
}

fn said(signal: Signal) -> Report {
    Report { signal: Some(signal), ..Report::default() }
}

fn complete() -> Signal {
    Signal::Complete { marker: "LOOP_COMPLETE".into() }
}

fn outcome(state: State, report: &Report) -> Option<Outcome> {
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
        let (state, verdict) = decide(&POLICY, State::default(), &failed(class), Duration::ZERO);
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
    assert_eq!(outcome(State::default(), &said(complete())), Some(Outcome::Complete));
    let report = Report { signal: Some(complete()), ..failed(FailureClass::Agent) };
    assert_eq!(outcome(State::default(), &report), None);
}

#[test]
fn completion_on_the_last_allowed_iteration_is_complete() {
    let state = State { iterations: 9, ..State::default() };
    assert_eq!(outcome(state, &said(complete())), Some(Outcome::Complete));
    assert_eq!(outcome(state, &Report::default()), Some(Outcome::Limit));
    assert_eq!(outcome(state, &failed(FailureClass::Agent)), Some(Outcome::Failed));
    assert_eq!(outcome(State { iterations: 8, ..State::default() }, &Report::default()), None);
}

#[test]
fn a_replan_and_an_interrupt_end_the_run() {
    assert_eq!(outcome(State::default(), &said(Signal::Replan { marker: "m".into() })), Some(Outcome::Human));
    let interrupted = Report { interrupted: true, ..Report::default() };
    assert_eq!(outcome(State::default(), &interrupted), Some(Outcome::Interrupted));
    let interrupted = Report { interrupted: true, ..failed(FailureClass::Auth) };
    assert_eq!(outcome(State::default(), &interrupted), Some(Outcome::Interrupted));
    let finished = Report { interrupted: true, ..said(complete()) };
    assert_eq!(outcome(State::default(), &finished), Some(Outcome::Complete), "what is done is done");
}

#[test]
fn failures_in_a_row_end_the_run_and_a_success_forgives() {
    let mut state = State::default();
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
    let mut state = State::default();
    let mut waits = Vec::new();
    let policy = Policy { max_time: Duration::from_secs(1_000_000), ..POLICY };
    let last = loop {
        match decide(&policy, state, &failed(FailureClass::RateLimit), Duration::ZERO) {
            (next, Verdict::Again { after, .. }) => {
                waits.push(after.as_secs());
                state = next;
            }
            (_, Verdict::Finish { outcome, .. }) => break outcome,
        }
    };
    assert_eq!(waits, [300, 600, 1200, 2400, 3600, 3600, 3600, 3600]);
    assert_eq!(last, Outcome::RateLimited);
    assert_eq!(state.iterations, 0);
}

#[test]
fn a_known_reset_time_is_waited_for_with_a_margin() {
    let mut report = failed(FailureClass::RateLimit);
    report.failure.as_mut().unwrap().retry_after = Some(Duration::from_secs(100));
    let (_, verdict) = decide(&POLICY, State::default(), &report, Duration::ZERO);
    assert!(matches!(verdict, Verdict::Again { after, .. } if after == Duration::from_secs(130)), "{verdict:?}");
}

#[test]
fn back_offs_end_after_eight() {
    for (class, expected) in [(FailureClass::Overload, Outcome::RateLimited), (FailureClass::Network, Outcome::Failed)]
    {
        let mut state = State::default();
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
    let (state, verdict) = decide(&POLICY, State::default(), &resumed, Duration::ZERO);
    assert!(matches!(verdict, Verdict::Again { .. }));
    assert_eq!((state.iterations, state.failures), (0, 0));
    let (state, _) = decide(&POLICY, state, &resumed, Duration::ZERO);
    assert_eq!((state.iterations, state.failures), (1, 1));
    let (state, _) = decide(&POLICY, State::default(), &failed(FailureClass::Context), Duration::ZERO);
    assert_eq!((state.iterations, state.failures), (1, 1), "a fresh session does not help a fresh session");
}

#[test]
fn time_runs_out_before_a_wait_that_would_pass_it() {
    let (_, verdict) = decide(&POLICY, State::default(), &Report::default(), POLICY.max_time);
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::Limit, .. }));
    let (_, verdict) = decide(&POLICY, State::default(), &failed(FailureClass::RateLimit), Duration::from_secs(9_800));
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::RateLimited, .. }), "{verdict:?}");
    let (_, verdict) = decide(&POLICY, State::default(), &failed(FailureClass::Agent), POLICY.max_time);
    assert!(matches!(verdict, Verdict::Finish { outcome: Outcome::Limit, .. }), "{verdict:?}");
}
