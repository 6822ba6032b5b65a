//! Notices which paths of a work tree are touched between two looks, so that git need not look at the others. It only saves work:
//! a write through a hard link elsewhere or a lasting memory map is not noticed, so whatever must be certain looks at everything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More touched paths than this are not told one by one.
const MOST_PATHS: usize = 64;

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) struct Watch;

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(super) fn start(_top: &Path, _skipped: &[PathBuf]) -> Option<Self> {
        None
    }

    pub(super) fn touched(&mut self) -> Option<BTreeSet<PathBuf>> {
        None
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::Watch;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::MetadataExt as _;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{BTreeSet, MOST_PATHS, Path, PathBuf};

    /// More directories than this are not watched.
    const MOST_DIRECTORIES: usize = 10_000;
    /// ext, tmpfs, overlay, btrfs, XFS, F2FS, ZFS: file systems where nothing changes without this kernel's knowledge.
    const LOCAL: [i64; 7] = [0xEF53, 0x0102_1994, 0x794c_7630, 0x9123_683E, 0x5846_5342, 0xF2F5_2010, 0x2fc1_2fc1];

    /// Watches all directories of a work tree.
    #[derive(Debug)]
    pub(in super::super) struct Watch {
        inotify: OwnedFd,
        top: PathBuf,
        skipped: Vec<PathBuf>,
        device: u64,
        /// Seen from the top, by the number of the watch.
        directories: HashMap<i32, PathBuf>,
    }

    impl Watch {
        /// Begins to watch; `None` where that is not possible. Other repositories in the tree are left out.
        pub(in super::super) fn start(top: &Path, skipped: &[PathBuf]) -> Option<Self> {
            #[allow(clippy::useless_conversion, reason = "the type differs between architectures")]
            let kind = i64::from(rustix::fs::statfs(top).ok()?.f_type);
            if !LOCAL.contains(&kind) {
                return None;
            }
            let mut watch = Self {
                inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?,
                top: top.to_owned(),
                skipped: skipped.to_owned(),
                device: std::fs::metadata(top).ok()?.dev(),
                directories: HashMap::new(),
            };
            watch.add(PathBuf::new())?;
            Some(watch)
        }

        /// Watches a directory and all below it.
        fn add(&mut self, directory: PathBuf) -> Option<()> {
            let flags = WatchFlags::MODIFY
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::ATTRIB
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR
                | WatchFlags::DONT_FOLLOW;
            let mut waiting = vec![directory];
            while let Some(directory) = waiting.pop() {
                let full = self.top.join(&directory);
                let is_top = directory.as_os_str().is_empty();
                if !is_top && full.join(".git").symlink_metadata().is_ok() {
                    continue;
                }
                let number = match inotify::add_watch(&self.inotify, &full, flags) {
                    Ok(number) => number,
                    // It was removed or replaced meanwhile: its parent tells of that.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                    Err(_) => return None,
                };
                self.directories.insert(number, directory.clone());
                if self.directories.len() > MOST_DIRECTORIES || std::fs::metadata(&full).ok()?.dev() != self.device {
                    return None;
                }
                for entry in std::fs::read_dir(&full).ok()?.flatten() {
                    let path = directory.join(entry.file_name());
                    let left_out = self.skipped.contains(&path) || entry.file_name() == ".git";
                    if !left_out && entry.file_type().ok()?.is_dir() {
                        waiting.push(path);
                    }
                }
            }
            Some(())
        }

        /// Paths that were touched since the last call; new directories are watched from now on. `None`: it is not known, and the
        /// watch is of no more use.
        pub(in super::super) fn touched(&mut self) -> Option<BTreeSet<PathBuf>> {
            let mut paths = BTreeSet::new();
            let mut new = BTreeSet::new();
            let mut buffer = [MaybeUninit::uninit(); 8192];
            let mut reader = Reader::new(&self.inotify, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    Err(_) => return None,
                };
                let flags = event.events();
                if flags.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                    return None;
                }
                if flags.contains(ReadFlags::IGNORED) {
                    self.directories.remove(&event.wd());
                    continue;
                }
                let Some(directory) = self.directories.get(&event.wd()) else { continue };
                let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())) else {
                    let is_gone = flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF);
                    if is_gone && directory.as_os_str().is_empty() {
                        return None;
                    }
                    continue;
                };
                let is_top = directory.as_os_str().is_empty();
                // These change what git says about other files.
                if [".gitignore", ".gitattributes"].iter().any(|rules| name == *rules) || name == ".git" && !is_top {
                    return None;
                }
                let path = directory.join(name);
                if name == ".git" || self.skipped.contains(&path) {
                    continue;
                }
                if flags.contains(ReadFlags::ISDIR) && flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                    new.insert(path.clone());
                }
                paths.insert(path);
                if paths.len() > MOST_PATHS {
                    return None;
                }
            }
            new.into_iter().try_for_each(|directory| self.add(directory))?;
            Some(paths)
        }
    }
}
