//! The agents ralph knows by name.

use crate::error::UserError;
use crate::nearest::nearest;

use super::{Agent, Delivery, usual_stop};

/// What the demo works on when the user gives no prompt.
const DEMO_PROMPT: &str = "The greeting in `greet.sh` is wrong. Find out why, mend it, and make `sh test.sh` pass.";

/// All names.
pub fn names() -> Vec<&'static str> {
    vec!["demo"]
}

/// An agent by its name.
pub fn find(name: &str) -> Result<Agent, UserError> {
    if name == "demo" {
        return demo();
    }
    let error = UserError::usage(format!("unknown agent `{name}`"));
    let error = match nearest(name, names()) {
        Some(meant) => error.hint(format!("did you mean `{meant}`?")),
        None => error.hint(format!("known agents: {}", names().join(", "))),
    };
    Err(error.hint("any other command works with `--agent-cmd 'COMMAND'`"))
}

/// The built-in agent that needs no installation: this program, playing a small task.
fn demo() -> Result<Agent, UserError> {
    let program = std::env::current_exe()
        .map_err(|error| UserError::agent(format!("cannot find this program itself for the demo: {error}")))?;
    Ok(Agent {
        name: "demo".to_owned(),
        program: program.into(),
        args: vec!["demo-agent".into()],
        delivery: Delivery::Stdin,
        dialect: Some("rtf1"),
        own_prompt: Some(DEMO_PROMPT),
        stop: usual_stop(),
    })
}
