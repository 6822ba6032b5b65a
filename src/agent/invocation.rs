//! The command line of one iteration, from an agent file and what the run wants: a pure function.
//!
//! It must never look at the machine; what it needs to know is in its arguments.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::definition::{Arguments, By, Permissions, PromptForm, SessionForm, Signal, Step};
use super::{Agent, Partial, User};
use crate::error::UserError;
use crate::process::{Environment, Invocation, Link, Place, PrivateFile, Size, Stdin, StopStep, UnixSignal};

/// A longer prompt is not put on a command line: one argument ends at 131,071 bytes, and `ps` shows it.
pub const LONGEST_ARGUMENT: usize = 100 * 1024;

/// What an agent's own shell leaves in the environment. An agent that sees it believes that it runs inside another one,
/// and refuses, or talks to the other's window.
const OUTER_SESSION: [&str; 3] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];

/// The terminal of an agent that needs one while nobody looks.
const TERMINAL: Size = Size { rows: 40, columns: 200 };

/// Placeholder for the path of a prompt file that does not exist yet.
const PROMPT_FILE: &str = "PROMPT_FILE";

/// What one iteration wants of the agent.
#[derive(Clone, Debug)]
pub struct Turn<'a> {
    /// The prompt as it is sent.
    pub prompt: &'a str,
    /// Where the agent works.
    pub workspace: &'a Path,
    /// Variables for the agent.
    pub environment: Vec<(OsString, OsString)>,
    /// Which session.
    pub session: Session,
    /// Who is there.
    pub mode: Mode,
    /// How the prompt travels.
    pub way: Way,
}

impl<'a> Turn<'a> {
    /// A fresh session that nobody watches.
    pub const fn new(prompt: &'a str, workspace: &'a Path) -> Self {
        Self {
            prompt,
            workspace,
            environment: Vec::new(),
            session: Session::New,
            mode: Mode::Headless,
            way: Way::Usual,
        }
    }
}

/// How the prompt travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Usual,
    /// As its file says for large prompts.
    Large,
    /// As its file says for a terminal.
    Terminal,
}

/// Which session of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Session {
    /// A new one.
    New,
    /// A new one with an id that ralph chose.
    Given(String),
    /// One that continues.
    Resume(String),
    /// A copy of one that continues.
    Fork(String),
}

/// Who is there to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nobody.
    Headless,
    /// A person at a terminal.
    Interactive,
}

/// The arguments, and where the prompt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub args: Vec<String>,
    /// How the prompt travels.
    pub prompt: Carried,
}

/// How the prompt travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    Stdin,
    /// As the last argument.
    Argument,
    /// In a file whose path is the last argument.
    File,
    /// Not at all: the person types it.
    Typed,
}

impl Agent {
    /// The arguments of one turn.
    pub(crate) fn arguments(&self, turn: &Turn<'_>) -> Result<CommandLine, UserError> {
        let Self { definition, options, .. } = self;
        let arguments = &definition.arguments;
        let session = self.session(&turn.session)?;
        let (form, mut args) = match (turn.mode, &definition.interactive) {
            (Mode::Headless, _) => {
                (Some(self.prompt_form(turn.prompt, turn.way)?), self.headless(session.as_ref(), turn.workspace)?)
            }
            (Mode::Interactive, Some(interactive)) => {
                let args = replaced(&interactive.args, &arguments.approve, &self.granted(turn.workspace)?);
                (interactive.prompt.as_ref(), [&interactive.subcommand[..], &args].concat())
            }
            (Mode::Interactive, None) => {
                return Err(UserError::usage(format!(
                    "agent `{}` has no interactive mode that ralph knows",
                    definition.id
                )));
            }
        };
        args.extend(fill(&arguments.directory, "{directory}", &turn.workspace.to_string_lossy()));
        let tools = (!options.tools.is_empty()).then(|| options.tools.join(","));
        args.extend(self.wish("model", options.model.as_deref(), &arguments.model)?);
        args.extend(self.wish("effort", options.effort.as_deref(), &arguments.effort)?);
        args.extend(self.wish("tools", tools.as_deref(), &arguments.tools)?);
        args.extend_from_slice(&options.overrides.extra_args);
        args.extend(session.map(|session| session.args).unwrap_or_default());
        let args = [self.leading.clone(), args].concat();
        Ok(with_prompt(args, form, turn.prompt))
    }

    /// The process of one turn. A prompt that travels in a file is written here.
    pub fn invocation(&self, turn: &Turn<'_>) -> Result<Invocation, UserError> {
        let CommandLine { mut args, prompt } = self.arguments(turn)?;
        let mut files = Vec::new();
        let stdin = match prompt {
            Carried::Stdin => Stdin::Bytes(turn.prompt.as_bytes().into()),
            _ if turn.mode == Mode::Interactive => Stdin::Keys,
            Carried::Argument | Carried::Typed => Stdin::Null,
            Carried::File => {
                let directory = std::env::temp_dir();
                let file = PrivateFile::new(&directory, turn.prompt.as_bytes()).map_err(|error| {
                    UserError::failed(format!("cannot write the prompt to `{}`: {error}", directory.display()))
                })?;
                args.pop();
                args.push(file.path().to_string_lossy().into_owned());
                files.push(file);
                Stdin::Null
            }
        };
        let terminal = self.definition.tty || turn.mode == Mode::Interactive;
        Ok(Invocation {
            args: args.into_iter().map(Into::into).collect(),
            env: self.environment(turn),
            stdin,
            link: if terminal { Link::Pty(TERMINAL) } else { Link::Pipe },
            stop: self.definition.stop.iter().map(|step| stop_step(*step)).collect(),
            files,
            place: Place::Inside(self.definition.needs()),
            ..Invocation::new(&self.program, turn.workspace)
        })
    }

