//! What single lines of Codex' text form mean, today's and the classic ones.

use crate::event::Status;

/// A line that begins a block, or is one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Header<'a> {
    User,
    Agent,
    Thinking,
    System,
    Patch,
    Command,
    CommandLine(&'a str),
    /// The command that runs is over.
    Ended {
        status: Status,
        duration_ms: Option<u64>,
    },
    /// With the number on the same line, or on the next.
    Tokens(Option<u64>),
}

/// True for the first line of Codex' own words.
pub(crate) fn is_banner(line: &str) -> bool {
    banner(line).is_some()
}

/// The version that the banner names.
pub(crate) fn banner(line: &str) -> Option<&str> {
    let line = untimed(line).unwrap_or(line);
    line.strip_prefix("OpenAI Codex v")?.split_whitespace().next()
}

/// True for a line that only the text form has.
pub(crate) fn opens(line: &str) -> bool {
    let line = line.trim_end();
    is_banner(line) || untimed(line).is_some() || header(line, false).is_some()
}

/// The rest of a line that begins with a time in brackets, as before 2025-09.
fn untimed(line: &str) -> Option<&str> {
    let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let time = time.as_bytes();
    let is_time = time.len() >= 19 && time[4] == b'-' && time[10] == b'T' && time[..4].iter().all(u8::is_ascii_digit);
    is_time.then_some(rest)
}

/// True for a line with a time in front: only Codex itself prints one.
pub(crate) fn is_timed(line: &str) -> bool {
    untimed(line).is_some()
}

/// The block that a line begins. With today's banner only today's words count, and exactly.
pub(crate) fn header(line: &str, today: bool) -> Option<Header<'_>> {
    if let Some(rest) = untimed(line) {
        return timed(rest);
    }
    if today {
        return match line {
            "user" => Some(Header::User),
            "codex" => Some(Header::Agent),
            "thinking" => Some(Header::Thinking),
            "exec" => Some(Header::Command),
            "apply patch" => Some(Header::Patch),
            "tokens used" => Some(Header::Tokens(None)),
            _ => tokens(line),
        };
    }
    match line.trim().trim_end_matches(':').to_ascii_lowercase().as_str() {
        "user" => Some(Header::User),
        "assistant" | "codex" | "final" => Some(Header::Agent),
        "thinking" | "analysis" => Some(Header::Thinking),
        "tool" | "exec" => Some(Header::Command),
        "system" => Some(Header::System),
        "apply patch" => Some(Header::Patch),
        "tokens used" => Some(Header::Tokens(None)),
        _ => tokens(line),
    }
}

fn timed(rest: &str) -> Option<Header<'_>> {
    if let Some(command) = rest.strip_prefix("exec ") {
        return Some(Header::CommandLine(command));
    }
    if let Some(end) = end_of_command(rest) {
        return Some(Header::Ended { status: end.status, duration_ms: end.duration_ms });
    }
    match rest {
        "User instructions:" => Some(Header::User),
        _ if rest.starts_with("OpenAI Codex") => None,
        _ => header(rest, false).or(Some(Header::System)),
    }
}

fn tokens(line: &str) -> Option<Header<'_>> {
    let (words, rest) = line.split_once(':')?;
    (words.eq_ignore_ascii_case("tokens used")).then(|| number(rest).map(|total| Header::Tokens(Some(total))))?
}

/// A whole number with or without separators of thousands.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits: String = text.trim().chars().filter(|character| *character != ',').collect();
    digits.parse().ok().filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()))
}

/// The end of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End<'a> {
    /// The command, when it is on the same line.
    pub command: &'a str,
    pub status: Status,
    pub duration_ms: Option<u64>,
}

/// Reads `COMMAND succeeded in 12ms:`, `… failed in …`, `… exited 1 in …`, with or without the command.
pub(crate) fn end_of_command(line: &str) -> Option<End<'_>> {
    let line = line.strip_suffix(':')?;
    let (before, time) = line.rsplit_once(" in ")?;
    let duration_ms = Some(duration(time)?);
    let (command, word) = match before.rsplit_once(' ') {
        Some((rest, code)) if code.parse::<i32>().is_ok() => (rest.strip_suffix("exited")?, code),
        Some((rest, word)) => (rest, word),
        None => return None,
    };
    let status = match word {
        "succeeded" | "0" => Status::Ok,
        "failed" => Status::Fail,
        code if code.parse::<i32>().is_ok() => Status::Fail,
        _ => return None,
    };
    Some(End { command: command.trim(), status, duration_ms })
}

