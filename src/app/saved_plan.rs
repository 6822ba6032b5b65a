//! What a run must be resumed with: its settings and its prompt, written before the journal begins. Secrets are left out.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{self, Adapter, FileLayer, Layer, Saved, Settings, Trust};
use crate::error::{UserError, io_reason};
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::redact::Redactor;
use crate::run::prompt::Source;
use crate::user_file;

/// A run as it was planned.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedPlan {
    #[serde(flatten)]
    settings: Saved,
    prompt: Prompt,
}

/// Where the user's words come from.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Prompt {
    /// A file that is read before each iteration.
    File(std::path::PathBuf),
    /// Words that were given once.
    Text { text: String, from: String },
}

impl SavedPlan {
    /// The plan of a new run.
    pub(crate) fn new(
        settings: &Settings,
        adapters: &[(String, Adapter)],
        prompt: &Source,
        redactor: &Redactor,
    ) -> Result<Self, UserError> {
        let prompt = match prompt {
            Source::File(path) => Prompt::File(path.clone()),
            other => {
                let mut text = other.read()?;
                redactor.clean(&mut text);
                Prompt::Text { text, from: other.name() }
            }
        };
        let is_secret = |text: &str| redactor.text(text).is_some();
        Ok(Self { settings: Saved::new(settings, adapters, &is_secret), prompt })
    }

    pub(crate) fn write(&self, run: &RunDirectory) -> std::io::Result<()> {
        RealDisk.replace(&run.plan(), &serde_json::to_vec_pretty(self)?)
    }

    /// Reads the plan of a run that resumes: its settings and its prompt.
    pub(crate) fn read(run: &RunDirectory, workspace: &Path) -> Result<(FileLayer, Source), UserError> {
        let unusable = |reason: &str| {
            UserError::usage(format!("cannot resume the run `{}`: {reason}", run.id))
                .hint("start a new run; the work so far is in the working directory")
        };
        let path = run.plan();
        let bytes = user_file::read(&path, user_file::MOST_BYTES)
            .map_err(|error| unusable(&format!("`{}` cannot be read: {}", path.display(), io_reason(&error))))?;
        let plan: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(&format!("`{}` is damaged: {error}", path.display())))?;
        let today = Layer::today(config::nearest_file(None, workspace).unwrap_or_default());
        let prompt = match plan.prompt {
            Prompt::File(path) => Source::File(path),
            Prompt::Text { text, .. } if text.contains("[redacted:") => {
                return Err(unusable("its prompt contained a secret, which was not stored"));
            }
            Prompt::Text { text, from } => Source::Text { text, from },
        };
        let mut file = plan.settings.restore(&today)?;
        // Another process may have changed the plan. It cannot take back that the user wants to be asked.
        if today.layer.trust.as_ref().is_some_and(|trust| trust.value == Trust::Ask) {
            file.layer.trust.clone_from(&today.layer.trust);
        }
        Ok((file, prompt))
    }
}
