//! `sandbox.yml`, compiled in: caches, hidden files, system directories. Plain data, and the paths it means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::Deserialize;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    pub caches: Vec<Cache>,
    pub hidden: Vec<String>,
    pub system: Vec<PathBuf>,
    pub toolchains: Vec<String>,
    pub variables: Vec<String>,
}

/// What one tool writes outside the workspace when it builds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cache {
    /// The program that it belongs to.
    pub tool: String,
    /// Where it is: the first that can be told.
    pub at: Vec<String>,
    /// What is written there; a directory ends in `/` and is made where it is missing.
    pub write: Vec<String>,
}

pub(super) static DATA: LazyLock<Data> = LazyLock::new(|| {
    // A test reads the file, so that a release cannot have one that does not parse.
    crate::yaml::read("sandbox.yml", include_str!("../../sandbox.yml")).unwrap_or_default()
});

/// A path of the data: `~/x`, `$NAME`, `$NAME/x` or an absolute path. None where the home directory or the variable is not
/// known.
pub(super) fn path(text: &str, home: Option<&Path>, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let found = if let Some(rest) = text.strip_prefix("~/") {
        home?.join(rest)
    } else if text == "~" {
        home?.to_owned()
    } else if let Some(named) = text.strip_prefix('$') {
        let (name, rest) = named.split_once('/').unwrap_or((named, ""));
        let place = PathBuf::from(variable(name).filter(|value| !value.is_empty())?);
        if rest.is_empty() { place } else { place.join(rest) }
    } else {
        PathBuf::from(text)
    };
    found.is_absolute().then_some(found)
}

/// A path as the kernel knows it; of one that does not exist, as much as exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            return missing.iter().rev().fold(found, |found, name| found.join(name));
        }
        missing.extend(ancestor.file_name().map(ToOwned::to_owned));
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_parses_and_every_path_means_something() {
        let data: Data = crate::yaml::read("sandbox.yml", include_str!("../../sandbox.yml")).unwrap();
        let home = Path::new("/home/someone");
        let none = |_: &str| None;
        for text in &data.hidden {
            assert!(path(text, Some(home), &none).is_some(), "{text}");
        }
        for cache in &data.caches {
            assert!(cache.at.iter().any(|at| path(at, Some(home), &none).is_some()), "{}", cache.tool);
            for written in &cache.write {
                assert!(!["bin", "bin/", "config.toml", "config"].contains(&written.as_str()), "{written}");
            }
        }
        assert_eq!(path("$GOPATH/pkg", None, &|_| Some("/go".into())), Some("/go/pkg".into()));
        assert_eq!(path("~/x", None, &none), None);
        assert_eq!(path("relative", Some(home), &none), None);
    }
}
