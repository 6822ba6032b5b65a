//! What a worker takes: the user's own decision, which always wins over what a task asks for. Without it nothing is taken.

use std::time::Duration;

use super::submitted::Submitted;
use crate::batch::task::{Task, TaskLimits};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Policy {
    /// Addresses of repositories; one that ends in `/*` means everything below it.
    pub repos: Vec<String>,
    /// The agents that may work, the preferred one first.
    pub agents: Vec<String>,
    pub limits: TaskLimits,
}

impl Policy {
    /// The task as this worker runs it, or why it does not.
    pub(crate) fn allow(&self, submitted: &Submitted) -> Result<Task, String> {
        if !self.repos.iter().any(|allowed| matches(allowed, &submitted.repo)) {
            return Err(format!("this worker does not allow the repository `{}`", shown(&submitted.repo)));
        }
        let mut task = submitted.task.clone();
        let wanted = task.agent.as_deref().filter(|agent| *agent != "auto");
        let agent = match wanted {
            Some(wanted) if self.agents.iter().any(|agent| agent == wanted) => wanted.to_owned(),
            Some(wanted) => return Err(format!("this worker does not allow the agent `{}`", shown(wanted))),
            None => self.agents.first().cloned().ok_or("this worker allows no agent")?,
        };
        task.agent = Some(agent);
        let limits = &mut task.limits;
        let times = [limits.max_time, self.limits.max_time].into_iter().flatten();
        limits.max_time = times.min().map(|time: Duration| time.max(Duration::from_secs(1)));
        limits.max_iterations = [limits.max_iterations, self.limits.max_iterations].into_iter().flatten().min();
        limits.max_cost = [limits.max_cost, self.limits.max_cost].into_iter().flatten().reduce(f64::min);
        Ok(task)
    }
}

fn matches(allowed: &str, repo: &str) -> bool {
    match allowed.strip_suffix('*').filter(|parent| parent.ends_with('/') && parent.len() > 1) {
        Some(parent) => {
            repo.strip_prefix(parent).is_some_and(|rest| !rest.is_empty() && !rest.split('/').any(|part| part == ".."))
        }
        None => allowed == repo,
    }
}

/// Text of a stranger in a message.
fn shown(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::super::submitted::tests::example;
    use super::*;

    #[test]
    fn nothing_is_allowed_by_default() {
        assert!(Policy::default().allow(&example()).unwrap_err().contains("/srv/r.git"));
        let repos = Policy { repos: vec!["/srv/r.git".to_owned()], ..Policy::default() };
        assert!(repos.allow(&example()).unwrap_err().contains("no agent"));
    }

    #[test]
    fn the_policy_wins_over_the_task() {
        let limits =
            TaskLimits { max_iterations: Some(5), max_time: Some(Duration::from_secs(60)), max_cost: Some(2.0) };
        let policy = Policy { repos: vec!["/srv/*".to_owned()], agents: vec!["demo".to_owned()], limits };
        let mut wish = example();
        assert_eq!(policy.allow(&wish).unwrap().limits, policy.limits);
        assert_eq!(policy.allow(&wish).unwrap().agent.as_deref(), Some("demo"));
        wish.task.limits = TaskLimits { max_iterations: Some(50), max_time: None, max_cost: Some(1.0) };
        let task = policy.allow(&wish).unwrap();
        assert_eq!((task.limits.max_iterations, task.limits.max_cost), (Some(5), Some(1.0)));
        wish.task.agent = Some("claude".to_owned());
        assert!(policy.allow(&wish).unwrap_err().contains("claude"));
    }

    #[test]
    fn an_allowed_repository_is_exactly_that_one() {
        assert!(matches("https://h/a/*", "https://h/a/b.git"));
        for (allowed, repo) in [
            ("https://h/a/*", "https://h/a/"),
            ("https://h/a/*", "https://h/ab"),
            ("https://h/a/*", "https://h/a/../b"),
            ("https://h/a", "https://h/a/b"),
            ("*", "https://h/a"),
            ("/*", "--x"),
        ] {
            assert!(!matches(allowed, repo), "{allowed} {repo}");
        }
    }
}
