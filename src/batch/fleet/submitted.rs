//! A task as it travels. It carries no environment and no secret, and what it asks for is a wish: the worker's policy decides.

use serde::{Deserialize, Serialize};

use super::names;
use crate::batch::task::Task;
use crate::journal::store::is_id;

/// The version that both sides must have.
pub(crate) const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The most bytes of a task.
const MOST_BYTES: usize = 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Submitted {
    pub batch: String,
    pub task: Task,
    pub attempt: u32,
    pub round: u32,
    /// The repository, as git names it.
    pub repo: String,
    /// The commit that the work begins at.
    pub base: String,
    /// Where the working directory is in the repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub below: String,
    /// Work that did not merge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// What is left of the money of the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repair {
    /// What the agent is asked to do.
    pub prompt: String,
    /// The commit that did not merge.
    pub tip: String,
    /// The branch that it did not merge into, and its commit.
    pub target: String,
    pub target_commit: String,
    /// What the submitter pushed so that the worker finds both commits.
    pub carrier: String,
}

impl Submitted {
    /// Reads a message; the error is for the stream of refused tasks.
    pub(crate) fn read(subject: &str, version: Option<&str>, payload: &[u8]) -> Result<Self, String> {
        let version = version.ok_or("it does not say which version of ralph submitted it")?;
        if version != OWN_VERSION {
            let shown: String = version.chars().filter(|it| !it.is_control()).take(40).collect();
            return Err(format!(
                "it was submitted by ralph {shown}, and this worker runs ralph {OWN_VERSION}; use the same version on both"
            ));
        }
        if payload.len() > MOST_BYTES {
            return Err("it is too large".to_owned());
        }
        let read: Self = serde_json::from_slice(payload).map_err(|error| format!("it is not a task: {error}"))?;
        let of_subject = names::of_subject(subject);
        if of_subject.as_ref().is_none_or(|(batch, task)| *batch != read.batch || *task != read.task.id) {
            return Err("its subject names another task".to_owned());
        }
        if !is_id(&read.batch) {
            return Err("its batch is not an id".to_owned());
        }
        let repair = read.repair.iter().flat_map(|it| [&it.tip, &it.target_commit, &it.carrier]);
        if std::iter::once(&read.base).chain(repair).any(|id| !is_commit(id)) {
            return Err("it names a commit that is none".to_owned());
        }
        let inside = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
        if !std::path::Path::new(&read.below).components().all(inside) {
            return Err("its working directory is outside of the repository".to_owned());
        }
        let limits = [read.task.limits.max_cost, read.max_cost];
        if limits.into_iter().flatten().any(|usd| !usd.is_finite() || usd < 0.0) {
            return Err("its cost limit is not a number".to_owned());
        }
        Ok(read)
    }

    /// The branch with the work; nothing else is pushed.
    pub(crate) fn branch(&self) -> String {
        format!("ralph/{}/{}", self.batch, self.task.id.in_branch())
    }
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> Submitted {
        let base = "0123456789012345678901234567890123456789";
        let text = format!(
            r#"{{"batch":"20261118-1","task":{{"id":"a.b","title":"A","prompt":"do"}},"attempt":1,"round":1,"repo":"/srv/r.git","base":"{base}"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn only_a_whole_task_of_this_version_is_read() {
        let subject = names::task_subject("20261118-1", &example().task.id, None);
        let payload = serde_json::to_vec(&example()).unwrap();
        let read = |payload: &[u8]| Submitted::read(&subject, Some(OWN_VERSION), payload);
        assert_eq!(read(&payload).unwrap(), example());
        let other = Submitted::read(&subject, Some("99.0.0"), &payload).unwrap_err();
        assert!(other.contains("99.0.0") && other.contains(OWN_VERSION), "{other}");
        assert!(Submitted::read(&subject, None, &payload).is_err());
        assert!(Submitted::read("ralph.tasks.20261118-1.other", Some(OWN_VERSION), &payload).is_err());
        for change in [
            |it: &mut Submitted| it.base = "--upload-pack".to_owned(),
            |it: &mut Submitted| it.below = "../..".to_owned(),
            |it: &mut Submitted| it.below = "/etc".to_owned(),
            |it: &mut Submitted| it.batch = "../x".to_owned(),
            |it: &mut Submitted| it.max_cost = Some(-1.0),
        ] {
            let mut wrong = example();
            change(&mut wrong);
            assert!(read(&serde_json::to_vec(&wrong).unwrap()).is_err(), "{wrong:?}");
        }
        let with_environment = String::from_utf8(payload).unwrap().replacen('{', r#"{"env":{"A":"b"},"#, 1);
        assert!(read(with_environment.as_bytes()).is_err(), "a task carries no environment");
        for rubbish in [&b""[..], b"[]", b"null", b"{}", b"\xff\xfe"] {
            assert!(read(rubbish).is_err());
        }
    }
}
