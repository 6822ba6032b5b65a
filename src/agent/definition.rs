//! What an agent file says: everything about one agent, as data.
//!
//! The same form for the built-in files in `agents/` and for a user's own. It must never hold anything that only
//! one agent needs and no file can say.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wrapper_variables::WrapperVariables;
use crate::error::UserError;
use crate::process::Needs;
use crate::yaml;

/// A word of `commands` that means this program itself.
pub(crate) const THIS_PROGRAM: &str = "{ralph}";

/// One agent file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The name for `--agent`.
    pub id: String,
    /// The display name.
    pub name: String,
    /// Names of the program, tried in this order.
    pub commands: Vec<String>,
    /// Whether `auto` may pick it.
    #[serde(default)]
    pub auto: Auto,
    /// How to read its version.
    #[serde(default)]
    pub version: Version,
    /// How to install it.
    #[serde(default)]
    pub install: Install,
    /// How it logs in.
    #[serde(default)]
    pub auth: Auth,
    /// The format of its output: the name of a dialect.
    pub dialect: String,
    /// Prefixes of its own error lines, for plain-text agents. Other lines of a failed agent may come from a program that
    /// it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Its command-line arguments.
    #[serde(default)]
    pub arguments: Arguments,
    /// What it may do when `adapters.NAME.permissions` says nothing.
    #[serde(default, skip_serializing_if = "Permissions::is_full")]
    pub permissions: Permissions,
    /// How it takes the prompt.
    #[serde(default)]
    pub prompt: PromptForm,
    /// How it takes a prompt that cannot be an argument: too long, or like a flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_prompt: Option<PromptForm>,
    /// How it takes the prompt on a terminal, with `--pty`, where it does not read stdin. Absent: as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal_prompt: Option<PromptForm>,
    /// Retry with `large_prompt` when the first try fails without an answer: some commands support only one of the two.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tries_both_prompts: bool,
    /// How sessions are resumed.
    #[serde(default)]
    pub session: Sessions,
    /// Its interactive mode, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interactive: Option<Interactive>,
    /// True if it needs a terminal even in non-interactive mode.
    #[serde(default)]
    pub tty: bool,
    /// How to stop it; SIGKILL always follows.
    #[serde(default = "usual_stop")]
    pub stop: Vec<Step>,
    /// Files and directories that it writes outside the workspace: `~/x`, or `$NAME` for the directory that a variable
    /// names. A directory ends in `/` and is made for the sandbox where it is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<String>,
    /// Files in its state that can name commands, such as hooks: read-only in the sandbox or watched. `FILE#KEY` watches one key of a
    /// JSON file that the agent itself writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Hosts of its models and logins, for the sandbox: `host`, `*.host`, `host:port`, or `$NAME` for the URL in a variable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// True when its safe mode is a sandbox of its own. It cannot work inside ralph's, so there it runs with
    /// `permissions: full` unless the user says otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_sandbox: bool,
    /// Changes to its environment.
    #[serde(default)]
    pub environment: Variables,
    /// Variables that `ralph as-claude` reads for it, as its wrapper scripts do.
    #[serde(default, skip_serializing_if = "is_default")]
    pub as_claude: WrapperVariables,
    /// How `ralph doctor` checks its flags.
    #[serde(default)]
    pub help: Help,
    /// Known problems, with the message to show.
    #[serde(default)]
    pub pitfalls: Vec<Pitfall>,
    /// What to do when it is denied a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_help: Option<String>,
    /// The default prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_prompt: Option<String>,
}

/// Whether `auto` may take an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// When it is installed and enabled.
    #[default]
    Yes,
    /// Only when it is named.
    No,
}

/// How a version is read, and which are known to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Arguments that print the version.
    pub args: Vec<String>,
    /// The oldest version that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<String>,
    /// The newest version tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<String>,
}

impl Default for Version {
    fn default() -> Self {
        Self { args: vec!["--version".to_owned()], minimum: None, tested: None }
    }
}

