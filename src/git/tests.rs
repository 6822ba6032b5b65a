use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::*;

/// A directory with a working directory and a place for snapshots.
struct Place {
    _directory: tempfile::TempDir,
    work: PathBuf,
    run: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let (work, run) = (place.join("work"), place.join("run"));
        std::fs::create_dir(&work).unwrap();
        Self { _directory: directory, work, run }
    }

    /// With a repository that has one commit.
    fn with_commit(names: &[&str]) -> Self {
        let place = Self::new();
        place.git(&["init", "-q", "-b", "main"]);
        for name in names {
            place.write(name, name);
        }
        place.commit("first");
        place
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.work, args)
    }

    fn commit(&self, subject: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", subject]);
    }

    fn write(&self, name: impl AsRef<Path>, text: &str) {
        let path = self.work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    async fn open(&self) -> Snapshots {
        Snapshots::open(&self.work, &self.run, None, Undo::Off).await
    }
}

fn git(directory: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn look(snapshots: &mut Snapshots) -> Change {
    snapshots.take(By::Agent, true, Effort::Touched).await
}

/// The short way, which asks git for no status.
#[tokio::test]
async fn of_known_files_only_those_with_another_content_are_named() {
    let place = Place::with_commit(&["a", "b", "c", "d/e"]);
    let mut snapshots = place.open().await;
    look(&mut snapshots).await;
    place.write("a", "another");
    place.write("b", &std::fs::read_to_string(place.work.join("b")).unwrap());
    std::fs::remove_file(place.work.join("c")).unwrap();
    std::fs::set_permissions(place.work.join("d/e"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let change = look(&mut snapshots).await;
    assert_eq!(change.files, ["a", "c", "d/e"]);
    assert!(change.patch.unwrap().contains("+another"));
    place.write("a", "another");
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
    place.git(&["commit", "-qam", "all"]);
    place.write("a", "third");
    let change = look(&mut snapshots).await;
    assert!(change.files.contains(&"a".to_owned()) && change.commits.len() == 1, "{change:?}");
}

#[tokio::test]
async fn a_dirty_tree_is_no_progress_until_its_content_changes() {
    let place = Place::with_commit(&["a"]);
    place.write("a", "dirty");
    place.write("new", "untracked");
    let mut snapshots = place.open().await;
    assert_eq!(snapshots.uncommitted(), 2);
    place.write(".ralph/runs/x", "journal");
    place.write("a", "dirty");
    place.git(&["add", "."]);
    let same = look(&mut snapshots).await;
    assert_eq!((same.moved, same.files.len()), (Some(false), 0), "a touch and the index are no progress");
    place.write("a", "dirtier");
    let changed = look(&mut snapshots).await;
    assert_eq!((changed.moved, changed.files), (Some(true), vec!["a".to_owned()]));
    assert!(changed.patch.unwrap().contains("-dirty\n"), "the diff starts from the dirty file");
    assert_eq!(snapshots.notices(), [] as [&str; 0]);
}

#[tokio::test]
async fn every_kind_of_change_is_seen_and_told_in_the_diff() {
    let place = Place::with_commit(&[
        "changed",
        "deleted",
        "script",
        "link",
        "moved",
        "file-to-directory",
        "dir/inner",
        "staged",
    ]);
    let mut snapshots = place.open().await;
    place.write("changed", "other");
    place.write("staged", "other");
    place.git(&["add", "staged"]);
    std::fs::remove_file(place.work.join("deleted")).unwrap();
    std::fs::set_permissions(place.work.join("script"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(place.work.join("link")).unwrap();
    symlink("target of the link", place.work.join("link")).unwrap();
    std::fs::rename(place.work.join("moved"), place.work.join("moved to")).unwrap();
    std::fs::remove_file(place.work.join("file-to-directory")).unwrap();
    place.write("file-to-directory/x", "x");
    // A directory that becomes a link: git does not look for the old files behind it.
    std::fs::rename(place.work.join("dir"), place.work.join("dir2")).unwrap();
    symlink("dir2", place.work.join("dir")).unwrap();
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"odd \"\xff\nname"));
    place.write(odd, "odd");
    let change = look(&mut snapshots).await;
    let odd = odd.to_string_lossy();
    let mut expected = vec![
        "changed",
        "deleted",
        "script",
        "link",
        "moved",
        "moved to",
        "file-to-directory",
        "file-to-directory/x",
        "dir",
        "dir/inner",
        "dir2/inner",
        "staged",
        &odd,
    ];
    expected.sort_unstable();
    assert_eq!(change.files, expected);
    let patch = change.patch.unwrap();
    for told in [
        "+other",
        "deleted file mode",
        "new mode 100755",
        "new file mode 120000",
        "+target of the link",
        "rename from moved",
    ] {
        assert!(patch.contains(told), "{told}\n{patch}");
    }
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
    assert!(place.git(&["status", "--porcelain"]).contains("M  staged"), "the user's index is as it was");
}

#[tokio::test]
async fn head_branch_and_commits_are_those_of_the_repository() {
    let place = Place::new();
    place.git(&["init", "-q", "-b", "side"]);
    place.write("src/a", "one");
    let mut snapshots = place.open().await;
    assert_eq!(look(&mut snapshots).await.branch.as_deref(), Some("side"));
    place.commit("Begin");
    let change = look(&mut snapshots).await;
    assert_eq!((change.moved, change.head_before.as_deref()), (Some(true), None));
    assert_eq!(change.head_after.as_deref(), Some(place.git(&["rev-parse", "HEAD"]).as_str()));
    assert!(change.commits[0].ends_with(" Begin"), "{change:?}");
    assert_eq!(change.files, ["src/a"], "committed, though its content is the same");
    place.write("src/b c", "two");
    place.write("src/d", "two");
    place.commit("Second");
    place.commit("Third");
    place.git(&["pack-refs", "--all"]);
    place.git(&["checkout", "-q", "--detach"]);
    let change = look(&mut snapshots).await;
    let subjects: Vec<&str> = change.commits.iter().map(|commit| commit.split_once(' ').unwrap().1).collect();
    assert_eq!((subjects, change.branch.as_deref()), (vec!["Third", "Second"], None));
    assert_eq!(change.files, ["src/b c", "src/d"]);
    place.git(&["checkout", "-q", "side"]);
    assert_eq!(Repository::at(&place.work).unwrap().head().await.commit, change.head_after, "from packed refs");
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
}

#[tokio::test]
async fn reftables_and_work_trees_have_a_head_too() {
    let place = Place::new();
    place.git(&["init", "-q", "-b", "main", "--bare", "../bare.git"]);
    place.git(&["init", "-q", "-b", "main", "--ref-format=reftable"]);
    place.write("a", "one");
    place.commit("first");
    let repository = Repository::at(&place.work).unwrap();
    let head = repository.head().await;
    assert_eq!(head.commit, Some(place.git(&["rev-parse", "HEAD"])));
    assert_eq!(head.branch.as_deref(), Some("main"));
    place.git(&["push", "-q", "../bare.git", "main"]);
    let tree = place.run.with_file_name("tree");
    git(&place.run.with_file_name("bare.git"), &["worktree", "add", "-q", tree.to_str().unwrap(), "-b", "other"]);
    let repository = Repository::around(&tree).unwrap();
    assert_eq!(
        (repository.head().await.commit, repository.head().await.branch.as_deref()),
        (head.commit, Some("other"))
    );
    let mut snapshots = Snapshots::open(&tree, &place.run, None, Undo::Off).await;
    std::fs::write(tree.join("a"), "two").unwrap();
    assert!(look(&mut snapshots).await.patch.unwrap().contains("-one"));
}

#[tokio::test]
async fn sha256_and_old_and_new_forms_of_the_index_are_read() {
    for form in ["sha256", "2", "4"] {
        let place = Place::new();
        place.git(&["init", "-q", &format!("--object-format={}", if form == "sha256" { form } else { "sha1" })]);
        for name in ["dir/one", "dir/other", "dir2/third", "z"] {
            place.write(name, name);
        }
        place.git(&["add", "."]);
        if form != "sha256" {
            place.git(&["update-index", "--index-version", form]);
        }
        place.git(&["commit", "-qm", "first"]);
        let mut snapshots = place.open().await;
        assert_eq!(snapshots.uncommitted(), 0, "{form}");
        place.write("dir2/third", "changed");
        let change = look(&mut snapshots).await;
        assert_eq!((change.files, snapshots.notices()), (vec!["dir2/third".to_owned()], vec![]), "{form}");
        assert!(change.patch.unwrap().contains("+changed"));
    }
}

#[tokio::test]
async fn a_conflict_and_a_damaged_index_do_not_hide_changes() {
    let place = Place::with_commit(&["a b"]);
    place.git(&["checkout", "-qb", "other"]);
    place.write("a b", "theirs");
    place.commit("theirs");
    place.git(&["checkout", "-q", "main"]);
    place.write("a b", "ours");
    place.commit("ours");
    let merge = std::process::Command::new("git").args(["merge", "-q", "other"]).current_dir(&place.work).output();
    assert!(!merge.unwrap().status.success(), "the merge is in conflict");
    let mut snapshots = place.open().await;
    place.write("a b", "both");
    assert_eq!(look(&mut snapshots).await.files, ["a b"]);
    std::fs::write(place.work.join(".git/index"), "garbage").unwrap();
    place.write("a b", "none");
    assert_eq!(look(&mut snapshots).await.files, ["a b"]);
    drop(snapshots);
    let mut snapshots = place.open().await;
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
    place.write("a b", "again");
    assert_eq!(look(&mut snapshots).await.files, ["a b"], "and where the run starts with it");
}

#[tokio::test]
async fn what_is_hidden_from_status_is_seen() {
    let place = Place::with_commit(&["assumed", "skipped", "plain"]);
    place.git(&["update-index", "--assume-unchanged", "assumed"]);
    place.git(&["update-index", "--skip-worktree", "skipped"]);
    let mut snapshots = place.open().await;
    place.write("assumed", "1");
    place.write("skipped", "2");
    place.git(&["update-index", "--assume-unchanged", "plain"]);
    place.write("plain", "3");
    place.write(".git/info/exclude", "hidden\n");
    place.write("hidden", "4");
    place.git(&["config", "core.excludesFile", place.work.join(".git/more").to_str().unwrap()]);
    place.write(".git/more", "hidden2\n");
    place.write("hidden2", "5");
    let all = ["assumed", "hidden", "hidden2", "plain", "skipped"];
    assert_eq!(look(&mut snapshots).await.files, all);
    assert_eq!(snapshots.since_start().await.unwrap().keys().collect::<Vec<_>>(), all);
    let rule = place.git(&["status", "--porcelain"]);
    assert_eq!(rule, "", "git itself sees nothing of it");
}

#[tokio::test]
async fn a_sparse_checkout_is_not_full_of_deleted_files() {
    let place = Place::with_commit(&["a/x", "b/y"]);
    place.git(&["sparse-checkout", "set", "--no-cone", "/a/"]);
    let mut snapshots = place.open().await;
    assert_eq!(snapshots.uncommitted(), 0);
    place.write("b/y", "made by the agent");
    assert_eq!(look(&mut snapshots).await.files, ["b/y"]);
}

#[tokio::test]
async fn work_in_nested_repositories_and_submodules_is_progress() {
    let place = Place::with_commit(&["a"]);
    place.write("nested/x", "one");
    git(&place.work.join("nested"), &["init", "-q"]);
    let library = place.run.with_file_name("library");
    std::fs::create_dir(&library).unwrap();
    git(&library, &["init", "-q"]);
    std::fs::write(library.join("l"), "one").unwrap();
    git(&library, &["add", "."]);
    git(&library, &["commit", "-qm", "first"]);
    place.git(&["submodule", "--quiet", "add", "../library", "library"]);
    place.git(&["commit", "-qm", "submodule"]);
    let mut snapshots = place.open().await;
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
    for round in 0..3 {
        place.write("nested/x", &format!("round {round}"));
        git(&place.work.join("nested"), &["add", "."]);
        git(&place.work.join("nested"), &["commit", "-qm", &format!("round {round}")]);
        let change = look(&mut snapshots).await;
        assert_eq!((change.moved, change.files), (Some(true), vec!["nested/x".to_owned()]));
        assert!(change.commits[0].ends_with(&format!("round {round}")), "{:?}", change.commits);
        assert!(change.patch.unwrap().contains("+++ b/nested/x"));
    }
    place.write("library/l", "dirty");
    let change = look(&mut snapshots).await;
    assert_eq!((change.moved, change.files), (Some(true), vec!["library/l".to_owned()]));
    place.write("later/x", "one");
    git(&place.work.join("later"), &["init", "-q"]);
    assert_eq!(look(&mut snapshots).await.moved, Some(true));
    place.write("later/x", "two");
    assert_eq!(look(&mut snapshots).await.files, ["later/x"]);
    std::fs::remove_dir_all(place.work.join("later")).unwrap();
    assert_eq!(look(&mut snapshots).await.moved, Some(true));
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
}

#[tokio::test]
async fn without_a_repository_files_are_compared_and_repositories_below_are_seen() {
    let place = Place::new();
    place.write("plain", "one");
    place.write("inner/a", "one");
    git(&place.work.join("inner"), &["init", "-q"]);
    let mut snapshots = place.open().await;
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
    place.write("inner/a", "two");
    let change = look(&mut snapshots).await;
    assert_eq!((change.moved, change.files), (Some(true), vec!["inner/a".to_owned()]));
    place.write("plain", "longer");
    assert_eq!(look(&mut snapshots).await.files, ["plain"]);
    place.git(&["init", "-q"]);
    place.git(&["commit", "-q", "--allow-empty", "-m", "now it is one"]);
    assert_eq!(look(&mut snapshots).await.moved, Some(true));
    place.write("plain", "longest");
    assert!(look(&mut snapshots).await.patch.unwrap().contains("+longest"));
}

#[tokio::test]
async fn a_working_directory_below_the_top_sees_the_whole_repository() {
    let place = Place::with_commit(&["sub/a", "other/b"]);
    let mut snapshots = Snapshots::open(&place.work.join("sub"), &place.run, None, Undo::Off).await;
    place.write("sub/a", "1");
    place.write("other/b", "2");
    place.write("sub/target/x", "build");
    let other = place.work.join("other/b").to_str().unwrap().to_owned();
    assert_eq!(look(&mut snapshots).await.files, [other, "a".to_owned()]);
}

#[tokio::test]
async fn large_and_unreadable_files_are_told_and_do_not_end_the_diffs() {
    let place = Place::with_commit(&["a"]);
    let large = std::fs::File::create(place.work.join("large")).unwrap();
    large.set_len(55 * 1024 * 1024).unwrap();
    let mut snapshots = place.open().await;
    assert_eq!(snapshots.notices(), ["not in diffs: `large` (55 MiB)"]);
    for round in 0..13 {
        place.write("a", &format!("round {round}"));
        assert!(look(&mut snapshots).await.patch.unwrap().contains(&format!("+round {round}")), "{round}");
    }
    assert_eq!(look(&mut snapshots).await.moved, Some(false));
    large.set_len(56 * 1024 * 1024).unwrap();
    let change = look(&mut snapshots).await;
    assert_eq!((change.moved, change.files), (Some(true), vec!["large".to_owned()]));
    assert_eq!(snapshots.notices(), [] as [&str; 0], "once");
    rustix::fs::mknodat(rustix::fs::CWD, place.work.join("a.fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    std::fs::remove_file(place.work.join("a")).unwrap();
    std::fs::rename(place.work.join("a.fifo"), place.work.join("a")).unwrap();
    assert_eq!(look(&mut snapshots).await.moved, Some(true), "and a pipe does not block");
}

#[tokio::test]
async fn a_build_directory_that_nobody_ignored_is_left_out_and_told() {
    let place = Place::with_commit(&["a", "src/b"]);
    let mut snapshots = place.open().await;
    for directory in 0..21 {
        std::fs::create_dir_all(place.work.join(format!("build/{directory}"))).unwrap();
        for file in 0..1000 {
            std::fs::write(place.work.join(format!("build/{directory}/{file}")), "").unwrap();
        }
    }
    place.write("src/new", "1");
    assert_eq!(look(&mut snapshots).await.files, ["src/new"]);
    assert_eq!(snapshots.notices(), ["not watched: `build/` with 21000 untracked files; add it to .gitignore"]);
}

#[tokio::test]
async fn only_touched_paths_are_looked_at_and_none_is_missed() {
    let place = Place::with_commit(&["a/b/c", "a/d", "e"]);
    place.write("large", "");
    std::fs::File::options().write(true).open(place.work.join("large")).unwrap().set_len(40 * 1024 * 1024).unwrap();
    std::fs::create_dir(place.work.join("empty")).unwrap();
    let mut quick = place.open().await;
    for round in 0..9 {
        let name = match round {
            0 => "a/b/c",
            1 => "empty/new",
            2 => "a/b/new/deep/er",
            3 => "a/b/new/deep/er2",
            4 => {
                std::fs::rename(place.work.join("a/b"), place.work.join("moved")).unwrap();
                assert_eq!(look(&mut quick).await.files.len(), 6);
                "moved/new/deep/er"
            }
            5 => "moved/c",
            6 => {
                place.write(".gitignore", "ignored\n");
                "ignored"
            }
            7 => {
                std::fs::remove_file(place.work.join(".gitignore")).unwrap();
                "e"
            }
            _ => "odd \n name",
        };
        place.write(name, &format!("round {round}"));
        let change = look(&mut quick).await;
        let expected = match round {
            6 => vec![".gitignore"],
            7 => vec![".gitignore", "e", "ignored"],
            _ => vec![name],
        };
        assert_eq!(change.files, expected, "{round}");
        assert_eq!(look(&mut quick).await.moved, Some(false), "{round}");
    }
    // A write through a link elsewhere is seen when everything is looked at.
    std::fs::hard_link(place.work.join("e"), place.run.join("link")).unwrap();
    std::fs::write(place.run.join("link"), "by another name").unwrap();
    assert_eq!(quick.take(By::Agent, true, Effort::Full).await.files, ["e"]);
}

#[tokio::test]
async fn the_whole_diff_is_the_net_change_of_the_iterations() {
    let place = Place::with_commit(&["a", "b"]);
    place.write("a", "dirty\n");
    let mut snapshots = place.open().await;
    place.write("a", "1\n");
    place.write("b", "1\n");
    look(&mut snapshots).await;
    place.commit("work");
    place.write("a", "2\n");
    place.write("b", "b");
    look(&mut snapshots).await;
    place.write("by checks", "x");
    snapshots.take(By::Checks, true, Effort::Full).await;
    let patch = snapshots.whole_patch().await.unwrap();
    assert!(patch.contains("-dirty\n+2\n") && !patch.contains("b/b") && !patch.contains("by checks"), "{patch}");
    assert!(snapshots.has_changed());
}

#[tokio::test]
async fn snapshots_are_private_and_gone_with_the_run() {
    let place = Place::with_commit(&["a"]);
    let objects = || walk(&place.work.join(".git")).len();
    let before = objects();
    let mut snapshots = place.open().await;
    place.write("a", "a secret");
    look(&mut snapshots).await;
    assert_eq!(objects(), before, "nothing is written to the repository");
    for path in walk(&place.run) {
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        assert!(
            !path.is_dir() || mode == 0o700 || path.components().any(|part| part.as_os_str() == "objects"),
            "{path:?} {mode:o}"
        );
    }
    drop(snapshots);
    assert_eq!(walk(&place.run).iter().filter(|path| path.is_file()).count(), 0);
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { [vec![path.clone()], walk(&path)].concat() } else { vec![path] })
        .collect()
}
