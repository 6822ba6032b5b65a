//! The settings of an agent besides the chosen one: a substitute, a judge, or the agent of a hat.

use crate::config::{Origin, Program, PromptMode, Setting, Settings};
use crate::run::hats::AgentChoice;
use crate::transcript::Choice;

/// The settings of such an agent. Model, effort and dialect of the chosen agent are not
/// another's.
pub(super) fn settings_for(choice: &AgentChoice, origin: &Origin, settings: &Settings) -> Settings {
    let mut own = settings.clone();
    if choice.shown().is_some() {
        own.command = Setting::new(None, Origin::Default);
        own.model = Setting::new(None, Origin::Default);
        own.effort = Setting::new(None, Origin::Default);
        own.tools = Setting::new(Vec::new(), Origin::Default);
        own.extra_args = Setting::new(Vec::new(), Origin::Default);
        own.transcript = Setting::new(Choice::Auto, Origin::Default);
    }
    if let Some(name) = &choice.agent {
        own.agent = Setting::new(name.clone(), origin.clone());
    }
    if let Some((program, args)) = choice.command.as_ref().and_then(|argv| argv.split_first()) {
        own.agent = Setting::new("custom".to_owned(), origin.clone());
        own.command = Setting::new(Some(Program(program.clone())), origin.clone());
        own.args = Setting::new(args.to_vec(), origin.clone());
        own.prompt_mode = Setting::new(Some(PromptMode::Arg), origin.clone());
        own.prompt_flag = Setting::new(None, Origin::Default);
    }
    if !choice.args.is_empty() {
        own.extra_args = Setting::new([own.extra_args.value, choice.args.clone()].concat(), origin.clone());
    }
    for (value, setting) in [(&choice.model, &mut own.model), (&choice.effort, &mut own.effort)] {
        if value.is_some() {
            *setting = Setting::new(value.clone(), origin.clone());
        }
    }
    if !choice.tools.is_empty() {
        own.tools = Setting::new(choice.tools.clone(), origin.clone());
    }
    if choice.permissions.is_some() {
        own.permissions = Setting::new(choice.permissions, origin.clone());
    }
    own
}