/// How to get an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Install {
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Its documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// How an agent knows who pays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Environment variables with a key; one is enough.
    #[serde(default)]
    pub variables: Vec<String>,
    /// Files that exist after a login; `~/` is the home directory.
    #[serde(default)]
    pub files: Vec<String>,
    /// How to log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
}

/// The arguments of the command line, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Arguments {
    /// Comes first, such as `exec`.
    pub subcommand: Vec<String>,
    /// Non-interactive mode.
    pub headless: Vec<String>,
    /// Structured output.
    pub structured: Vec<String>,
    /// Partial messages while they stream.
    pub partial: Vec<String>,
    /// No permission prompts: `permissions: full`.
    pub approve: Vec<String>,
    /// Instead of `approve` with `permissions: safe`: the safest mode in which it can still work alone. `{directory}` is the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub safe: Option<Vec<String>>,
    /// With `safe`, for each git directory that it must write to commit, as `{git}`.
    pub git: Vec<String>,
    /// Instead of `approve` with `permissions: read-only`, as for a judge: it can read files and change nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<Vec<String>>,
    /// The directory, as `{directory}`.
    pub directory: Vec<String>,
    /// The model, as `{model}`.
    pub model: Vec<String>,
    /// The reasoning effort, as `{effort}`.
    pub effort: Vec<String>,
    /// The allowed tools, as `{tools}`, joined with commas.
    pub tools: Vec<String>,
}

/// What an agent may do without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Permissions {
    /// Everything.
    #[default]
    Full,
    /// As little as lets it work alone.
    Safe,
    /// It reads, and changes nothing.
    #[serde(rename = "read-only")]
    ReadOnly,
}

impl Permissions {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    const fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }
}

impl Arguments {
    /// Grants this and nothing else, whatever the permissions.
    pub(crate) fn grant(&mut self, words: Vec<String>) {
        self.safe = Some(words.clone());
        self.approve = words;
    }
}

/// How a prompt reaches an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptForm {
    /// The way: `stdin`, `argument` or `file`.
    pub by: By,
    /// Arguments before it: a flag, `--`, or what makes the program read stdin.
    #[serde(default)]
    pub after: Vec<String>,
}

/// The way of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Written to stdin.
    #[default]
    Stdin,
    /// As the last argument.
    Argument,
    /// In a private file whose path is the last argument.
    File,
}

/// How a session is resumed. What is missing here, the agent cannot do unattended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sessions {
    /// Starts a session with the id `{session}`, which ralph chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<SessionForm>,
    /// Resumes `{session}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<SessionForm>,
    /// Resumes a copy of `{session}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<SessionForm>,
}

/// How one kind of session is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionForm {
    /// Instead of the usual subcommand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subcommand: Option<Vec<String>>,
    /// After all other arguments, before the prompt.
    pub args: Vec<String>,
}

/// How a person talks to an agent: with a terminal, and without what makes it headless.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Interactive {
    /// Instead of the usual subcommand.
    pub subcommand: Vec<String>,
    /// Arguments of this mode, including those for no permission prompts.
    pub args: Vec<String>,
    /// How it takes a first prompt, if it takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptForm>,
}

/// One step of asking an agent to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is sent to its group.
    pub signal: Signal,
    /// How long it may take before the next step, in seconds.
    pub seconds: u64,
}

/// The Unix signals of a stop ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP.
    Hup,
    /// SIGQUIT.
    Quit,
}

/// How an agent is stopped that says nothing else about it.
fn usual_stop() -> Vec<Step> {
    vec![Step { signal: Signal::Int, seconds: 3 }, Step { signal: Signal::Term, seconds: 5 }]
}

/// What differs from the inherited environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Variables {
    /// Variables to set.
    pub set: BTreeMap<String, String>,
    /// Variables to set when the user is root.
    pub set_as_root: BTreeMap<String, String>,
    /// Variables to remove; a trailing `*` removes every name with this prefix.
    pub remove: Vec<String>,
}

/// Flags that the help of the installed version must show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Help {
    /// Arguments that print its help.
    pub args: Vec<String>,
    /// Flags to check, in addition to those in `arguments`, `session` and `prompt`.
    pub flags: Vec<String>,
    /// Flags that work but are not in its help.
    pub hidden: Vec<String>,
}

