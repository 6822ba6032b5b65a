//! Did the iteration succeed? And if not, what kind of failure was it? Pure.

use std::time::Duration;

use jiff::{Timestamp, Zoned};

use super::decide::Failure;
use super::reading::{Authority, Tally};
use crate::event::FailureClass;
use crate::process::{Ended, Exit, StopReason};
use crate::signals::stall::MOST_REPEATS;
use crate::transcript::reset;

/// The longest wait that is believed.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How an iteration ended that a person did not let finish.
pub(crate) const STOPPED: &str = "stopped by the user";

/// How an iteration ended, in words and as a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Judgement {
    /// In words, for the receipt and the next prompt.
    pub ended: String,
    /// `None`: it succeeded.
    pub failure: Option<Failure>,
}

/// Judges by the dialect's terminal event where it has one, else by the exit.
pub(crate) fn judge(tally: &Tally, authority: Authority, ended: &Ended, now: &Zoned) -> Judgement {
    let how = how_it_ended(ended);
    if let Some(trouble) = &tally.unread {
        return failed(tally, authority, ended, trouble.clone(), now);
    }
    match (&tally.turn_end, authority) {
        // What the agent's own stream says was its last word: exit code and our stop afterwards do not matter.
        (Some((Some(true), _)), Authority::Adapter) => return Judgement { ended: "success".to_owned(), failure: None },
        // What we stopped ourselves did not fail for a reason of its own.
        (Some((Some(false), _)), _) if !ended.ended_by_itself() => {
            return failed(tally, authority, ended, how, now);
        }
        // Nobody said it: the process did.
        (Some((Some(false), _)), _) if tally.assumed && !ended.exit.success() => {
            return failed(tally, authority, ended, how, now);
        }
        (Some((Some(false), reason)), _) => {
            let reason = reason.as_deref().unwrap_or("no reason given");
            return failed(tally, authority, ended, format!("the agent reports a failure: {reason}"), now);
        }
        _ => {}
    }
    // Stopped by us after it had said that all went well: that is no failure, whoever said it.
    if let (Some((Some(true), _)), Some(StopReason::AfterEnd)) = (&tally.turn_end, ended.stopped) {
        return Judgement { ended: "success".to_owned(), failure: None };
    }
    // The same for one that ended its turn without a verdict: there is no exit code that says otherwise.
    if let (Some((None, _)), Some(StopReason::AfterEnd)) = (&tally.turn_end, ended.stopped)
        && tally.spoke
        && tally.error.is_none()
    {
        return Judgement { ended: "ended its turn".to_owned(), failure: None };
    }
    if ended.ended_by_itself() && ended.exit.success() {
        if authority == Authority::Adapter && tally.error.is_some() {
            return failed(tally, authority, ended, format!("{how}, but with an error"), now);
        }
        if !tally.spoke {
            return failed(tally, authority, ended, format!("{how}, but said nothing"), now);
        }
        return Judgement { ended: how, failure: None };
    }
    failed(tally, authority, ended, how, now)
}

fn failed(tally: &Tally, authority: Authority, process: &Ended, ended: String, now: &Zoned) -> Judgement {
    // What an agent writes about itself counts only when its process failed.
    let believed = authority == Authority::Adapter || !process.exit.success();
    let (class, message, retry_after) = match tally.error.as_ref().filter(|_| believed) {
        Some(told) if told.message == ended => (told.class, ended.clone(), told.wait(now)),
        Some(told) => (told.class, format!("{ended}: {}", told.message), told.wait(now)),
        None => {
            // What a program prints that ralph has stopped does not explain its end.
            let detail = tally.stderr.back().filter(|_| process.ended_by_itself());
            let detail = detail.map_or_else(String::new, |line| format!(": {line}"));
            (FailureClass::Agent, format!("{ended}{detail}"), None)
        }
    };
    let message = if tally.stderr.iter().any(|line| wants_a_terminal(line)) {
        format!("{message}; it needs a terminal: try `--pty`")
    } else {
        message
    };
    Judgement { ended, failure: Some(Failure { class, message, retry_after }) }
}

/// How programs complain that they are not on a terminal.
fn wants_a_terminal(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["not a tty", "not a terminal", "raw mode is not supported", "inappropriate ioctl for device"]
        .iter()
        .any(|words| line.contains(words))
}

