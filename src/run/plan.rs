//! Everything a run is made of. The commands put it together; the loop only reads it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::budget::Prices;
use super::decide::{Policy, Until};
use super::hats::Hats;
use super::hooks::Hooks;
use super::judging::Seat;
use super::notify::Notify;
use super::plugins::Loader;
use super::prompt::{LoopContext, Source, compose};
use super::quota::QuotaLimits;
use super::sessions;
use super::template;
use super::verify::Check;
use crate::agent::{Agent, Mode, Way};
use crate::control::Order;
use crate::error::UserError;
use crate::local_time;
use crate::process::{Clocks, Size};
use crate::sandbox::Sandbox;
use crate::signals::promise::Rule;
use crate::transcript::Selected;
use crate::user_file;

/// Everything a run is made of.
pub(crate) struct Plan {
    /// Who does the work: first the one that was chosen, then those that can take over, then those that only hats name.
    pub workers: Vec<Worker>,
    /// How many after the first can take over.
    pub substitutes: usize,
    pub workspace: PathBuf,
    pub prompt: Source,
    pub rule: Rule,
    pub policy: Policy,
    /// The clocks of one iteration.
    pub clocks: Clocks,
    /// What its output is connected to.
    pub screen: Screen,
    /// How large a terminal of its own is.
    pub room: Room,
    /// Whether the loop may read keys from the user's terminal while it waits.
    pub keys: Keys,
    /// What becomes of processes that an agent leaves behind.
    pub left_behind: LeftBehind,
    /// The longest line that is handed on in one part.
    pub line_cap: usize,
    /// Things to tell at the start, such as warnings of the configuration.
    pub notices: Vec<String>,
    /// Rules that are part of every prompt.
    pub rules: Vec<String>,
    /// Commands whose output a prompt can name, each with its shell line.
    pub commands: Vec<(String, String)>,
    /// Commands at fixed moments of the run.
    pub hooks: Hooks,
    /// The workers that take turns; empty when one does all the work.
    pub rotation: Vec<usize>,
    /// At how much of a subscription's quota the run waits or stops.
    pub quota: QuotaLimits,
    /// Commands that must agree with a claim.
    pub verify: Vec<Check>,
    /// Other agents that must agree with it.
    pub judges: Vec<Seat>,
    /// A task list whose open items veto a claim.
    pub plan_file: Option<PathBuf>,
    /// The only paths that may change; all of them when empty.
    pub allowed_paths: Vec<String>,
    /// A file of ours that is no progress.
    pub events_file: Option<PathBuf>,
    /// Whether what each iteration changed is kept, for looking at it later.
    pub keeps_diffs: bool,
    /// Who commits what an iteration leaves.
    pub commit: Commit,
    /// Whether sessions go on.
    pub session: sessions::Policy,
    /// Roles, when there are any.
    pub hats: Hats,
    /// The user's own prices.
    pub prices: Prices,
    /// Orders that were given before the run starts or resumes.
    pub orders: Vec<Order>,
    /// Loads agents that are plug-ins.
    pub load_plugin: Loader,
    /// Who is notified.
    pub notify: Notify,
    /// The phases of the run with their names, each a plan of its own; empty for a run without phases.
    pub phases: Vec<(String, Plan)>,
    /// The most starts of an agent in an hour.
    pub calls_per_hour: Option<u32>,
    /// The wall that everything is behind.
    pub wall: Option<Arc<Sandbox>>,
}

/// One agent of the workers, and how its output is read.
pub(crate) struct Worker {
    pub agent: Agent,
    /// The only hat that it wears.
    pub hat: Option<String>,
    /// What reads its output.
    pub transcript: Selected,
    /// The most time for one of its iterations.
    pub timeout: Option<Duration>,
    /// The longest silence before its first byte.
    pub startup: Option<Duration>,
}

/// More of a plan file is not put into a prompt.
const LONGEST_PLAN: usize = 64 * 1024;

/// What the prompt is about: its first line with words.
fn goal(words: &str) -> String {
    let line = words.lines().find(|line| line.contains(char::is_alphanumeric)).unwrap_or_default();
    line.trim_start_matches(['#', ' ']).trim_end().to_owned()
}

