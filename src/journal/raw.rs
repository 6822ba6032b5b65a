//! The raw files of a run, once they are written: found, read, and packed when the run is over.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::disk::private;
use crate::event::Stream;

/// Smaller files are left as they are: there is nothing to gain.
const WORTH_PACKING: u64 = 64 * 1024;

/// The fastest that packs well: raw files are mostly repetition, and a night's run must not end with a minute of packing.
const LEVEL: i32 = 1;

/// Files that are packed end in this.
const PACKED: &str = "zst";

/// One raw file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// Of which iteration.
    pub iteration: u32,
    /// Where.
    pub path: PathBuf,
}

/// The standard output of each iteration, or of one, in order.
pub fn stdouts(directory: &Path, iteration: Option<u32>) -> io::Result<Vec<RawFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut parts = name.split('.');
        if let (Some(Ok(number)), Some("stdout")) = (parts.next().map(str::parse), parts.next())
            && iteration.is_none_or(|wanted| wanted == number)
        {
            files.push(RawFile { iteration: number, path });
        }
    }
    files.sort_unstable_by_key(|file| file.iteration);
    Ok(files)
}

/// The file of one stream of an iteration: as it is written, or packed where only that is left.
pub fn find(directory: &Path, iteration: u32, stream: Stream) -> PathBuf {
    let name = match stream {
        Stream::Stdout => format!("{iteration}.stdout"),
        Stream::Stderr => format!("{iteration}.stderr"),
    };
    let plain = directory.join(&name);
    if plain.exists() { plain } else { directory.join(format!("{name}.{PACKED}")) }
}

/// True when a raw file is packed.
pub fn is_packed(path: &Path) -> bool {
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

/// Packs the raw files of a run that is over. A file is there in one form or the other at any moment.
pub fn pack(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if is_packed(&path) || fs::metadata(&path)?.len() < WORTH_PACKING {
            continue;
        }
        let mut name = path.clone().into_os_string();
        name.push(".new");
        let new = PathBuf::from(name);
        let mut target = path.clone().into_os_string();
        target.push(format!(".{PACKED}"));
        let target = PathBuf::from(target);
        let packed = private().write(true).create(true).truncate(true).open(&new).and_then(|file| {
            let mut out = BufWriter::new(file);
            let input = BufReader::with_capacity(256 * 1024, File::open(&path)?);
            // An earlier try of the same iteration may be packed already.
            let earlier: Box<dyn io::Read> =
                if target.exists() { Box::new(open(&target)?) } else { Box::new(io::empty()) };
            zstd::stream::copy_encode(io::Read::chain(earlier, input), &mut out, LEVEL)?;
            out.flush()?;
            out.get_ref().sync_data()
        });
        if let Err(error) = packed.and_then(|()| fs::rename(&new, &target)).and_then(|()| fs::remove_file(&path)) {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
    }
    Ok(())
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
        pack(directory.path()).unwrap();
        let files = stdouts(directory.path(), None).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["2.stdout", "10.stdout.zst"]);
        assert!(fs::metadata(&files[1].path).unwrap().len() < text.len() as u64 / 3);
        let mut read = String::new();
        open(&files[1].path).unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        assert_eq!(stdouts(directory.path(), Some(2)).unwrap().len(), 1);
    }
}
