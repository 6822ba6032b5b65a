//! What ralph stores and compares itself must be what git would have stored and shown.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::repository::Repository;
use super::snapshots::Effort;
use super::tracked::{Limits, Tracked};

struct World {
    _directory: tempfile::TempDir,
    work: PathBuf,
    scratch: PathBuf,
    random: u64,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let (work, scratch) = (place.join("work"), place.join("scratch"));
        std::fs::create_dir(&work).unwrap();
        std::fs::create_dir(&scratch).unwrap();
        let world = Self { _directory: directory, work, scratch, random: 0x2545_f491_4f6c_dd1d };
        world.git(&["init", "-q", "-b", "main"]);
        world
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "core.autocrlf=false"])
            .args(args)
            .current_dir(&self.work)
            .env("GIT_INDEX_FILE", self.scratch.join("index"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The tree of all files, as git makes it.
    fn tree(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["write-tree"]).trim().to_owned()
    }

    async fn open(&self) -> Tracked {
        let repository = Repository::at(&self.work).unwrap();
        let mut limits = Limits { bytes_left: u64::MAX, notices: Vec::new() };
        Tracked::open(repository, self.scratch.join("store"), None, &[], Vec::new(), &mut limits).await.unwrap().0
    }

    fn write(&self, name: &str, text: &[u8]) {
        let path = self.work.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn chance(&mut self, of: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap() % of
    }

    /// A text with few different lines, so that there is more than one way to compare it.
    fn text(&mut self) -> Vec<u8> {
        const LINES: [&str; 7] = ["fn one() {", "    same", "", "}", "fn two() {", "\tother\r", "letters: ä"];
        let count = self.chance(30);
        let mut text: String = (0..count).flat_map(|_| [LINES[self.chance(LINES.len())], "\n"]).collect();
        if self.chance(4) == 0 {
            text.pop();
        }
        match self.chance(20) {
            0 => b"binary\0".to_vec(),
            1 => b"not UTF-8: \xff\n".to_vec(),
            _ => text.into_bytes(),
        }
    }

    fn change_something(&mut self) {
        const NAMES: [&str; 9] =
            ["a", "b.txt", "d/one", "d/two", "d-e/three", "d/below/four", "z z", "d.f", "deep/er/and/deeper"];
        for _ in 0..=self.chance(3) {
            let name = NAMES[self.chance(NAMES.len())];
            let path = self.work.join(name);
            match self.chance(6) {
                0 => drop(std::fs::remove_file(&path)),
                1 if path.exists() => {
                    let mode = if self.chance(2) == 0 { 0o755 } else { 0o644 };
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
                }
                2 if path.exists() => {
                    let mut text = std::fs::read(&path).unwrap();
                    let at = self.chance(text.len() + 1);
                    text.splice(at..at, *b"new\nlines\n");
                    self.write(name, &text);
                }
                _ => {
                    let text = self.text();
                    self.write(name, &text);
                }
            }
        }
    }
}

fn limits() -> Limits {
    Limits { bytes_left: u64::MAX, notices: Vec::new() }
}

#[tokio::test]
async fn trees_and_patches_are_those_of_git() {
    let mut world = World::new();
    world.write("a", b"first\n");
    let mut before = world.tree();
    let mut tracked = world.open().await;
    assert_eq!(tracked.now.tree, before);
    let mut direct = 0;
    for round in 0..150 {
        world.change_something();
        let effort = if round % 5 == 0 { Effort::Full } else { Effort::Touched };
        let look = tracked.look(effort, &mut limits()).await.unwrap();
        let tree = world.tree();
        assert_eq!(tracked.now.tree, tree, "round {round}");
        direct += usize::from(look.changes.as_ref().is_some_and(|changes| !changes.is_empty()));
        if before != tree {
            let patch = tracked.patch(&look, "").await.unwrap();
            // It is shown as text; only what is text can be applied.
            if !patch.contains('\u{fffd}') && !patch.contains("Binary files") {
                world.git(&["read-tree", &before]);
                let file = world.scratch.join("patch");
                std::fs::write(&file, &patch).unwrap();
                world.git(&["apply", "--cached", "--whitespace=nowarn", file.to_str().unwrap()]);
                assert_eq!(world.git(&["write-tree"]).trim(), tree, "round {round}: {patch}");
            }
        }
        before = tree;
    }
    assert!(direct > 100, "only {direct} of 150 rounds were without git");
}

#[tokio::test]
async fn a_patch_looks_like_that_of_git() {
    let world = World::new();
    let lines = |changed: &str| -> String {
        (0..40).map(|line| if line == 20 { format!("{changed}\n") } else { format!("line {line}\n") }).collect()
    };
    world.write("src/a.rs", lines("old").as_bytes());
    world.write("mode", b"x\n");
    world.write("binary", b"a\0b");
    world.write("last", b"no end");
    let before = world.tree();
    let mut tracked = world.open().await;
    tracked.look(Effort::Touched, &mut limits()).await.unwrap();
    world.write("src/a.rs", lines("new").as_bytes());
    std::fs::set_permissions(world.work.join("mode"), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.write("binary", b"a\0c");
    world.write("last", b"no end\nhere");
    world.write("new", b"1\n2\n");
    world.write("empty", b"");
    let look = tracked.look(Effort::Touched, &mut limits()).await.unwrap();
    let theirs = world.git(&["diff-tree", "-r", "-p", "-M", "--abbrev=7", &before, &world.tree()]);
    assert!(look.changes.is_some(), "git was asked");
    assert_eq!(tracked.patch(&look, "").await.unwrap(), theirs);
}

#[tokio::test]
async fn commits_are_those_of_git() {
    let world = World::new();
    world.write("d/one", b"1\n");
    world.write("two", b"2\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "first"]);
    let mut tracked = world.open().await;
    let first = tracked.head.clone();
    world.write("d/one", b"more\n");
    world.git(&["commit", "-qam", "the subject\nin two lines\n\nand a body"]);
    world.git(&["rm", "-q", "two"]);
    world.write("d/new/three", b"3\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-qm", "third"]);
    tracked.look(Effort::Full, &mut limits()).await.unwrap();
    let (commits, files) =
        super::commits::commits(&tracked.objects(), tracked.head.commit.as_deref().unwrap(), first.commit.as_deref())
            .unwrap();
    let log = world.git(&["log", "--format=%h %s", "--max-count=2"]);
    assert_eq!(commits.join("\n"), log.trim());
    assert!(files.iter().map(PathBuf::as_path).eq(["d/new/three", "d/one", "two"].map(Path::new)), "{files:?}");
    // From the beginning, and what only git can answer.
    let all = super::commits::commits(&tracked.objects(), tracked.head.commit.as_deref().unwrap(), None);
    assert_eq!(all.unwrap().0.len(), 3);
    let unknown = "1".repeat(40);
    assert!(super::commits::commits(&tracked.objects(), first.commit.as_deref().unwrap(), Some(&unknown)).is_none());
}

#[tokio::test]
async fn what_git_stores_in_another_way_is_left_to_git() {
    let world = World::new();
    world.write(".gitattributes", b"*.txt text eol=crlf\n");
    world.write("a.txt", b"one\r\n");
    let before = world.tree();
    let mut tracked = world.open().await;
    assert_eq!(tracked.now.tree, before);
    world.write("a.txt", b"two\r\n");
    std::os::unix::fs::symlink("a.txt", world.work.join("link")).unwrap();
    let look = tracked.look(Effort::Full, &mut limits()).await.unwrap();
    assert_eq!(tracked.now.tree, world.tree());
    assert!(look.changes.is_none());
}
