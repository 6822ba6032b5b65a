//! Whether an installed agent still has the flags that ralph passes: its own help must show them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::Agent;
use super::definition::{Definition, Permissions};
use super::detect::Start;
use super::question::{Answer, ask, call, outside};

/// What a program's help says about the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flags {
    /// All of them are there; how many.
    All(usize),
    Missing(Vec<String>),
    /// There is nothing to look for.
    None,
    /// The help could not be had; why.
    NoHelp(String),
}

/// Asks an agent for its help and looks for the flags.
pub async fn flags(agent: &Agent, program: &Path, start: Start, workspace: &Path, patience: Duration) -> Flags {
    let wanted = wanted(&agent.definition);
    let words = &agent.definition.help.args;
    if wanted.is_empty() || words.is_empty() {
        return Flags::None;
    }
    let call = call(agent, words, workspace);
    let call = match start {
        Start::InWorkspace => call,
        Start::Outside => outside(call, program, workspace),
        Start::No => return Flags::None,
    };
    match ask(call, patience).await {
        Answer::Silent => Flags::NoHelp(format!("no help within {} s", patience.as_secs())),
        Answer::Unstartable(reason) => Flags::NoHelp(reason),
        // Some print it on standard error, some with another exit code than 0.
        Answer::Said { stdout, stderr, .. } => {
            let help = format!("{}\n{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            if help.trim().is_empty() {
                return Flags::NoHelp("it printed no help".to_owned());
            }
            let count = wanted.len();
            let missing: Vec<String> = wanted.into_iter().filter(|flag| !shows(&help, flag)).collect();
            if missing.is_empty() { Flags::All(count) } else { Flags::Missing(missing) }
        }
    }
}

/// Every flag that is on a command line of a run, and those that the file names besides.
pub(crate) fn wanted(definition: &Definition) -> BTreeSet<String> {
    let Definition { arguments, session, prompt, large_prompt, help, .. } = definition;
    let forms = [&session.given, &session.resume, &session.fork].into_iter().flatten().flat_map(|form| &form.args);
    let prompts = std::iter::once(prompt).chain(large_prompt).flat_map(|form| &form.after);
    let lists = [
        &arguments.headless,
        &arguments.structured,
        &arguments.partial,
        arguments.safe.as_ref().filter(|_| definition.permissions == Permissions::Safe).unwrap_or(&arguments.approve),
        &arguments.directory,
        &arguments.model,
        &arguments.effort,
        &arguments.tools,
        &help.flags,
    ];
    let words = lists.into_iter().flatten().chain(forms).chain(prompts);
    // `--tools={tools}` is the flag `--tools`; `-` and `--` are no flags.
    let flags = words
        .map(|word| word.split('=').next().unwrap_or(word))
        .filter(|word| word.starts_with('-') && !word.trim_start_matches('-').is_empty());
    flags.filter(|flag| !help.hidden.iter().any(|hidden| hidden == flag)).map(str::to_owned).collect()
}

/// Whether a help text shows a flag as a word of its own: `--json` is not in `--json-schema`.
fn shows(help: &str, flag: &str) -> bool {
    let part = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    help.match_indices(flag).any(|(at, _)| {
        let before = help[..at].chars().next_back();
        let after = help[at + flag.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Catalog;

    #[test]
    fn a_flag_is_found_as_a_word() {
        let help = "  -p, --print <text>   Print [--json-schema]\n  -m,--model=NAME\n";
        for (flag, found) in [
            ("-p", true),
            ("--print", true),
            ("--model", true),
            ("-m", true),
            ("--json", false),
            ("--json-schema", true),
            ("-s", false),
            ("--pri", false),
        ] {
            assert_eq!(shows(help, flag), found, "{flag}");
        }
    }

    #[test]
    fn every_flag_of_a_run_is_looked_for() {
        let catalog = Catalog::built_in();
        let of = |id: &str| wanted(&catalog.find(id).unwrap().definition).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(
            of("claude"),
            "--dangerously-skip-permissions --effort --fork-session --include-partial-messages --model --output-format \
             --print --resume --session-id --tools --verbose -p"
        );
        assert!(of("copilot").contains("--available-tools "), "{}", of("copilot"));
        assert!(of("codex").contains(" -C"), "{}", of("codex"));
        assert!(!of("amp").contains("--dangerously-allow-all"), "amp leaves it out of its help");
    }
}
