//! Looks at a command before it is started, because afterwards the system has one word for many mistakes.
//!
//! Reads files only. It must never refuse what the system would run.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::invocation::Invocation;
use super::start_error::{StartError, TooLong};

/// The longest argument or variable with its name that Linux takes, without the NUL at its end.
pub const ARGUMENT_LIMIT: usize = 131_071;

/// The file that `program` means, or why there is none that can run.
pub(super) fn program(invocation: &Invocation) -> Result<PathBuf, StartError> {
    lengths(invocation)?;
    if !invocation.cwd.is_dir() {
        return Err(StartError::CwdGone { path: invocation.cwd.clone() });
    }
    let path = find(invocation)?;
    format(&path, invocation)?;
    Ok(path)
}

/// Turns what the system said on exec into the case it means.
pub(super) fn explain(error: io::Error, invocation: &Invocation, path: &Path) -> StartError {
    let program = invocation.program.clone();
    match error.raw_os_error() {
        Some(libc::EAGAIN) => StartError::TooManyProcesses,
        Some(libc::EMFILE | libc::ENFILE) => StartError::TooManyFiles,
        Some(libc::E2BIG) => StartError::TooLong { what: TooLong::Everything, limit: total_limit() },
        Some(libc::ENOEXEC) => StartError::WrongFormat { path: path.to_owned() },
        Some(libc::EACCES) => StartError::NotExecutable { path: path.to_owned() },
        // The directory was there a moment ago, and the program too.
        Some(libc::ENOENT | libc::ENOTDIR) if !invocation.cwd.is_dir() => {
            StartError::CwdGone { path: invocation.cwd.clone() }
        }
        Some(libc::ENOENT) if path.exists() => {
            let interpreter = loader(path).unwrap_or_else(|| "its loader".to_owned());
            StartError::MissingInterpreter { path: path.to_owned(), interpreter }
        }
        Some(libc::ENOENT) => StartError::NotFound { program, nearest: Vec::new() },
        _ => StartError::Other { program, source: error },
    }
}

fn lengths(invocation: &Invocation) -> Result<(), StartError> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let limit = ARGUMENT_LIMIT;
    if let Some(index) = invocation.args.iter().position(|argument| argument.len() > limit) {
        return Err(StartError::TooLong { what: TooLong::Argument(index + 1), limit });
    }
    if let Some((name, _)) = invocation.env.set.iter().find(|(name, value)| name.len() + 1 + value.len() > limit) {
        return Err(StartError::TooLong { what: TooLong::Variable(name.to_string_lossy().into_owned()), limit });
    }
    Ok(())
}

/// A quarter of the stack is what Linux gives to arguments and environment together.
fn total_limit() -> usize {
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack).current.unwrap_or(u64::MAX);
    usize::try_from((stack / 4).min(6 * 1024 * 1024)).unwrap_or(usize::MAX)
}

fn find(invocation: &Invocation) -> Result<PathBuf, StartError> {
    let program = &invocation.program;
    let not_found = |nearest| StartError::NotFound { program: program.clone(), nearest };
    if program.is_empty() {
        return Err(not_found(Vec::new()));
    }
    let directories = search_path(invocation);
    if program.as_bytes().contains(&b'/') {
        let path = invocation.cwd.join(program);
        return match PathKind::at(&path) {
            PathKind::Executable => Ok(path),
            PathKind::Other => Err(StartError::NotExecutable { path }),
            PathKind::Nothing => {
                let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
                Err(not_found(nearest(&name, &directories)))
            }
        };
    }
    let mut blocked = None;
    for path in directories.iter().map(|directory| directory.join(program)) {
        match PathKind::at(&path) {
            PathKind::Executable => return Ok(path),
            PathKind::Other => blocked = blocked.or(Some(path)),
            PathKind::Nothing => {}
        }
    }
    match blocked {
        Some(path) => Err(StartError::NotExecutable { path }),
        None => Err(not_found(nearest(&program.to_string_lossy(), &directories))),
    }
}

/// The directories of the `PATH` that the child will have; relative ones start at its directory.
fn search_path(invocation: &Invocation) -> Vec<PathBuf> {
    let path = invocation.env.value("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|directory| invocation.cwd.join(directory)).collect()
}

enum PathKind {
    Executable,
    Other,
    Nothing,
}

impl PathKind {
    fn at(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => match rustix::fs::access(path, rustix::fs::Access::EXEC_OK) {
                Ok(()) => Self::Executable,
                Err(_) => Self::Other,
            },
            Ok(_) => Self::Other,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Self::Other,
            Err(_) => Self::Nothing,
        }
    }
}

