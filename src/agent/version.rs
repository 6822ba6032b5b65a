//! Versions of agents: which is the newer one, and what a file says of the one that is there.

use std::cmp::Ordering;

use super::definition::Version;

/// A version beside those that an agent file knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Older than the oldest that takes the file's arguments.
    TooOld,
    /// Between the oldest that is known to work and the one the file was written from.
    Tested,
    /// Newer than the one the file was written from.
    Newer,
    /// The file says nothing.
    Unknown,
}

impl Version {
    /// What the file says of this version.
    pub(crate) fn knows(&self, version: &str) -> Known {
        let beside = |known: &Option<String>| known.as_ref().map(|known| compare(version, known));
        match (beside(&self.minimum), beside(&self.tested)) {
            (Some(Ordering::Less), _) => Known::TooOld,
            (_, Some(Ordering::Greater)) => Known::Newer,
            (_, Some(_)) => Known::Tested,
            _ => Known::Unknown,
        }
    }
}

/// Number by number; what is no number, such as a commit, does not count.
fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let release = version.split(['-', '+']).next().unwrap_or(version);
        release.split('.').map_while(|part| part.parse().ok()).collect()
    };
    let (mut one, mut other) = (numbers(one), numbers(other));
    let length = one.len().max(other.len());
    one.resize(length, 0);
    other.resize(length, 0);
    one.cmp(&other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_number_by_number() {
        let version = Version { minimum: Some("2.0.0".into()), tested: Some("2.1.197".into()), ..Version::default() };
        for (there, known) in [
            ("1.9.99", Known::TooOld),
            ("2", Known::Tested),
            ("2.1.97", Known::Tested),
            ("2.1.197-beta", Known::Tested),
            ("2.1.1000", Known::Newer),
            ("10.0", Known::Newer),
        ] {
            assert_eq!(version.knows(there), known, "{there}");
        }
        assert_eq!(Version::default().knows("1.0"), Known::Unknown);
    }
}
