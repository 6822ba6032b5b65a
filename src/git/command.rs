//! The one place that builds git commands. Every command gets an explicit git directory and work tree, none of the `GIT_*` variables
//! from outside, no system or user configuration, and overrides for everything that could start another program.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::process::{Captured, Environment, Exit, Invocation, Place as Side, StartError, Stdin, capture};

/// How long git may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The most output that is kept.
pub(super) const MOST_OUTPUT: usize = 16 * 1024 * 1024;

/// Overrides for every command: they win over every configuration file.
const SETTINGS: &[&str] = &[
    // Nothing else is started.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "credential.helper=",
    "protocol.allow=never",
    "log.showSignature=false",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
    "gc.auto=0",
    "maintenance.auto=false",
    // ralph's own git directory: fast, private, and gone with the run.
    "core.fsync=none",
    "core.sharedRepository=0600",
    "core.untrackedCache=true",
    "core.quotePath=false",
    "core.bigFileThreshold=64m",
    "index.skipHash=true",
    "status.showUntrackedFiles=all",
];

const VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("LC_ALL", "C"),
];

/// Why git has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git is not installed")]
    Missing,
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, Default)]
pub(super) struct Printed {
    pub(super) bytes: Vec<u8>,
    /// There was more than is kept.
    pub(super) cut: bool,
}

/// What git works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) git_directory: &'a Path,
    pub(super) work_tree: &'a Path,
    /// Variables for this command, such as another object directory.
    pub(super) variables: &'a [(&'static str, OsString)],
    /// Settings that win over [`SETTINGS`].
    pub(super) settings: &'a [&'a str],
    pub(super) patience: Duration,
}

/// Runs git in a work tree with a git directory.
pub(super) async fn run(
    git_directory: &Path,
    work_tree: &Path,
    args: &[&str],
    stdin: Vec<u8>,
) -> Result<Printed, GitError> {
    run_at(Place { git_directory, work_tree, variables: &[], settings: &[], patience: PATIENCE }, args, stdin).await
}

/// The same with other objects, another index, or more time.
pub(super) async fn run_at(place: Place<'_>, args: &[&str], stdin: Vec<u8>) -> Result<Printed, GitError> {
    let captured = captured_at(place, args, stdin).await?;
    printed(captured, args.first().copied().unwrap_or_default(), place.patience)
}

/// The same for a question that exit code 1 answers with no: true when it was 0.
pub(super) async fn ask_at(place: Place<'_>, args: &[&str]) -> Result<(bool, Printed), GitError> {
    let mut captured = captured_at(place, args, Vec::new()).await?;
    let yes = captured.success();
    if captured.exit == Some(Exit::Code(1)) {
        captured.exit = Some(Exit::Code(0));
    }
    printed(captured, args.first().copied().unwrap_or_default(), place.patience).map(|printed| (yes, printed))
}

async fn captured_at(place: Place<'_>, args: &[&str], stdin: Vec<u8>) -> Result<Captured, GitError> {
    let Place { git_directory, work_tree, variables, settings, patience } = place;
    let paths = [("GIT_DIR", git_directory), ("GIT_WORK_TREE", work_tree)];
    let mut set: Vec<(OsString, OsString)> =
        paths.iter().map(|(name, path)| ((*name).into(), path.as_os_str().to_owned())).collect();
    set.extend(VARIABLES.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    set.extend(variables.iter().map(|(name, value)| ((*name).into(), value.clone())));
    set.push(("PATH".into(), absolute_search_path()));
    let settings = SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]);
    let invocation = Invocation {
        args: settings.chain(["--no-pager"]).chain(args.iter().copied()).map(Into::into).collect(),
        env: Environment { set, remove: vec!["GIT_*".to_owned()] },
        stdin: if stdin.is_empty() { Stdin::Null } else { Stdin::Bytes(stdin.into()) },
        // git runs nothing of the repository's for ralph.
        place: Side::Outside,
        ..Invocation::new("git", work_tree)
    };
    capture(invocation, patience, MOST_OUTPUT).await.map_err(|error| match error {
        StartError::NotFound { .. } => GitError::Missing,
        other => GitError::Failed(format!("cannot start git: {other}")),
    })
}

fn printed(captured: Captured, name: &str, patience: Duration) -> Result<Printed, GitError> {
    if captured.success() {
        return Ok(Printed { bytes: captured.stdout, cut: captured.cut });
    }
    let said = String::from_utf8_lossy(&captured.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned();
    Err(GitError::Failed(match captured.exit {
        None => format!("`git {name}` took longer than {} s", patience.as_secs()),
        Some(Exit::Code(code)) => format!("`git {name}` failed with exit code {code}: {said}"),
        Some(Exit::Signal(signal)) => format!("`git {name}` was ended by Unix signal {signal}"),
    }))
}

/// Overrides for fetch and push, the only commands that use the user's own configuration of git: remotes need the user's credentials. The
/// repository's configuration is not read for them either.
const PUSH_SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "protocol.ext.allow=never",
    "push.gpgSign=false",
    "push.followTags=false",
    "push.recurseSubmodules=no",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Protocols that start no program that an address names.
const PROTOCOL_SETTINGS: &[&str] = &[
    "protocol.allow=never",
    "protocol.https.allow=always",
    "protocol.http.allow=always",
    "protocol.ssh.allow=always",
    "protocol.git.allow=always",
    "protocol.file.allow=always",
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "credential.interactive=false",
];

/// Talks to another repository with the user's own configuration and credentials, from a git directory of ralph's own.
pub(super) async fn remote(git_directory: &Path, objects: &Path, args: &[&str]) -> Result<Printed, GitError> {
    let set = vec![
        ("GIT_DIR".into(), git_directory.as_os_str().to_owned()),
        ("GIT_OBJECT_DIRECTORY".into(), objects.as_os_str().to_owned()),
        ("GIT_TERMINAL_PROMPT".into(), "0".into()),
        ("LC_ALL".into(), "C".into()),
        ("PATH".into(), absolute_search_path()),
    ];
    // The user's own ways to connect and to ask for a password stay.
    let kept = ["GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let remove = names.filter(|name| name.starts_with("GIT_") && !kept.contains(&name.as_str())).collect();
    let settings = PUSH_SETTINGS.iter().chain(PROTOCOL_SETTINGS).flat_map(|setting| ["-c", setting]);
    let invocation = Invocation {
        args: settings.chain(["--no-pager"]).chain(args.iter().copied()).map(Into::into).collect(),
        env: Environment { set, remove },
        stdin: Stdin::Null,
        place: Side::Outside,
        ..Invocation::new("git", git_directory)
    };
    let patience = Duration::from_secs(600);
    let captured = capture(invocation, patience, MOST_OUTPUT).await.map_err(|error| match error {
        StartError::NotFound { .. } => GitError::Missing,
        other => GitError::Failed(format!("cannot start git: {other}")),
    })?;
    printed(captured, args.first().copied().unwrap_or_default(), patience)
}

/// The version of git, as it prints it.
pub(crate) async fn version() -> Result<String, GitError> {
    let root = Path::new("/");
    let printed = run(root, root, &["--version"], Vec::new()).await?;
    Ok(String::from_utf8_lossy(&printed.bytes).trim().to_owned())
}

/// `PATH` without relative directories: those would mean programs of the repository.
fn absolute_search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let absolute = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    std::env::join_paths(absolute).unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into())
}

/// An object id: hexadecimal digits and nothing else, so that it never is an option.
pub(crate) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
