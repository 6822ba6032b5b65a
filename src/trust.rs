//! What of a repository may run: `trust: ask` asks before anything new or changed runs, and a command that only looks
//! runs nothing of the repository that this user has not run here before.
//!
//! Items are known by the hash of their content. The memory is the user's, in ralph's state directory: a file of the
//! repository never decides.

use std::fmt::Write as _;
use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::config::{self, Origin, Settings, Trust};
use crate::error::{UserError, io_reason};
use crate::journal::store::State;
use crate::ui::out;
use crate::user_file;

/// The file of the memory: a hash, how it became known, and what it is, on each line.
const MEMORY: &str = "trusted";

/// Something of the repository that would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// As a person reads it.
    shown: String,
    /// What it is, apart from its content: two items of the same name are an old and a new form of one thing.
    name: String,
    hash: String,
    /// The user's own words ask for it, so that nobody has to be asked. It is remembered: a resumed run finds it in its saved
    /// plan, which another process may have changed.
    given: bool,
}

impl Item {
    /// A file whose code runs, or that says what runs.
    pub(crate) fn file(kind: &str, path: &Path, workspace: &Path) -> Result<Self, UserError> {
        let place = workspace.join(path);
        let mut hash = Hash(Sha256::new());
        user_file::copy(&place, MOST_BYTES, &mut hash)
            .map_err(|error| UserError::usage(format!("cannot read `{}`: {}", path.display(), io_reason(&error))))?;
        let place = place.canonicalize().unwrap_or(place);
        Ok(Self {
            shown: format!("{kind} `{}`", path.display()),
            name: one_line(&place.display().to_string()),
            hash: hex(&hash.0.finalize()),
            given: false,
        })
    }

    /// A command that a configuration file names. `shown` is what a person reads of it, `text` all of it.
    pub(crate) fn command(key: &str, shown: &str, text: &str, origin: &Origin, workspace: &Path) -> Self {
        Self {
            shown: format!("`{key}`: `{shown}` (from {origin})"),
            name: one_line(&format!("{key} in {}", workspace.display())),
            hash: hex(&Sha256::digest(text.as_bytes())),
            given: false,
        }
    }

    #[must_use]
    pub(crate) const fn given_by_user(mut self) -> Self {
        self.given = true;
        self
    }
}

/// A program may be large.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// A hash as a writer, so that a large program is not held in memory.
struct Hash(Sha256);

impl std::io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How an item became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Ran,
    /// A person was asked about it.
    Allowed,
}

impl Known {
    const fn word(self) -> &'static str {
        match self {
            Self::Ran => "ran",
            Self::Allowed => "allowed",
        }
    }
}

/// Asks about everything that was not allowed yet, where the user wants to be asked, and remembers what runs.
pub(crate) fn consent(items: &[Item], settings: &Settings) -> Result<(), UserError> {
    if items.is_empty() {
        return Ok(());
    }
    let memory = Memory::read();
    if wanted(settings)? == Trust::Always {
        // Without a memory a later look examines less; the run itself does not need it.
        let _ = memory.and_then(|memory| memory.add(items, Known::Ran));
        return Ok(());
    }
    let memory = memory?;
    let new: Vec<Item> = items.iter().filter(|item| !memory.has(item, &[Known::Allowed])).cloned().collect();
    if new.iter().all(|item| item.given) {
        return memory.add(&new, Known::Allowed);
    }
    let list = new.iter().filter(|item| !item.given).fold(String::new(), |mut list, item| {
        let change = if memory.has_name(item) { "changed" } else { "new" };
        let _ = write!(list, "\n  {change}: {}", item.shown);
        list
    });
    let what = format!("this directory contains code that you have not allowed to run:{list}");
    if !out::can_ask() {
        return Err(UserError::usage(format!("{what}\nthere is no terminal to ask on (`trust: ask`)"))
            .hint("read it, then start ralph here once in a terminal and allow it"));
    }
    let _ = out::ask(&format!("{what}\nRun all of it as you? [y/N] "));
    let mut answer = String::new();
    let _ = std::io::stdin().lock().read_line(&mut answer);
    if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        return Err(UserError::usage("not allowed to run; nothing was run"));
    }
    memory.add(&new, Known::Allowed)
}

/// True when this user has run or allowed all of them, with this content.
pub(crate) fn known(items: &[Item]) -> bool {
    let is_known = |memory: &Memory, item: &Item| item.given || memory.has(item, &[Known::Ran, Known::Allowed]);
    items.iter().all(|item| item.given)
        || Memory::read().is_ok_and(|memory| items.iter().all(|item| is_known(&memory, item)))
}

/// What the user wants: `ask` in the project's or in the user's own configuration is enough. A saved plan cannot take it back.
fn wanted(settings: &Settings) -> Result<Trust, UserError> {
    let own = config::own_file()?.layer.trust;
    let asks = settings.trust.value == Trust::Ask || own.is_some_and(|own| own.value == Trust::Ask);
    Ok(if asks { Trust::Ask } else { Trust::Always })
}

/// What this user has run and allowed.
struct Memory {
    path: PathBuf,
    text: String,
}

impl Memory {
    fn read() -> Result<Self, UserError> {
        let state = State::of_user().ok_or_else(|| {
            UserError::usage("`trust: ask` needs a directory outside of the repository")
                .hint("set HOME or RALPH_STATE_DIR")
        })?;
        let path = state.path().join(MEMORY);
        let text = user_file::read_text(&path, user_file::MOST_BYTES).unwrap_or_default();
        Ok(Self { path, text })
    }

    fn has(&self, item: &Item, known: &[Known]) -> bool {
        known.iter().any(|known| {
            let line = line(item, *known);
            self.text.lines().any(|one| one == line)
        })
    }

    fn has_name(&self, item: &Item) -> bool {
        let allowed = |line: &str| line.splitn(3, ' ').skip(1).eq([Known::Allowed.word(), &item.name]);
        self.text.lines().any(allowed)
    }

    fn add(&self, items: &[Item], known: Known) -> Result<(), UserError> {
        let new = items.iter().filter(|item| !self.has(item, &[known]));
        let lines: String = new.map(|item| line(item, known) + "\n").collect();
        if lines.is_empty() {
            return Ok(());
        }
        let write = || {
            let directory = self.path.parent().unwrap_or(Path::new("/"));
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            let mut options = std::fs::OpenOptions::new();
            options.create(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            options.open(&self.path)?.write_all(lines.as_bytes())
        };
        write().map_err(|error: std::io::Error| {
            UserError::failed(format!("cannot remember this in `{}`: {}", self.path.display(), io_reason(&error)))
        })
    }
}

fn line(item: &Item, known: Known) -> String {
    format!("{} {} {}", item.hash, known.word(), item.name)
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], "?")
}

fn hex(hash: &[u8]) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
