//! The prompt of an iteration: the user's words, read again each time, and what the loop adds to them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::mode::Mode;
use crate::error::{UserError, io_reason};
use crate::user_file;

/// Where the user's words come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Given once: words on the command line, standard input, or the agent's own.
    Text {
        text: String,
        /// Where they came from, for the journal.
        from: String,
    },
    /// A file that is read before each iteration, so that it can be changed under way.
    File(PathBuf),
    /// The prompt of a mode around the user's goal.
    Mode {
        mode: Box<Mode>,
        /// The goal; none is needed.
        goal: Option<Box<Source>>,
        values: Vec<(&'static str, String)>,
    },
}

impl Source {
    /// Where the words come from.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Text { from, .. } => from.clone(),
            Self::File(path) => path.display().to_string(),
            Self::Mode { mode, goal: Some(goal), .. } => {
                format!("{}, with the goal from {}", mode.origin(), goal.name())
            }
            Self::Mode { mode, goal: None, .. } => mode.origin(),
        }
    }

    /// The first line of the goal in the prompt of a mode.
    pub(crate) fn goal(&self) -> Option<String> {
        let Self::Mode { goal: Some(goal), .. } = self else { return None };
        goal.read().ok().map(|words| title(&words))
    }

    /// The user's words as they are now.
    pub(crate) fn read(&self) -> Result<String, UserError> {
        match self {
            Self::Text { text, from } => checked(text.clone(), from),
            Self::File(path) => read_file(path),
            Self::Mode { mode, goal, values } => {
                let goal = goal.as_ref().map(|goal| goal.read()).transpose()?.unwrap_or_default();
                let mut all: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
                all.push(("goal", goal.trim_end()));
                checked(mode.fill(&all), &mode.origin())
            }
        }
    }
}

fn read_file(path: &Path) -> Result<String, UserError> {
    let name = path.display();
    let bytes = user_file::read(path, user_file::MOST_BYTES).map_err(|error| {
        UserError::usage(format!("cannot read the prompt file `{name}`: {}", io_reason(&error)))
            .hint("give another file with `-P FILE`, or the prompt itself as words: `ralph run \"…\"`")
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        UserError::usage(format!("the prompt file `{name}` is not UTF-8: line {line}, byte {at}"))
            .hint("save the file as UTF-8")
    })?;
    checked(text, &format!("`{name}`"))
}

fn checked(text: String, from: &str) -> Result<String, UserError> {
    if text.trim().is_empty() {
        return Err(UserError::usage(format!("the prompt is empty ({from})")).hint("write what the agent should do"));
    }
    if text.contains('\0') {
        return Err(UserError::usage(format!("the prompt has a NUL byte ({from})")).hint("remove it"));
    }
    Ok(text)
}

/// What the loop tells the agent beside the user's words.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopContext<'a> {
    /// Which iteration this is.
    pub iteration: u32,
    /// The most there will be.
    pub of: u32,
    /// How the last one ended.
    pub last: Option<&'a str>,
    /// The user's rules for every iteration.
    pub rules: &'a [String],
    /// The hat it wears, in words.
    pub role: Option<&'a str>,
    /// What else the agent should hear: a near miss, a failed verification, a person's words.
    pub remarks: &'a [String],
    /// The completion marker, when the user's words do not speak of one.
    pub marker: Option<&'a str>,
    /// What the wall around the agent means for it.
    pub sandbox: Option<String>,
}

/// The prompt as it is sent. The marker never is on a line of its own here: an agent that repeats its
/// prompt must not look like one that is done.
pub(crate) fn compose(words: &str, context: &LoopContext<'_>) -> String {
    let mut prompt = words.trim_end().to_owned();
    let _ = write!(prompt, "\n\n---\nLoop: this is iteration {} of at most {}.", context.iteration, context.of);
    if let Some(last) = context.last {
        let _ = write!(prompt, " The last iteration ended with: {last}.");
    }
    prompt.push_str(" Earlier work is in the working directory.\n");
    for rule in context.rules {
        let _ = writeln!(prompt, "Rule: {}", rule.trim());
    }
    if let Some(role) = context.role {
        let _ = writeln!(prompt, "{}", role.trim_end());
    }
    if let Some(sandbox) = &context.sandbox {
        let _ = writeln!(prompt, "{sandbox}");
    }
    for remark in context.remarks {
        let _ = writeln!(prompt, "Note: {}", remark.trim_end());
    }
    if let Some(marker) = context.marker {
        let _ = writeln!(
            prompt,
            "When all of the work is done and checked, end your last message with {marker} on a line of its own. \
             Do not write it before."
        );
    }
    prompt
}

/// The first line of a prompt that says something, without Markdown's sign of a heading.
pub(crate) fn title(words: &str) -> String {
    let line = words.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|line| !line.is_empty());
    line.unwrap_or("work").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_part_follows_the_users_words() {
        let context = LoopContext {
            iteration: 2,
            of: 20,
            last: Some("exit code 1"),
            rules: &["Tests first.".to_owned()],
            role: Some("You wear a hat.\n"),
            remarks: &["be exact".to_owned(), "a person says: hello".to_owned()],
            marker: Some("<promise>COMPLETE</promise>"),
            sandbox: Some("You work in a sandbox.".to_owned()),
        };
        assert_eq!(
            compose("Fix it.\n\n", &context),
            "Fix it.\n\n---\nLoop: this is iteration 2 of at most 20. The last iteration ended with: exit code 1. \
             Earlier work is in the working directory.\nRule: Tests first.\nYou wear a hat.\nYou work in a sandbox.\nNote: be exact\nNote: a person says: hello\nWhen all of the work is done and checked, end \
             your last message with <promise>COMPLETE</promise> on a line of its own. Do not write it before.\n"
        );
    }

    #[test]
    fn repeating_the_loops_part_is_never_completion() {
        use crate::event::{Event, Messages, Tag};
        use crate::signals::{Signal, promise};
        let rule = promise::Rule::new(None, promise::Match::LastLine);
        let context = LoopContext { marker: Some(rule.told()), ..LoopContext::default() };
        let prompt = compose("x", &context);
        let lines: Vec<&str> = prompt.lines().collect();
        for end in 1..=lines.len() {
            let mut watch = promise::Watch::new(rule.clone(), Messages::Lines);
            lines[..end].iter().for_each(|line| watch.see(&Event::text(Tag::Ai, *line)));
            assert!(!matches!(watch.end().signal, Some(Signal::Complete { .. })), "{:?}", &lines[..end]);
        }
    }
}
