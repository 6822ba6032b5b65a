//! The directory of a finished run, as one object: packed by the worker, unpacked by the submitter. What comes out of it is only ever a file
//! of a run: prompts, raw output and diffs.

use std::io::{self, Read as _};
use std::path::{Component, Path};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::connect::Hub;
use crate::batch::fleet::names;
use crate::batch::fleet::submitted::Submitted;
use crate::batch::task::TaskId;
use crate::journal::RunDirectory;
use crate::journal::disk::{Disk as _, RealDisk};

/// What of a run's directory travels. The journal comes by itself; plan and place are of the machine.
const PARTS: [&str; 4] = ["goal", "prompts", "raw", "diffs"];
/// The most that is packed or unpacked.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
const MOST_FILES: usize = 10_000;
const LEVEL: i32 = 3;
const PATIENCE: Duration = Duration::from_secs(120);
const LATE: &str = "NATS does not answer";

/// Packs and stores it.
pub(crate) async fn put(hub: &Hub, task: &Submitted, run: &RunDirectory, scratch: &Path) -> Result<(), String> {
    let path = scratch.join("run.tar.zst");
    pack(run, &path).map_err(|error| error.to_string())?;
    let mut file = tokio::fs::File::open(&path).await.map_err(|error| error.to_string())?;
    let name = names::run_object(&task.batch, &task.task.id);
    let stored = tokio::time::timeout(PATIENCE, hub.runs.put(name.as_str(), &mut file)).await;
    let _ = std::fs::remove_file(&path);
    stored.map_err(|_| LATE.to_owned())?.map(drop).map_err(|error| error.to_string())
}

fn pack(run: &RunDirectory, path: &Path) -> io::Result<()> {
    let encoder = zstd::stream::write::Encoder::new(std::fs::File::create(path)?, LEVEL)?;
    let mut archive = tar::Builder::new(encoder);
    archive.follow_symlinks(false);
    let mut left = MOST_BYTES;
    let mut waiting: Vec<_> = PARTS.iter().map(|part| run.path.join(part)).collect();
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path)?.flatten().map(|entry| entry.path()));
        } else if metadata.is_file() && metadata.len() <= left {
            left -= metadata.len();
            let name = path.strip_prefix(&run.path).map_err(io::Error::other)?;
            archive.append_path_with_name(&path, name)?;
        }
    }
    archive.into_inner()?.finish()?.sync_all()
}

/// Fetches it into the directory of a run. What is there already stays.
pub(crate) async fn get(hub: &Hub, batch: &str, task: &TaskId, run: &RunDirectory) -> Result<(), String> {
    let mut object = hub.runs.get(names::run_object(batch, task)).await.map_err(|error| error.to_string())?;
    if object.info().size as u64 > MOST_BYTES {
        return Err("it is too large".to_owned());
    }
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, object.read_to_end(&mut bytes)).await;
    read.map_err(|_| LATE.to_owned())?.map_err(|error| error.to_string())?;
    unpack(&bytes, &run.path).map_err(|error| error.to_string())
}

fn unpack(bytes: &[u8], directory: &Path) -> io::Result<()> {
    let decoder = zstd::stream::read::Decoder::new(bytes)?.take(2 * MOST_BYTES);
    let mut archive = tar::Archive::new(decoder);
    for entry in archive.entries()?.take(MOST_FILES) {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let mut parts = name.components();
        let known = matches!(parts.next(), Some(Component::Normal(first)) if PARTS.iter().any(|part| first == *part));
        let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
        if !known || !plain || !entry.header().entry_type().is_file() {
            continue;
        }
        let path = directory.join(&name);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        if let Some(parent) = path.parent() {
            RealDisk.directory(parent)?;
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        RealDisk.replace(&path, &content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_writes_only_files_of_a_run() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut archive = tar::Builder::new(Vec::new());
        let mut add = |name: &str, kind: tar::EntryType, link: &str| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(if kind.is_file() { 2 } else { 0 });
            header.set_mode(0o4777);
            // Not `set_path`, which refuses what a hostile worker would send.
            let bytes = name.as_bytes();
            header.as_old_mut().name[..bytes.len()].copy_from_slice(bytes);
            if !link.is_empty() {
                header.set_link_name(link).unwrap();
            }
            header.set_cksum();
            archive.append(&header, if kind.is_file() { &b"x\n"[..] } else { &b""[..] }).unwrap();
        };
        add("raw/1.stdout", tar::EntryType::Regular, "");
        add("raw/../../escape", tar::EntryType::Regular, "");
        add("/tmp/absolute", tar::EntryType::Regular, "");
        add("plan.json", tar::EntryType::Regular, "");
        add("raw/link", tar::EntryType::Symlink, "/etc");
        add("raw/link/x", tar::EntryType::Regular, "");
        let packed = zstd::bulk::compress(&archive.into_inner().unwrap(), 3).unwrap();
        unpack(&packed, to.path()).unwrap();
        let mut found: Vec<_> = walk(to.path());
        found.sort();
        assert_eq!(found, ["raw/1.stdout", "raw/link/x"], "{found:?}");
        assert!(!to.path().join("raw/link").is_symlink());
        std::fs::create_dir(from.path().join("raw")).unwrap();
        std::fs::write(from.path().join("raw/2.stdout"), "out\n").unwrap();
        std::fs::write(from.path().join("plan.json"), "{}").unwrap();
        let run = RunDirectory { id: "r".to_owned(), path: from.path().to_owned() };
        pack(&run, &to.path().join("a")).unwrap();
        unpack(&std::fs::read(to.path().join("a")).unwrap(), to.path()).unwrap();
        assert_eq!(std::fs::read(to.path().join("raw/2.stdout")).unwrap(), b"out\n");
        assert!(!to.path().join("plan.json").exists());
    }

    fn walk(top: &Path) -> Vec<String> {
        let (mut found, mut waiting) = (Vec::new(), vec![top.to_owned()]);
        while let Some(directory) = waiting.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                if entry.path().is_dir() {
                    waiting.push(entry.path());
                } else {
                    found.push(entry.path().strip_prefix(top).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found
    }
}
