//! When a limit ends, out of the words of an error message: relative, absolute, in any zone.
//!
//! No clock is read here. What takes one ("3pm") is kept in the agent's words, and [`resolve`] finishes
//! the work for a caller that knows the time.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    At(Timestamp),
    /// This many milliseconds after the message.
    After(u64),
    /// In the agent's words: it takes a clock to read them.
    Words(String),
}

const RELATIVE: &[&str] = &[
    "retry in",
    "retry after",
    "retry-after:",
    "try again in",
    "try again after",
    "resets in",
    "reset in",
    "reset after",
    "resets after",
    "available in",
    "available again in",
    "please wait",
    "wait for",
    "retrying after",
    "retrying in",
];
const ABSOLUTE: &[&str] = &[
    "resets at",
    "resets on",
    "resets",
    "reset at",
    "reset on",
    "try again at",
    "try again on",
    "available at",
    "available again at",
    "retry at",
    "retry-after:",
    "limit will reset at",
    "limit reached|",
    "until",
];

/// Finds a reset time in a message.
pub(crate) fn find(message: &str) -> Option<Reset> {
    let lower = message.to_ascii_lowercase();
    let after = |word: &&str| lower.find(word).map(|at| message[at + word.len()..].trim_start());
    if let Some(milliseconds) = RELATIVE.iter().filter_map(after).find_map(duration) {
        return Some(Reset::After(milliseconds));
    }
    ABSOLUTE.iter().filter_map(after).find_map(absolute)
}

/// Seconds or milliseconds since 1970.
pub(crate) fn from_epoch(number: i64) -> Option<Timestamp> {
    // Seconds stay below 10^11 until the year 5138.
    if number.abs() < 100_000_000_000 {
        Timestamp::from_second(number).ok()
    } else {
        Timestamp::from_millisecond(number).ok()
    }
}

/// The next instant that the words can mean, seen from `now`; its zone is meant where they name none.
pub(crate) fn resolve(words: &str, now: &Zoned) -> Option<Timestamp> {
    let said = Said::read(words)?;
    let zone = said.zone.clone().unwrap_or_else(|| now.time_zone().clone());
    let here = now.with_time_zone(zone.clone());
    let time = said.time.unwrap_or(Time::midnight());
    let date = match (said.year, said.day) {
        (Some(year), Some((month, day))) => Date::new(year, month, day).ok()?,
        (None, Some((month, day))) => {
            let this = Date::new(here.year(), month, day).ok()?;
            if this < here.date() { Date::new(here.year() + 1, month, day).ok()? } else { this }
        }
        _ if here.time() <= time => here.date(),
        _ => here.date().tomorrow().ok()?,
    };
    DateTime::from_parts(date, time).to_zoned(zone).ok().map(|zoned| zoned.timestamp())
}

/// `1h 2m 3.5s`, `20s.`, `5628ms`, `2 hours`, `90` (seconds).
fn duration(text: &str) -> Option<u64> {
    let mut total = 0.0_f64;
    let mut found = false;
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', ',', ':']);
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(rest.len());
        let number = rest[..digits].trim_end_matches('.');
        let Ok(number) = number.parse::<f64>() else { break };
        let unit_text = rest[digits..].trim_start();
        let letters = unit_text.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(unit_text.len());
        let factor = match unit_text[..letters].to_ascii_lowercase().as_str() {
            "ms" | "millisecond" | "milliseconds" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000.0,
            "d" | "day" | "days" => 86_400_000.0,
            "w" | "week" | "weeks" => 604_800_000.0,
            // A bare number is seconds, as in HTTP; a time of day or a date is none.
            "" if !found && !unit_text.starts_with([':', '-', '/']) && digits < 8 => {
                total = number * 1_000.0;
                found = true;
                break;
            }
            _ => break,
        };
        total += number * factor;
        found = true;
        rest = &unit_text[letters..];
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from float saturates")]
    found.then_some(total.round() as u64)
}

