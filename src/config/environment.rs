//! What environment variables say: a layer between the flags and the file.

use super::origin::{Origin, Setting};
use super::settings::Layer;
use crate::transcript::Choice;

/// What this process's environment says.
pub(crate) fn environment() -> Layer {
    layer(|name| std::env::var(name).ok())
}

fn layer(variable: impl Fn(&str) -> Option<String>) -> Layer {
    let said = |name: &'static str| {
        let value = variable(name).filter(|value| !value.is_empty())?;
        Some(Setting::new(value, Origin::Environment(name)))
    };
    // Inside an agent of ralph the variable says who that agent is, not whom to run.
    let inside = variable("RALPH_RUN_ID").is_some();
    Layer {
        agent: said("RALPH_AGENT").filter(|_| !inside),
        transcript: said("RALPH_TRANSCRIPT")
            .map(|setting| Setting::new(Choice::from(setting.value.as_str()), setting.origin)),
        ..Layer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_of_an_outer_run_is_not_the_agent_to_run() {
        let outside = layer(|name| (name == "RALPH_AGENT").then(|| "codex".to_owned()));
        assert_eq!(outside.agent.unwrap().value, "codex");
        let inside = layer(|name| ["RALPH_AGENT", "RALPH_RUN_ID"].contains(&name).then(|| "codex".to_owned()));
        assert_eq!(inside.agent, None);
    }

    #[test]
    fn an_empty_variable_says_nothing() {
        assert!(layer(|_| Some(String::new())).rows().is_empty());
    }
}