impl super::reading::Told {
    /// How long from now until the limit is over.
    fn wait(&self, now: &Zoned) -> Option<Duration> {
        let at = self.resets_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
        let at = at.or_else(|| reset::resolve(self.resets.as_ref()?, now));
        let wait = match (at, self.retry_after_ms) {
            (Some(at), _) => Some(Duration::try_from(at.duration_since(now.timestamp())).unwrap_or(Duration::ZERO)),
            (None, Some(milliseconds)) => Some(Duration::from_millis(milliseconds)),
            (None, None) => None,
        };
        // A month is forever, and sums of such times do not overflow.
        wait.map(|wait| wait.min(LONGEST_WAIT))
    }
}

/// How a process ended, in words.
pub(crate) fn how_it_ended(ended: &Ended) -> String {
    let seconds = ended.stopped_after.as_secs();
    match ended.stopped {
        Some(StopReason::Startup) => format!("no output within {seconds} s of the start, stopped"),
        Some(StopReason::Idle) => format!("no output and no work for too long, stopped after {seconds} s"),
        Some(StopReason::Total) => format!("timed out after {seconds} s"),
        Some(StopReason::Asked) => STOPPED.to_owned(),
        Some(StopReason::Stuck) => format!("did the same step {MOST_REPEATS} times over, stopped after {seconds} s"),
        Some(StopReason::AfterEnd) | None => match ended.exit {
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(number) => format!("killed by Unix signal {number}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::run::reading::Told;

    fn epoch() -> Zoned {
        Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)
    }

    fn ended(exit: Exit, stopped: Option<StopReason>) -> Ended {
        Ended {
            exit,
            stopped,
            left_behind: Vec::new(),
            survivors: Vec::new(),
            unseen: false,
            pipes_closed: true,
            active: Duration::from_secs(7),
            stopped_after: Duration::from_secs(5),
        }
    }

    /// What the stream said of the turn.
    #[derive(Clone, Copy, Debug)]
    enum Said {
        Nothing,
        End(Option<bool>),
    }
    use Said::{End, Nothing};

    fn succeeded(said: Said, authority: Authority, ended: &Ended) -> bool {
        let turn_end = match said {
            Nothing => None,
            End(success) => Some((success, None)),
        };
        let tally = Tally { turn_end, spoke: true, ..Tally::default() };
        judge(&tally, authority, ended, &epoch()).failure.is_none()
    }

    #[test]
    fn the_dialects_word_comes_before_the_exit_code() {
        use Authority::{Adapter, Agent};
        let zero = ended(Exit::Code(0), None);
        let one = ended(Exit::Code(1), None);
        let after_end = ended(Exit::Signal(15), Some(StopReason::AfterEnd));
        let timeout = ended(Exit::Code(0), Some(StopReason::Total));
        for (turn_end, authority, ended, expected) in [
            (Nothing, Adapter, &zero, true),
            (Nothing, Adapter, &one, false),
            (Nothing, Adapter, &timeout, false),
            (Nothing, Adapter, &after_end, false),
            (End(Some(true)), Adapter, &one, true),
            (End(Some(true)), Adapter, &after_end, true),
            (End(Some(false)), Adapter, &zero, false),
            (End(None), Adapter, &zero, true),
            (End(Some(true)), Agent, &zero, true),
            (End(Some(true)), Agent, &one, false),
            (End(Some(true)), Agent, &after_end, true),
            (End(Some(false)), Agent, &zero, false),
        ] {
            assert_eq!(succeeded(turn_end, authority, ended), expected, "{turn_end:?} {authority:?} {ended:?}");
        }
    }

    #[test]
    fn an_empty_answer_is_a_failure() {
        let judgement = judge(&Tally::default(), Authority::Adapter, &ended(Exit::Code(0), None), &epoch());
        assert_eq!(judgement.ended, "exit code 0, but said nothing");
        assert_eq!(judgement.failure.unwrap().class, FailureClass::Agent);
    }

    #[test]
    fn a_told_error_gives_the_class_and_the_wait() {
        let told = Told {
            class: FailureClass::RateLimit,
            message: "limit".into(),
            resets_at: Some("1970-01-01T00:01:00Z".into()),
            retry_after_ms: None,
            resets: None,
        };
        let tally = Tally { error: Some(told), spoke: true, ..Tally::default() };
        let failure = judge(&tally, Authority::Adapter, &ended(Exit::Code(1), None), &epoch()).failure.unwrap();
        assert_eq!((failure.class, failure.retry_after), (FailureClass::RateLimit, Some(Duration::from_secs(60))));
        assert_eq!(failure.message, "exit code 1: limit");
    }
}
