//! A task: one unit of a batch, as every source gives it and as it travels to a worker. Plain data.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::duration;

/// The name of a task: `[A-Za-z0-9][A-Za-z0-9._-]{0,79}`. It is printed, used in file names, branches and subjects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(String);

/// The most characters of an id.
const LONGEST_ID: usize = 80;

/// The form, for messages.
pub(crate) const ID_FORM: &str =
    "an id is up to 80 letters, digits, `.`, `_` and `-`, and begins with a letter or a digit";

impl TaskId {
    /// `None` when the text cannot be an id.
    pub(crate) fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        (first && text.len() <= LONGEST_ID && text.bytes().all(usual)).then_some(Self(text))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The id as a part of a branch's name, different for each id. git does not allow `..`, a `.` at the end, and `.lock` at the end.
    pub(crate) fn in_branch(&self) -> String {
        let mut name = self.0.clone();
        if name.ends_with('.') || name.to_ascii_lowercase().ends_with(".lock") {
            let dot = name.rfind('.').unwrap_or(0);
            name.replace_range(dot..=dot, "%2E");
        }
        while let Some(dots) = name.find("..") {
            name.replace_range(dots + 1..dots + 2, "%2E");
        }
        name
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).ok_or_else(|| serde::de::Error::custom(ID_FORM))
    }
}

/// What is to be done, and under which conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    pub id: TaskId,
    pub title: String,
    /// The words for the agent; a file was read already.
    pub prompt: String,
    /// Commands that must accept the work, besides those of the batch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// The agent, instead of the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tasks that must be merged or skipped before this one starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<TaskId>,
    /// The files that it will change, as globs. Two tasks that may change the same file do not run at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<String>,
    /// Higher comes first.
    #[serde(default)]
    pub priority: i64,
    #[serde(default)]
    pub limits: TaskLimits,
}

/// The limits of one task; unset: as configured for any run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// As people write it, such as `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "as_text")]
    pub max_time: Option<Duration>,
    /// In US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

/// A time in the form in which people write it.
mod as_text {
    use super::{Deserialize as _, Deserializer, Duration, Serialize as _, Serializer, duration};

    #[expect(clippy::ref_option, reason = "serde asks for this form")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(duration::shown).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom(format!("expected {}", duration::FORM));
        text.map(|text| duration::parse(&text).ok_or_else(wrong)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_safe_in_file_names_branches_and_subjects() {
        for id in ["a", "A-1", "0._-", "x..y", "a.lock", &"z".repeat(80)] {
            assert_eq!(TaskId::new(id).unwrap().as_str(), id);
        }
        for wrong in ["", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a*", "a>", &"z".repeat(81)] {
            assert_eq!(TaskId::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_id_becomes_a_name_that_git_allows() {
        for (id, branch) in [
            ("a.b", "a.b"),
            ("a..b", "a.%2Eb"),
            ("a....b", "a.%2E.%2Eb"),
            ("a.", "a%2E"),
            ("a..", "a.%2E"),
            ("a.lock", "a%2Elock"),
            ("a.LOCK", "a%2ELOCK"),
        ] {
            assert_eq!(TaskId::new(id).unwrap().in_branch(), branch, "{id}");
        }
    }

    #[test]
    fn a_task_survives_its_journey() {
        let text = r#"{"id":"a","title":"A","prompt":"do","needs":["b"],"priority":3,"limits":{"max_time":"1h30m"}}"#;
        let task: Task = serde_json::from_str(text).unwrap();
        assert_eq!(task.limits.max_time, Some(Duration::from_secs(5400)));
        assert_eq!(serde_json::from_str::<Task>(&serde_json::to_string(&task).unwrap()).unwrap(), task);
        assert!(serde_json::from_str::<Task>(&text.replace("\"b\"", "\"../b\"")).is_err());
        assert!(serde_json::from_str::<Task>(&text.replace("priority", "env")).is_err());
    }
}
