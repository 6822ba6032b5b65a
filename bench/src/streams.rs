//! What agents really print, at any size: the captures of `tests/transcripts`, repeated.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The dialects that are measured, each with the captures of its agent.
pub const DIALECTS: [&str; 10] =
    ["claude", "codex", "gemini", "opencode", "copilot", "cline", "pi", "qwen", "goose", "droid"];

/// A file of at least `bytes` with the events of an agent.
pub fn file(place: &Path, dialect: &str, bytes: usize) -> io::Result<PathBuf> {
    let once = captured(dialect)?;
    let path = place.join(format!("{dialect}.jsonl"));
    let mut file = io::BufWriter::new(fs::File::create(&path)?);
    let mut written = 0;
    while written < bytes {
        file.write_all(&once)?;
        written += once.len();
    }
    file.flush()?;
    Ok(path)
}

/// The JSON lines of every capture of an agent, in the order of their names.
pub fn captured(dialect: &str) -> io::Result<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts").join(dialect);
    let mut files = Vec::new();
    for version in fs::read_dir(root)?.flatten().filter(|entry| entry.path().is_dir()) {
        files.extend(fs::read_dir(version.path())?.flatten().map(|entry| entry.path()));
    }
    files.retain(|path| path.to_string_lossy().ends_with("json.stdout"));
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let text = fs::read(path)?;
        for line in text.split(|byte| *byte == b'\n').filter(|line| line.first() == Some(&b'{')) {
            // Also what a CLI cut off itself is real, but `jq` would end there.
            if line.last() == Some(&b'}') {
                all.extend_from_slice(line);
                all.push(b'\n');
            }
        }
    }
    if all.is_empty() { Err(io::Error::other(format!("no captures of {dialect}"))) } else { Ok(all) }
}
