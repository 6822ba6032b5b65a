//! Hats: roles that an agent wears in an iteration, chosen by events. Pure.
//!
//! Every hat has an inbox. An event goes to each hat that hears its topic, or, when none does, to those that hear
//! everything. The hat whose oldest event came first is activated next, and gets all of its events at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::agent::Permissions;
use crate::event::Topic;
use crate::signals::topics::fits;

/// What begins a run when nothing else is configured.
pub(crate) const STARTING_TOPIC: &str = "task.start";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hat {
    /// How events and other hats call it.
    pub id: String,
    pub name: String,
    pub description: String,
    pub triggers: Vec<String>,
    /// Topics it may publish.
    pub publishes: Vec<String>,
    /// What the prompt says when it is active.
    pub instructions: String,
    /// Which agent works with it.
    pub choice: AgentChoice,
    /// How often it may be activated.
    pub max_activations: Option<u32>,
    /// What is published when it publishes nothing.
    pub default_publishes: Option<String>,
}

/// Which agent works with a hat, as a judge or as a substitute; the run's own where nothing is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentChoice {
    /// The name of an agent.
    pub agent: Option<String>,
    /// Any command instead: a program with its arguments.
    pub command: Option<Vec<String>>,
    /// Extra arguments for the agent.
    pub args: Vec<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// The only tools it may use.
    pub tools: Vec<String>,
    pub permissions: Option<Permissions>,
}

impl AgentChoice {
    /// An agent as it is.
    pub(crate) fn named(agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..Self::default() }
    }

    /// Its agent for people; `None` for the run's own.
    pub(crate) fn shown(&self) -> Option<String> {
        self.command.as_ref().map(|argv| argv.join(" ")).or_else(|| self.agent.clone())
    }

    /// True when the hat needs a worker of its own: one that differs in more than its name.
    pub(crate) fn is_special(&self) -> bool {
        *self != Self { agent: self.agent.clone(), ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hats {
    /// In the order of the file.
    pub hats: Vec<Hat>,
    /// The topic that begins the run.
    pub starting_event: Option<String>,
}

impl Hats {
    pub(crate) fn get(&self, id: &str) -> Option<&Hat> {
        self.hats.iter().find(|hat| hat.id == id)
    }

    /// Who hears a topic: those that name it, else those that hear everything.
    pub(crate) fn hearers(&self, topic: &str) -> Vec<&Hat> {
        let by = |all: bool| -> Vec<&Hat> {
            let hears = |hat: &&Hat| hat.triggers.iter().any(|pattern| (pattern == "*") == all && fits(pattern, topic));
            self.hats.iter().filter(hears).collect()
        };
        let named = by(false);
        if named.is_empty() { by(true) } else { named }
    }

    /// The topic that begins the run.
    pub(crate) fn start(&self) -> &str {
        self.starting_event.as_deref().unwrap_or(STARTING_TOPIC)
    }
}

/// The state of the hats: what is in their inboxes, and how often each was activated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Board {
    inboxes: BTreeMap<String, Vec<Letter>>,
    activations: BTreeMap<String, u32>,
    next: u64,
    /// The hat that was activated last.
    last: Option<String>,
    /// Exhausted hats that were reported already.
    reported_exhausted: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Letter {
    number: u64,
    #[serde(flatten)]
    event: Topic,
}

/// The hat for the next iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveHat {
    pub hat: Hat,
    pub events: Vec<Topic>,
}

/// What publishing came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub heard_by: Vec<String>,
    /// What the publisher should know about it.
    pub remark: Option<String>,
}

impl Board {
    /// Puts an event into the inboxes. `by` is the hat that published it.
    pub(crate) fn publish(&mut self, hats: &Hats, by: Option<&str>, event: &Topic) -> Delivery {
        let mut heard_by = Vec::new();
        for hat in hats.hearers(&event.topic) {
            if hat.max_activations.is_some_and(|most| self.activations.get(&hat.id).copied().unwrap_or(0) >= most) {
                continue;
            }
            let letter = Letter { number: self.next, event: event.clone() };
            self.inboxes.entry(hat.id.clone()).or_default().push(letter);
            heard_by.push(hat.id.clone());
        }
        self.next += 1;
        let publisher = by.and_then(|id| hats.get(id));
        let outside = publisher.filter(|hat| !hat.publishes.iter().any(|pattern| fits(pattern, &event.topic)));
        let remark = match outside {
            Some(hat) => {
                let known = hat.publishes.join(", ");
                Some(format!(
                    "the hat {} published `{}`, which is not in its `publishes` ({known}).",
                    hat.id, event.topic
                ))
            }
            None if heard_by.is_empty() => Some(format!("no hat is triggered by the event `{}`.", event.topic)),
            None => None,
        };
        Delivery { heard_by, remark }
    }

    /// The next hat, with its events taken out of its inbox. `None`: no hat has an event.
    pub(crate) fn activate(&mut self, hats: &Hats) -> Option<ActiveHat> {
        let oldest = |id: &String| self.inboxes[id].first().map_or(u64::MAX, |letter| letter.number);
        let id = self.inboxes.keys().filter(|id| !self.inboxes[*id].is_empty()).min_by_key(|id| oldest(id))?.clone();
        let letters = self.inboxes.remove(&id)?;
        let hat = hats.get(&id)?.clone();
        *self.activations.entry(id.clone()).or_default() += 1;
        self.last = Some(id);
        Some(ActiveHat { hat, events: letters.into_iter().map(|letter| letter.event).collect() })
    }

    /// The last hat once more, because it published nothing that triggers another one.
    pub(crate) fn again(&mut self, hats: &Hats) -> Option<ActiveHat> {
        let hat = hats.get(self.last.as_deref()?).filter(|hat| !self.is_exhausted(hat))?.clone();
        *self.activations.entry(hat.id.clone()).or_default() += 1;
        Some(ActiveHat { hat, events: Vec::new() })
    }

    /// True once, when a hat has used all of its activations.
    pub(crate) fn is_newly_exhausted(&mut self, hat: &Hat) -> bool {
        self.is_exhausted(hat) && self.reported_exhausted.insert(hat.id.clone())
    }

    /// True when a hat has used all of its activations.
    pub(crate) fn is_exhausted(&self, hat: &Hat) -> bool {
        hat.max_activations.is_some_and(|most| self.activations.get(&hat.id).copied().unwrap_or(0) >= most)
    }
}

impl ActiveHat {
    /// What the prompt says about it.
    pub(crate) fn told(&self, all: &Hats) -> String {
        let Self { hat, events } = self;
        let mut text = format!("You wear the hat \"{}\".", hat.name);
        if !hat.description.is_empty() {
            let _ = write!(text, " {}", hat.description.trim());
        }
        text.push('\n');
        if !hat.instructions.trim().is_empty() {
            let _ = writeln!(text, "{}", hat.instructions.trim());
        }
        for event in events {
            let _ = writeln!(text, "Event for you: {}{}", event.topic, payload(&event.payload));
        }
        let others = all.hats.iter().filter(|other| other.id != hat.id);
        for other in others {
            let _ = writeln!(text, "Another hat: {} is triggered by {}.", other.name, other.triggers.join(", "));
        }
        if !hat.publishes.is_empty() {
            let _ = writeln!(
                text,
                "When you have finished your part, publish one of {}: write an event tag with the attribute topic and \
                 with what the next one needs to know between the tags, or run `ralph emit TOPIC 'words'`.",
                hat.publishes.join(", ")
            );
        }
        text
    }
}

fn payload(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
#[path = "hats_tests.rs"]
mod tests;
