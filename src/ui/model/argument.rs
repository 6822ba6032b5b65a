//! What a tool call is about, on one line: the argument that tells most, as a person would say it.

use std::borrow::Cow;

use serde_json::Value;

use crate::event::Object;

/// More of an argument is never shown.
const LONGEST: usize = 200;
/// More files of a patch are counted.
const MOST_FILES: usize = 3;

/// The argument that tells most about a call, with the agent's own description before a command.
pub(super) fn main_argument(input: &Object) -> String {
    const TELLING: [&str; 16] = [
        "command",
        "cmd",
        "file_path",
        "filePath",
        "path",
        "absolute_path",
        "notebook_path",
        "pattern",
        "query",
        "url",
        "prompt",
        "description",
        "name",
        "id",
        "text",
        "code",
    ];
    if let Some(files) = patched_files(input) {
        return crate::ui::text::cut(&files, LONGEST);
    }
    let telling = TELLING.iter().find_map(|key| input.get(*key).map(|value| (*key, value)));
    let first = input.values().next().map(|value| ("", value));
    let Some((key, value)) = telling.or(first) else { return String::new() };
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => without_shell(text).into_owned(),
        // `["bash", "-lc", "cargo test"]`: what counts is the last word.
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                [_, "-c" | "-lc", script] => (*script).to_owned(),
                words => words.join(" "),
            }
        }
        other => other.to_string(),
    };
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let first = if lines.next().is_some() { format!("{first} …") } else { first };
    let description = input.get("description").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    let description = description.lines().next().unwrap_or_default().trim_end_matches(['.', ':']);
    let told = match key {
        _ if description.is_empty() => first,
        "command" | "cmd" if first.is_empty() => description.to_owned(),
        "command" | "cmd" => format!("{description}: {first}"),
        // A prompt for another agent is long; its description was made for people.
        "prompt" => description.to_owned(),
        _ => first,
    };
    crate::ui::text::cut(&told, LONGEST)
}

/// `/bin/bash -lc 'cargo test'` is `cargo test`.
fn without_shell(command: &str) -> Cow<'_, str> {
    let Some((program, rest)) = command.split_once(' ') else { return Cow::Borrowed(command) };
    let name = program.rsplit('/').next().unwrap_or(program);
    if !["bash", "sh", "zsh", "dash"].contains(&name) || !(rest.starts_with("-lc ") || rest.starts_with("-c ")) {
        return Cow::Borrowed(command);
    }
    match shlex::split(rest).as_deref() {
        Some([_, script]) => Cow::Owned(script.clone()),
        _ => Cow::Borrowed(command),
    }
}

/// The files of a patch: as `apply_patch` names them in its text, or as a list of changes.
fn patched_files(input: &Object) -> Option<String> {
    let text = ["input", "patch", "diff", "command"].iter().find_map(|key| match input.get(*key) {
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Array(words)) => words.last().and_then(Value::as_str),
        _ => None,
    });
    let patch = text.filter(|text| text.contains("*** Begin Patch"));
    let named = patch.into_iter().flat_map(str::lines).filter_map(|line| {
        let file = line.strip_prefix("*** ")?;
        ["Update File: ", "Add File: ", "Delete File: "].iter().find_map(|kind| file.strip_prefix(kind))
    });
    let listed = match input.get("changes") {
        Some(Value::Array(changes)) => changes.iter().filter_map(|change| change.get("path")?.as_str()).collect(),
        Some(Value::Object(changes)) => changes.keys().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let files: Vec<&str> = named.chain(listed).collect();
    let more = files.len().saturating_sub(MOST_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let first = &files[..files.len().min(MOST_FILES)];
    (!files.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}

/// The same with paths as they are seen from the workspace.
pub(super) fn relative(text: String, workspace: &str) -> String {
    let workspace = workspace.trim_end_matches('/');
    if workspace.is_empty() || !text.contains(workspace) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(workspace) {
        let (before, from) = rest.split_at(at);
        let behind = &from[workspace.len()..];
        // Neither `/home/me/project-2` nor `/mnt/home/me/project` is inside of `/home/me/project`.
        let begins = !before.ends_with(|last: char| last.is_alphanumeric() || "/._-~".contains(last));
        let ends = !behind.starts_with(|next: char| next.is_alphanumeric() || "._-".contains(next));
        shown.push_str(before);
        match behind.strip_prefix('/') {
            _ if !(begins && ends) => {
                shown.push_str(workspace);
                rest = behind;
            }
            Some(inside) if !inside.is_empty() && !inside.starts_with([' ', '\'', '"']) => rest = inside,
            Some(inside) => {
                shown.push('.');
                rest = inside;
            }
            None => {
                shown.push('.');
                rest = behind;
            }
        }
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_argument_tells_what_a_tool_does() {
        for (json, expected) in [
            (r#"{"description":"Run tests.","command":"cargo test"}"#, "Run tests: cargo test"),
            (r#"{"description":"Look for callers","prompt":"You are\nan agent"}"#, "Look for callers"),
            (r#"{"command":["bash","-lc","ls -l"]}"#, "ls -l"),
            (r#"{"command":"/bin/bash -lc 'cargo test --lib'"}"#, "cargo test --lib"),
            (r#"{"command":"bash -c \"echo 'a b'\""}"#, "echo 'a b'"),
            (r#"{"command":"bash -c 'torn"}"#, "bash -c 'torn"),
            (r#"{"command":"bash script.sh -c x"}"#, "bash script.sh -c x"),
            (r#"{"command":["git","status"]}"#, "git status"),
            (r#"{"file_path":"/a/b.rs","content":"x"}"#, "/a/b.rs"),
            (r#"{"cmd":"one\ntwo"}"#, "one …"),
            (r#"{"other":{"a":1}}"#, r#"{"a":1}"#),
            (r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n*** Add File: b.rs"}"#, "a.rs, b.rs"),
            (r#"{"changes":[{"path":"a"},{"path":"b"},{"path":"c"},{"path":"d"}]}"#, "a, b, c and 1 more"),
            (r"{}", ""),
        ] {
            let input: Object = serde_json::from_str(json).unwrap();
            assert_eq!(main_argument(&input), expected);
        }
    }

    #[test]
    fn paths_are_seen_from_the_workspace() {
        for (text, expected) in [
            ("/home/me/project/src/lib.rs", "src/lib.rs"),
            ("cd /home/me/project && cat /home/me/project/a b", "cd . && cat a b"),
            ("ls /home/me/project/", "ls ."),
            ("ls '/home/me/project/'", "ls '.'"),
            ("/home/me/project-2/a /mnt/home/me/project/b", "/home/me/project-2/a /mnt/home/me/project/b"),
            ("elsewhere", "elsewhere"),
        ] {
            assert_eq!(relative(text.to_owned(), "/home/me/project"), expected);
        }
        assert_eq!(relative("/a".to_owned(), "/"), "/a");
    }
}
