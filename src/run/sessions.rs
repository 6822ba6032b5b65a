//! Which session of the agent an iteration continues. Ids come from this run's own stream or from ralph; never
//! "the latest one", which may be someone else's.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Session};
use crate::event::Usage;

/// Whether an iteration continues the session of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Each iteration starts afresh: that is the idea of the loop.
    #[default]
    Fresh,
    /// It continues where the agent can.
    Resume {
        /// Until so much of the context is used, in per cent.
        until: Option<u8>,
        /// How many tokens there is room for, where the agent does not tell.
        window: Option<u64>,
        /// A session that was not used for so long is not resumed.
        expires: Duration,
    },
}

/// The sessions of this run, one for each agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sessions(BTreeMap<String, Held>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Held {
    id: String,
    used: Timestamp,
    /// What it reported in all, for agents that count on from there.
    #[serde(default)]
    usage: Usage,
    /// How much of its context is used, in per cent, when the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
}

/// What an iteration came to, as far as its session goes.
#[derive(Debug)]
pub(crate) struct Outcome<'a> {
    /// The id that its stream reported.
    pub id: Option<&'a str>,
    pub usage: &'a Usage,
    /// How much of the context is used.
    pub context: Option<u64>,
}

impl Sessions {
    /// The session for the next iteration of an agent, and why it is a fresh one where one might expect another.
    pub(crate) fn next(&mut self, policy: Policy, agent: &Agent, now: Timestamp) -> (Session, Option<String>) {
        let Policy::Resume { until, expires, .. } = policy else { return (Session::New, None) };
        let forms = &agent.definition.session;
        let fresh = || if forms.given.is_some() { Session::Given(uuid()) } else { Session::New };
        let Some(held) = self.0.get(agent.id()) else { return (fresh(), None) };
        let age = Duration::try_from(now.duration_since(held.used)).unwrap_or(Duration::ZERO);
        let reason = if forms.resume.is_none() {
            return (fresh(), None);
        } else if age > expires {
            format!("session {} was last used {} s ago", held.id, age.as_secs())
        } else if let (Some(most), Some(used)) = (until, held.context)
            && used >= u64::from(most)
        {
            format!("session {} has used {used} % of its context", held.id)
        } else {
            return (Session::Resume(held.id.clone()), None);
        };
        self.0.remove(agent.id());
        (fresh(), Some(format!("{reason}: the next iteration starts a fresh one")))
    }

    /// What the session reported before, when it continues.
    pub(crate) fn usage(&self, agent: &Agent, session: &Session) -> Usage {
        match (session, self.0.get(agent.id())) {
            (Session::Resume(id), Some(held)) if held.id == *id => held.usage.clone(),
            _ => Usage::default(),
        }
    }

    /// An iteration is over: its session is the one to continue.
    pub(crate) fn keep(&mut self, agent: &Agent, asked: &Session, outcome: &Outcome<'_>, now: Timestamp) {
        let asked_id = match asked {
            Session::Given(id) | Session::Resume(id) => Some(id.as_str()),
            Session::New | Session::Fork(_) => None,
        };
        let Some(id) = outcome.id.or(asked_id) else { return };
        let mut usage = self.usage(agent, &Session::Resume(id.to_owned()));
        usage.add(outcome.usage);
        let held = Held { id: id.to_owned(), used: now, usage, context: outcome.context };
        self.0.insert(agent.id().to_owned(), held);
    }

    /// Forgets an agent's session: it was refused, or its context is full.
    pub(crate) fn forget(&mut self, agent: &Agent) {
        self.0.remove(agent.id());
    }
}

/// A random id in the usual form.
fn uuid() -> String {
    let random = || RandomState::new().hash_one(0);
    let bits = (u128::from(random()) << 64) | u128::from(random());
    let bits = (bits & !(0xf << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Catalog, Options};

    fn agent(id: &str) -> Agent {
        let definition = (*Catalog::built_in().find(id).unwrap().definition).clone();
        Agent { program: id.into(), leading: Vec::new(), options: Options::default(), definition, plugin: None }
    }

    const RESUME: Policy = Policy::Resume { until: Some(60), window: None, expires: Duration::from_secs(3600) };

    fn ended<'a>(id: &'a str, usage: &'a Usage, context: Option<u64>) -> Outcome<'a> {
        Outcome { id: Some(id), usage, context }
    }

    #[test]
    fn a_session_goes_on_only_when_asked_and_only_with_its_own_agent() {
        let (claude, codex) = (agent("claude"), agent("codex"));
        let now = Timestamp::UNIX_EPOCH;
        let mut sessions = Sessions::default();
        let (first, _) = sessions.next(RESUME, &claude, now);
        assert!(matches!(&first, Session::Given(id) if id.len() == 36), "{first:?}");
        let usage = Usage { total_tokens: Some(5), ..Usage::default() };
        sessions.keep(&claude, &first, &ended("abc", &usage, None), now);
        assert_eq!(sessions.next(RESUME, &claude, now).0, Session::Resume("abc".into()));
        assert_eq!(sessions.next(Policy::Fresh, &claude, now).0, Session::New);
        assert_eq!(sessions.next(RESUME, &codex, now).0, Session::New);
        sessions.keep(&claude, &Session::Resume("abc".into()), &ended("abc", &usage, None), now);
        assert_eq!(sessions.usage(&claude, &Session::Resume("abc".into())).total_tokens, Some(10));
        sessions.forget(&claude);
        assert!(matches!(sessions.next(RESUME, &claude, now).0, Session::Given(_)));
    }

    #[test]
    fn an_old_or_full_session_is_not_taken_up_again() {
        let claude = agent("claude");
        let (now, usage) = (Timestamp::UNIX_EPOCH, Usage::default());
        let mut sessions = Sessions::default();
        sessions.keep(&claude, &Session::New, &ended("abc", &usage, Some(59)), now);
        assert_eq!(sessions.next(RESUME, &claude, now).0, Session::Resume("abc".into()));
        sessions.keep(&claude, &Session::New, &ended("abc", &usage, Some(60)), now);
        let (session, reason) = sessions.next(RESUME, &claude, now);
        assert!(matches!(session, Session::Given(_)) && reason.unwrap().contains("60 % of its context"));
        sessions.keep(&claude, &Session::New, &ended("abc", &usage, None), now);
        let late = Timestamp::from_second(4000).unwrap();
        assert!(sessions.next(RESUME, &claude, late).1.unwrap().contains("last used 4000 s ago"));
    }

    #[test]
    fn an_id_of_ours_has_the_usual_form() {
        let id = uuid();
        assert_eq!((id.len(), &id[14..15]), (36, "4"));
        assert_ne!(id, uuid());
    }
}
