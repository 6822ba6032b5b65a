//! `ralph.yml`: found here or in a parent directory, read into a layer, with a message for each mistake.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::layer::{Layer, Origin, Setting};
use crate::error::{UserError, io_reason};
use crate::nearest::nearest;
use crate::signals::promise::Match;
use crate::transcript::Choice;
use crate::yaml::{self, Entry, Node, Value};

/// The names the file may have.
const NAMES: [&str; 2] = ["ralph.yml", "ralph.yaml"];

/// A larger file is not a configuration.
const LARGEST: u64 = 1024 * 1024;

/// Every key with its section.
const KEYS: &[&str] = &[
    "cli.backend",
    "cli.command",
    "cli.args",
    "cli.prompt_mode",
    "cli.prompt_flag",
    "cli.model",
    "cli.effort",
    "cli.tools",
    "cli.pty",
    "cli.leave_running",
    "event_loop.prompt_file",
    "event_loop.completion_promise",
    "event_loop.max_iterations",
    "event_loop.max_runtime_seconds",
    "event_loop.max_consecutive_failures",
    "completion.match",
    "adapters",
    "transcript",
    "limits.idle_timeout",
    "limits.startup_timeout",
    "limits.max_wait",
    "limits.max_line_bytes",
];

/// What a file says, and what to warn about.
#[derive(Debug, Default)]
pub struct FileLayer {
    /// The settings.
    pub layer: Layer,
    /// `adapters.NAME`: what holds for one agent only.
    pub adapters: Vec<(String, Adapter)>,
    /// Unknown keys and the like.
    pub warnings: Vec<String>,
}

impl FileLayer {
    /// What holds for this agent only.
    pub fn adapter(&self, name: &str) -> Adapter {
        self.adapters.iter().find(|(known, _)| known == name).map(|(_, adapter)| adapter.clone()).unwrap_or_default()
    }
}

/// What a file says about one agent.
#[derive(Clone, Debug, Default)]
pub struct Adapter {
    /// Whether `auto` may take it.
    pub enabled: Option<Setting<bool>>,
    /// The time for one iteration.
    pub timeout: Option<Setting<Duration>>,
    /// The program, with its first arguments.
    pub command: Option<Setting<Vec<String>>>,
    /// Instead of the arguments of its agent file.
    pub args: Option<Setting<Vec<String>>>,
    /// Besides the arguments of its agent file.
    pub extra_args: Option<Setting<Vec<String>>>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// Whether words are wanted as they come.
    pub partial: Option<Setting<bool>>,
}

/// The keys under `adapters.NAME`.
const ADAPTER_KEYS: [&str; 7] = ["enabled", "timeout", "command", "args", "extra_args", "env", "partial"];

/// The nearest `ralph.yml` at or above a directory.
pub fn find(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().flat_map(|parent| NAMES.map(|name| parent.join(name))).find(|path| path.exists())
}

/// What the given file says, or the nearest one; nothing when there is none.
pub fn nearest_file(given: Option<PathBuf>, directory: &Path) -> Result<FileLayer, UserError> {
    given.or_else(|| find(directory)).map_or_else(|| Ok(FileLayer::default()), |path| read(&path))
}

