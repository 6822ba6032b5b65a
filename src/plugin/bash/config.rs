//! `config`, the configuration of agent scripts: a shell file of assignments, read without a shell.
//!
//! Pure. Only `NAME=value` is understood, with the quotes of a shell; everything else is passed over and told.

use super::assignments::{Assignments, is_name};

/// Reads the text of a `config`. `environment` looks a variable up that the file does not set.
pub(crate) fn parse(text: &str, environment: impl Fn(&str) -> Option<String>) -> Assignments {
    Assignments::read(text, |_, word, before| {
        value(word, &|name| before(name).or_else(|| environment(name))).map_err(str::to_owned)
    })
}

fn value(word: &str, known: &impl Fn(&str) -> Option<String>) -> Result<String, &'static str> {
    let mut rest = word.chars().peekable();
    let mut value = String::new();
    let mut quote = None;
    while let Some(character) = rest.next() {
        match (character, quote) {
            ('\'', None) => quote = Some('\''),
            ('"', None) => quote = Some('"'),
            (end, Some(open)) if end == open => quote = None,
            (plain, Some('\'')) => value.push(plain),
            ('`', _) => return Err("commands are not run here"),
            ('$', _) if rest.peek() == Some(&'(') => return Err("commands are not run here"),
            ('$', _) => value.push_str(&variable(&mut rest, known)?),
            ('\\', None) => value.extend(rest.next()),
            ('\\', Some(_)) => match rest.next() {
                Some(escaped @ ('"' | '\\' | '$' | '`')) => value.push(escaped),
                other => value.extend(std::iter::once('\\').chain(other)),
            },
            (' ' | '\t' | ';', None) => {
                let after: String = rest.collect();
                let after = after.trim_start_matches([' ', '\t', ';']);
                if !after.is_empty() && !after.starts_with('#') {
                    return Err("only one assignment on a line is read");
                }
                return Ok(value);
            }
            ('(' | ')' | '&' | '|' | '<' | '>', None) => return Err("only plain values are read"),
            (plain, _) => value.push(plain),
        }
    }
    if quote.is_some() { Err("a quote is not closed on the line") } else { Ok(value) }
}

/// What is after a `$`: `NAME`, `{NAME}` or `{NAME:-default}`.
fn variable(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    known: &impl Fn(&str) -> Option<String>,
) -> Result<String, &'static str> {
    if rest.peek() != Some(&'{') {
        let mut name = String::new();
        while let Some(letter) = rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
            name.push(letter);
        }
        return Ok(if name.is_empty() { "$".to_owned() } else { known(&name).unwrap_or_default() });
    }
    rest.next();
    let mut inner = String::new();
    loop {
        match rest.next() {
            Some('}') => break,
            Some('$' | '`') | None => return Err("only `${NAME}` and `${NAME:-default}` are read"),
            Some(letter) => inner.push(letter),
        }
    }
    let (name, default) = inner.split_once(":-").map_or((inner.as_str(), None), |(name, rest)| (name, Some(rest)));
    if !is_name(name) {
        return Err("only `${NAME}` and `${NAME:-default}` are read");
    }
    let value = known(name).filter(|value| default.is_none() || !value.is_empty());
    Ok(value.unwrap_or_else(|| default.unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Assignments {
        parse(text, |name| (name == "HOME").then(|| "/home/me".to_owned()))
    }

    #[test]
    fn assignments_are_read_as_a_shell_would() {
        for (line, value) in [
            ("AGENT=\"amp\"", "amp"),
            ("AGENT=amp   # which one", "amp"),
            ("PROCESS_DIR=\"\"    # empty = not used", ""),
            ("X='a $HOME \"b\"'", "a $HOME \"b\""),
            ("X=\"a \\\"b\\\" \\$c \\n\"", "a \"b\" $c \\n"),
            ("X=a\\ b", "a b"),
            ("X=\"$HOME/x\"", "/home/me/x"),
            ("X=${NOPE:-fall back}", "fall back"),
            ("X=${HOME:-no}y", "/home/mey"),
            ("X=$NOPE.", "."),
            ("X=5$", "5$"),
            ("export X=1;", "1"),
            ("X=a#b", "a#b"),
        ] {
            let values = read(line);
            assert_eq!(values.warnings, Vec::<String>::new(), "{line}");
            assert_eq!(values.all[0].value, value, "{line}");
        }
        assert_eq!(read("A=1\nB=\"$A-2\"").all[1].value, "1-2");
    }

    #[test]
    fn what_is_more_than_an_assignment_is_passed_over_and_told() {
        for line in [
            "X=$(touch y)",
            "X=\"`touch y`\"",
            "X=1 touch y",
            "X=1; touch y",
            "touch y",
            "X=(a b)",
            "X=a|b",
            "X=\"open",
            "X=${A#b}",
            "X=${A:-$(touch y)}",
            "if true; then",
        ] {
            let values = read(line);
            assert_eq!((values.all.len(), values.warnings.len()), (0, 1), "{line}");
        }
    }
}
