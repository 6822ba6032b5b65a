//! `.ralphex/config`: the INI file of the loop whose wrappers speak Claude. Parsed by its own rules, never executed.

use std::path::Path;

use crate::config::Origin;

/// What the file says about the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ralphex {
    /// `claude_command`, with its place.
    pub(crate) command: Option<(String, Origin)>,
    /// `claude_args`, with its place.
    pub(crate) args: Option<(String, Origin)>,
    /// `plans_dir`: where the plans are.
    pub(crate) plans: Option<String>,
}

impl Ralphex {
    /// This file over another one, key by key.
    pub(crate) fn over(self, lower: Self) -> Self {
        Self {
            command: self.command.or(lower.command),
            args: self.args.or(lower.args),
            plans: self.plans.or(lower.plans),
        }
    }
}

/// Reads the file. An empty value says nothing, so that the default stays.
pub(crate) fn parse(path: &Path, text: &str) -> Ralphex {
    let mut read = Ralphex::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        if value.is_empty() {
            continue;
        }
        let origin = || Origin::File { path: path.to_owned(), line: index + 1 };
        match key.trim() {
            "claude_command" => read.command = Some((value.to_owned(), origin())),
            "plans_dir" => read.plans = Some(value.to_owned()),
            "claude_args" => read.args = Some((value.to_owned(), origin())),
            _ => {}
        }
    }
    read
}

/// Splits arguments by that loop's rules: blanks separate, either quote protects, a backslash protects the next
/// character everywhere, empty quotes vanish, an open quote lasts to the end.
pub(crate) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', _) => word.extend(characters.next()),
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            (' ', None) => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(character),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_keeps_the_default() {
        let path = Path::new("config");
        let read =
            parse(path, "# x\n[main]\nclaude_command = /opt/codex-as-claude.sh\nclaude_args =\n; y\nplans_dir = x\n");
        let place = Origin::File { path: path.to_owned(), line: 3 };
        assert_eq!(read.command, Some(("/opt/codex-as-claude.sh".to_owned(), place.clone())));
        assert_eq!(read.args, None);
        let lower = parse(Path::new("user"), "claude_command = other\nclaude_args = --x\n");
        let merged = read.over(lower);
        assert_eq!(merged.command.unwrap().1, place);
        assert_eq!(merged.args.unwrap().0, "--x");
    }

    #[test]
    fn arguments_are_split_by_the_rules_of_the_document() {
        for (text, expected) in [
            ("--a  --b", vec!["--a", "--b"]),
            ("'a b' \"c 'd\"", vec!["a b", "c 'd"]),
            (r"a\ b '\''", vec!["a b", "'"]),
            ("'' x \"\"", vec!["x"]),
            ("a\tb", vec!["a\tb"]),
            ("'open end", vec!["open end"]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }
}
