//! `ralph plan` and `ralph build` in the project of an agent script: the loop of the script has prompts of its own for them.

use std::path::{Path, PathBuf};

use super::choose::{catalog, settle};
use super::flags::flags;
use crate::cli::Run;
use crate::config::{self, FileLayer, Layer, Origin, Setting};
use crate::error::UserError;
use crate::plugin;

/// The prompt that the loop of an agent script has for a mode.
pub(super) fn prompt(name: &str, args: &Run, file: &FileLayer, workspace: &Path) -> Result<Option<PathBuf>, UserError> {
    if args.prompt_file.is_some() {
        return Ok(None);
    }
    let settings = settle(flags(args)?.over(config::environment()).over(file.layer.clone()), file, workspace)?;
    plugin::settings::prompt_of_mode(name, &settings, &catalog(workspace, file), workspace)
}

/// `ralph build 20`: in the project of an agent script the only word is the number of iterations.
pub(super) fn iterations(name: &str, prompt: &Path, args: &Run) -> Result<Layer, UserError> {
    let count = match args.words.as_slice() {
        [] => return Ok(Layer::default()),
        [only] => only.parse().ok().filter(|&count| count > 0),
        _ => None,
    };
    match count {
        Some(count) => Ok(Layer { max_iterations: Some(Setting::new(count, Origin::Flag("N"))), ..Layer::default() }),
        None => {
            Err(UserError::usage(format!("`ralph {name}` takes no goal here; `{}` is the prompt", prompt.display()))
                .hint(format!("a number sets the maximum iterations: `ralph {name} 20`")))
        }
    }
}
