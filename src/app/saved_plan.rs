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
    /// The phases of the run, each as if it were a run of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    phases: Vec<(String, SavedPlan)>,
}

/// What a run resumes from: its settings and its prompt, and those of each phase.
pub(crate) struct SavedRun {
    pub file: FileLayer,
    pub prompt: Source,
    pub then: Vec<(String, FileLayer, Source)>,
}

impl SavedRun {
    /// The settings whose checks the result has to pass, with the prompt: in a run with phases, those of the build.
    pub(crate) fn checked_by(self) -> (FileLayer, Source) {
        let build = self.then.into_iter().find(|(name, ..)| name == "build");
        build.map_or((self.file, self.prompt), |(_, file, prompt)| (file, prompt))
    }
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
        Ok(Self { settings: Saved::new(settings, adapters, &is_secret), prompt, phases: Vec::new() })
    }

    /// The same with phases.
    #[must_use]
    pub(crate) fn with_phases(self, phases: Vec<(String, Self)>) -> Self {
        Self { phases, ..self }
    }

    pub(crate) fn write(&self, run: &RunDirectory) -> std::io::Result<()> {
        RealDisk.replace(&run.plan(), &serde_json::to_vec_pretty(self)?)
    }

    /// Reads the plan of a run that resumes.
    pub(crate) fn read(run: &RunDirectory, workspace: &Path) -> Result<SavedRun, UserError> {
        let unusable = |reason: &str| unusable(run, reason);
        let path = run.plan();
        let bytes = user_file::read(&path, user_file::MOST_BYTES)
            .map_err(|error| unusable(&format!("`{}` cannot be read: {}", path.display(), io_reason(&error))))?;
        let plan: Self = serde_json::from_slice(&bytes)
            .map_err(|error| unusable(&format!("`{}` is damaged: {error}", path.display())))?;
        let today = Layer::today(config::nearest_file(None, workspace).unwrap_or_default());
        let (settings, prompt, phases) = (plan.settings, plan.prompt, plan.phases);
        let then = phases.into_iter().map(|(name, phase)| {
            let (file, prompt) = phase.restore(&today, run)?;
            Ok((name, file, prompt))
        });
        let then = then.collect::<Result<_, UserError>>()?;
        let (file, prompt) = Self { settings, prompt, phases: Vec::new() }.restore(&today, run)?;
        Ok(SavedRun { file, prompt, then })
    }

    fn restore(self, today: &FileLayer, run: &RunDirectory) -> Result<(FileLayer, Source), UserError> {
        let unusable = |reason: &str| unusable(run, reason);
        let prompt = match self.prompt {
            Prompt::File(path) => Source::File(path),
            Prompt::Text { text, .. } if text.contains("[redacted:") => {
                return Err(unusable("its prompt contained a secret, which was not stored"));
            }
            Prompt::Text { text, from } => Source::Text { text, from },
        };
        let mut file = self.settings.restore(today)?;
        // Another process may have changed the plan. It cannot take back that the user wants to be asked.
        if today.layer.trust.as_ref().is_some_and(|trust| trust.value == Trust::Ask) {
            file.layer.trust.clone_from(&today.layer.trust);
        }
        Ok((file, prompt))
    }
}

fn unusable(run: &RunDirectory, reason: &str) -> UserError {
    UserError::usage(format!("cannot resume the run `{}`: {reason}", run.id))
        .hint("start a new run; the work so far is in the working directory")
}
