//! Any command as an agent: `--agent-cmd`, or `cli.backend: custom` in `ralph.yml`.

use super::definition::{self, Definition, PromptForm};
use super::{Agent, Options};
use crate::error::UserError;

/// A custom agent from its command line. The prompt goes to standard input unless something else is said.
pub fn custom(argv: &[String], prompt: PromptForm, options: Options) -> Result<Agent, UserError> {
    let Some((program, args)) = argv.split_first().filter(|(program, _)| !program.trim().is_empty()) else {
        return Err(no_command());
    };
    let definition = Definition { prompt, ..definition::of_command(program) };
    Ok(Agent { program: program.into(), leading: args.to_vec(), definition, options, plugin: None })
}

/// Nobody said which command.
pub(crate) fn no_command() -> UserError {
    UserError::usage("the custom agent has no command")
        .hint("use `--agent-cmd 'COMMAND ARGUMENTS'`, or set `cli.command` in `ralph.yml`")
}
