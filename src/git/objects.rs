//! Loose objects of git, read and written without a process. What is not there as a loose object is left to git.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha2::Digest as _;

use super::files;

/// The id of an object, as bytes.
pub(super) type Id = Vec<u8>;

/// A larger object is not read.
const MOST_READ: u64 = 1024 * 1024;

/// Where objects are written, and where the repository has its own.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) own: PathBuf,
    pub(super) theirs: PathBuf,
    pub(super) id_length: usize,
}

/// An id as people write it.
pub(super) fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::with_capacity(2 * id.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Objects {
    /// The id that git gives to this content; `None` for one that was made to look like another.
    pub(super) fn id(&self, kind: &str, content: &[u8]) -> Option<Id> {
        let header = format!("{kind} {}\0", content.len());
        if self.id_length == 32 {
            let hash = sha2::Sha256::new().chain_update(header.as_bytes()).chain_update(content).finalize();
            return Some(hash.to_vec());
        }
        let mut hash = sha1_checked::Sha1::new();
        sha1_checked::Digest::update(&mut hash, header.as_bytes());
        sha1_checked::Digest::update(&mut hash, content);
        let hash = hash.try_finalize();
        (!hash.has_collision()).then(|| hash.hash().to_vec())
    }

    /// Stores an object, unless it is there, and gives its id. An error and `None` both mean: ask git.
    pub(super) fn write(&self, kind: &str, content: &[u8]) -> io::Result<Option<Id>> {
        let Some(id) = self.id(kind, content) else { return Ok(None) };
        let path = place(&self.own, &id);
        if path.symlink_metadata().is_err() {
            self.store(&path, kind, content)?;
        }
        Ok(Some(id))
    }

    fn store(&self, path: &Path, kind: &str, content: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let new = self.own.join(format!("tmp_obj_{}_{number}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&new)?;
        let written = (|| {
            let mut encoder = ZlibEncoder::new(file, Compression::fast());
            write!(encoder, "{kind} {}\0", content.len())?;
            encoder.write_all(content)?;
            encoder.finish()?;
            if let Some(directory) = path.parent() {
                match DirBuilder::new().mode(0o700).create(directory) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
            }
            std::fs::rename(&new, path)
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }

    /// The content of a loose object of this kind.
    pub(super) fn read(&self, kind: &str, id: &[u8]) -> Option<Vec<u8>> {
        let packed = [&self.own, &self.theirs].into_iter().find_map(|at| files::read(&place(at, id), MOST_READ))?;
        let mut object = Vec::new();
        ZlibDecoder::new(&packed[..]).take(MOST_READ + 64).read_to_end(&mut object).ok()?;
        let end = memchr::memchr(0, object.get(..object.len().min(64))?)?;
        let header = std::str::from_utf8(&object[..end]).ok()?;
        let length: usize = header.strip_prefix(kind)?.strip_prefix(' ')?.parse().ok()?;
        object.drain(..=end);
        (object.len() == length).then_some(object)
    }
}

fn place(objects: &Path, id: &[u8]) -> PathBuf {
    let name = hex(id);
    let (directory, file) = name.split_at(2);
    objects.join(directory).join(file)
}
