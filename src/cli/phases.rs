//! `ralph run --phases`: the flags.

use clap::Args;

/// Several modes in one run, each with its own agent.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Phases {
    /// Play these modes one after the other in one run, such as `plan,build,review`. While the review leaves open items in REVIEW.md, build and review are repeated. `-n` limits each phase, the other limits the whole run.
    #[arg(long, value_name = "MODES", value_delimiter = ',', conflicts_with_all = ["interactive"])]
    pub phases: Vec<String>,

    /// The agent that plans.
    #[arg(long, value_name = "AGENT", requires = "phases")]
    pub plan_agent: Option<String>,

    /// The model that plans, with its effort: `opus:high`.
    #[arg(long, value_name = "MODEL[:EFFORT]", requires = "phases")]
    pub plan_model: Option<String>,

    /// The agent that builds.
    #[arg(long, value_name = "AGENT", requires = "phases")]
    pub build_agent: Option<String>,

    /// The model that builds.
    #[arg(long, value_name = "MODEL[:EFFORT]", requires = "phases")]
    pub build_model: Option<String>,

    /// The agent that reviews.
    #[arg(long, value_name = "AGENT", requires = "phases")]
    pub review_agent: Option<String>,

    /// The model that reviews.
    #[arg(long, value_name = "MODEL[:EFFORT]", requires = "phases")]
    pub review_model: Option<String>,
}

impl Phases {
    /// The agent and the model of a phase.
    pub(crate) fn of(&self, mode: &str) -> (Option<&str>, Option<&str>) {
        let (agent, model) = match mode {
            "plan" => (&self.plan_agent, &self.plan_model),
            "build" => (&self.build_agent, &self.build_model),
            "review" => (&self.review_agent, &self.review_model),
            _ => return (None, None),
        };
        (agent.as_deref(), model.as_deref())
    }
}