fn absolute(text: &str) -> Option<Reset> {
    let first = text.split(|character: char| character.is_whitespace() || "\"'),;".contains(character)).next()?;
    let first = first.trim_end_matches('.');
    if let Ok(timestamp) = first.parse::<Timestamp>() {
        return Some(Reset::At(timestamp));
    }
    if first.len() >= 9
        && let Ok(number) = first.parse::<i64>()
    {
        return from_epoch(number).map(Reset::At);
    }
    let words = clause(text);
    let said = Said::read(words)?;
    if let (Some(year), Some((month, day)), Some(time), Some(zone)) = (said.year, said.day, said.time, said.zone) {
        let date = Date::new(year, month, day).ok()?;
        return DateTime::from_parts(date, time).to_zoned(zone).ok().map(|zoned| Reset::At(zoned.timestamp()));
    }
    Some(Reset::Words(words.to_owned()))
}

/// The words up to the end of the sentence.
fn clause(text: &str) -> &str {
    let end = text.find(['\n', '·', '∙', '•', ';', '"', '|', '!']).unwrap_or(text.len());
    let end = text[..end].find(". ").unwrap_or(end);
    text[..end].trim().trim_end_matches('.')
}

/// What words say about an instant.
#[derive(Debug, Default)]
struct Said {
    year: Option<i16>,
    day: Option<(i8, i8)>,
    time: Option<Time>,
    zone: Option<TimeZone>,
}

impl Said {
    /// Reads `Jan 1st, 2100 12:00 AM`, `3pm (Europe/Paris)`, `2026-11-16 08:00 UTC`. `None`: no time at all.
    fn read(words: &str) -> Option<Self> {
        let mut said = Self::default();
        let mut month = None;
        let tokens: Vec<&str> = words
            .split(|character: char| character.is_whitespace() || ",()[]".contains(character))
            .filter(|token| !token.is_empty())
            .take(12)
            .collect();
        for (at, token) in tokens.iter().enumerate() {
            let half = tokens.get(at + 1).copied().and_then(Half::read);
            let bare = token.trim_end_matches(['.', ',']);
            if let Ok(date) = bare.parse::<Date>() {
                said.year = Some(date.year());
                said.day = Some((date.month(), date.day()));
            } else if let Some(number) = month_number(bare) {
                month = Some(number);
            } else if let Some(time) = time_of_day(bare, half) {
                said.time = said.time.or(Some(time));
            } else if let Some(number) = ordinal(bare) {
                match (month, number) {
                    (_, 1970..) => said.year = Some(number),
                    (Some(month), 1..=31) if said.day.is_none() => {
                        said.day = i8::try_from(number).ok().map(|day| (month, day));
                    }
                    _ => {}
                }
            } else if let Some(zone) = zone(bare) {
                said.zone = Some(zone);
            }
        }
        (said.time.is_some() || said.day.is_some()).then_some(said)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Half {
    Morning,
    Afternoon,
}

impl Half {
    fn read(word: &str) -> Option<Self> {
        match word.trim_end_matches(['.', ',']).to_ascii_lowercase().replace('.', "").as_str() {
            "am" => Some(Self::Morning),
            "pm" => Some(Self::Afternoon),
            _ => None,
        }
    }
}

/// `3pm`, `3:30pm`, `15:00`, `15:00:30`, or `3` before a separate `PM`.
fn time_of_day(token: &str, next: Option<Half>) -> Option<Time> {
    let split = token.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(token.len());
    let (clock, suffix) = token.split_at(split);
    let half = if suffix.is_empty() { next } else { Some(Half::read(suffix)?) };
    let mut parts = clock.split(':');
    let hour: i8 = parts.next()?.parse().ok()?;
    let minute: Option<i8> = parts.next().map(str::parse).transpose().ok()?;
    let second: i8 = parts.next().map_or(Ok(0), str::parse).ok()?;
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(Half::Morning) => hour % 12,
        Some(Half::Afternoon) => hour % 12 + 12,
        // A bare number is a day, not an hour.
        None if minute.is_none() => return None,
        None => hour,
    };
    Time::new(hour, minute.unwrap_or(0), second, 0).ok()
}

fn month_number(token: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = token.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| lower.starts_with(month))?;
    lower.chars().all(|character| character.is_ascii_alphabetic()).then(|| i8::try_from(at + 1).ok())?
}

