//! Claude's command line as its callers write it: known flags mean what they mean for Claude, others are skipped.

/// What the caller wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The prompt, when it is an argument.
    pub prompt: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub resume: Option<String>,
    pub session_id: Option<String>,
    /// `--append-system-prompt`, and `--system-prompt`.
    pub append_system_prompt: Option<String>,
    pub tools: Vec<String>,
    /// `--permission-mode` that does not allow everything: the agent keeps to its own rules.
    pub asks: bool,
    pub format: Format,
    pub input: Input,
    /// `--include-partial-messages`.
    pub partial: bool,
    /// `--text-only`, which is ralph's own: tool activity as lines of progress.
    pub text_only: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    StreamJson,
    /// The result alone, as an object.
    Json,
    /// The result alone, as text.
    Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Input {
    #[default]
    Text,
    /// One object a line: the control protocol.
    StreamJson,
}

/// Flags of Claude that have a value and mean nothing here: their value is no prompt.
const SKIPPED: [&str; 17] = [
    "--disallowedTools",
    "--disallowed-tools",
    "--max-turns",
    "--mcp-config",
    "--add-dir",
    "--permission-prompt-tool",
    "--settings",
    "--setting-sources",
    "--fallback-model",
    "--max-thinking-tokens",
    "--max-budget-usd",
    "--agents",
    "--betas",
    "--plugin-dir",
    "--json-schema",
    "--tools",
    "--debug-file",
];

impl Arguments {
    /// Reads the arguments; nothing is an error.
    pub(crate) fn read(words: &[String]) -> Self {
        let mut read = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        let mut positional: Vec<&str> = Vec::new();
        while let Some(word) = words.next() {
            let (flag, mut joined) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (word, None),
            };
            let mut value = || joined.take().or_else(|| words.next().map(str::to_owned));
            match flag {
                "--" => positional.extend(words.by_ref()),
                "-p" | "--print" | "--prompt" => {
                    // Claude's own `-p` has no value; wrappers' has.
                    if let Some(text) =
                        joined.or_else(|| words.next_if(|next| !next.starts_with('-')).map(str::to_owned))
                    {
                        read.prompt = Some(text);
                    }
                }
                "--model" => read.model = value().filter(|model| !model.is_empty()),
                "--effort" => read.effort = value().filter(|effort| !effort.is_empty()),
                "--resume" | "-r" => read.resume = value(),
                "--session-id" => read.session_id = value(),
                "--append-system-prompt" | "--system-prompt" => {
                    read.append_system_prompt = value().filter(|text| !text.trim().is_empty());
                }
                "--allowedTools" | "--allowed-tools" => {
                    let list = value().unwrap_or_default();
                    read.tools
                        .extend(list.split(',').map(str::trim).filter(|tool| !tool.is_empty()).map(str::to_owned));
                }
                "--output-format" => {
                    read.format = match value().as_deref() {
                        Some("text") => Format::Text,
                        Some("json") => Format::Json,
                        _ => Format::StreamJson,
                    }
                }
                "--input-format" => {
                    if value().as_deref() == Some("stream-json") {
                        read.input = Input::StreamJson;
                    }
                }
                "--permission-mode" => {
                    read.asks = value().is_some_and(|mode| !mode.is_empty() && mode != "bypassPermissions");
                }
                "--include-partial-messages" => read.partial = true,
                "--text-only" => read.text_only = true,
                _ if SKIPPED.contains(&flag) => drop(value()),
                _ if flag.starts_with('-') => {}
                _ => positional.push(word),
            }
        }
        if read.prompt.is_none() && !positional.is_empty() {
            read.prompt = Some(positional.join(" "));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Arguments {
        Arguments::read(&shlex::split(line).unwrap())
    }

    #[test]
    fn the_ways_to_give_a_prompt() {
        for (line, prompt) in [
            ("--dangerously-skip-permissions --output-format stream-json --verbose -p 'do it'", Some("do it")),
            ("--verbose --print", None),
            ("-p --output-format json 'do it'", Some("do it")),
            ("--print -- '--do it'", Some("--do it")),
            ("--max-turns 3 --model opus --effort=high --print", None),
            ("--prompt 'do it'", Some("do it")),
        ] {
            assert_eq!(read(line).prompt.as_deref(), prompt, "{line}");
        }
    }

    #[test]
    fn flags_mean_what_they_mean_for_claude() {
        let read = read(
            "--model m --effort high --resume s --allowedTools 'Read,Bash(git *)' --permission-mode plan --output-format text \
             --include-partial-messages --append-system-prompt 'be short' --input-format stream-json --strange",
        );
        assert_eq!(
            (read.model.as_deref(), read.effort.as_deref(), read.resume.as_deref()),
            (Some("m"), Some("high"), Some("s"))
        );
        assert_eq!(read.tools, ["Read", "Bash(git *)"]);
        assert_eq!((read.format, read.input, read.partial), (Format::Text, Input::StreamJson, true));
        assert_eq!(read.append_system_prompt.as_deref(), Some("be short"));
        assert_eq!(read.prompt, None);
    }
}
