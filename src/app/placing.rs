//! `--branch` and `--worktree`: makes the branch and the worktree of a run before it is planned, and takes them back when it cannot begin.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::app::choose::settle;
use crate::app::find;
use crate::app::flags::flags;
use crate::app::{repository, sandbox};
use crate::cli::Run;
use crate::config::{self, Settings};
use crate::error::{UserError, io_reason};
use crate::git::{CheckedOut, GitError, Refused, Repository, Try, Writer};
use crate::journal::disk::{Disk as _, RealDisk};
use crate::journal::place::Place;
use crate::journal::{Lock, State};
use crate::process::{Environment, Invocation, capture, runtime};
use crate::redact::Redactor;
use crate::run::prompt::title;
use crate::ui::{harmless, out};

/// How long `worktree.setup` may take.
const SETUP: Duration = Duration::from_secs(30 * 60);
/// How much of its output is shown when it fails.
const SHOWN: usize = 4096;

/// A branch, and where the run works on it.
pub(crate) struct Placed {
    pub place: Place,
    /// The working directory of the run.
    pub workspace: PathBuf,
    /// What to say at the start.
    pub notices: Vec<String>,
}

pub(crate) fn failed(what: &str, error: &GitError) -> UserError {
    UserError::usage(format!("{what}: {error}"))
}

/// Whether the run works on a branch of its own.
pub(crate) const fn is_wanted(args: &Run) -> bool {
    args.place.branch.is_some() || args.place.worktree.is_some()
}

/// Makes what the flags ask for. `args` is changed so that the run finds its files from the new working directory.
pub(crate) fn prepare(args: &mut Run, workspace: &Path) -> Result<Placed, UserError> {
    let file = config::nearest_file(args.config.clone(), workspace)?;
    let settings = settle(flags(args)?.over(config::environment()).over(file.layer.clone()), &file, workspace)?;
    // `worktree.setup` runs before the run is planned.
    repository::consent(&settings, &file, workspace)?;
    let runtime = runtime()?;
    let state = find::state(&settings, workspace)?;
    let placed = runtime.block_on(make(args, &settings, &state, workspace))?;
    if placed.place.worktree.is_some() {
        let prepared = runtime
            .block_on(fill(&settings, &placed.place.repository, &placed))
            .map(|()| follow(args, file.path.as_deref(), workspace, &placed));
        if let Err(error) = prepared {
            take_back(&placed);
            return Err(error);
        }
    }
    Ok(placed)
}

/// The name that was given. A word with blanks in it is not a name but the prompt.
fn given_name(args: &mut Run) -> Option<String> {
    let place = &mut args.place;
    let name = place.branch.as_mut().or(place.worktree.as_mut()).and_then(Option::take)?;
    if name.contains(char::is_whitespace) {
        args.words.insert(0, name);
        return None;
    }
    Some(name)
}

/// The goal as a part of a branch's name.
fn slug(goal: &str) -> String {
    let mut slug = String::new();
    for character in goal.chars().flat_map(char::to_lowercase) {
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
        if slug.len() >= 40 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "work".to_owned() } else { slug.to_owned() }
}

fn goal(args: &Run, settings: &Settings, workspace: &Path) -> String {
    if !args.words.is_empty() && args.words != ["-"] {
        return title(&args.words.join(" "));
    }
    let file = args.prompt_file.clone().or_else(|| settings.prompt_file.value.clone());
    let file = file.unwrap_or_else(|| workspace.join("PROMPT.md"));
    let text = crate::user_file::read_text(&file, crate::user_file::MOST_BYTES).unwrap_or_default();
    title(&text)
}

