//! Abstract calls become calls of the tools that a CLI offers in its request, by their names and parameters.
//!
//! A CLI that is not known here works as long as it offers a shell.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::scenario::Call;

/// A tool as a request offers it.
#[derive(Debug, Clone)]
pub struct Offered {
    /// Its name.
    pub name: String,
    /// How it is called.
    pub form: Form,
    /// JSON schema of its parameters.
    pub schema: Value,
}

/// How a tool takes its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An object.
    Function,
    /// Free text.
    Text,
}

/// A call that the CLI understands.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The tool.
    pub name: String,
    /// How it is called.
    pub form: Form,
    /// What it gets.
    pub input: Value,
}

/// Names of shells, of writing and of reading tools, in lower case; the first that is offered is taken.
const SHELLS: [&str; 11] = [
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "run_commands",
    "execute_command",
    "execute",
    "run_command",
    "developer__shell",
    "terminal",
];
const WRITERS: [&str; 7] =
    ["write", "write_file", "write_to_file", "create_file", "create", "developer__write", "editor"];
const READERS: [&str; 6] = ["read", "read_file", "read_files", "view", "view_file", "open_file"];

/// What a parameter is for, known by its name.
fn value_for(parameter: &str, schema: &Value, call: &Call, workspace: &Path) -> Option<Value> {
    let name = parameter.to_ascii_lowercase().replace(['_', '-'], "");
    let list = schema["type"] == "array"
        || schema["anyOf"].as_array().is_some_and(|forms| forms.iter().any(|form| form["type"] == "array"));
    let absolute = |path: &str| workspace.join(path).to_string_lossy().into_owned();
    match (call, name.as_str()) {
        (Call::Shell { command }, "command" | "cmd" | "script" | "commands") => {
            Some(if list { json!([command]) } else { json!(command) })
        }
        (Call::WriteFile { path, .. } | Call::ReadFile { path }, "filepath" | "path" | "absolutepath" | "filename") => {
            Some(json!(absolute(path)))
        }
        (Call::ReadFile { path }, "files" | "paths") => Some(json!([{"path": absolute(path)}])),
        (Call::WriteFile { content, .. }, "content" | "contents" | "filetext" | "newtext" | "text") => {
            Some(json!(content))
        }
        _ => None,
    }
}

/// Something that a required parameter accepts.
fn anything(schema: &Value, call: &Call) -> Value {
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
        let wanted = match call {
            Call::WriteFile { .. } => "create",
            Call::ReadFile { .. } => "view",
            Call::Shell { .. } => "low",
        };
        return choices.iter().find(|choice| **choice == wanted).unwrap_or(&choices[0]).clone();
    }
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "boolean" => json!(false),
        "integer" | "number" => json!(30),
        "array" => json!([]),
        "object" => json!({}),
        _ => json!("as the script says"),
    }
}

/// The call in the words of this CLI. Without a tool for files, the shell does it; none where there is no shell either.
pub fn resolve(call: &Call, offered: &[Offered], workspace: &Path) -> Option<Resolved> {
    let names: &[&str] = match call {
        Call::Shell { .. } => &SHELLS,
        Call::WriteFile { .. } => &WRITERS,
        Call::ReadFile { .. } => &READERS,
    };
    let tool = names.iter().find_map(|name| {
        offered.iter().find(|tool| tool.form == Form::Function && tool.name.eq_ignore_ascii_case(name))
    });
    let Some(tool) = tool else {
        return match call {
            Call::Shell { command } => code_mode(command, offered),
            Call::WriteFile { path, content } => {
                let end = if content.ends_with('\n') { "" } else { "\n" };
                let command = format!("cat > '{path}' <<'END_OF_FILE'\n{content}{end}END_OF_FILE");
                resolve(&Call::Shell { command }, offered, workspace)
            }
            Call::ReadFile { path } => resolve(&Call::Shell { command: format!("cat '{path}'") }, offered, workspace),
        };
    };
    let mut input = Map::new();
    let required: Vec<&str> =
        tool.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, schema) in tool.schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value_for(name, schema, call, workspace) {
            input.insert(name.clone(), value);
        } else if required.contains(&name.as_str()) {
            input.insert(name.clone(), anything(schema, call));
        }
    }
    Some(Resolved { name: tool.name.clone(), form: Form::Function, input: Value::Object(input) })
}

/// Some models of codex get one tool only, a script in which the others are functions.
fn code_mode(command: &str, offered: &[Offered]) -> Option<Resolved> {
    let tool = offered.iter().find(|tool| tool.form == Form::Text && tool.name == "exec")?;
    let script = format!("text(await tools.exec_command({}));", json!({"cmd": command}));
    Some(Resolved { name: tool.name.clone(), form: Form::Text, input: json!(script) })
}

/// A tool that is described by name and schema in an object.
pub fn function(tool: &Value, schema: &str) -> Option<Offered> {
    let name = tool["name"].as_str()?.to_owned();
    Some(Offered { name, form: Form::Function, schema: tool[schema].clone() })
}