/// Reads a file.
pub fn read(path: &Path) -> Result<FileLayer, UserError> {
    let name = path.display();
    let unreadable = |error: &std::io::Error| {
        UserError::usage(format!("cannot read `{name}`: {}", io_reason(error)))
            .hint("give `--config FILE`, or remove it")
    };
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if metadata.is_dir() {
        return Err(UserError::usage(format!("`{name}` is a directory, expected a file")));
    }
    if metadata.len() > LARGEST {
        return Err(UserError::usage(format!(
            "`{name}` has {} bytes, more than a configuration can have",
            metadata.len()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        UserError::usage(format!("`{name}` is not UTF-8: byte {at} is wrong")).hint("save the file as UTF-8")
    })?;
    read_text(path, &text)
}

fn read_text(path: &Path, text: &str) -> Result<FileLayer, UserError> {
    let name = path.display().to_string();
    let tree = yaml::parse(&name, text)?;
    let mut reading = Reading { path, name, text, has_command: false, out: FileLayer::default() };
    match &tree.value {
        Value::Null => reading.out.warnings.push(format!("`{}` is empty", reading.name)),
        Value::Map(entries) => entries.iter().try_for_each(|entry| reading.section(entry))?,
        _ => return Err(reading.expected(&tree, "the file", "a mapping of sections")),
    }
    if !reading.has_command {
        // Arguments alone are no command.
        reading.out.layer.agent_command = None;
    }
    Ok(reading.out)
}

struct Reading<'a> {
    path: &'a Path,
    name: String,
    text: &'a str,
    has_command: bool,
    out: FileLayer,
}

impl Reading<'_> {
    fn section(&mut self, entry: &Entry) -> Result<(), UserError> {
        match entry.key.as_str() {
            "transcript" => self.transcript(&entry.node),
            "adapters" => self.adapters(&entry.node),
            section if KEYS.iter().any(|key| key.split_once('.').is_some_and(|(known, _)| known == section)) => {
                match &entry.node.value {
                    Value::Null => Ok(()),
                    Value::Map(entries) => entries.iter().try_for_each(|inner| self.key(section, inner)),
                    _ => Err(self.expected(&entry.node, &format!("`{section}`"), "a mapping")),
                }
            }
            unknown => {
                let sections = KEYS.iter().map(|key| key.split('.').next().unwrap_or(key));
                self.unknown(unknown, entry, nearest(unknown, sections));
                Ok(())
            }
        }
    }

    fn key(&mut self, section: &str, entry: &Entry) -> Result<(), UserError> {
        let full = format!("{section}.{}", entry.key);
        let node = &entry.node;
        if matches!(node.value, Value::Null) {
            return Ok(());
        }
        match full.as_str() {
            "cli.backend" => self.out.layer.agent = Some(self.text_of(node, &full)?),
            "cli.model" => self.out.layer.model = Some(self.text_of(node, &full)?.map(Some)),
            "cli.effort" => self.out.layer.effort = Some(self.text_of(node, &full)?.map(Some)),
            "cli.tools" => {
                self.out.layer.tools = Some(Setting::new(self.list_of(node, &full)?, self.origin(node)));
            }
            "cli.command" => {
                self.has_command = true;
                let command = self.text_of(node, &full)?;
                let before = self.out.layer.agent_command.take().and_then(|setting| setting.value).unwrap_or_default();
                let argv = std::iter::once(command.value).chain(before).collect();
                self.out.layer.agent_command = Some(Setting::new(Some(argv), command.origin));
            }
            "cli.args" => {
                let args = self.list_of(node, &full)?;
                let setting = self.out.layer.agent_command.take();
                let origin = setting.as_ref().map_or_else(|| self.origin(node), |setting| setting.origin.clone());
                let argv =
                    setting.and_then(|setting| setting.value).unwrap_or_default().into_iter().chain(args).collect();
                self.out.layer.agent_command = Some(Setting::new(Some(argv), origin));
            }
            "cli.prompt_mode" => {
                self.out.layer.prompt_mode = Some(self.one_of(node, &full, &["arg", "stdin"])?.map(Some));
            }
            "cli.prompt_flag" => self.out.layer.prompt_flag = Some(self.text_of(node, &full)?.map(Some)),
            "cli.pty" => self.out.layer.pty = Some(self.flag_of(node, &full)?),
            "cli.leave_running" => self.out.layer.leave_running = Some(self.flag_of(node, &full)?),
            "limits.max_line_bytes" => {
                let count = self.count_of(node, &full)?;
                self.out.layer.max_line_bytes = Some(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)));
            }
            "event_loop.prompt_file" => {
                let beside = |file: String| self.path.parent().unwrap_or(Path::new("")).join(file);
                self.out.layer.prompt_file = Some(self.text_of(node, &full)?.map(|file| Some(beside(file))));
            }
            "event_loop.completion_promise" if self.text_of(node, &full)?.value.trim().contains('\n') => {
                let message = format!("`{full}` must be one line");
                return Err(yaml::pointing(&self.name, self.text, node.place, &message));
            }
            "event_loop.completion_promise" => {
                self.out.layer.completion_promise = Some(self.text_of(node, &full)?.map(Some));
            }
            "event_loop.max_iterations" => {
                let count = self.count_of(node, &full)?;
                self.out.layer.max_iterations = Some(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
            }
            "event_loop.max_consecutive_failures" => {
                let count = self.count_of(node, &full)?;
                self.out.layer.max_consecutive_failures =
                    Some(count.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
            }
            "event_loop.max_runtime_seconds" => self.out.layer.max_time = Some(self.seconds_of(node, &full)?),
            "limits.idle_timeout" => self.out.layer.idle_timeout = Some(self.seconds_of(node, &full)?),
            "limits.startup_timeout" => self.out.layer.startup_timeout = Some(self.seconds_of(node, &full)?),
            "limits.max_wait" => self.out.layer.max_wait = Some(self.seconds_of(node, &full)?),
            "completion.match" => {
                let place = self.one_of(node, &full, &["last-line", "anywhere"])?;
                let place = place.map(|place| if place == "anywhere" { Match::Anywhere } else { Match::LastLine });
                self.out.layer.completion_match = Some(place);
            }
            _ => {
                let inner = KEYS.iter().filter_map(|key| key.split_once('.')).filter(|(known, _)| *known == section);
                let meant = nearest(&entry.key, inner.map(|(_, key)| key)).map(|key| format!("{section}.{key}"));
                self.unknown(&full, entry, meant.as_deref());
            }
        }
        Ok(())
    }

    fn transcript(&mut self, node: &Node) -> Result<(), UserError> {
        let choice = match &node.value {
            Value::Text(name) => Choice::from(name.as_str()),
            Value::Map(entries) => {
                let mut choice = None;
                for entry in entries {
                    if entry.key == "command" {
                        choice = Some(Choice::Command(self.command_of(&entry.node, "transcript.command")?));
                    } else {
                        self.unknown(&format!("transcript.{}", entry.key), entry, Some("transcript.command"));
                    }
                }
                match choice {
                    Some(choice) => choice,
                    None => return Err(self.expected(node, "`transcript`", "a name, or a mapping with `command`")),
                }
            }
            _ => return Err(self.expected(node, "`transcript`", "a name, or a mapping with `command`")),
        };
        self.out.layer.transcript = Some(Setting::new(choice, self.origin(node)));
        Ok(())
    }

    fn adapters(&mut self, node: &Node) -> Result<(), UserError> {
        let Value::Map(agents) = &node.value else {
            return Err(self.expected(node, "`adapters`", "a mapping of agents"));
        };
        for agent in agents {
            let Value::Map(entries) = &agent.node.value else {
                return Err(self.expected(&agent.node, &format!("`adapters.{}`", agent.key), "a mapping"));
            };
            let mut adapter = Adapter::default();
            for entry in entries {
                self.adapter_key(&agent.key, entry, &mut adapter)?;
            }
            self.out.adapters.push((agent.key.clone(), adapter));
        }
        Ok(())
    }

    fn adapter_key(&mut self, agent: &str, entry: &Entry, adapter: &mut Adapter) -> Result<(), UserError> {
        let full = format!("adapters.{agent}.{}", entry.key);
        let node = &entry.node;
        let origin = self.origin(node);
        match entry.key.as_str() {
            "enabled" => adapter.enabled = Some(self.flag_of(node, &full)?),
            "partial" => adapter.partial = Some(self.flag_of(node, &full)?),
            "timeout" => adapter.timeout = Some(self.seconds_of(node, &full)?),
            "command" => adapter.command = Some(Setting::new(self.command_of(node, &full)?, origin)),
            "args" => adapter.args = Some(Setting::new(self.list_of(node, &full)?, origin)),
            "extra_args" => adapter.extra_args = Some(Setting::new(self.list_of(node, &full)?, origin)),
            "env" => {
                let Value::Map(variables) = &node.value else {
                    return Err(self.expected(node, &format!("`{full}`"), "a mapping of variables"));
                };
                for variable in variables {
                    let value = match &variable.node.value {
                        Value::Flag(flag) => flag.to_string(),
                        Value::Text(text) => text.clone(),
                        _ => self.text_of(&variable.node, &format!("{full}.{}", variable.key))?.value,
                    };
                    adapter.env.push((variable.key.clone(), value));
                }
            }
            _ => {
                let meant = nearest(&entry.key, ADAPTER_KEYS).map(|key| format!("adapters.{agent}.{key}"));
                self.unknown(&full, entry, meant.as_deref());
            }
        }
        Ok(())
    }

    fn origin(&self, node: &Node) -> Origin {
        Origin::File { path: self.path.to_owned(), line: node.place.line }
    }

    fn unknown(&mut self, key: &str, entry: &Entry, meant: Option<&str>) {
        let advice = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        let excerpt = yaml::excerpt(&self.name, self.text, entry.place);
        self.out.warnings.push(format!("unknown key `{key}`{advice}\n{excerpt}"));
    }

    fn expected(&self, node: &Node, what: &str, form: &str) -> UserError {
        let message = format!("{what} must be {form}, found {}", node.value.kind());
        yaml::pointing(&self.name, self.text, node.place, &message)
    }

    fn text_of(&self, node: &Node, key: &str) -> Result<Setting<String>, UserError> {
        match &node.value {
            Value::Text(text) if !text.trim().is_empty() => Ok(Setting::new(text.clone(), self.origin(node))),
            Value::Text(_) => {
                Err(yaml::pointing(&self.name, self.text, node.place, &format!("`{key}` must not be empty")))
            }
            Value::Whole(number) => Ok(Setting::new(number.to_string(), self.origin(node))),
            _ => Err(self.expected(node, &format!("`{key}`"), "text")),
        }
    }

    fn flag_of(&self, node: &Node, key: &str) -> Result<Setting<bool>, UserError> {
        match node.value {
            Value::Flag(flag) => Ok(Setting::new(flag, self.origin(node))),
            _ => Err(self.expected(node, &format!("`{key}`"), "true or false")),
        }
    }

    fn one_of(&self, node: &Node, key: &str, names: &[&str]) -> Result<Setting<String>, UserError> {
        let setting = self.text_of(node, key)?;
        if names.contains(&setting.value.as_str()) {
            return Ok(setting);
        }
        let message = format!("`{key}` must be one of {}, found `{}`", names.join(", "), setting.value);
        Err(yaml::pointing(&self.name, self.text, node.place, &message))
    }

    fn list_of(&self, node: &Node, key: &str) -> Result<Vec<String>, UserError> {
        let Value::List(nodes) = &node.value else { return Err(self.expected(node, &format!("`{key}`"), "a list")) };
        nodes
            .iter()
            .map(|node| match &node.value {
                Value::Text(text) => Ok(text.clone()),
                Value::Whole(number) => Ok(number.to_string()),
                _ => Err(self.expected(node, &format!("an item of `{key}`"), "text")),
            })
            .collect()
    }

    fn command_of(&self, node: &Node, key: &str) -> Result<Vec<String>, UserError> {
        if let Value::List(_) = node.value {
            return self.list_of(node, key);
        }
        let text = self.text_of(node, key)?.value;
        shlex::split(&text).filter(|argv| !argv.is_empty()).ok_or_else(|| {
            yaml::pointing(&self.name, self.text, node.place, &format!("`{key}` has an open quote, or is empty"))
        })
    }

    fn count_of(&self, node: &Node, key: &str) -> Result<Setting<u64>, UserError> {
        match node.value {
            Value::Whole(number) if number > 0 => Ok(Setting::new(number.unsigned_abs(), self.origin(node))),
            Value::Whole(_) => {
                Err(yaml::pointing(&self.name, self.text, node.place, &format!("`{key}` must be 1 or more")))
            }
            _ => Err(self.expected(node, &format!("`{key}`"), "a whole number")),
        }
    }

    fn seconds_of(&self, node: &Node, key: &str) -> Result<Setting<Duration>, UserError> {
        match node.value {
            Value::Whole(0) => Ok(Setting::new(Duration::ZERO, self.origin(node))),
            // A year is for ever, and sums of such times do not overflow.
            _ => self
                .count_of(node, key)
                .map(|setting| setting.map(|count| Duration::from_secs(count.min(365 * 24 * 3600)))),
        }
    }
}

impl<T> Setting<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Setting<U> {
        Setting::new(with(self.value), self.origin)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
