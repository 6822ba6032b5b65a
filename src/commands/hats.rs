//! `ralph hats`: which event triggers which hat, as a graph, checked.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::app::warn;
use crate::app::working_directory;
use crate::cli::{self, Graph};
use crate::config;
use crate::error::{UserError, exit_code};
use crate::run::hats::{Hat, Hats};
use crate::signals::promise::Rule;
use crate::signals::topics::fits;
use crate::ui::out;

/// Draws the graph and lists its problems. Exit code 1 if there are any.
pub(crate) fn run(args: &cli::Hats) -> Result<u8, UserError> {
    let file = config::nearest_file(args.config.clone(), &working_directory()?)?;
    warn(&file.warnings);
    let settings = file.layer.settle();
    let hats = Hats { hats: settings.hats.value.hats, starting_event: settings.starting_event.value };
    if hats.hats.is_empty() {
        return Err(UserError::usage("no hats are configured").hint("add them under `hats:` in `ralph.yml`"));
    }
    let promise = settings.completion_promise.value.as_ref().map(|marker| marker.0.as_str());
    let rule = Rule::new(promise, settings.completion_match.value);
    let problems = problems(&hats, &rule);
    let mut text = match args.format {
        Graph::Text => drawn(&hats),
        Graph::Mermaid => mermaid(&hats),
    };
    for problem in &problems {
        let mark = if args.format == Graph::Mermaid { "%% " } else { "" };
        let _ = writeln!(text, "{mark}problem: {problem}");
    }
    // The reader may be gone.
    let _ = out::print(&text);
    Ok(if problems.is_empty() { exit_code::COMPLETE } else { exit_code::FAILED })
}

fn drawn(hats: &Hats) -> String {
    let mut text = format!("start: {} -> {}\n", hats.start(), names(&hats.hearers(hats.start())));
    for hat in &hats.hats {
        let _ = writeln!(text, "\n{} ({})", hat.id, hat.name);
        if !hat.description.is_empty() {
            let _ = writeln!(text, "  {}", hat.description.trim());
        }
        let _ = writeln!(text, "  triggers   {}", hat.triggers.join(", "));
        for topic in &hat.publishes {
            let _ = writeln!(text, "  publishes  {topic} -> {}", names(&heard(hats, topic)));
        }
        if let Some(agent) = hat.choice.shown() {
            let _ = writeln!(text, "  agent      {agent}");
        }
    }
    text
}

fn mermaid(hats: &Hats) -> String {
    let mut text = "flowchart LR\n  start((start))\n".to_owned();
    for hat in &hats.hats {
        let _ = writeln!(text, "  {}[\"{}\"]", node(&hat.id), hat.name.replace('"', "'"));
    }
    for hearer in hats.hearers(hats.start()) {
        let _ = writeln!(text, "  start -->|{}| {}", hats.start(), node(&hearer.id));
    }
    for hat in &hats.hats {
        for topic in &hat.publishes {
            for hearer in heard(hats, topic) {
                let _ = writeln!(text, "  {} -->|{topic}| {}", node(&hat.id), node(&hearer.id));
            }
        }
    }
    text
}

/// A name that Mermaid takes for a node.
fn node(id: &str) -> String {
    id.chars().map(|character| if character.is_ascii_alphanumeric() { character } else { '_' }).collect()
}

fn names(hats: &[&Hat]) -> String {
    if hats.is_empty() {
        "no hat".to_owned()
    } else {
        hats.iter().map(|hat| hat.id.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The hats that a topic, which may be a pattern, may trigger.
fn heard<'a>(hats: &'a Hats, topic: &str) -> Vec<&'a Hat> {
    if !topic.contains('*') {
        return hats.hearers(topic);
    }
    let meets = |trigger: &String| trigger == "*" || fits(topic, trigger) || fits(trigger, topic.trim_end_matches('*'));
    hats.hats.iter().filter(|hat| hat.triggers.iter().any(meets)).collect()
}

/// Hats that nothing calls, topics that nobody hears, and circles that nothing leaves.
fn problems(hats: &Hats, rule: &Rule) -> Vec<String> {
    let mut problems = Vec::new();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut next: Vec<&Hat> = hats.hearers(hats.start());
    if next.is_empty() {
        problems.push(format!("no hat is triggered by the starting event `{}`", hats.start()));
    }
    while let Some(hat) = next.pop() {
        if reached.insert(&hat.id) {
            let topics = hat.publishes.iter().chain(&hat.default_publishes);
            next.extend(topics.flat_map(|topic| heard(hats, topic)));
        }
    }
    let unreached = hats.hats.iter().filter(|hat| !reached.contains(hat.id.as_str()));
    problems.extend(unreached.map(|hat| format!("hat `{}` is never triggered: no hat publishes its events", hat.id)));
    for hat in &hats.hats {
        let unheard =
            hat.publishes.iter().filter(|topic| heard(hats, topic).is_empty() && !rule.is_completion_event(topic));
        problems.extend(unheard.map(|topic| format!("no hat is triggered by `{topic}`, which `{}` publishes", hat.id)));
        if let Some(topic) = &hat.default_publishes
            && !hat.publishes.iter().any(|known| fits(known, topic))
        {
            problems.push(format!("`{}` publishes `{topic}` by default, which is not in its `publishes`", hat.id));
        }
    }
    problems.extend(closed_circles(hats));
    problems
}

/// Hats that call each other by default forever: every activation publishes the next without a choice, and no
/// `max_activations` bounds it.
fn closed_circles(hats: &Hats) -> Vec<String> {
    let mut told = BTreeSet::new();
    let mut problems = Vec::new();
    for start in &hats.hats {
        let mut path: Vec<&Hat> = vec![start];
        while let Some(hat) = path.last().copied() {
            let only = match hat.publishes.as_slice() {
                [only] if hat.default_publishes.as_ref().is_some_and(|default| default == only) => only,
                _ => break,
            };
            let [next] = heard(hats, only)[..] else { break };
            if path.iter().any(|known| known.max_activations.is_some()) {
                break;
            }
            if next.id == start.id {
                let ids: BTreeSet<&str> = path.iter().map(|hat| hat.id.as_str()).collect();
                let circle = ids.iter().copied().collect::<Vec<_>>().join(", ");
                if told.insert(circle.clone()) {
                    problems.push(format!(
                        "{circle} trigger each other forever; only completion or a limit ends that. Set `max_activations`"
                    ));
                }
                break;
            }
            if path.iter().any(|known| known.id == next.id) {
                break;
            }
            path.push(next);
        }
    }
    problems
}
