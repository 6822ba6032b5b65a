//! `.ralphrc`, the configuration of the driver contract: parsed by its own rules, never executed.
//!
//! Pure: text in, values and warnings out. It must never hand a line to a shell.

use super::assignments::{Assignments, is_name};

/// Every key that the contract knows; any other is reported and ignored.
const KEYS: &[&str] = &[
    "PLATFORM_DRIVER",
    "MAX_CALLS_PER_HOUR",
    "CLAUDE_TIMEOUT_MINUTES",
    "CLAUDE_OUTPUT_FORMAT",
    "WRITE_TIMEOUT_MINUTES",
    "ALLOWED_TOOLS",
    "CLAUDE_ALLOWED_TOOLS",
    "CLAUDE_PERMISSION_MODE",
    "CLAUDE_USE_CONTINUE",
    "PERMISSION_DENIAL_MODE",
    "SESSION_CONTINUITY",
    "SESSION_EXPIRY_HOURS",
    "CB_NO_PROGRESS_THRESHOLD",
    "CB_SAME_ERROR_THRESHOLD",
    "CB_READ_ONLY_TIMEOUT_THRESHOLD",
    "CB_PERMISSION_DENIAL_THRESHOLD",
    "CB_OUTPUT_DECLINE_THRESHOLD",
    "CB_COOLDOWN_MINUTES",
    "CB_AUTO_RESET",
    "TEST_COMMAND",
    "QUALITY_GATES",
    "QUALITY_GATE_MODE",
    "QUALITY_GATE_TIMEOUT",
    "QUALITY_GATE_ON_COMPLETION_ONLY",
    "REVIEW_MODE",
    "REVIEW_ENABLED",
    "REVIEW_INTERVAL",
    "RALPH_VERBOSE",
    "PROMPT_FILE",
    "FIX_PLAN_FILE",
    "AGENT_FILE",
    "PROJECT_NAME",
    "PROJECT_TYPE",
    "TASK_SOURCES",
    "GITHUB_TASK_LABEL",
    "BEADS_FILTER",
    "CLAUDE_MIN_VERSION",
];

/// Reads the text of a `.ralphrc`. `environment` looks a variable up, for `${NAME:-default}`.
pub(crate) fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Assignments {
    Assignments::read(text, |name, word, _| {
        if word.contains("$(") || word.contains('`') {
            return Err("commands are not run here".to_owned());
        }
        if !KEYS.contains(&name) {
            return Err(format!("unknown key `{name}`"));
        }
        let word = word.trim();
        let inner = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        Ok(match (inner('"'), inner('\'')) {
            (Some(inner), _) => expand(inner, &environment),
            (None, Some(inner)) => inner.to_owned(),
            (None, None) => expand(word, &environment),
        })
    })
}

fn is_key(name: &str) -> bool {
    is_name(name) && !name.contains(|letter: char| letter.is_ascii_lowercase())
}

/// `${NAME:-default}` and nothing else.
fn expand(value: &str, environment: &impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let expansion = rest[start..].find('}').map(|length| &rest[start + 2..start + length]);
        let Some((name, default)) = expansion.and_then(|inner| inner.split_once(":-")).filter(|(name, _)| is_key(name))
        else {
            out.push_str(&rest[..start + 2]);
            rest = &rest[start + 2..];
            continue;
        };
        out.push_str(&rest[..start]);
        out.push_str(&environment(name).filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()));
        rest = &rest[start + 2 + name.len() + 2 + default.len() + 1..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Assignments {
        parse(text, |name| (name == "PLATFORM_DRIVER").then(|| "codex".to_owned()))
    }

    #[test]
    fn values_are_read_by_the_contracts_own_rules() {
        let text = "# comment\n\n  MAX_CALLS_PER_HOUR=7  \nPLATFORM_DRIVER=\"${PLATFORM_DRIVER:-claude-code}\"\n\
                    PROJECT_NAME=\"${PROJECT_NAME:-my project}-x\"\nALLOWED_TOOLS='Read,${X:-y}'\n\
                    CLAUDE_OUTPUT_FORMAT=json # not a comment\nPROJECT_TYPE=$HOME ${HOME}\n";
        let values = read(text);
        assert_eq!(values.warnings, Vec::<String>::new());
        let got: Vec<_> = values.all.iter().map(|found| (found.name.as_str(), found.value.as_str())).collect();
        assert_eq!(
            got,
            [
                ("MAX_CALLS_PER_HOUR", "7"),
                ("PLATFORM_DRIVER", "codex"),
                ("PROJECT_NAME", "my project-x"),
                ("ALLOWED_TOOLS", "Read,${X:-y}"),
                ("CLAUDE_OUTPUT_FORMAT", "json # not a comment"),
                ("PROJECT_TYPE", "$HOME ${HOME}"),
            ]
        );
        assert_eq!(values.find("PLATFORM_DRIVER").unwrap().line, 4);
    }

    #[test]
    fn what_could_be_code_is_passed_over_and_told() {
        let values =
            read("PROJECT_NAME=$(touch x)\nPROJECT_NAME=`touch x`\nfoo=1\nrm -rf /\nNOSUCH=1\nexport PROMPT_FILE=x");
        assert_eq!(values.all, []);
        assert_eq!(values.warnings.len(), 6);
        assert_eq!(values.warnings[0], "line 1 was skipped: commands are not run here");
        assert_eq!(values.warnings[4], "line 5 was skipped: unknown key `NOSUCH`");
    }

    #[test]
    fn the_last_value_wins_and_an_empty_one_is_none() {
        let values = read("PROMPT_FILE=a\nPROMPT_FILE=b\nPROJECT_NAME=\"\"");
        assert_eq!(values.get("PROMPT_FILE"), Some("b"));
        assert_eq!(values.get("PROJECT_NAME"), None);
    }
}