    /// What differs in the environment: the file, then the user, then the run.
    pub(crate) fn environment(&self, turn: &Turn<'_>) -> Environment {
        let variables = &self.definition.environment;
        let as_root = variables.set_as_root.iter().filter(|_| self.options.user == User::Root);
        let own = variables.set.iter().chain(as_root).map(|(name, value)| (name.into(), value.into()));
        let users = self.options.overrides.environment.iter().map(|(name, value)| (name.into(), value.into()));
        let remove = OUTER_SESSION.map(str::to_owned).into_iter().chain(variables.remove.iter().cloned());
        Environment { set: own.chain(users).chain(turn.environment.clone()).collect(), remove: remove.collect() }
    }

    /// The command line without the prompt, for people.
    pub(crate) fn command_line(&self, workspace: &Path, mode: Mode, way: Way) -> Vec<String> {
        let program = self.program.to_string_lossy().into_owned();
        let turn = Turn { mode, way, ..Turn::new("", workspace) };
        let Ok(CommandLine { mut args, prompt }) = self.arguments(&turn) else {
            return vec![program];
        };
        if prompt == Carried::Argument {
            args.pop();
        }
        std::iter::once(program).chain(args).collect()
    }

    /// The turn as a line for a shell, ready to paste.
    pub fn shell_line(&self, turn: &Turn<'_>) -> Result<String, UserError> {
        let CommandLine { args, prompt } = self.arguments(turn)?;
        let quote = |word: &str| shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned);
        let environment = self.environment(turn);
        let assignments = environment
            .set
            .iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), quote(&value.to_string_lossy())));
        let program = std::iter::once(quote(&self.program.to_string_lossy()));
        let removed = self.definition.environment.remove.iter().map(|name| match name.strip_suffix('*') {
            None => format!("-u {}", quote(name)),
            Some(prefix) => format!("$(env | sed -n 's/^\\({prefix}[A-Za-z0-9_]*\\)=.*/-u \\1/p')"),
        });
        let env = (!self.definition.environment.remove.is_empty()).then(|| "env".to_owned());
        let line: Vec<String> = env
            .into_iter()
            .chain(removed)
            .chain(assignments)
            .chain(program)
            .chain(args.iter().map(|word| quote(word)))
            .collect();
        let line = line.join(" ");
        let said = format!("printf %s {}", quote(turn.prompt));
        Ok(match prompt {
            Carried::Stdin => format!("{said} | {line}"),
            Carried::File => format!("{said} > {PROMPT_FILE} && {line}"),
            Carried::Argument if turn.mode == Mode::Headless && turn.way != Way::Terminal => {
                format!("{line} < /dev/null")
            }
            Carried::Argument | Carried::Typed => line,
        })
    }

    /// What makes it work alone, unless the user says something else.
    fn headless(&self, session: Option<&SessionForm>, workspace: &Path) -> Result<Vec<String>, UserError> {
        let arguments = &self.definition.arguments;
        let subcommand = session.and_then(|session| session.subcommand.as_ref()).unwrap_or(&arguments.subcommand);
        let partial: &[String] = match self.options.partial {
            Partial::On => &arguments.partial,
            Partial::Off => &[],
        };
        let granted = self.granted(workspace)?;
        // Words of the user's own would not say that it must change nothing.
        let own = self.options.overrides.args.clone().filter(|_| self.permissions() != Permissions::ReadOnly);
        Ok(own.unwrap_or_else(|| {
            [&subcommand[..], &arguments.headless, &arguments.structured, partial, &granted].concat()
        }))
    }

    fn permissions(&self) -> Permissions {
        self.options.permissions.unwrap_or(self.definition.permissions)
    }

    /// What it may do without asking.
    fn granted(&self, workspace: &Path) -> Result<Vec<String>, UserError> {
        let Arguments { approve, safe, read_only, .. } = &self.definition.arguments;
        let (words, mode) = match self.permissions() {
            Permissions::Full => return Ok(approve.clone()),
            Permissions::Safe => (safe, "safe"),
            Permissions::ReadOnly => (read_only, "read-only"),
        };
        let id = &self.definition.id;
        let filled = words.as_ref().map(|words| fill(words, "{directory}", &workspace.to_string_lossy()).collect());
        let filled = filled.map(|mut filled: Vec<String>| {
            if self.permissions() == Permissions::Safe {
                let own = [workspace.join(".git")];
                let known = &self.options.git_directories;
                for path in if known.is_empty() { &own } else { known.as_slice() } {
                    filled.extend(fill(&self.definition.arguments.git, "{git}", &path.to_string_lossy()));
                }
            }
            filled
        });
        filled.ok_or_else(|| {
            UserError::usage(format!("agent `{id}` has no {mode} mode, which `adapters.{id}.permissions` asks for"))
                .hint(format!("write `permissions: full`, or give its own words: `adapters.{id}.args`"))
        })
    }

    fn prompt_form(&self, prompt: &str, way: Way) -> Result<&PromptForm, UserError> {
        let usual = match (way, &self.definition.terminal_prompt) {
            (Way::Terminal, Some(form)) => form,
            _ => &self.definition.prompt,
        };
        let fits = prompt.len() <= LONGEST_ARGUMENT;
        // Without anything before it, such a prompt would be read as a flag.
        let looks_like_a_flag = usual.after.is_empty() && prompt.starts_with('-');
        match &self.definition.large_prompt {
            _ if usual.by != By::Argument => Ok(usual),
            // On a terminal nobody reads standard input to its end.
            _ if way == Way::Terminal && fits => Ok(usual),
            Some(large) if way != Way::Terminal && (!fits || looks_like_a_flag || way == Way::Large) => Ok(large),
            _ if fits => Ok(usual),
            _ => Err(UserError::usage(format!(
                "the prompt has {} bytes; agent `{}` takes it as an argument, which is limited to {LONGEST_ARGUMENT} bytes",
                prompt.len(),
                self.definition.id,
            ))
            .hint(match way {
                Way::Terminal => "leave out `--pty`, so that it is passed on stdin",
                _ => "pass it on stdin: set `cli.prompt_mode: stdin` in `ralph.yml`",
            })
            .hint("or put the text into a file and name the file in the prompt")),
        }
    }

    /// The arguments for something that not every agent has.
    fn wish(&self, what: &str, value: Option<&str>, args: &[String]) -> Result<Vec<String>, UserError> {
        let Some(value) = value else { return Ok(Vec::new()) };
        if args.is_empty() {
            let id = &self.definition.id;
            let asked = self.options.asked.iter().find(|(wish, _)| *wish == what).map(|(_, origin)| origin);
            let message = match asked {
                Some(origin) => format!("agent `{id}` does not support `{what}` (from {origin})"),
                None => format!("agent `{id}` does not support `--{what}`"),
            };
            return Err(UserError::usage(message)
                .hint(format!("remove it, or pass the agent's own flag in `adapters.{id}.extra_args`")));
        }
        Ok(fill(args, &format!("{{{what}}}"), value).collect())
    }

    /// The form of this session with its id in it.
    fn session(&self, session: &Session) -> Result<Option<SessionForm>, UserError> {
        let forms = &self.definition.session;
        let (form, id, what) = match session {
            Session::New => return Ok(None),
            Session::Given(id) => (&forms.given, id, "start a session with a given id"),
            Session::Resume(id) => (&forms.resume, id, "resume a session"),
            Session::Fork(id) => (&forms.fork, id, "fork a session"),
        };
        let Some(form) = form else {
            return Err(UserError::usage(format!("agent `{}` cannot {what}", self.definition.id))
                .hint("use `session: fresh`, the default"));
        };
        Ok(Some(SessionForm {
            subcommand: form.subcommand.as_ref().map(|words| fill(words, "{session}", id).collect()),
            args: fill(&form.args, "{session}", id).collect(),
        }))
    }
}

