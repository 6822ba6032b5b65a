//! Does an answer say that the agent was not permitted something? Only its beginning is looked at: what an agent writes
//! about permissions further on may be its work.

use super::status_block;

/// No more lines of the first paragraph are looked at.
const MOST_LINES: usize = 5;

/// True when the first paragraph of an answer says that a tool or command was denied.
pub(crate) fn in_answer(answer: &str) -> bool {
    let before = answer.split(status_block::BEGIN).next().unwrap_or_default();
    let paragraph = before.trim_start().lines().take_while(|line| !line.trim().is_empty()).take(MOST_LINES);
    paragraph.map(|line| line.trim().to_lowercase()).any(|line| tells(&line))
}

fn tells(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let denied = line.starts_with("permission denied:") || line.starts_with("denied permission:");
    (denied && has(&["approval", "tool", "command", "blocked", "not allowed", "not permitted"]))
        || (line.starts_with("approval required:") && has(&["run", "proceed", "tool", "command", "blocked"]))
        || has(&[
            "requires approval before it can run",
            "requires approval before it can proceed",
            "not allowed to use tool",
            "not permitted to use tool",
        ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_an_answer_tells_of_a_denial() {
        for answer in [
            "Permission denied: the command `npm install` was blocked",
            "\n\nI stopped.\nApproval required: to run the tool",
            "The command requires approval before it can run.",
            "I am not allowed to use tool Bash.\n---RALPH_STATUS---\nEXIT_SIGNAL: false",
        ] {
            assert!(in_answer(answer), "{answer}");
        }
        for answer in [
            "I fixed it.\n\nPermission denied: the command was blocked",
            "I fixed the message `permission denied`",
            "Permission denied: file x",
            "a\nb\nc\nd\ne\nNot allowed to use tool x",
            "---RALPH_STATUS---\nRECOMMENDATION: not allowed to use tool",
            "",
        ] {
            assert!(!in_answer(answer), "{answer}");
        }
    }
}
