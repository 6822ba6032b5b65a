//! Attempts to get out of the sandbox, run for real: for each backend, as root and as an ordinary user, and without a
//! sandbox, where they must succeed: an attempt that cannot succeed proves nothing.
//!
//! The attempts are in `escapes/attempts.py`. Where a backend is not available, its part says so and is left out, unless
//! `RALPH_REQUIRE_SANDBOX` is set.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
const PYTHON: &str = "/usr/bin/python3";
const ORDINARY: u32 = 12345;

/// Landlock has no rights for these; a later look finds the last four (`sandbox.tamper`).
const LANDLOCK_LEAVES: &[&str] =
    &["chmod", "chown", "times", "xattr", "pathname-socket", "git-hook", "git-config", "ralph-yml", "ralph-directory"];
/// These reach only what is inside: its own memory, its own temporary directory, its own network.
const BUBBLEWRAP_HAS_ITS_OWN: &[&str] = &["sysv-memory", "write-to-host-tmp", "tcp-own-server"];
/// What does not succeed without a sandbox either, on the kernels that the tests have seen: nothing to lose.
const NEVER: &[&str] = &[
    "sysrq",
    "x32",
    "type-into-terminal",
    "vsock",
    "alg",
    "proxy-loopback",
    "proxy-localhost",
    "proxy-address",
    "proxy-mapped-address",
    "proxy-decimal-address",
    "proxy-private-name",
    "proxy-user-info",
    "proxy-host-header",
    "proxy-plain",
    "proxy-two-hosts",
    "fill-private-directory",
    "mount",
    "mptcp",
    "open-by-handle",
    "bpf",
    "perf",
    "userfaultfd",
    "read-disk",
    "keyring",
    "add-key",
    "process-vm-read",
    "fast-open",
    "hard-link-in",
    "setns",
    "open-tree",
    "mknod-inside",
    "clone-user-namespace",
    "user-namespace",
];
/// What an ordinary user cannot do anyway.
const ONLY_ROOT: &[&str] = &[
    "mknod",
    "capabilities",
    "core-pattern",
    "write-to-proc-sys",
    "cgroups",
    "mount-namespace",
    "chroot",
    "packet-socket",
    "raw-socket",
    "ptrace-attach",
    "ptrace-seize",
    "ptrace-ralph",
    "pidfd-getfd",
    "read-mem-of-others",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum User {
    Root,
    Ordinary,
}

/// A machine in small: a home with secrets, a workspace, something outside, and a process to attack.
struct World {
    place: tempfile::TempDir,
    user: User,
    victim: Child,
    port: String,
    memory: String,
}

impl World {
    fn new(user: User) -> Self {
        let place = tempfile::Builder::new().prefix("escapes").tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let root = place.path();
        for directory in [
            "home/.ssh",
            "home/.cargo/bin",
            "work/.git/hooks",
            "work/.ralph/agents",
            "outside/hidden",
            "outside/empty",
            "state",
        ] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for (file, text) in [
            ("home/.ssh/id_test", "SECRET"),
            ("home/.bashrc", ""),
            ("home/.cargo/bin/cargo", ""),
            ("home/.cargo/config.toml", ""),
            ("outside/victim", "as it was"),
            ("outside/hidden/file", "SECRET"),
            ("work/ralph.yml", "agent: demo\n"),
            ("work/.git/config", ""),
            ("work/.git/HEAD", "ref: refs/heads/main\n"),
        ] {
            std::fs::write(root.join(file), text).unwrap();
        }
        std::fs::create_dir_all(root.join("work/.git/objects")).unwrap();
        if user == User::Ordinary {
            // The scripts must be readable, wherever the sources are.
            let done = Command::new("chown").args(["-R", &format!("{ORDINARY}:{ORDINARY}")]).arg(root).status();
            assert!(done.unwrap().success());
        }
        let socket = std::env::temp_dir().join(format!(
            "escapes-{}-{}",
            std::process::id(),
            root.file_name().unwrap().display()
        ));
        let mut victim = as_user(user, PYTHON)
            .arg(script("victim.py"))
            .arg(&socket)
            .current_dir(root.join("outside"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(victim.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (port, memory) = line.trim().split_once(' ').unwrap();
        let (port, memory) = (port.to_owned(), memory.to_owned());
        Self { place, user, victim, port, memory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn socket(&self) -> PathBuf {
        let name = self.place.path().file_name().unwrap().display();
        std::env::temp_dir().join(format!("escapes-{}-{name}", std::process::id()))
    }

    /// The words of an attempt. The first shell hands on a descriptor that nobody should inherit.
    fn attempt(&self, name: &str) -> Vec<String> {
        let words = [PYTHON, &script("attempts.py"), name, &self.path("outside").display().to_string()];
        let more = [self.victim.id().to_string(), self.port.clone()];
        words.iter().map(|word| (*word).to_owned()).chain(more).collect()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = as_user(self.user, program);
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("RALPH_STATE_DIR", self.path("state"))
            .env("SHARED_MEMORY", &self.memory)
            .env("SOCKET", self.socket());
        command
    }

    /// Each attempt in one sandbox, and what became of it: true when it got out.
    fn inside(&self, backend: &str, more: &str, attempts: &[&str]) -> BTreeMap<String, (bool, String)> {
        let hidden = self.path("outside/hidden");
        let text = format!("sandbox: {{mode: workspace, backend: {backend}, hide: [{}]{more}}}\n", hidden.display());
        std::fs::write(self.path("ralph.yml"), text).unwrap();
        let words: Vec<String> = self.attempt("NAME");
        let list = attempts.join(" ");
        let line: String =
            words.iter().map(|word| if word == "NAME" { "$name ".into() } else { format!("'{word}' ") }).collect();
        let script = format!(
            "export ATTEMPT=1; for name in {list}; do said=$({line} 2>&1); echo \"$name $? $said\" | tr '\\n' ' '; echo; done"
        );
        let output = self
            .command("/bin/sh")
            .args([
                "-c",
                // ralph has the process id of this shell.
                &format!("exec 9<'{}'; export RALPH_PID=$$; exec \"$@\"", self.path("outside/victim").display()),
                "sh",
                RALPH,
                "sandbox",
            ])
            .args(["--config", &self.path("ralph.yml").display().to_string(), "--", "/bin/sh", "-c", &script])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let results: BTreeMap<_, _> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.splitn(3, ' ');
                let (name, code, said) = (words.next()?, words.next()?, words.next().unwrap_or_default());
                Some((name.to_owned(), (code == "0", said.to_owned())))
            })
            .collect();
        assert_eq!(results.len(), attempts.len(), "{backend} {:?}: {text}{}", self.user, stderr(&output));
        results
    }

    fn without(&self, name: &str) -> Output {
        let words = self.attempt(name);
        self.command("/bin/sh")
            .args(["-c", &format!("exec 9<'{}'; exec \"$@\"", self.path("outside/victim").display()), "sh"])
            .args(&words)
            .env("RALPH_PID", self.victim.id().to_string())
            .env("ATTEMPT", "1")
            .output()
            .unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.victim.stdin.take());
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = std::fs::remove_file(self.socket());
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/escapes").join(name).display().to_string()
}

fn as_user(user: User, program: &str) -> Command {
    match user {
        User::Ordinary if is_root() => {
            let mut command = Command::new("setpriv");
            let id = ORDINARY.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups", program]);
            command
        }
        User::Root | User::Ordinary => Command::new(program),
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn users() -> Vec<User> {
    if is_root() { vec![User::Root, User::Ordinary] } else { vec![User::Ordinary] }
}

/// What this machine offers for a user, as ralph says it.
fn offers(user: User, what: &str) -> bool {
    let output = as_user(user, RALPH).args(["sandbox", "explain"]).current_dir("/").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    let output =
        as_user(user, RALPH).args(["sandbox", "explain"]).current_dir(env!("CARGO_TARGET_TMPDIR")).output().unwrap();
    (text + &String::from_utf8_lossy(&output.stdout)).contains(what)
}

/// The names of the attempts between two comments of the script, or all of them.
fn attempts(from: &str, to: &str) -> Vec<&'static str> {
    let text: &'static str = include_str!("escapes/attempts.py");
    let (from, to) = (text.find(from).unwrap(), text.find(to).unwrap());
    let lines = text[from..to].lines().filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    lines.collect()
}

fn backends(user: User) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (backend, sign) in [("landlock", "Landlock version"), ("bubblewrap", "bubblewrap (`")] {
        if offers(user, sign) {
            found.push(backend);
        } else {
            assert!(std::env::var_os("RALPH_REQUIRE_SANDBOX").is_none(), "no {backend} for {user:?}");
            eprintln!("{backend} is not available for {user:?}: not tested");
        }
    }
    found
}

/// Runs attempts behind each backend; whatever gets out must be what the backend does not promise to stop.
fn all_are_stopped(more: &str, attempts: &[&str]) {
    for user in users() {
        for backend in backends(user) {
            let world = World::new(user);
            let results = world.inside(backend, more, attempts);
            let open: BTreeSet<&str> =
                if backend == "landlock" { LANDLOCK_LEAVES } else { BUBBLEWRAP_HAS_ITS_OWN }.iter().copied().collect();
            let wrong: Vec<String> = results
                .iter()
                .filter(|(name, (out, _))| *out != open.contains(name.as_str()))
                .map(|(name, (_, said))| format!("{name}: {said}"))
                .collect();
            assert!(wrong.is_empty(), "{backend} as {user:?}: {wrong:#?}");
            let victim = std::fs::read_to_string(world.path("outside/victim")).unwrap();
            assert_eq!(victim, "as it was", "{backend} as {user:?}");
            let mut left: Vec<String> = std::fs::read_dir(world.path("outside"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().display().to_string())
                .collect();
            left.sort();
            assert_eq!(left, ["empty", "hidden", "victim"], "{backend} as {user:?}");
            let in_tmp = std::env::temp_dir().join(format!("ralph-escape-{}", world.victim.id()));
            assert!(!in_tmp.exists(), "{backend} as {user:?}");
        }
    }
}

#[test]
fn nothing_outside_is_changed_read_or_signalled() {
    let attempts = attempts("# Writing outside", "# A list of hosts");
    assert!(attempts.len() >= 80, "{}", attempts.len());
    all_are_stopped("", &attempts);
}

#[test]
fn only_listed_hosts_are_reached() {
    all_are_stopped(
        ", network: [allowed.example, ip6-localhost]",
        &attempts("# A list of hosts", "# The workspace itself"),
    );
}

#[test]
fn what_others_run_in_the_workspace_is_read_only_or_watched() {
    all_are_stopped("", &attempts("# The workspace itself", "# Limits"));
}

#[test]
fn limits_bind_and_the_private_directory_goes_away() {
    for user in users() {
        for backend in backends(user) {
            let world = World::new(user);
            let mut names = vec!["fill-private-directory", "memory", "open-files"];
            if user == User::Ordinary || offers(user, "memory and processes") {
                names.push("fork-bomb");
            }
            let results = world.inside(backend, ", memory: 300M, processes: 100, open_files: 200", &names);
            for (name, (out, said)) in &results {
                assert!(!out, "{name} behind {backend} as {user:?}: {said}");
            }
            let place = results["fill-private-directory"].1.split("] ").nth(1).unwrap_or_default().trim();
            assert!(place.starts_with("/tmp"), "{place}");
            assert!(place == "/tmp" && !Path::new("/tmp/filler").exists() || !Path::new(place).exists(), "{place}");
        }
    }
}

/// Without a sandbox they get out: so it is the sandbox that stops them.
#[test]
fn without_a_sandbox_the_attempts_succeed() {
    let mut proved = 0;
    for user in users() {
        let names = attempts("# Writing outside", "# Limits");
        for name in names.into_iter().filter(|name| !NEVER.contains(name)) {
            if user == User::Ordinary && ONLY_ROOT.contains(&name) {
                continue;
            }
            let world = World::new(user);
            let output = world.without(name);
            let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
            assert!(output.status.success(), "{name} as {user:?} without a sandbox: {said}");
            let _ = std::fs::remove_file(std::env::temp_dir().join(format!("ralph-escape-{}", world.victim.id())));
            proved += 1;
        }
    }
    assert!(proved >= 60, "{proved}");
}