fn ordinal(token: &str) -> Option<i16> {
    let digits = token.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    matches!(&token[digits.len()..], "" | "st" | "nd" | "rd" | "th").then(|| digits.parse().ok())?
}

fn zone(token: &str) -> Option<TimeZone> {
    let hours = match token {
        "UTC" | "GMT" | "Z" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        "BST" | "CET" => 1,
        "CEST" => 2,
        "JST" => 9,
        _ if token.contains('/') => return TimeZone::get(token).ok(),
        _ => return fixed(token.trim_start_matches("UTC").trim_start_matches("GMT")),
    };
    Some(TimeZone::fixed(Offset::constant(hours)))
}

/// `+02:00`, `-0800`, `+2`.
fn fixed(token: &str) -> Option<TimeZone> {
    let sign = match token.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = token[1..].replace(':', "");
    let number: i32 = digits.parse().ok()?;
    let (hours, minutes) = if digits.len() > 2 { (number / 100, number % 100) } else { (number, 0) };
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok().map(TimeZone::fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Reset {
        Reset::At(text.parse().unwrap())
    }

    #[test]
    fn relative_times() {
        for (message, milliseconds) in [
            ("Rate limit reached. Please try again in 20s.", 20_000),
            ("Please retry in 1s.\nSuggested retry after 1s.]", 1_000),
            ("retry in 12.5s", 12_500),
            ("Attempt 1 failed. Retrying after 5628ms...", 5_628),
            ("try again in 1h 2m 3s", 3_723_000),
            ("try again in 1h30m.", 5_400_000),
            ("Try again in 2 hours and 5 minutes", 7_500_000),
            ("resets in 3 days", 259_200_000),
            ("retry-after: 30", 30_000),
        ] {
            assert_eq!(find(message), Some(Reset::After(milliseconds)), "{message}");
        }
    }

    #[test]
    fn absolute_times() {
        for (message, expected) in [
            ("You've hit your session limit · resets Jan 1, 2100, 12am (UTC)", at("2100-01-01T00:00:00Z")),
            ("Claude AI usage limit reached|4102444800", at("2100-01-01T00:00:00Z")),
            ("limit resets at 2026-11-16T08:00:00+02:00.", at("2026-11-16T06:00:00Z")),
            ("try again at 2026-11-16 08:30 PST", at("2026-11-16T16:30:00Z")),
            ("resets Nov 16, 2026 at 3:30 pm (UTC+2)", at("2026-11-16T13:30:00Z")),
            ("resets 3pm (Europe/Paris)", Reset::Words("3pm (Europe/Paris)".to_owned())),
            ("try again at Jan 1st, 2100 12:00 AM.", Reset::Words("Jan 1st, 2100 12:00 AM".to_owned())),
        ] {
            assert_eq!(find(message), Some(expected), "{message}");
        }
    }

    #[test]
    fn no_time_is_no_time() {
        for message in
            ["try again in a moment", "try again later", "resets the index", "", "wait for it", "retry after é"]
        {
            assert_eq!(find(message), None, "{message}");
        }
    }

    #[test]
    fn words_become_the_next_such_instant() {
        let now: Zoned = "2026-11-15T22:00:00+00:00[UTC]".parse().unwrap();
        for (words, expected) in [
            ("11pm", "2026-11-15T23:00:00Z"),
            ("9pm", "2026-11-16T21:00:00Z"),
            ("3am (UTC+2)", "2026-11-16T01:00:00Z"),
            ("Jan 2 at 3:30am", "2027-01-02T03:30:00Z"),
            ("Jan 1st, 2100 12:00 AM", "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(resolve(words, &now), Some(expected.parse().unwrap()), "{words}");
        }
        assert_eq!(resolve("soon", &now), None);
    }
}