/// The words with the value in their hole.
fn fill<'a>(words: &'a [String], hole: &'a str, value: &'a str) -> impl Iterator<Item = String> + 'a {
    words.iter().map(move |word| word.replace(hole, value))
}

/// The words with one part of them replaced.
fn replaced(words: &[String], part: &[String], by: &[String]) -> Vec<String> {
    match words.windows(part.len().max(1)).position(|found| found == part) {
        Some(at) => [&words[..at], by, &words[at + part.len()..]].concat(),
        None => words.to_vec(),
    }
}

fn with_prompt(mut args: Vec<String>, form: Option<&PromptForm>, prompt: &str) -> CommandLine {
    let Some(form) = form else { return CommandLine { args, prompt: Carried::Typed } };
    args.extend_from_slice(&form.after);
    let prompt = match form.by {
        By::Stdin => Carried::Stdin,
        By::Argument => {
            args.push(prompt.to_owned());
            Carried::Argument
        }
        By::File => {
            args.push(PROMPT_FILE.to_owned());
            Carried::File
        }
    };
    CommandLine { args, prompt }
}

fn stop_step(step: Step) -> StopStep {
    let signal = match step.signal {
        Signal::Int => UnixSignal::Int,
        Signal::Term => UnixSignal::Term,
        Signal::Hup => UnixSignal::Hup,
        Signal::Quit => UnixSignal::Quit,
    };
    StopStep { signal, grace: Duration::from_secs(step.seconds) }
}

#[cfg(test)]
#[path = "invocation_tests.rs"]
mod tests;
