//! Which files may change: `allowed_paths`, as exact names, directories, or with `*`. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::git::Difference;

/// What is different since a later moment than the start, when this much was different.
pub(crate) fn since(
    then: &BTreeMap<String, Difference>,
    now: BTreeMap<String, Difference>,
) -> BTreeMap<String, Difference> {
    let undone = then.iter().filter(|(path, _)| !now.contains_key(*path));
    let undone: Vec<_> = undone
        .map(|(path, then)| (path.clone(), Difference { before: then.now.clone(), now: then.before.clone() }))
        .collect();
    let later = now.into_iter().map(|(path, now)| {
        let before = then.get(&path).map_or(now.before, |then| then.now.clone());
        (path, Difference { before, now: now.now })
    });
    later.filter(|(_, difference)| difference.before != difference.now).chain(undone).collect()
}

/// Changed files that must not change, each with its content when the run began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forbidden {
    originals: BTreeMap<String, Option<String>>,
    /// Those that were still changed when the run was resumed.
    #[serde(skip)]
    resumed: BTreeSet<String>,
}

impl Forbidden {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.originals.keys().map(String::as_str)
    }

    /// Takes in what is different since the run was started or resumed. A file that is as it was is no longer forbidden.
    pub(crate) fn update(&mut self, allowed: &[String], changed: &BTreeMap<String, Difference>) {
        for (path, difference) in changed.iter().filter(|(path, _)| !is_allowed(allowed, path)) {
            self.originals.entry(path.clone()).or_insert_with(|| difference.before.clone());
        }
        let resumed = &self.resumed;
        self.originals.retain(|path, original| match changed.get(path) {
            Some(difference) => difference.now != *original,
            None => resumed.contains(path),
        });
    }

    /// Takes in the content of a file when the run is resumed.
    pub(crate) fn resume(&mut self, path: &str, content: Option<&str>) {
        match self.originals.get(path) {
            Some(original) if original.as_deref() == content => drop(self.originals.remove(path)),
            _ => drop(self.resumed.insert(path.to_owned())),
        }
    }
}

/// True when the path fits one of the patterns.
pub(crate) fn is_allowed(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| {
        let pattern = pattern.trim_start_matches("./");
        let directory = pattern.trim_end_matches("**").trim_end_matches('/');
        path == pattern
            || (directory.len() < pattern.len() || !directory.contains('*'))
                && !directory.is_empty()
                && path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
            || fits(pattern.as_bytes(), path.as_bytes())
    })
}

/// `*` means anything but a slash, `**` anything.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => path.is_empty(),
        [b'*', b'*', rest @ ..] => {
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            (0..=path.len()).any(|at| fits(rest, &path[at..]))
        }
        [b'*', rest @ ..] => {
            let most = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
            (0..=most).any(|at| fits(rest, &path[at..]))
        }
        [first, rest @ ..] => path.first() == Some(first) && fits(rest, &path[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_has_its_own_differences() {
        let one = |before: &str, now: &str| Difference {
            before: (!before.is_empty()).then(|| before.to_owned()),
            now: Some(now.to_owned()),
        };
        let then: BTreeMap<_, _> = [("same", one("1", "2")), ("more", one("1", "2")), ("undone", one("1", "2"))]
            .map(|(path, difference)| (path.to_owned(), difference))
            .into();
        let now = [("same", one("1", "2")), ("more", one("1", "3")), ("new", one("", "4"))]
            .map(|(path, difference)| (path.to_owned(), difference));
        let found = since(&then, now.into());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["more", "new", "undone"]);
        assert_eq!((&found["more"], &found["undone"]), (&one("2", "3"), &one("2", "1")));
    }

    #[test]
    fn a_forbidden_change_holds_until_it_is_undone_even_over_a_resume() {
        let allowed = ["PLAN.md".to_owned()];
        let changed = |path: &str, before: &str, now: &str| {
            let content = |text: &str| Some(text.to_owned());
            BTreeMap::from([(path.to_owned(), Difference { before: content(before), now: content(now) })])
        };
        let mut forbidden = Forbidden::default();
        forbidden.update(&allowed, &changed("PLAN.md", "1", "2"));
        assert_eq!(forbidden.paths().count(), 0);
        forbidden.update(&allowed, &changed("a", "1", "2"));
        assert_eq!(forbidden.paths().collect::<Vec<_>>(), ["a"]);
        let text = serde_json::to_string(&forbidden).unwrap();
        forbidden.update(&allowed, &BTreeMap::new());
        assert_eq!(forbidden.paths().count(), 0, "undone");

        let mut resumed: Forbidden = serde_json::from_str(&text).unwrap();
        resumed.resume("a", Some("2"));
        resumed.update(&allowed, &BTreeMap::new());
        assert_eq!(resumed.paths().count(), 1, "still as the run left it");
        resumed.update(&allowed, &changed("a", "2", "1"));
        assert_eq!(resumed.paths().count(), 0, "back to how it was before the run");
        let mut undone: Forbidden = serde_json::from_str(&text).unwrap();
        undone.resume("a", Some("1"));
        assert_eq!(undone.paths().count(), 0, "undone by the user");
    }

    #[test]
    fn names_directories_and_stars() {
        for (pattern, path, expected) in [
            ("PLAN.md", "PLAN.md", true),
            ("PLAN.md", "docs/PLAN.md", false),
            ("./PLAN.md", "PLAN.md", true),
            ("docs", "docs/a/b.md", true),
            ("docs/", "docs/a.md", true),
            ("docs", "docs2/a.md", false),
            ("docs/**", "docs/a/b.md", true),
            ("*.md", "a.md", true),
            ("*.md", "docs/a.md", false),
            ("**/*.md", "docs/x/a.md", true),
            ("**/*.md", "a.md", true),
            ("docs/*.md", "docs/x/a.md", false),
            ("", "a", false),
        ] {
            assert_eq!(is_allowed(&[pattern.to_owned()], path), expected, "{pattern} {path}");
        }
    }
}
