//! What the agent was given and what it started, kept beside the script for assertions.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One start of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// The iteration that was played, from 1.
    pub iteration: usize,
    /// The arguments after the script.
    pub arguments: Vec<String>,
    /// `RALPH_*` and the variables the script names.
    pub environment: BTreeMap<String, String>,
    /// Standard input, when it was read.
    pub stdin: Option<String>,
    /// The working directory.
    pub directory: PathBuf,
    /// Its process id.
    pub process: u32,
}

impl Recorded {
    /// All starts of the script, in order.
    pub fn read(script: &Path) -> Vec<Self> {
        fs::read_to_string(beside(script, "record"))
            .unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    pub(crate) fn append(&self, script: &Path) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        append(&beside(script, "record"), &line)
    }
}

/// The ids of all processes the script has started.
pub(crate) fn process_ids(script: &Path) -> Vec<i32> {
    fs::read_to_string(beside(script, "pids"))
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect()
}

/// Notes that a process lives.
pub(crate) fn note_process(script: &Path) -> io::Result<()> {
    append(&beside(script, "pids"), format!("{}\n", std::process::id()).as_bytes())
}

/// Counts a start, and says which one it is, from 1.
pub(crate) fn count(script: &Path) -> io::Result<usize> {
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(beside(script, "count"))?;
    file.lock()?;
    let mut before = String::new();
    file.read_to_string(&mut before)?;
    let number = before.trim().parse::<usize>().unwrap_or(0) + 1;
    file.rewind()?;
    write!(file, "{number}")?;
    Ok(number)
}

fn beside(script: &Path, extension: &str) -> PathBuf {
    script.with_extension(extension)
}

fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::options().append(true).create(true).open(path)?.write_all(bytes)
}