/// `12ms`, `1.5s`, `2m 03s`, `2m03s`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of some hours")]
fn duration(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(number) = text.strip_suffix("ms") {
        return number.trim().parse().ok();
    }
    let seconds = text.strip_suffix('s')?;
    let (minutes, seconds) = seconds.split_once('m').unwrap_or(("0", seconds));
    let (minutes, seconds): (f64, f64) = (minutes.trim().parse().ok()?, seconds.trim().parse().ok()?);
    let milliseconds = (minutes * 60.0 + seconds) * 1000.0;
    (0.0..1e12).contains(&milliseconds).then_some(milliseconds as u64)
}

/// Parts a command from the directory it runs in: `COMMAND in DIRECTORY`.
pub(crate) fn splits<'a>(line: &'a str, directory: Option<&str>) -> Option<(&'a str, &'a str)> {
    if let Some(directory) = directory
        && let Some(command) = line.strip_suffix(directory).and_then(|rest| rest.strip_suffix(" in "))
    {
        return Some((command, &line[line.len() - directory.len()..]));
    }
    line.rsplit_once(" in ").filter(|(_, directory)| directory.starts_with('/') && !directory.contains('\''))
}

/// A line that is one bold heading: reasoning has no header of its own.
pub(crate) fn is_bold(line: &str) -> bool {
    line.strip_prefix("**").and_then(|rest| rest.strip_suffix("**")).is_some_and(|words| !words.trim().is_empty())
}

/// A call that is reported on one line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'a> {
    pub name: String,
    pub query: Option<&'a str>,
    /// How it went, when the line says so.
    pub end: Option<Status>,
    /// Its end is the same line again.
    pub once: bool,
}

pub(crate) fn call(line: &str) -> Option<Call<'_>> {
    if let Some(query) = line.strip_prefix("web search: ") {
        return Some(Call { name: "web_search".into(), query: Some(query), end: None, once: true });
    }
    if let Some(word) = line.strip_prefix("collab: ") {
        let is_word = word.starts_with(|first: char| first.is_ascii_uppercase()) && !word.contains(' ');
        // Told once, and not how it went.
        return is_word.then(|| Call {
            name: format!("collab:{}", snake_case(word)),
            query: None,
            end: Some(Status::Unknown),
            once: false,
        });
    }
    let (name, how) = line.strip_prefix("mcp: ")?.rsplit_once(' ')?;
    let end = match how {
        "started" => None,
        "(completed)" => Some(Status::Ok),
        "(failed)" => Some(Status::Fail),
        _ => return None,
    };
    name.contains('/').then(|| Call { name: format!("mcp:{name}"), query: None, end, once: false })
}

fn snake_case(word: &str) -> String {
    let mut snake = String::new();
    for character in word.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_commands_are_read_in_every_form() {
        for (line, command, status, duration_ms) in [
            (" succeeded in 0ms:", "", Status::Ok, 0),
            (" exited 1 in 56ms:", "", Status::Fail, 56),
            (" exited 0 in 1s:", "", Status::Ok, 1000),
            ("bash -lc 'a in b' in /w succeeded in 1.5s:", "bash -lc 'a in b' in /w", Status::Ok, 1500),
            ("bash -lc x in /w failed in 2m 03s:", "bash -lc x in /w", Status::Fail, 123_000),
        ] {
            assert_eq!(end_of_command(line), Some(End { command, status, duration_ms: Some(duration_ms) }), "{line}");
        }
        for line in ["it succeeded in the end:", " succeeded in 0ms", "codex", " in 5ms:"] {
            assert_eq!(end_of_command(line), None, "{line}");
        }
    }

    #[test]
    fn a_command_with_in_is_not_cut_at_it() {
        let line = "/bin/bash -lc 'echo one in two' in /workspace";
        assert_eq!(splits(line, Some("/workspace")).map(|split| split.0), Some("/bin/bash -lc 'echo one in two'"));
        assert_eq!(splits(line, None).map(|split| split.0), Some("/bin/bash -lc 'echo one in two'"));
        assert_eq!(splits("/bin/bash -lc 'for i in /a", None).map(|split| split.0), Some("/bin/bash -lc 'for i"));
        assert_eq!(splits("/bin/bash -lc 'echo in /x'", Some("/w")), None);
    }

    #[test]
    fn headers_are_loose_only_in_the_classic_form() {
        assert_eq!(header("Assistant:", false), Some(Header::Agent));
        assert_eq!(header("Assistant:", true), None);
        assert_eq!(header("codex", true), Some(Header::Agent));
        assert_eq!(header("[2025-08-10T12:00:00] exec ls in /w", false), Some(Header::CommandLine("ls in /w")));
        assert_eq!(header("[2025-08-10T12:00:00] tokens used: 1,234", true), Some(Header::Tokens(Some(1234))));
        assert_eq!(header("Tokens used: 123", false), Some(Header::Tokens(Some(123))));
        assert_eq!(header("tokens used", true), Some(Header::Tokens(None)));
    }
}