/// What kind of file it is, where the system's own answer would mislead: the C library hands a file that is no
/// program to the shell, and a missing interpreter looks like a missing program.
fn format(path: &Path, invocation: &Invocation) -> Result<(), StartError> {
    // A program that may be run but not read is left to the system.
    let Ok(head) = head(path) else { return Ok(()) };
    if let Some(line) = head.strip_prefix(b"#!") {
        return script(path, line, invocation);
    }
    let foreign = if head.starts_with(b"\x7fELF") { is_foreign_elf(&head) } else { head.contains(&0) };
    if foreign && cfg!(target_os = "linux") && !has_foreign_formats() {
        return Err(StartError::WrongFormat { path: path.to_owned() });
    }
    Ok(())
}

/// `#!/usr/bin/env node` with no `node` is how an agent most often fails to start.
fn script(path: &Path, line: &[u8], invocation: &Invocation) -> Result<(), StartError> {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let Some(interpreter) = words.next().map(|word| Path::new(OsStr::from_bytes(word))) else { return Ok(()) };
    let missing = |interpreter: &OsStr| {
        // A carriage return from another system must be seen to be found.
        let interpreter = interpreter.to_string_lossy().replace('\r', "\\r");
        Err(StartError::MissingInterpreter { path: path.to_owned(), interpreter })
    };
    if !invocation.cwd.join(interpreter).exists() {
        return missing(interpreter.as_os_str());
    }
    let program = words.find(|word| *word != b"-S").map(OsStr::from_bytes);
    match program {
        Some(program)
            if interpreter.file_name() == Some(OsStr::new("env"))
                && !program.as_bytes().starts_with(b"-")
                && !program.as_bytes().contains(&b'=')
                && !search_path(invocation).iter().any(|directory| directory.join(program).exists()) =>
        {
            missing(program)
        }
        _ => Ok(()),
    }
}

fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(256);
    File::open(path)?.take(256).read_to_end(&mut head)?;
    Ok(head)
}

/// Compares the machine with that of the running program.
fn is_foreign_elf(head: &[u8]) -> bool {
    self::head(Path::new("/proc/self/exe")).is_ok_and(|own| !may_run(machine(head), machine(&own)))
}

fn machine(head: &[u8]) -> Option<[u8; 2]> {
    head.get(18..20)?.try_into().ok()
}

/// Programs of the 32-bit form of a processor run on 64-bit kernels, too; where they do not, the system says so.
fn may_run(program: Option<[u8; 2]>, own: Option<[u8; 2]>) -> bool {
    const I386: [u8; 2] = [3, 0];
    const ARM: [u8; 2] = [40, 0];
    const X86_64: [u8; 2] = [62, 0];
    const ARM64: [u8; 2] = [183, 0];
    program == own || own.is_none() || matches!((program, own), (Some(I386), Some(X86_64)) | (Some(ARM), Some(ARM64)))
}

/// True when the kernel was taught to run other formats, through an emulator for example.
fn has_foreign_formats() -> bool {
    std::fs::read_dir("/proc/sys/fs/binfmt_misc").is_ok_and(|entries| {
        entries.flatten().any(|entry| !matches!(entry.file_name().to_str(), Some("register" | "status")))
    })
}

/// The loader that a program asks for in its header.
fn loader(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(64 * 1024).read_to_end(&mut bytes).ok()?;
    let piece = |at: usize, length: usize| bytes.get(at..at.checked_add(length)?);
    let word = |at: usize| Some(usize::from(u16::from_le_bytes(piece(at, 2)?.try_into().ok()?)));
    let long = |at: usize| usize::try_from(u64::from_le_bytes(piece(at, 8)?.try_into().ok()?)).ok();
    // Only the 64-bit layout: it has been the only one of these programs for long.
    let (table, size, count) = (long(0x20)?, word(0x36)?, word(0x38)?);
    let headers = (0..count).map_while(|index| table.checked_add(index * size));
    let interpreter = headers.into_iter().find(|at| piece(*at, 4) == Some(&[3, 0, 0, 0]))?;
    let text = piece(long(interpreter + 0x08)?, long(interpreter + 0x20)?)?;
    Some(String::from_utf8_lossy(text.strip_suffix(b"\0").unwrap_or(text)).into_owned())
}

/// Up to three programs on `PATH` whose names differ little from `name`.
fn nearest(name: &str, directories: &[PathBuf]) -> Vec<String> {
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let mut found: Vec<(usize, String)> = directories
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flat_map(Iterator::flatten)
        .filter_map(|entry| entry.file_name().into_string().ok())
        // Most names are much longer or shorter, and need no closer look.
        .filter(|candidate| name.len().abs_diff(candidate.len()) <= allowed * 4)
        .map(|candidate| (strsim::osa_distance(name, &candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
