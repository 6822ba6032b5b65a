//! Finds the built binary for a test, and builds it when `cargo test -p` of another package left it out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The path of the `fake-agent` binary that belongs to the running test. Panics when it cannot be built.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| locate().unwrap_or_else(|error| panic!("no `fake-agent` binary: {error}"))).clone()
}

fn locate() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    // A test lies in `<target>/<profile>/deps`, a binary or example one or no directory below `<profile>`.
    let profile = test
        .ancestors()
        .skip(1)
        .find(|directory| !directory.ends_with("deps") && !directory.ends_with("examples"))
        .ok_or("the running test lies in no target directory")?;
    let path = profile.join("fake-agent");
    if is_current(&path) {
        return Ok(path);
    }
    // Several test processes may get here at once: one builds, the others wait for it.
    let lock = File::create(profile.join(".fake-agent.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if !is_current(&path) {
        build(profile)?;
    }
    Ok(path)
}

/// True when the binary exists and is not older than its source.
fn is_current(path: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    changed(path).is_some_and(|built| newest(&source()).is_none_or(|source| source <= built))
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn newest(directory: &Path) -> Option<SystemTime> {
    fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter_map(|entry| match entry.metadata().ok()? {
            metadata if metadata.is_dir() => newest(&entry.path()),
            metadata => metadata.modified().ok(),
        })
        .max()
}

fn build(profile: &Path) -> Result<(), String> {
    let target = profile.parent().ok_or("no target directory")?;
    let name = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "-p", "fake-agent", "--profile", name, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("`cargo build -p fake-agent` ended with {status}"));
    }
    // Cargo leaves the time of an unchanged binary alone; without this every later test would ask it again.
    File::options()
        .append(true)
        .open(profile.join("fake-agent"))
        .and_then(|file| file.set_modified(SystemTime::now()))
        .map_err(|error| error.to_string())
}
