//! Finds the bash files of drivers and agent scripts by name, and says what is missing. It runs none of them.

use std::path::{Path, PathBuf};

use super::by_text::sources_another;
use crate::agent::Contract;
use crate::error::{UserError, io_reason};
use crate::user_file;

/// The file of a name, or what is wrong with the name. `None`: there is no such file.
pub(crate) fn find(contract: Contract, name: &str, workspace: &Path) -> Result<Option<PathBuf>, UserError> {
    let strange = contract == Contract::Driver && (name.contains('/') || name.contains(".."));
    if strange || name.is_empty() {
        return Err(UserError::usage(format!("`{name}` is not a name of a {}", contract.word()))
            .hint("a name has no `/` and no `..`; a file is given by its path: `--agent ./path/to/file.sh`"));
    }
    let candidates = contract.directories().iter().map(|directory| Path::new(directory).join(format!("{name}.sh")));
    let mut ignored = None;
    for path in candidates.filter(|path| workspace.join(path).is_file()) {
        match user_file::usable(&workspace.join(&path)) {
            Ok(_) => return Ok(Some(path)),
            Err(reason) => ignored = Some(reason),
        }
    }
    ignored.map_or(Ok(None), |reason| Err(UserError::usage(reason)))
}

/// The functions that a file's own text defines, seen by reading it.
pub(crate) fn functions(path: &Path, workspace: &Path) -> Result<Vec<String>, UserError> {
    let text = user_file::read(&workspace.join(path), user_file::MOST_BYTES)
        .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
    Ok(functions_in(&String::from_utf8_lossy(&text)))
}

/// The functions that a text defines.
pub(super) fn functions_in(text: &str) -> Vec<String> {
    text.lines().filter_map(function).map(str::to_owned).collect()
}

/// The name that a line begins to define: `name()`, `name ()` or `function name`.
pub(super) fn function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (keyword, rest) = match line.strip_prefix("function ") {
        Some(rest) => (true, rest.trim_start()),
        None => (false, line),
    };
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    (!name.is_empty() && (keyword || after.trim_start().starts_with("()"))).then_some(name)
}

/// Which contract a file follows, by its text.
pub(crate) fn contract(path: &Path, workspace: &Path) -> Result<Contract, UserError> {
    let functions = functions(path, workspace)?;
    Contract::of(&functions).map_err(|problem| {
        UserError::agent(format!("`{}`: {problem}", path.display()))
            .hint("name its contract, `driver:NAME` or `script:NAME`, if another file defines its functions")
    })
}

/// True for a file that may be a plug-in: it defines a function of the contract, or sources a file that may do so. Others
/// are helpers of plug-ins.
fn may_be_plugin(contract: Contract, path: &Path) -> bool {
    let Ok(bytes) = user_file::read(path, user_file::MOST_BYTES) else { return true };
    let text = String::from_utf8_lossy(&bytes);
    contract.missing(&functions_in(&text)).len() < contract.required().len() || sources_another(&text)
}

/// Every plug-in in the places of a contract, with its name; the first of a name wins.
pub(crate) fn list(contract: Contract, workspace: &Path) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for directory in contract.directories() {
        let Ok(listing) = std::fs::read_dir(workspace.join(directory)) else { continue };
        let mut names: Vec<String> = listing
            .flatten()
            .filter(|entry| entry.path().is_file() && user_file::usable(&entry.path()).is_ok())
            .filter(|entry| may_be_plugin(contract, &entry.path()))
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".sh").map(str::to_owned))
            .collect();
        names.sort();
        for name in names {
            if !found.iter().any(|(known, _)| *known == name) {
                let path = Path::new(directory).join(format!("{name}.sh"));
                found.push((name, path));
            }
        }
    }
    found
}

/// Files in the places of a contract that belong to other users.
pub(crate) fn ignored(contract: Contract, workspace: &Path) -> Vec<String> {
    let listings = contract.directories().iter().filter_map(|place| std::fs::read_dir(workspace.join(place)).ok());
    let paths = listings.flatten().flatten().map(|entry| entry.path());
    let scripts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sh"));
    scripts.filter_map(|path| user_file::usable(&path).err()).collect()
}

/// A name that no file has: what there is instead.
pub(crate) fn no_such(contract: Contract, name: &str, workspace: &Path) -> UserError {
    let word = contract.word();
    let names: Vec<String> = list(contract, workspace).into_iter().map(|(name, _)| name).collect();
    let places = contract.directories().iter().map(|directory| format!("`{directory}/{name}.sh`"));
    let error = UserError::usage(format!("no {word} `{name}`; looked for {}", places.collect::<Vec<_>>().join(", ")));
    match names.as_slice() {
        [] => error.hint(format!("write one: `ralph agents new --{word} {name}`")),
        names => error.hint(format!("there are: {}", names.join(", "))),
    }
}

/// Functions that a file must define and does not.
pub(crate) fn lacking(contract: Contract, path: &Path, missing: &[&str]) -> UserError {
    UserError::agent(format!("{} `{}` lacks {}", contract.word(), path.display(), missing.join(", ")))
        .hint(format!("test it against the contract: `ralph agents check {}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_order_and_names_stay_in_their_directories() {
        let place = tempfile::tempdir().unwrap();
        for file in ["drivers/a.sh", "ralph/drivers/a.sh", "drivers/b.sh", "drivers/notes.txt", ".ralph/agents/c.sh"] {
            let path = place.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "driver_name() { echo x; }\nagent_invoke() { :; }\n").unwrap();
        }
        std::fs::write(place.path().join("drivers/helper.sh"), "exec cursor-agent \"$@\"\n").unwrap();
        let found = |contract, name| find(contract, name, place.path()).unwrap();
        assert_eq!(found(Contract::Driver, "a"), Some("ralph/drivers/a.sh".into()));
        assert_eq!(found(Contract::Driver, "b"), Some("drivers/b.sh".into()));
        assert_eq!(found(Contract::Script, "c"), Some(".ralph/agents/c.sh".into()));
        assert_eq!(found(Contract::Script, "a"), None);
        for name in ["../a", "x/a", "..", ""] {
            assert!(find(Contract::Driver, name, place.path()).is_err(), "{name}");
        }
        let names: Vec<String> = list(Contract::Driver, place.path()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b"]);
        let error = no_such(Contract::Driver, "z", place.path());
        assert!(error.message.contains("`.ralph/drivers/z.sh`") && error.hints[0].contains("a, b"), "{error:?}");
    }
}