impl Plan {
    /// The user's words, and the first prompt as it would be sent.
    pub(crate) fn first_prompt(&self) -> Result<(String, String), UserError> {
        let words = self.filled(&self.prompt.read()?, 1, None, &[]);
        let context = LoopContext {
            iteration: 1,
            of: self.policy.max_iterations,
            rules: &self.rules,
            marker: self.marker_for(&words),
            sandbox: self.wall.as_ref().map(|wall| wall.told()),
            ..LoopContext::default()
        };
        let prompt = compose(&words, &context);
        Ok((words, prompt))
    }

    /// The user's words with their variables, as far as they are known.
    pub(super) fn filled(&self, words: &str, iteration: u32, last: Option<&str>, more: &[(String, String)]) -> String {
        let (iteration, most) = (iteration.to_string(), self.policy.max_iterations.to_string());
        let date = local_time::now().strftime("%Y-%m-%d").to_string();
        let goal = goal(words);
        let plan = if template::mentions(words, "plan") { self.plan_text() } else { String::new() };
        let workspace = self.workspace.display().to_string();
        let mut values = vec![
            ("iteration", iteration.as_str()),
            ("max_iterations", &most),
            ("date", &date),
            ("goal", &goal),
            ("plan", &plan),
            ("last_result", last.unwrap_or("none yet")),
            ("marker", self.rule.told()),
            ("workspace", &workspace),
            ("agent", self.chosen().agent.id()),
        ];
        values.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        template::fill(words, &values)
    }

    /// The plan file, where there is one.
    fn plan_text(&self) -> String {
        let path = self.workspace.join(self.plan_file.as_deref().unwrap_or(Path::new("PLAN.md")));
        let text = user_file::read_text(&path, user_file::MOST_BYTES).unwrap_or_default();
        text[..text.floor_char_boundary(LONGEST_PLAN)].to_owned()
    }

    /// The completion marker to mention in the prompt: where a claim counts and the user's prompt does not mention one.
    pub(crate) fn marker_for(&self, words: &str) -> Option<&str> {
        let is_needed = self.policy.until == Until::Claim && !self.rule.is_mentioned_in(words);
        is_needed.then(|| self.rule.told())
    }

    /// The one that was chosen.
    pub(crate) fn chosen(&self) -> &Worker {
        &self.workers[0]
    }
}

/// Who commits what an iteration leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// The agent, or nobody.
    #[default]
    Agent,
    /// ralph, after each iteration.
    Iteration,
}

/// What an agent's output is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// Pipes: standard output and standard error stay apart.
    Pipes,
    /// A terminal of its own.
    Terminal,
    /// The user's: the agent's own interactive program, with a person at the keys.
    Users,
}

impl Screen {
    /// How a prompt travels to an agent on it.
    pub(crate) const fn way(self) -> Way {
        match self {
            Self::Terminal => Way::Terminal,
            Self::Pipes | Self::Users => Way::Usual,
        }
    }

    /// Who is there to answer an agent that has it.
    pub(crate) const fn attendance(self) -> Mode {
        match self {
            Self::Pipes | Self::Terminal => Mode::Headless,
            Self::Users => Mode::Interactive,
        }
    }
}

/// How large a terminal of the agent's own is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// As large as the user's, and it changes with that.
    Whole,
    /// The part of the user's that shows the agent's screen, as it is when an iteration begins: a screen can only be
    /// shown by who knows its size, and that is reported only at the beginning.
    Part(fn(Size) -> Size),
}

impl Room {
    /// The size of a terminal that is made now.
    pub(crate) fn size(self) -> Size {
        match self {
            Self::Whole => crate::terminal::size(),
            Self::Part(part) => part(crate::terminal::size()),
        }
    }
}

/// Whose the keyboard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// The loop's: `r` ends a wait.
    Read,
    /// The view's, or nobody's.
    Leave,
}

/// What becomes of processes that an agent leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeftBehind {
    /// They are stopped, and named.
    Stop,
    /// They go on, and are named.
    Leave,
}
