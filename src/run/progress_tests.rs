use super::*;

fn run(directory: &Path, args: &[&str]) {
    let status = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
        .args(args)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(status.status.success(), "{args:?}: {}", String::from_utf8_lossy(&status.stderr));
}

fn write(directory: &Path, name: &str, text: &str) {
    let path = directory.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_dirty_tree_is_no_progress_until_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    run(&place, &["init", "-q"]);
    write(&place, "a", "one");
    run(&place, &["add", "."]);
    run(&place, &["commit", "-qm", "first"]);
    write(&place, "a", "dirty");
    write(&place, "new", "untracked");
    write(&place, ".ralph/runs/x", "journal");
    let before = Snapshot::all(&place).await;
    let same = Snapshot::all(&place).await.since(&before).await;
    assert_eq!((same.moved, same.files.len()), (Some(false), 0));
    write(&place, "a", "dirtier");
    write(&place, ".ralph/runs/x", "more journal");
    let changed = Snapshot::all(&place).await.since(&before).await;
    assert_eq!((changed.moved, changed.files), (Some(true), vec!["a".to_owned()]));
}

#[tokio::test]
async fn head_branch_and_files_are_those_that_git_tells() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    run(&place, &["init", "-q", "-b", "side"]);
    write(&place, "one two", "spaces");
    write(&place, "(gone)", "to be removed");
    let unborn = Snapshot::all(&place).await;
    let repository = &unborn.repositories[&place];
    assert_eq!((repository.head.as_deref(), repository.branch.as_deref()), (None, Some("side")));
    run(&place, &["add", "."]);
    run(&place, &["commit", "-qm", "first"]);
    run(&place, &["checkout", "-q", "--detach"]);
    write(&place, "one two", "changed");
    std::fs::remove_file(place.join("(gone)")).unwrap();
    let detached = Snapshot::all(&place).await;
    let repository = &detached.repositories[&place];
    assert_eq!((repository.head.as_ref().map(String::len), repository.branch.as_deref()), (Some(40), None));
    assert_eq!(detached.files.keys().map(PathBuf::as_path).collect::<Vec<_>>(), ["(gone)", "one two"].map(Path::new));
}

#[tokio::test]
async fn a_file_in_conflict_is_a_changed_file() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    run(&place, &["init", "-q", "-b", "main"]);
    write(&place, "a b", "base");
    run(&place, &["add", "."]);
    run(&place, &["commit", "-qm", "base"]);
    run(&place, &["checkout", "-qb", "other"]);
    write(&place, "a b", "theirs");
    run(&place, &["commit", "-qam", "theirs"]);
    run(&place, &["checkout", "-q", "main"]);
    write(&place, "a b", "ours");
    run(&place, &["commit", "-qam", "ours"]);
    let merge = ["-c", "user.name=t", "-c", "user.email=t@example.com", "merge", "-q", "other"];
    let merge = std::process::Command::new("git").args(merge).current_dir(&place).output().unwrap();
    assert!(!merge.status.success(), "the merge is in conflict");
    let snapshot = Snapshot::all(&place).await;
    assert_eq!(snapshot.files.keys().map(PathBuf::as_path).collect::<Vec<_>>(), [Path::new("a b")]);
}

#[tokio::test]
async fn a_commit_is_progress_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    run(&place, &["init", "-q"]);
    write(&place, "src/a", "one");
    let before = Snapshot::all(&place).await;
    run(&place, &["add", "."]);
    run(&place, &["commit", "-qm", "Begin"]);
    let change = Snapshot::all(&place).await.since(&before).await;
    assert_eq!(change.moved, Some(true));
    let below = Snapshot::all(&place.join("src")).await.since(&before).await;
    assert!(below.files.contains(&"a".to_owned()), "told from the working directory: {below:?}");
    assert!(change.commits[0].ends_with(" Begin"), "{change:?}");
    assert!(change.files.contains(&"src/a".to_owned()), "{change:?}");
    assert!(change.head_before.is_none() && change.head_after.is_some());
}

#[tokio::test]
async fn without_a_repository_files_are_compared_and_repositories_below_are_seen() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    write(&place, "plain", "one");
    write(&place, "inner/a", "one");
    run(&place.join("inner"), &["init", "-q"]);
    let before = Snapshot::all(&place).await;
    assert_eq!(Snapshot::all(&place).await.since(&before).await.moved, Some(false));
    write(&place, "inner/a", "two");
    let change = Snapshot::all(&place).await.since(&before).await;
    assert_eq!((change.moved, change.files), (Some(true), vec!["inner/a".to_owned()]));
    write(&place, "plain", "two");
    let change = Snapshot::all(&place).await.since(&before).await;
    assert_eq!(change.files, ["inner/a", "plain"]);
}

#[tokio::test]
async fn a_repository_that_git_cannot_tell_of_is_neither_progress_nor_standstill() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    for name in ["one", "two"] {
        write(&place, &format!("{name}/a"), "first");
        run(&place.join(name), &["init", "-q"]);
        run(&place.join(name), &["add", "."]);
        run(&place.join(name), &["commit", "-qm", "first"]);
        write(&place, &format!("{name}/a"), "dirty");
    }
    let index = place.join("one/.git/index");
    let good = std::fs::read(&index).unwrap();
    let whole = Snapshot::all(&place).await;
    std::fs::write(&index, "garbage").unwrap();
    let broken = Snapshot::all(&place).await;
    for (now, before) in [(&broken, &whole), (&whole, &broken), (&broken, &broken)] {
        assert_eq!(now.since(before).await, Change::default(), "nobody can see");
    }
    assert_eq!(whole.since(&whole).await.moved, Some(false));

    // What is seen of the others counts, and only that.
    write(&place, "two/a", "dirtier");
    let change = Snapshot::all(&place).await.since(&whole).await;
    assert_eq!((change.moved, change.files), (Some(true), vec!["two/a".to_owned()]));
    run(&place.join("two"), &["commit", "-qam", "second"]);
    std::fs::write(&index, good).unwrap();
    let change = Snapshot::all(&place).await.since(&broken).await;
    assert_eq!((change.moved, change.files), (Some(true), vec!["two/a".to_owned()]));
    assert!(matches!(change.commits.as_slice(), [only] if only.ends_with(" second")), "{:?}", change.commits);
}
