//! Files in places where a repository, an agent or another user can write. They are read and replaced here only: never
//! through a pipe or a device that would hold ralph up, never without a bound, and never through a link that leads out of
//! the workspace.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The most that a prompt, a plan or a configuration may have.
pub(crate) const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Reads a file; one that is not an ordinary file, or too large, is an error.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy(path, most, &mut bytes)?;
    Ok(bytes)
}

/// The same, into a writer.
pub(crate) fn copy(path: &Path, most: u64, into: &mut impl io::Write) -> io::Result<()> {
    // Opening a pipe that nobody writes to would wait forever without this flag.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(invalid("it is not an ordinary file"));
    }
    if io::copy(&mut file.take(most + 1), into)? > most {
        return Err(invalid(&format!("it has more than {most} bytes")));
    }
    Ok(())
}

pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| invalid("it is not UTF-8"))
}

/// Reads a file that ralph found by its usual name, so that no link in the repository makes it read something else.
pub(crate) fn read_text_inside(root: &Path, path: &Path, most: u64) -> io::Result<String> {
    inside(root, path)?;
    read_text(path, most)
}

/// Fails for a path that leads out of the directory by a link.
pub(crate) fn inside(root: &Path, path: &Path) -> io::Result<()> {
    let real = path.canonicalize()?;
    if real.starts_with(root.canonicalize()?) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("it is a link to `{}`, outside of `{}`", real.display(), root.display()),
    ))
}

/// Replaces a file in one step. A link in its place is replaced itself; a directory that is a link out of `root` is refused.
pub(crate) fn replace(root: &Path, path: &Path, text: &str) -> io::Result<()> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    inside(root, directory)?;
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    let new = directory.join(format!(".{}.{chance:016x}", name.to_string_lossy()));
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let written = OpenOptions::new().write(true).create_new(true).custom_flags(flags).mode(0o600).open(&new);
    let renamed =
        written.and_then(|mut file| file.write_all(text.as_bytes())).and_then(|()| std::fs::rename(&new, path));
    if renamed.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    renamed
}

/// True when the file or directory is this user's or root's, so that nobody else decides what it says. Under `sudo` the
/// files of the user who called it count too.
pub(crate) fn is_own(metadata: &Metadata) -> bool {
    let own = rustix::process::geteuid();
    let caller = || std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    metadata.uid() == own.as_raw() || metadata.uid() == 0 || own.is_root() && caller() == Some(metadata.uid())
}

/// The directory and those above it, up to the first that belongs to another user: what is there may be anybody's.
pub(crate) fn own_ancestors(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let mut places = Vec::new();
    for place in directory.ancestors() {
        if !std::fs::metadata(place).is_ok_and(|metadata| is_own(&metadata)) {
            break;
        }
        places.push(place.to_owned());
    }
    places.into_iter()
}

/// Whether a configuration file may be used: it must be there and this user's. The text says why not.
pub(crate) fn usable(path: &Path) -> Result<bool, String> {
    match std::fs::metadata(path) {
        Ok(metadata) if is_own(&metadata) => Ok(true),
        Ok(_) => Err(format!("`{}` belongs to another user and is ignored", path.display())),
        Err(_) => Ok(false),
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_files_of_a_bounded_size_are_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("small"), "words").unwrap();
        assert_eq!(read_text(&path("small"), 5).unwrap(), "words");
        assert!(read(&path("small"), 4).unwrap_err().to_string().contains("more than 4 bytes"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(read(&path("pipe"), 9).unwrap_err().to_string().contains("not an ordinary file"));
        assert!(read(Path::new("/dev/zero"), 9).unwrap_err().to_string().contains("not an ordinary file"));
        assert_eq!(read(place.path(), 9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn links_do_not_lead_out() {
        let place = tempfile::tempdir().unwrap();
        let (root, secret) = (place.path().join("work"), place.path().join("secret"));
        std::fs::create_dir(&root).unwrap();
        std::fs::write(&secret, "key").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("PROMPT.md")).unwrap();
        let error = read_text_inside(&root, &root.join("PROMPT.md"), 9).unwrap_err();
        assert!(error.to_string().contains("it is a link to"), "{error}");
        replace(&root, &root.join("PROMPT.md"), "mine").unwrap();
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "key", "the link was replaced, not its target");
        assert_eq!(std::fs::read_to_string(root.join("PROMPT.md")).unwrap(), "mine");
        std::os::unix::fs::symlink(place.path(), root.join("out")).unwrap();
        assert!(replace(&root, &root.join("out/secret"), "no").is_err());
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "key");
    }
}
