//! The time zone of this machine, without the list of all zones that `jiff` makes of some hundred files when it is first asked.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The file that says what the local time is.
const ZONE: &str = "/etc/localtime";
/// A larger file is none.
const MOST_BYTES: usize = 256 * 1024;

/// The time zone as `TZ` or the machine says it; UTC when neither does.
pub(crate) fn zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() || !cfg!(target_os = "linux") {
        return TimeZone::system();
    }
    match std::fs::read(ZONE) {
        Ok(bytes) if bytes.len() <= MOST_BYTES => {
            TimeZone::tzif("Local", &bytes).unwrap_or_else(|_| TimeZone::system())
        }
        _ => TimeZone::UTC,
    }
}

/// Now, in that zone.
pub(crate) fn now() -> Zoned {
    Timestamp::now().to_zoned(zone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_zone_that_jiff_finds() {
        let now = Timestamp::now();
        let theirs = now.to_zoned(TimeZone::system());
        assert_eq!(now.to_zoned(zone()).datetime(), theirs.datetime());
    }
}
