//! `{{name}}` in prompts: a closed list of variables, filled in before each iteration. The environment is never read. Pure.

/// What a prompt may name, beside `commands.NAME`.
pub(crate) const VARIABLES: [&str; 11] = [
    "goal",
    "marker",
    "workspace",
    "agent",
    "date",
    "iteration",
    "max_iterations",
    "branch",
    "plan",
    "last_result",
    "commands",
];

/// Before the name of a command of the user.
const COMMAND: &str = "commands.";

/// The names of commands that a prompt asks for, each once.
pub(crate) fn commands(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = variables(text).filter_map(|name| name.strip_prefix(COMMAND)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Names that mean nothing; they stay as they are.
pub(crate) fn unknown<'t>(text: &'t str, known_commands: &[(String, String)]) -> Vec<&'t str> {
    let is_known = |name: &str| match name.strip_prefix(COMMAND) {
        Some(command) => known_commands.iter().any(|(known, _)| known == command),
        None => VARIABLES.contains(&name) && name != "commands",
    };
    let mut names: Vec<&str> = variables(text).filter(|name| !is_known(name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// True when the text names this variable.
pub(crate) fn mentions(text: &str, wanted: &str) -> bool {
    variables(text).any(|name| name == wanted)
}

/// The text with the values that are known; other names stay as they are. Values are not read again.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(plain) => filled.push_str(plain),
            Piece::Variable(name) => match values.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => filled.push_str(value),
                None => {
                    filled.push_str("{{");
                    filled.push_str(name);
                    filled.push_str("}}");
                }
            },
        }
    }
    filled
}

fn variables(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        Piece::Variable(name) => Some(name),
        Piece::Text(_) => None,
    })
}

enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// Text and `{{name}}` in turn.
fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(open) = rest[from..].find("{{").map(|at| from + at) {
            if let Some(name) = rest[open + 2..].find("}}").map(|length| &rest[open + 2..open + 2 + length])
                && is_name(name)
            {
                if open == 0 {
                    rest = &rest[name.len() + 4..];
                    return Some(Piece::Variable(name));
                }
                let (text, after) = rest.split_at(open);
                rest = after;
                return Some(Piece::Text(text));
            }
            from = open + 1;
        }
        Some(Piece::Text(std::mem::take(&mut rest)))
    })
}

fn is_name(name: &str) -> bool {
    let (first, command) = name.strip_prefix(COMMAND).map_or((name, false), |command| (command, true));
    let is_part = |byte: u8| {
        byte.is_ascii_lowercase() || byte == b'_' || command && (byte.is_ascii_alphanumeric() || byte == b'-')
    };
    !first.is_empty() && first.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_once_and_others_stay() {
        let values = [("iteration", "3"), ("plan", "{{iteration}}"), ("commands.git-log", "abc")];
        for (text, expected) in [
            ("{{iteration}} of {{max_iterations}}", "3 of {{max_iterations}}"),
            ("{{plan}}", "{{iteration}}"),
            ("log: {{commands.git-log}}", "log: abc"),
            ("{{ iteration }} {{Iteration}} {{}} {{{iteration}}}", "{{ iteration }} {{Iteration}} {{}} {3}"),
            ("{{iteration", "{{iteration"),
        ] {
            assert_eq!(fill(text, &values), expected, "{text}");
        }
    }

    #[test]
    fn commands_and_unknown_names_are_found() {
        let text = "{{commands.a}} {{commands.a}} {{commands.b}} {{name}} {{goal}} {{commands}}";
        assert_eq!(commands(text), ["a", "b"]);
        assert_eq!(unknown(text, &[("a".to_owned(), String::new())]), ["commands", "commands.b", "name"]);
    }
}
