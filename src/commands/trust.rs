//! `trust: ask`: nothing of a repository runs before a person has seen it, and again when it has changed.
//!
//! What was allowed is kept outside of the repository, by the hash of the file. It must never be decided by a file that
//! the repository brings.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::config::{self, Settings, Trust};
use crate::error::{UserError, io_reason};

/// How a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may run.
    Trusted,
    /// Nobody was asked about it yet.
    New,
    /// It was allowed, and is not the same any more.
    Changed,
}

/// Asks about each file that was not allowed yet, if the user wants to be asked at all.
pub fn ask(files: &[PathBuf], settings: &Settings, workspace: &Path) -> Result<(), UserError> {
    if wanted(settings)? == Trust::Always {
        return Ok(());
    }
    for file in files {
        let path = workspace.join(file);
        let standing = standing(&path)?;
        if standing == Standing::Trusted {
            continue;
        }
        let what =
            if standing == Standing::New { "was never allowed to run" } else { "has changed since it was allowed" };
        let name = file.display();
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(UserError::usage(format!(
                "`{name}` {what}, and there is no terminal to ask on (`trust: ask`)"
            ))
            .hint("read the file, then start ralph here once in a terminal and allow it"));
        }
        let mut stderr = std::io::stderr();
        let _ = write!(stderr, "`{name}` {what}. It comes with this directory and would run as you.\nRun it? [y/N] ");
        let mut answer = String::new();
        let _ = std::io::stdin().lock().read_line(&mut answer);
        if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            return Err(UserError::usage(format!("`{name}` was not allowed to run")));
        }
        remember(&path)?;
    }
    Ok(())
}

/// What the user wants: one word for `ask`, wherever it stands, is enough.
pub fn wanted(settings: &Settings) -> Result<Trust, UserError> {
    let own = home("XDG_CONFIG_HOME", ".config").map(|path| path.join("ralph.yml")).filter(|path| path.is_file());
    let own = own.map(|path| config::read(&path)).transpose()?.and_then(|file| file.layer.trust);
    let asks = settings.trust.value == Trust::Ask || own.is_some_and(|own| own.value == Trust::Ask);
    Ok(if asks { Trust::Ask } else { Trust::Always })
}

/// How a file stands.
pub fn standing(path: &Path) -> Result<Standing, UserError> {
    let hash = hash(path)?;
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let known = std::fs::read_to_string(store()?).unwrap_or_default();
    let name = path.display().to_string();
    let mut entries = known.lines().filter_map(|line| line.split_once("  ")).filter(|(_, known)| *known == name);
    match entries.next_back() {
        Some((known, _)) if known == hash => Ok(Standing::Trusted),
        Some(_) => Ok(Standing::Changed),
        None => Ok(Standing::New),
    }
}

fn remember(path: &Path) -> Result<(), UserError> {
    let store = store()?;
    let hash = hash(path)?;
    let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let write = || {
        std::fs::create_dir_all(store.parent().unwrap_or(Path::new("/")))?;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&store)?;
        writeln!(file, "{hash}  {}", name.display())
    };
    write().map_err(|error: std::io::Error| {
        UserError::failed(format!("cannot remember this in `{}`: {}", store.display(), io_reason(&error)))
    })
}

fn hash(path: &Path) -> Result<String, UserError> {
    let bytes = std::fs::read(path)
        .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
    let hex = |mut text: String, byte: &u8| {
        let _ = write!(text, "{byte:02x}");
        text
    };
    Ok(Sha256::digest(&bytes).iter().fold(String::new(), hex))
}

/// Where it is remembered what was allowed.
fn store() -> Result<PathBuf, UserError> {
    home("XDG_STATE_HOME", ".local/state").map(|path| path.join("trusted")).ok_or_else(|| {
        UserError::usage("`trust: ask` needs a place outside of the repository").hint("set HOME or XDG_STATE_HOME")
    })
}

fn home(variable: &str, usual: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(usual))).map(|path| path.join("ralph"))
}