async fn make(args: &mut Run, settings: &Settings, state: &State, workspace: &Path) -> Result<Placed, UserError> {
    let wants_worktree = args.place.worktree.is_some();
    let flag = if wants_worktree { "--worktree" } else { "--branch" };
    let repository = Repository::around(workspace)
        .ok_or_else(|| UserError::usage(format!("`{flag}` needs a git repository")).hint("create one: `git init`"))?;
    let cannot = |error: GitError| failed(&format!("cannot use `{flag}`"), &error);
    let writer = Writer::open(repository).map_err(cannot)?;
    let head = writer.head().await;
    let Some(commit) = args.place.task_base.clone().or_else(|| head.commit.clone()) else {
        return Err(UserError::usage(format!("`{flag}` needs a commit to start from")).hint("commit something first"));
    };
    // A task starts at a commit, whatever is in the checkout.
    let of_task = args.place.task_base.is_some();
    let uncommitted = if of_task { Vec::new() } else { writer.uncommitted().await.map_err(cannot)? };
    if !uncommitted.is_empty() && !args.place.include_changes {
        let names: Vec<String> =
            uncommitted.iter().take(5).map(|path| format!("`{}`", harmless(&path.to_string_lossy()))).collect();
        let more = if uncommitted.len() > 5 { format!(" and {} more", uncommitted.len() - 5) } else { String::new() };
        return Err(UserError::usage(format!("uncommitted changes: {}{more}", names.join(", ")))
            .hint("commit them, or take them along with `--include-changes`"));
    }
    let given = given_name(args);
    let place = Place {
        repository: writer.repository.top.clone(),
        branch: String::new(),
        base: head.branch.clone(),
        base_commit: commit.clone(),
        remote: writer.repository.remote("origin"),
        ..Place::default()
    };
    let mut placed = Placed { place, workspace: workspace.to_owned(), notices: Vec::new() };
    if wants_worktree {
        if let Some(reason) = writer.reason_against(&commit).await.map_err(cannot)? {
            return Err(UserError::usage(format!("cannot make a worktree: {reason}"))
                .hint("work in this checkout: `--branch`, or neither"));
        }
    } else if let Some(holder) = Lock::holder(&state.store(workspace)) {
        return Err(UserError::usage(format!("another run is active here: {}", holder.run))
            .hint("wait for it, stop it with `ralph stop`, or use `--worktree`"));
    }
    let branch = new_branch(&writer, given, &goal(args, settings, workspace), &commit).await?;
    placed.place.branch.clone_from(&branch);
    let from = head.branch.as_deref().unwrap_or("HEAD");
    let made = if wants_worktree {
        let directory = worktrees(state, settings, &placed.place.repository);
        placed.notices.push(format!("branch: `{branch}` (from `{from}`)"));
        add(&writer, &directory, &commit, args, workspace, &mut placed).await
    } else {
        placed.notices.push(format!("branch: `{branch}` (from `{from}`), in this checkout"));
        writer.set_branch(&branch, "start a run").await.map_err(cannot)
    };
    if let Err(error) = made {
        take_back_now(&placed).await;
        return Err(error);
    }
    Ok(placed)
}

/// Creates the branch; one that exists is never used.
async fn new_branch(writer: &Writer, given: Option<String>, goal: &str, commit: &str) -> Result<String, UserError> {
    let name = given.clone().unwrap_or_else(|| format!("ralph/{}", slug(goal)));
    if !writer.is_branch_name(&name).await {
        return Err(UserError::usage(format!("`{name}` cannot be the name of a branch")));
    }
    for number in 1..1000 {
        let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        if writer.repository.branch(&name).is_none() {
            match writer.update_ref(&format!("refs/heads/{name}"), Some(commit), None, "start a run").await {
                Ok(()) => return Ok(name),
                // Another run was faster, or a branch such as `ralph` is in the way.
                Err(_) if given.is_none() && writer.repository.branch(&name).is_some() => {}
                Err(error) => return Err(failed(&format!("cannot create the branch `{name}`"), &error)),
            }
        } else if given.is_some() {
            return Err(UserError::usage(format!("the branch `{name}` exists"))
                .hint("choose another name, or continue the run that made it: `ralph resume`"));
        }
    }
    Err(UserError::usage(format!("too many branches are called `{name}`")))
}

