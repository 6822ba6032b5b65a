//! The allowlist of tools: what a driver's platform knows, and `Bash(…)`. Pure.

use crate::error::UserError;

/// The tools that an unattended run may use when nothing else is said.
pub(crate) const DEFAULT: &str = "Write,Read,Edit,MultiEdit,Glob,Grep,Task,TodoWrite,WebFetch,WebSearch,EnterPlanMode,\
                           ExitPlanMode,NotebookEdit,Bash";

/// The entries of a list. A comma inside parentheses belongs to its entry.
pub(crate) fn split(list: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut depth = 0_usize;
    for character in list.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (character, entries.last_mut()) {
            (',', _) if depth == 0 => entries.push(String::new()),
            (other, Some(entry)) => entry.push(other),
            (_, None) => {}
        }
    }
    entries.iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect()
}

/// Sees whether every entry is one that the platform knows: literally, or a `Bash(…)` that is not empty.
pub(crate) fn validate(list: &str, patterns: &[String], platform: &str) -> Result<(), UserError> {
    let is_command = |entry: &str| {
        entry.strip_prefix("Bash(").and_then(|rest| rest.strip_suffix(')')).is_some_and(|inner| !inner.is_empty())
    };
    let unknown: Vec<String> = split(list)
        .into_iter()
        .filter(|entry| !patterns.contains(entry) && !is_command(entry))
        .map(|entry| format!("`{entry}`"))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(UserError::usage(format!("{platform} has no tool {}", unknown.join(", ")))
        .hint(format!("its tools are {}, and `Bash(COMMAND)`", patterns.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_trimmed_and_commas_in_parentheses_stay() {
        assert_eq!(split(" Read, Bash(git add,git commit) ,,Edit"), ["Read", "Bash(git add,git commit)", "Edit"]);
        assert_eq!(split(""), Vec::<String>::new());
    }

    #[test]
    fn only_known_tools_and_commands_are_allowed() {
        let patterns = ["Read".to_owned(), "Bash".to_owned(), "Bash(git *)".to_owned()];
        for list in ["Read", "Bash", "Read,Bash(git *)", "Bash(npm test)", "Bash(anything; at all)", ""] {
            assert!(validate(list, &patterns, "It").is_ok(), "{list}");
        }
        for list in ["read", "Rea", "Read*", "Bash()", "mcp__x", "Skill(x)"] {
            let error = validate(list, &patterns, "It").unwrap_err();
            assert!(error.message.contains(list) && error.hints[0].contains("Bash(git *)"), "{error:?}");
        }
    }
}
