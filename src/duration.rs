//! Times as people write them, the same on the command line and in `ralph.yml`: `90`, `90s`, `30m`, `1h30m`.

use std::time::Duration;

/// A year is for ever, and sums of such times do not overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The form, for messages.
pub(crate) const FORM: &str = "a time such as `90s`, `30m` or `1h30m`";

/// Reads a time; a number alone is seconds.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let duration = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => Duration::try_from(text.parse::<jiff::SignedDuration>().ok()?).ok()?,
    };
    Some(duration.min(LONGEST))
}

/// A time in the form in which it can be read.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    let milliseconds = (u64::from(duration.subsec_millis()), "ms");
    let parts = parts.into_iter().chain([milliseconds]).filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, unit)| format!("{count}{unit}")).collect();
    if parts.is_empty() { "0s".to_owned() } else { parts.concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_as_the_same_time() {
        for (text, seconds, again) in
            [("90", 90, "1m30s"), ("90s", 90, "1m30s"), ("4h", 14_400, "4h"), ("1h30m", 5400, "1h30m"), ("0", 0, "0s")]
        {
            let duration = parse(text).unwrap();
            assert_eq!(duration, Duration::from_secs(seconds), "{text}");
            assert_eq!(shown(duration), again);
            assert_eq!(parse(again), Some(duration));
        }
        assert_eq!(parse(&shown(Duration::from_millis(1500))), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn other_words_are_no_time() {
        for text in ["soon", "", "-5", "-5s", "5 parsecs"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse("999999999999"), Some(LONGEST));
    }
}
