//! Modes: prompts with settings, shipped in `prompts/`. A file in `.ralph/prompts/` replaces the prompt; the settings of
//! the mode, which limit what it may change and how long it runs, stay unless the file sets them itself.

use std::path::{Path, PathBuf};

use super::template;
use crate::error::{UserError, io_reason};
use crate::user_file;

/// The shipped ones: name, what it is for, text.
const SHIPPED: [(&str, &str); 4] = [
    ("plan", include_str!("../../prompts/plan.md")),
    ("build", include_str!("../../prompts/build.md")),
    ("understand", include_str!("../../prompts/understand.md")),
    ("review", include_str!("../../prompts/review.md")),
];

/// A prompt with settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub name: String,
    /// The user's own file, when there is one.
    pub file: Option<PathBuf>,
    /// The settings of the mode, as YAML.
    pub settings: &'static str,
    /// The settings in front of the user's own file; they override those of the mode.
    pub own_settings: String,
    /// The prompt with its variables.
    pub template: String,
}

impl Mode {
    /// The names of all modes.
    pub(crate) fn names() -> [&'static str; 4] {
        SHIPPED.map(|(name, _)| name)
    }

    /// A mode by name: the user's own file, or the shipped one.
    pub(crate) fn load(name: &str, workspace: &Path) -> Result<Self, UserError> {
        let shipped = SHIPPED.iter().find(|(known, _)| *known == name);
        let (settings, template) = shipped.map(|(_, text)| split(text)).ok_or_else(|| {
            let known = Self::names().join(", ");
            UserError::usage(format!("unknown mode `{name}`")).hint(format!("known: {known}"))
        })?;
        let name = name.to_owned();
        let path = workspace.join(".ralph/prompts").join(format!("{name}.md"));
        if !user_file::usable(&path).map_err(UserError::usage)? {
            let (own_settings, template) = (String::new(), template.to_owned());
            return Ok(Self { name, file: None, settings, own_settings, template });
        }
        let text = user_file::read_text_inside(workspace, &path, user_file::MOST_BYTES).map_err(|error| {
            UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error)))
                .hint("fix it, or remove it to use the built-in prompt")
        })?;
        let (own, template) = split(&text);
        let (own_settings, template) = (own.to_owned(), template.to_owned());
        Ok(Self { name, file: Some(path), settings, own_settings, template })
    }

    /// The name of the shipped prompt, for people.
    pub(crate) fn built_in(&self) -> String {
        format!("built-in prompt `{}`", self.name)
    }

    /// Where it comes from, for people.
    pub(crate) fn origin(&self) -> String {
        match &self.file {
            Some(path) => path.display().to_string(),
            None => self.built_in(),
        }
    }

    /// True when the prompt has a place for the goal.
    pub(crate) fn asks_for_goal(&self) -> bool {
        template::mentions(&self.template, "goal")
    }

    /// The prompt with its variables filled in.
    pub(crate) fn fill(&self, values: &[(&str, &str)]) -> String {
        template::fill(&self.template, values)
    }
}

/// The settings between two lines of dashes at the top, and what follows.
fn split(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("---\n") else { return ("", text) };
    match rest.split_once("\n---\n") {
        Some((settings, template)) => (settings, template),
        None => ("", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_prompt_tells_the_marker_and_knows_its_variables() {
        for name in Mode::names() {
            let mode = Mode::load(name, Path::new("/nowhere")).unwrap();
            assert!(template::unknown(&mode.template, &[]).is_empty(), "{name}");
            assert!(mode.template.contains("{{marker}}") && !mode.settings.is_empty(), "{name}");
        }
    }

    #[test]
    fn unknown_variables_stay_and_are_named() {
        let mode = Mode {
            name: "x".into(),
            file: None,
            settings: "",
            own_settings: String::new(),
            template: "{{goal}} {{home}} {{ x }} {{".into(),
        };
        assert_eq!(template::unknown(&mode.template, &[]), ["home"]);
        assert_eq!(mode.fill(&[("goal", "{{marker}}"), ("marker", "no")]), "{{marker}} {{home}} {{ x }} {{");
    }

    #[test]
    fn the_users_own_prompt_covers_the_shipped_one() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join(".ralph/prompts")).unwrap();
        std::fs::write(directory.path().join(".ralph/prompts/plan.md"), "---\nno_progress: 2\n---\nMine: {{goal}}\n")
            .unwrap();
        let mode = Mode::load("plan", directory.path()).unwrap();
        assert_eq!((mode.own_settings.as_str(), mode.template.as_str()), ("no_progress: 2", "Mine: {{goal}}\n"));
        assert!(mode.settings.contains("allowed_paths: [PLAN.md]"), "the limits of the mode stay");
        assert!(Mode::load("dance", directory.path()).unwrap_err().message.contains("unknown mode `dance`"));
    }
}
