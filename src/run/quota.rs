//! How full the usage windows of a subscription are, where the agent reports it, and when the user wants to stop. Pure.

use std::time::Duration;

use jiff::Timestamp;

use crate::event::Quota;

/// Waits this much longer than the reset time says.
const GRACE: Duration = Duration::from_secs(30);

/// At how many per cent a run stops or waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotaLimits {
    pub five_hours: Option<u32>,
    pub week: Option<u32>,
}

impl QuotaLimits {
    pub(crate) const fn is_set(self) -> bool {
        self.five_hours.is_some() || self.week.is_some()
    }

    /// The window that is too full, in words, and how long until it is empty again, where that is known.
    pub(super) fn reached(self, quotas: &[Quota], now: Timestamp) -> Option<(String, Option<Duration>)> {
        let limit = |window: &str| match window {
            "5h" => self.five_hours,
            "week" => self.week,
            _ => None,
        };
        let full = quotas.iter().filter_map(|quota| {
            let most = limit(&quota.window).filter(|most| quota.used >= *most)?;
            let wait = quota
                .resets_at
                .as_ref()
                .and_then(|at| at.parse::<Timestamp>().ok())
                .map(|at| Duration::try_from(at.duration_since(now)).map_or(Duration::ZERO, |left| left + GRACE));
            let reason =
                format!("quota limit reached: {} % of the {} quota is used (limit {most} %)", quota.used, quota.window);
            Some((reason, wait))
        });
        // A window whose reset time has passed is not full any more.
        full.filter(|(_, wait)| *wait != Some(Duration::ZERO)).max_by_key(|(_, wait)| wait.unwrap_or(Duration::MAX))
    }
}

/// Remembers the newest word about each window.
pub(crate) fn remember(quotas: &mut Vec<Quota>, newest: Quota) {
    match quotas.iter_mut().find(|quota| quota.window == newest.window) {
        Some(known) => *known = newest,
        None => quotas.push(newest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_that_takes_longest_decides() {
        let now: Timestamp = "2026-11-18T02:00:00Z".parse().unwrap();
        let quota = |window: &str, used, at: Option<&str>| Quota {
            window: window.to_owned(),
            used,
            resets_at: at.map(str::to_owned),
        };
        let limits = QuotaLimits { five_hours: Some(80), week: Some(90) };
        let in_an_hour = Some("2026-11-18T03:00:00Z");
        assert_eq!(limits.reached(&[quota("5h", 79, in_an_hour)], now), None);
        let (reason, wait) = limits.reached(&[quota("5h", 80, in_an_hour)], now).unwrap();
        assert_eq!(reason, "quota limit reached: 80 % of the 5h quota is used (limit 80 %)");
        assert_eq!(wait, Some(Duration::from_secs(3630)));
        let both = [quota("5h", 85, in_an_hour), quota("week", 95, None)];
        assert_eq!(limits.reached(&both, now).unwrap().1, None);
        assert_eq!(limits.reached(&[quota("5h", 99, Some("2026-11-18T01:00:00Z"))], now), None, "it is over");
        assert_eq!(QuotaLimits::default().reached(&both, now), None);
    }
}