/// The directory that has the worktrees of a repository.
pub(crate) fn worktrees(state: &State, settings: &Settings, repository: &Path) -> PathBuf {
    let store = state.store(repository);
    let name = store.path().file_name().unwrap_or_default().to_owned();
    let all = settings.worktree_dir.value.clone().unwrap_or_else(|| state.path().join("worktrees"));
    all.join(name)
}

async fn add(
    writer: &Writer,
    directory: &Path,
    commit: &str,
    args: &Run,
    workspace: &Path,
    placed: &mut Placed,
) -> Result<(), UserError> {
    let unusable = |error: std::io::Error| {
        UserError::usage(format!("cannot use `{}`: {}", directory.display(), io_reason(&error)))
    };
    RealDisk.directory(directory).map_err(unusable)?;
    let directory = directory.canonicalize().map_err(unusable)?;
    if directory.starts_with(&placed.place.repository) {
        return Err(UserError::usage(format!("`{}` is inside the repository", directory.display()))
            .hint("set `worktree.dir` to a directory outside of it: build tools find the parent"));
    }
    let branch = placed.place.branch.clone();
    let name = branch.strip_prefix("ralph/").unwrap_or(&branch).replace('/', "-");
    let path = directory.join(name);
    if path.symlink_metadata().is_ok() {
        return Err(UserError::usage(format!("`{}` exists already", path.display()))
            .hint("choose another name, or remove it with `ralph clean --worktrees`"));
    }
    placed.place.worktree = Some(path.clone());
    let below = workspace.strip_prefix(&placed.place.repository).unwrap_or(Path::new(""));
    placed.workspace = path.join(below).components().collect();
    placed.place.workspace = Some(placed.workspace.clone());
    let cannot = |error: GitError| failed("cannot make a worktree", &error);
    let tree = writer.add_worktree(&path, commit, CheckedOut::Branch(&branch)).await.map_err(cannot)?;
    placed.notices.push(format!("worktree: `{}`", path.display()));
    if args.place.include_changes {
        let now = writer.capture(workspace).await.map_err(cannot)?;
        let base = writer.tree_of(commit).await.map_err(cannot)?;
        let copied = Writer::open(tree).map_err(cannot)?.change_files(&base, &now.tree, Try::First).await;
        let count = copied.map_err(|error: Refused| UserError::usage(format!("cannot copy the changes: {error}")))?;
        placed
            .notices
            .push(format!("{} copied to the worktree", crate::plural::plural(count as u64, "uncommitted file")));
    }
    std::fs::create_dir_all(&placed.workspace).map_err(unusable)
}

/// Copies untracked files and runs the setup command in a new worktree.
async fn fill(settings: &Settings, repository: &Path, placed: &Placed) -> Result<(), UserError> {
    let Some(worktree) = &placed.place.worktree else { return Ok(()) };
    fill_worktree(settings, repository, worktree, &placed.workspace).await
}

