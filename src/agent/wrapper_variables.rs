//! What wrapper scripts that put an agent behind Claude's command line read from their environment, as data: the users of
//! such a script keep their variables with `ralph as-claude`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Agent;

/// The variables of an agent's wrapper, and what it does for each phase of the loop around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WrapperVariables {
    /// Variables with the model; the first one set is used.
    pub model: Vec<String>,
    /// Variables with the effort.
    pub effort: Vec<String>,
    /// A variable that is `1` to print tool activity as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose: Option<String>,
    /// Variables that become arguments.
    pub arguments: Vec<FromVariable>,
    /// A variable with more arguments, separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_args: Option<String>,
    /// Additions for a review prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Arguments to omit for interactive planning, so that the agent may ask questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<String>>,
}

/// A variable that becomes arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FromVariable {
    /// The variable.
    pub variable: String,
    /// The arguments, with `{value}`.
    pub args: Vec<String>,
    /// True when they replace `arguments.approve`.
    #[serde(default)]
    pub instead_of_approve: bool,
    /// The value that is `arguments.approve` itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
}

/// What a prompt for a review gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Review {
    /// More arguments.
    pub args: Vec<String>,
    /// Words before the prompt.
    pub prompt: String,
}

/// The phase of the loop that sent a prompt, known by the signals that the prompt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Review,
    Plan,
    Other,
}

impl Phase {
    pub(crate) fn of(prompt: &str) -> Self {
        let asks_for = |name: &str| prompt.contains(&format!("<<<RALPHEX:{name}>>>"));
        if asks_for("QUESTION") && asks_for("PLAN_DRAFT") && asks_for("PLAN_READY") {
            Self::Plan
        } else if asks_for("REVIEW_DONE") {
            Self::Review
        } else {
            Self::Other
        }
    }
}

impl Agent {
    /// This agent as its wrapper would start it for this prompt; the words before the prompt come along. `variable` gives
    /// the environment; what the caller has chosen by a flag stays.
    pub(crate) fn like_its_wrapper(&mut self, phase: Phase, variable: impl Fn(&str) -> Option<String>) -> String {
        let variables = self.definition.as_claude.clone();
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let first = |names: &[String]| names.iter().find_map(|name| set(name));
        self.options.model = self.options.model.take().or_else(|| first(&variables.model));
        self.options.effort = self.options.effort.take().or_else(|| first(&variables.effort));
        let more = &mut self.options.overrides.extra_args;
        for FromVariable { variable, args, instead_of_approve, unless } in &variables.arguments {
            let Some(value) = set(variable).filter(|value| unless.as_ref() != Some(value)) else { continue };
            if *instead_of_approve {
                self.definition.arguments.grant(Vec::new());
            }
            more.extend(args.iter().map(|arg| arg.replace("{value}", &value)));
        }
        let extra = variables.extra_args.as_deref().and_then(set).unwrap_or_default();
        more.extend(extra.split_whitespace().map(str::to_owned));
        match (phase, variables.review, variables.plan) {
            (Phase::Review, Some(review), _) => {
                more.extend(review.args);
                review.prompt
            }
            (Phase::Plan, _, Some(left_out)) => {
                self.definition.arguments.headless.retain(|arg| !left_out.contains(arg));
                String::new()
            }
            _ => String::new(),
        }
    }

    /// True when its wrapper would show tool activity as text.
    pub(crate) fn wrapper_is_verbose(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        self.definition.as_claude.verbose.as_deref().and_then(variable).is_some_and(|value| value.trim() == "1")
    }
}
