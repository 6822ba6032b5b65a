//! What the text of a driver or an agent script shows, without running it: which functions it defines, and what it says of
//! itself where that is a plain text.

use std::path::Path;

use super::conformance::{Examined, Grade, Point, program};
use super::files;
use crate::agent::Contract;
use crate::error::{UserError, io_reason};
use crate::user_file;

/// What the text of a file shows.
pub(crate) fn examine(contract: Contract, path: &Path, workspace: &Path) -> Result<Examined, UserError> {
    let bytes = user_file::read(&workspace.join(path), user_file::MOST_BYTES)
        .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
    let text = String::from_utf8_lossy(&bytes);
    let missing = contract.missing(&files::functions_in(&text));
    let mut points = vec![match missing.as_slice() {
        [] => Point { grade: Grade::Good, text: "its text has all required functions".to_owned() },
        missing if sources_another(&text) => {
            let text = format!("its text lacks {}; the file that it sources may have them", missing.join(", "));
            Point { grade: Grade::Note, text }
        }
        missing => Point { grade: Grade::Bad, text: format!("its text lacks {}", missing.join(", ")) },
    }];
    let (cli, minimum) = match contract {
        Contract::Driver => (printed(&text, "driver_cli_binary"), printed(&text, "driver_min_version")),
        Contract::Script => (assigned(&text, "AGENT_CLI"), None),
    };
    points.extend(cli.iter().map(|cli| program(cli, workspace)));
    Ok(Examined { points, cli, minimum })
}

/// True when a line of the text reads another file in.
pub(super) fn sources_another(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| line.starts_with("source ") || line.starts_with(". "))
}

/// The text that a function prints, when its body is one `echo` of a plain text.
fn printed(text: &str, function: &str) -> Option<String> {
    let start = text.lines().position(|line| files::function(line) == Some(function))?;
    let mut body = Vec::new();
    for (index, line) in text.lines().skip(start).enumerate() {
        let line = if index == 0 { line.split_once('{').map_or("", |(_, rest)| rest) } else { line };
        let (line, closed) = match line.trim_end().strip_suffix('}') {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        let line = line.trim().trim_end_matches(';').trim_end();
        if !line.is_empty() && !line.starts_with('#') {
            body.push(line.to_owned());
        }
        if closed {
            break;
        }
    }
    match body.as_slice() {
        [only] => plain(only.strip_prefix("echo ")?),
        _ => None,
    }
}

/// The last plain text that a variable is set to at the beginning of a line.
fn assigned(text: &str, name: &str) -> Option<String> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    plain(values.next_back()?)
}

/// One word of a shell without anything that the shell would expand.
fn plain(word: &str) -> Option<String> {
    let words = shlex::split(word)?;
    match words.as_slice() {
        [only] if !word.contains(['$', '`', '(', '|', ';', '&', '*', '~']) => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_read_and_everything_else_is_left_to_the_shell() {
        let text = "driver_min_version() { echo \"2.0.76\"; }\ndriver_cli_binary ()\n{\n    # the command\n    echo 'my cli'\n}\n\
                    driver_name() {\n    echo \"$(hostname)\"\n}\ndriver_display_name() {\n    local x=1\n    echo x\n}\n";
        assert_eq!(printed(text, "driver_min_version").as_deref(), Some("2.0.76"));
        assert_eq!(printed(text, "driver_name"), None);
        assert_eq!(printed(text, "driver_display_name"), None);
        assert_eq!(printed(text, "driver_build_command"), None);
        assert_eq!(printed("f() {\n  echo claude\n}", "f").as_deref(), Some("claude"));
        assert_eq!(assigned("AGENT_CLI=\"amp\"\nAGENT_CLI_ARGS=x\n", "AGENT_CLI").as_deref(), Some("amp"));
        assert_eq!(assigned("AGENT_CLI=\"${CLI:-amp}\"\n", "AGENT_CLI"), None);
    }
}