/// The same for any worktree of the repository.
pub(crate) async fn fill_worktree(
    settings: &Settings,
    repository: &Path,
    worktree: &Path,
    workspace: &Path,
) -> Result<(), UserError> {
    sandbox::around(settings, workspace)?;
    for name in &settings.worktree_copy.value {
        let inside = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside {
            return Err(UserError::usage(format!("`worktree.copy`: `{name}` is not inside the repository")));
        }
        out::tell(format_args!("copying `{}` to the worktree", harmless(name)));
        copy(&repository.join(name), &worktree.join(name)).map_err(|error| {
            UserError::usage(format!("`worktree.copy`: cannot copy `{name}`: {}", io_reason(&error)))
                .hint(format!("it comes from {}", settings.worktree_copy.origin))
        })?;
    }
    let Some(command) = &settings.worktree_setup.value else { return Ok(()) };
    out::tell(format_args!("setting up the worktree: `{}`", harmless(&command.0)));
    let invocation = Invocation {
        args: ["-c", &command.0].map(Into::into).to_vec(),
        env: Environment { remove: vec!["GIT_*".to_owned()], ..Environment::default() },
        ..Invocation::new("sh", workspace)
    };
    let error = match capture(invocation, SETUP, 1024 * 1024).await {
        Ok(done) if done.success() => return Ok(()),
        Ok(done) => {
            let said = [done.stdout, done.stderr].concat();
            let said = String::from_utf8_lossy(&said[said.len().saturating_sub(SHOWN)..]).into_owned();
            let said = Redactor::of_process().text(&said).unwrap_or(said);
            format!("`worktree.setup` failed: `{}`\n{}", command.0, said.trim_end())
        }
        Err(error) => format!("`worktree.setup` cannot run: {error}"),
    };
    Err(UserError::usage(error).hint(format!("it comes from {}", settings.worktree_setup.origin)))
}

/// Copies a file, a link or a directory; what is there already stays.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let metadata = from.symlink_metadata()?;
    if metadata.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if to.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent)?;
    }
    if metadata.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(from)?, to);
    }
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is not an ordinary file"));
    }
    std::fs::copy(from, to).map(drop)
}

/// Files that were named from the old working directory are found from the new one.
fn follow(args: &mut Run, config: Option<&Path>, workspace: &Path, placed: &Placed) {
    let absolute = |path: &PathBuf| workspace.join(path);
    args.prompt_file = args.prompt_file.as_ref().map(absolute);
    if let Some(path) = &args.config {
        args.config = Some(absolute(path));
    } else if let (Some(path), Some(worktree)) = (config, &placed.place.worktree) {
        let below = path.strip_prefix(&placed.place.repository);
        // A configuration that git does not track is the one of the checkout.
        if !below.is_ok_and(|below| worktree.join(below).exists()) {
            args.config = Some(path.to_owned());
        }
    }
    if args.words.is_empty() && args.prompt_file.is_none() {
        let names = ["PROMPT.md", ".ralph/PROMPT.md"];
        let only_here = names.iter().map(|name| workspace.join(name)).find(|path| path.exists());
        if let Some(path) = only_here
            && !names.iter().any(|name| placed.workspace.join(name).exists())
        {
            args.prompt_file = Some(path);
        }
    }
}

/// Takes back what was made for a run that did not begin: nothing was done on its branch.
pub(crate) fn take_back(placed: &Placed) {
    if let Ok(runtime) = runtime() {
        runtime.block_on(take_back_now(placed));
    }
}

async fn take_back_now(placed: &Placed) {
    let Place { repository, branch, base, base_commit, worktree, .. } = &placed.place;
    let Some(writer) = Repository::at(repository).and_then(|repository| Writer::open(repository).ok()) else { return };
    if let Some(worktree) = worktree {
        let _ = writer.remove_worktree(worktree);
    }
    // The checkout is only on the branch when the run was to work in it.
    if writer.head().await.branch.as_ref() == Some(branch) {
        let _ = match base {
            Some(base) => writer.set_branch(base, "take back a run").await,
            None => writer.detach(base_commit, "take back a run").await,
        };
    }
    let _ = writer.update_ref(&format!("refs/heads/{branch}"), None, Some(base_commit), "").await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_after_the_goal() {
        for (goal, name) in [
            ("Fix the failing tests!", "fix-the-failing-tests"),
            ("  Größe & Maß: ändern", "gr-e-ma-ndern"),
            ("../../etc/passwd", "etc-passwd"),
            ("日本語", "work"),
            ("word word word word word word word word word word", "word-word-word-word-word-word-word-word"),
        ] {
            assert_eq!(slug(goal), name, "{goal}");
        }
    }
}
