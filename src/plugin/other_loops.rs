//! Projects that were set up for another loop, recognised by the files that its installer leaves.

use std::path::Path;

/// The page for people who come from another loop.
const PAGE: &str = "docs/coming-from.md";

/// The loops: name and section of the page, and the files to recognise one by.
const LOOPS: &[(&str, &[&str])] = &[
    ("bmalph", &[".ralph/.ralphrc", ".ralphrc", ".ralph/drivers/claude-code.sh"]),
    ("ralph-loop", &[".ralph/config"]),
    ("ralphex", &[".ralphex/config"]),
    ("ralph_py", &["scripts/ralph/prompt.md"]),
];

/// One line about the loop that a project was set up for.
pub(crate) fn notice(workspace: &Path) -> Option<String> {
    LOOPS.iter().find_map(|(name, files)| {
        let file = files.iter().find(|file| workspace.join(file).is_file())?;
        Some(format!("this is a {name} project (`{file}`): see `{PAGE}#{name}`"))
    })
}
