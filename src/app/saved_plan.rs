//! What a run must be resumed with: its settings and its prompt, written before the journal begins. Secrets are left out.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::config::{self, Adapter, FileLayer, Layer, Saved, Settings};
use crate::error::{UserError, io_reason};
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::store::PLAN;
use crate::redact::Redactor;
use crate::run::prompt::Source;

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
        RealDisk.replace(&run.path.join(PLAN), &serde_json::to_vec_pretty(self)?)
    }

    /// Reads the plan of a run that resumes: its settings and its prompt.
    pub(crate) fn read(run: &RunDirectory, workspace: &Path) -> Result<(FileLayer, Source), UserError> {
        let unusable = |reason: &str| {
            UserError::usage(format!("cannot resume the run `{}`: {reason}", run.id))
                .hint("start a new run: what was done so far is in the working directory")
        };
        let path = run.path.join(PLAN);
        let bytes = std::fs::read(&path)
            .map_err(|error| unusable(&format!("`{}` cannot be read: {}", path.display(), io_reason(&error))))?;
        let plan: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(&format!("`{}` is damaged: {error}", path.display())))?;
        let today = Layer::today(config::nearest_file(None, workspace).unwrap_or_default());
        let prompt = match plan.prompt {
            Prompt::File(path) => Source::File(path),
            Prompt::Text { text, .. } if text.contains("[redacted:") => {
                return Err(unusable("its prompt held a secret, which was not kept"));
            }
            Prompt::Text { text, from } => Source::Text { text, from },
        };
        Ok((plan.settings.restore(&today)?, prompt))
    }
}
