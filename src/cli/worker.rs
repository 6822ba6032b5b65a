//! The arguments of `ralph worker`.

use clap::Args;

pub(super) const EXAMPLES: &str = "Examples:
  ralph worker --on nats://queue:4222 --allow-repo https://github.com/acme/shop.git --allow-agent claude
  NATS_CREDS=worker.creds ralph worker --on tls://queue --slots 8 --labels gpu

What a worker takes can also be set in ~/.config/ralph/ralph.yml: `worker: {repos, agents, sandbox, limits}`.";

/// `ralph worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// The NATS server, or several with commas between them. Credentials: `NATS_CREDS`, `NATS_NKEY`, `NATS_TOKEN`, `NATS_USER` and `NATS_PASSWORD`.
    #[arg(long, value_name = "NATS_URL")]
    pub on: String,

    /// How many tasks it works on at once.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub slots: u16,

    /// Also take tasks that ask for one of these labels.
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub labels: Vec<String>,

    /// Work on tasks of this repository. `https://HOST/PATH/*` means all below it. Can be given several times.
    #[arg(long, value_name = "GIT_URL")]
    pub allow_repo: Vec<String>,

    /// Let this agent work. Tasks that name no agent get the first one. Can be given several times.
    #[arg(long, value_name = "AGENT")]
    pub allow_agent: Vec<String>,
}
