//! Programs and command lines that the file names, and what reads an agent's output.

use serde_json::{Value as Json, json};

use super::reading::Reading;
use super::value::{SettingValue, words};
use crate::error::UserError;
use crate::transcript::Choice;
use crate::yaml::{Node, Value};

/// A program: a name to look up, or a path relative to the file that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(pub String);

impl Program {
    /// Makes a path of the file a path of the machine. A bare name stays one, to be looked up in `PATH`.
    fn resolved(reading: &Reading<'_>, name: String) -> Self {
        if name.contains('/') { Self(reading.beside(&name).to_string_lossy().into_owned()) } else { Self(name) }
    }
}

impl SettingValue for Program {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        String::read(reading, node, key).map(|name| Self::resolved(reading, name))
    }

    fn shown(&self) -> String {
        self.0.clone()
    }

    fn written(&self) -> Json {
        json!(self.0)
    }

    fn schema() -> Json {
        String::schema()
    }
}

/// A program with its arguments: a list, or text that is split as a shell would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine(pub Vec<String>);

impl SettingValue for CommandLine {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let words = match &node.value {
            Value::List(_) => Some(Vec::<String>::read(reading, node, key)?),
            _ => shlex::split(&String::read(reading, node, key)?),
        };
        let mut words = words.unwrap_or_default().into_iter();
        let Some(program) = words.next() else {
            return Err(reading.wrong(node, &format!("`{key}` has an open quote, or is empty")));
        };
        Ok(Self(std::iter::once(Program::resolved(reading, program).0).chain(words).collect()))
    }

    fn shown(&self) -> String {
        self.0.join(" ")
    }

    fn written(&self) -> Json {
        json!(self.0)
    }

    fn schema() -> Json {
        json!({"anyOf": [String::schema(), Vec::<String>::schema()]})
    }
}

/// What a shell must read.
const SHELL_SIGNS: &[char] = &['|', '&', ';', '<', '>', '(', ')', '$', '`', '*', '?', '[', '~', '#', '\n'];

/// A command line as an argument vector; `None` for an open quote, or nothing. What needs a shell gets one; everything
/// else is run directly, so that a stop reaches the program itself.
pub(crate) fn shell_words(text: &str) -> Option<Vec<String>> {
    if text.contains(SHELL_SIGNS) && !text.trim().is_empty() {
        return Some(["sh", "-c", text].map(str::to_owned).to_vec());
    }
    shlex::split(text).filter(|words| !words.is_empty())
}

/// A command that may need a shell: a list, or text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellLine(pub Vec<String>);

impl SettingValue for ShellLine {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        match &node.value {
            Value::Text(text) if text.contains(SHELL_SIGNS) && !text.trim().is_empty() => {
                Ok(Self(shell_words(text).unwrap_or_default()))
            }
            _ => CommandLine::read(reading, node, key).map(|line| Self(line.0)),
        }
    }

    fn shown(&self) -> String {
        match self.0.as_slice() {
            [shell, flag, text] if shell == "sh" && flag == "-c" => text.clone(),
            words => words.join(" "),
        }
    }

    fn written(&self) -> Json {
        json!(self.0)
    }

    fn schema() -> Json {
        CommandLine::schema()
    }
}

/// How a custom agent takes its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptMode {
    Arg,
    Stdin,
}

words! { PromptMode { "arg" => Arg, "stdin" => Stdin } }

/// A dialect by name, or a command that reads raw lines and prints RTF1.
impl SettingValue for Choice {
    fn read(reading: &mut Reading<'_>, node: &Node, key: &str) -> Result<Self, UserError> {
        let form = "a name, or a mapping with `command`";
        if let Value::Text(name) = &node.value {
            return Ok(Self::from(name.as_str()));
        }
        let command = format!("{key}.command");
        let mut choice = None;
        for entry in reading.entries(node, key, form)? {
            match entry.key.as_str() {
                "command" => choice = Some(Self::Command(CommandLine::read(reading, &entry.node, &command)?.0)),
                other => reading.unknown(&format!("{key}.{other}"), entry, Some(&command)),
            }
        }
        choice.ok_or_else(|| reading.expected(node, key, form))
    }

    fn shown(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Named(name) => name.clone(),
            Self::Command(argv) => format!("command `{}`", argv.join(" ")),
        }
    }

    fn written(&self) -> Json {
        match self {
            Self::Auto | Self::Named(_) => json!(self.shown()),
            Self::Command(argv) => json!({"command": argv}),
        }
    }

    fn schema() -> Json {
        let command = json!({
            "type": "object", "additionalProperties": false, "required": ["command"],
            "properties": {"command": CommandLine::schema()},
        });
        json!({"anyOf": [{"enum": crate::transcript::names()}, command]})
    }
}
