//! The raw files of a run, once they are written: found, read, and packed while ralph has nothing else to do.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::disk::private;
use crate::event::Stream;

/// Smaller files are left as they are: there is nothing to gain.
const WORTH_PACKING: u64 = 64 * 1024;

/// The fastest that packs well: raw files are mostly repetition.
const LEVEL: i32 = 1;

/// How long a run lasts before files are packed, and between two looks: a short run never waits for it.
const PAUSE: Duration = Duration::from_secs(5);

/// The files of the last iterations are left as they are: their readers expect them so.
const LEFT: u32 = 2;

/// Files that are packed end in this.
const PACKED: &str = "zst";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawFile {
    pub iteration: u32,
    pub path: PathBuf,
}

/// The standard output of each iteration, or of one, in order.
pub(crate) fn stdouts(directory: &Path, iteration: Option<u32>) -> io::Result<Vec<RawFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((number, "stdout" | "stdout.zst")) = name.split_once('.')
            && let Ok(number) = number.parse()
            && iteration.is_none_or(|wanted| wanted == number)
        {
            files.push(RawFile { iteration: number, path });
        }
    }
    files.sort_unstable_by_key(|file| file.iteration);
    Ok(files)
}

/// The file of one stream of an iteration: as it is written, or packed where only that is left.
pub(crate) fn find(directory: &Path, iteration: u32, stream: Stream) -> PathBuf {
    let name = match stream {
        Stream::Stdout => format!("{iteration}.stdout"),
        Stream::Stderr => format!("{iteration}.stderr"),
    };
    let plain = directory.join(&name);
    if plain.exists() { plain } else { directory.join(format!("{name}.{PACKED}")) }
}

/// True when a raw file is packed.
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == PACKED)
}

/// Opens a raw file, packed or not.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = BufReader::with_capacity(256 * 1024, File::open(path)?);
    if !is_packed(path) {
        return Ok(Box::new(file));
    }
    let decoder = zstd::Decoder::with_buffer(file)?;
    Ok(Box::new(BufReader::with_capacity(256 * 1024, decoder)))
}

/// Packs raw files in a thread of the lowest priority, while a run is under way: of its iterations that are over, and of
/// earlier runs. It ends at once when the run does; what it has not packed by then is left to a later run.
#[derive(Debug)]
pub(crate) struct Packer {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Packer {
    /// Packs in the directories of earlier runs, and in that of the run under way.
    pub(crate) fn start(current: PathBuf, earlier: impl FnOnce() -> Vec<PathBuf> + Send + 'static) -> Self {
        let (stop, stopped) = channel();
        let work = move || {
            // Without it, packing is only less polite. Elsewhere the priority would be that of all threads.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::setpriority_process(None, 19);
            let (mut earlier, mut rest) = (Some(earlier), Vec::new());
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                // What cannot be packed stays as it is, and is as good.
                let _ = pack_some(&current, LEFT, &stopped);
                rest.extend(earlier.take().into_iter().flat_map(|earlier| earlier()));
                if let Some(directory) = rest.pop() {
                    let _ = pack_some(&directory, 0, &stopped);
                }
            }
        };
        let thread = std::thread::Builder::new().name("packer".to_owned()).spawn(work).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Packs the raw files of a run that is over.
pub fn pack(directory: &Path) -> io::Result<()> {
    let (_stop, stopped) = channel();
    pack_some(directory, 0, &stopped)
}

/// Packs all but the files of the last iterations. A file is there in one form or the other at any moment.
fn pack_some(directory: &Path, left: u32, stopped: &Receiver<()>) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.split_once('.') {
            Some((number, "stdout" | "stderr")) => files.extend(number.parse::<u32>().map(|number| (number, path))),
            // A ralph that was killed while it packed left it.
            Some((_, "stdout.new" | "stderr.new")) => fs::remove_file(path)?,
            _ => {}
        }
    }
    let last = files.iter().map(|(number, _)| *number).max().unwrap_or(0);
    for (number, path) in files {
        if number + left <= last && fs::metadata(&path)?.len() >= WORTH_PACKING {
            pack_file(&path, stopped)?;
        }
    }
    Ok(())
}

fn pack_file(path: &Path, stopped: &Receiver<()>) -> io::Result<()> {
    let with = |end: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let (new, target) = (with(".new"), with(&format!(".{PACKED}")));
    let packed = private().write(true).create(true).truncate(true).open(&new).and_then(|file| {
        let mut out = zstd::Encoder::new(BufWriter::new(file), LEVEL)?;
        // An earlier try of the same iteration may be packed already.
        if target.exists() {
            copy(open(&target)?, &mut out, stopped)?;
        }
        copy(BufReader::with_capacity(256 * 1024, File::open(path)?), &mut out, stopped)?;
        let mut out = out.finish()?;
        out.flush()?;
        out.get_ref().sync_data()
    });
    let done = packed.and_then(|()| fs::rename(&new, &target)).and_then(|()| fs::remove_file(path));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

/// Copies until the end, or until nobody waits for it any more.
fn copy(mut input: impl BufRead, out: &mut impl io::Write, stopped: &Receiver<()>) -> io::Result<()> {
    loop {
        if stopped.try_recv() == Err(TryRecvError::Disconnected) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len();
        out.write_all(bytes)?;
        input.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_packed_file_reads_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let text = "a line of the agent\n".repeat(20_000);
        fs::write(directory.path().join("10.stdout"), &text).unwrap();
        fs::write(directory.path().join("2.stdout"), "short").unwrap();
        fs::write(directory.path().join("2.stderr"), "short").unwrap();
        // As a ralph leaves it that was killed while it packed.
        fs::write(directory.path().join("10.stdout.new"), "torn").unwrap();
        let files = stdouts(directory.path(), None).unwrap();
        assert_eq!(files.len(), 2, "what was left by a killed ralph is no output: {files:?}");
        pack(directory.path()).unwrap();
        let files = stdouts(directory.path(), None).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["2.stdout", "10.stdout.zst"]);
        assert!(!directory.path().join("10.stdout.new").exists());
        assert!(fs::metadata(&files[1].path).unwrap().len() < text.len() as u64 / 3);
        let mut read = String::new();
        open(&files[1].path).unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        assert_eq!(stdouts(directory.path(), Some(2)).unwrap().len(), 1);
    }
    #[test]
    fn the_last_iterations_are_left_and_a_packer_that_is_stopped_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let text = "a line of the agent\n".repeat(20_000);
        for number in 1..=4 {
            fs::write(directory.path().join(format!("{number}.stdout")), &text).unwrap();
        }
        let (stop, stopped) = channel();
        pack_some(directory.path(), LEFT, &stopped).unwrap();
        let names = || {
            let entries = fs::read_dir(directory.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(), ["1.stdout.zst", "2.stdout.zst", "3.stdout", "4.stdout"]);
        drop(stop);
        pack_some(directory.path(), 0, &stopped).unwrap_err();
        assert_eq!(names(), ["1.stdout.zst", "2.stdout.zst", "3.stdout", "4.stdout"]);
    }
}