/// Something people run into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pitfall {
    /// When it matters.
    pub when: When,
    /// What to tell.
    pub message: String,
}

/// When a pitfall matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// Always.
    Always,
    /// When the user is root.
    Root,
    /// When no login is seen.
    Auth,
}

/// Reads an agent file. `name` is the file as the user knows it.
pub(crate) fn read(name: &str, text: &str) -> Result<Definition, UserError> {
    let definition: Definition = yaml::read(name, text)?;
    definition.check().map_err(|problem| UserError::usage(format!("`{name}`: {problem}")))?;
    Ok(definition)
}

/// Reads a built-in agent file; a test reads all of them.
pub(super) fn built_in(name: &str, text: &str) -> Definition {
    read(name, text).unwrap_or_else(|error| panic!("built-in agent {name}: {error}"))
}

impl Definition {
    /// What it needs behind a wall.
    pub(crate) fn needs(&self) -> Needs {
        Needs {
            write: self.state.iter().map(Into::into).collect(),
            settings: self.settings.iter().map(Into::into).collect(),
            hosts: self.hosts.clone(),
            variables: self.auth.variables.clone(),
            of_agent: false,
        }
    }

    /// What the form alone does not say.
    fn check(&self) -> Result<(), String> {
        let plain = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        if self.id.is_empty() || !self.id.chars().all(plain) {
            return Err(format!("`id` must be letters, digits, `-` and `_`, found `{}`", self.id));
        }
        if ["auto", "custom"].contains(&self.id.as_str()) {
            return Err(format!("`id` must not be `{}`: that name is reserved", self.id));
        }
        if self.commands.is_empty() || self.commands.iter().any(|command| command.trim().is_empty()) {
            return Err("`commands` must name a program".to_owned());
        }
        for (place, args, hole) in self.holes() {
            if !args.is_empty() && !args.iter().any(|word| word.contains(hole)) {
                return Err(format!("`{place}` must contain `{hole}`"));
            }
        }
        Ok(())
    }

    /// Every list of arguments that must have a hole.
    fn holes(&self) -> Vec<(&'static str, Vec<String>, &'static str)> {
        let form = |form: &Option<SessionForm>| {
            form.as_ref()
                .map_or_else(Vec::new, |form| [form.subcommand.clone().unwrap_or_default(), form.args.clone()].concat())
        };
        vec![
            ("arguments.directory", self.arguments.directory.clone(), "{directory}"),
            ("arguments.git", self.arguments.git.clone(), "{git}"),
            ("arguments.model", self.arguments.model.clone(), "{model}"),
            ("arguments.effort", self.arguments.effort.clone(), "{effort}"),
            ("arguments.tools", self.arguments.tools.clone(), "{tools}"),
            ("session.given", form(&self.session.given), "{session}"),
            ("session.resume", form(&self.session.resume), "{session}"),
            ("session.fork", form(&self.session.fork), "{session}"),
        ]
    }
}

fn is_default(variables: &WrapperVariables) -> bool {
    *variables == WrapperVariables::default()
}

/// The definition of a command that nothing is known about.
pub(crate) fn of_command(program: &str) -> Definition {
    Definition {
        id: "custom".to_owned(),
        name: program.to_owned(),
        commands: vec![program.to_owned()],
        auto: Auto::No,
        version: Version::default(),
        install: Install::default(),
        auth: Auth::default(),
        dialect: "plain".to_owned(),
        errors: Vec::new(),
        arguments: Arguments::default(),
        permissions: Permissions::Full,
        prompt: PromptForm::default(),
        large_prompt: None,
        terminal_prompt: None,
        tries_both_prompts: false,
        session: Sessions::default(),
        interactive: None,
        tty: false,
        stop: usual_stop(),
        state: Vec::new(),
        settings: Vec::new(),
        hosts: Vec::new(),
        own_sandbox: false,
        environment: Variables::default(),
        as_claude: WrapperVariables::default(),
        help: Help::default(),
        pitfalls: Vec::new(),
        permission_help: None,
        own_prompt: None,
    }
}
