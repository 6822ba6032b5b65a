//! Any command as an agent: `--agent-cmd`, or `cli.backend: custom` in `ralph.yml`.

use crate::error::UserError;

use super::{Agent, Delivery, usual_stop};

/// A custom agent from its command line. The prompt goes to standard input unless something else is said.
pub fn custom(argv: &[String], delivery: Delivery) -> Result<Agent, UserError> {
    let Some((program, args)) = argv.split_first().filter(|(program, _)| !program.trim().is_empty()) else {
        return Err(UserError::usage("the custom agent has no command")
            .hint("give `--agent-cmd 'COMMAND ARGUMENTS'`, or `command` under `cli:` in `ralph.yml`"));
    };
    Ok(Agent {
        name: "custom".to_owned(),
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        delivery,
        dialect: None,
        own_prompt: None,
        stop: usual_stop(),
    })
}
