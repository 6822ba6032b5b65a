//! NATS servers, workers and a submitter as processes on loopback, a proxy whose connections can be cut, and what must hold at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One step in each iteration; the number of the iteration is in the file. `pause:` is in seconds.
const AGENT: &str = r#"#!/bin/sh
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t.invalid GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t.invalid
prompt=$(cat)
word() { printf %s "$prompt" | sed -n "s/.*$1:\([A-Za-z0-9._-]*\).*/\1/p" | head -n 1; }
case "$prompt" in
*'Run `git merge '*)
    target=$(printf %s "$prompt" | sed -n 's/.*Run `git merge \([^`]*\)`.*/\1/p' | head -n 1)
    git merge "$target" >/dev/null 2>&1 || { sed -i '/^[<=>|]/d' shared.txt; git add -A; git commit -qm merge; } ;;
esac
case "$prompt" in *'a special hint'*) echo hinted > hinted.txt ;; esac
pause=$(word pause); sleep "${pause:-0}"
line=$(word append); [ -z "$line" ] || grep -q "^$line$" shared.txt || echo "$line" >> shared.txt
name=$(word write)
count=$(ls "$name"-*.txt 2>/dev/null | wc -l)
count=$((count + 1))
echo "$RALPH_ITERATION" > "$name-$count.txt"
echo "NATS: $(env | grep -c ^NATS_)"
steps=$(word steps)
[ "$count" -ge "${steps:-1}" ] && echo "<promise>COMPLETE</promise>"
exit 0
"#;

pub struct Server {
    pub port: u16,
    command: Vec<String>,
    child: Option<Child>,
}

impl Server {
    pub fn start(&mut self) {
        let program = std::env::var("NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let mut command = Command::new(&program);
        command.args(&self.command).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap_or_else(|error| panic!("cannot start `{program}`: {error}")));
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "the NATS server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Passes connections on until it is cut.
pub struct Proxy {
    pub port: u16,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), cut: Arc::default() };
        let cut = Arc::clone(&proxy.cut);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to, cut) = (from.try_clone().unwrap(), to.try_clone().unwrap(), Arc::clone(&cut));
                    std::thread::spawn(move || pass(from, to, &cut));
                }
            }
        });
        proxy
    }

    /// Nothing passes any more, and nothing says so: as when a cable is pulled.
    pub fn cut(&self, is_cut: bool) {
        self.cut.store(is_cut, Ordering::Relaxed);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while cut.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What workers and the submitter said, and when.
pub type Log = Arc<Mutex<Vec<(Instant, String, String)>>>;

pub struct Running {
    pub name: String,
    pub child: Child,
}

impl Running {
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Halts it, and the guardian that would continue it; or continues both.
    pub fn halt(&self, is_halted: bool) {
        let own = self.child.id().to_string();
        let guardians = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.to_owned();
            let words = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let is_guardian = parent == own && words.split('\0').any(|word| word == "guard-agents-of");
            is_guardian.then(|| entry.file_name().to_string_lossy().into_owned())
        });
        let signal = if is_halted { "-STOP" } else { "-CONT" };
        for pid in guardians.chain([own.clone()]) {
            assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        }
    }

    /// Waits for it to end and gives its exit code; 128 and the number for a Unix signal.
    pub fn wait(&mut self, patience: Duration) -> i32 {
        use std::os::unix::process::ExitStatusExt as _;
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            }
            if began.elapsed() > patience {
                let _ = self.child.kill();
                println!("{} does not end", self.name);
                return -1;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-CONT", &self.child.id().to_string()]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct World {
    directory: tempfile::TempDir,
    pub servers: Vec<Server>,
    pub log: Log,
}

impl World {
    /// A cluster of so many servers, a bare repository, and a checkout with these tasks.
    pub fn new(servers: usize, tasks: &str) -> Self {
        let world = Self::without_servers(tasks);
        let ports: Vec<(u16, u16)> = (0..servers).map(|_| (free_port(), free_port())).collect();
        let routes: Vec<String> = ports.iter().map(|(_, route)| format!("nats://127.0.0.1:{route}")).collect();
        let mut started = Vec::new();
        for (number, (port, route)) in ports.iter().enumerate() {
            let store = world.path(&format!("nats-{number}")).display().to_string();
            let mut command = ["-js", "-a", "127.0.0.1", "-sd", &store, "-p"].map(str::to_owned).to_vec();
            command.push(port.to_string());
            if servers > 1 {
                let own = format!("nats://127.0.0.1:{route}");
                let name = format!("n{number}");
                command
                    .extend(["-n", &name, "--cluster_name", "ralph", "--cluster", &own, "--routes"].map(str::to_owned));
                command.push(routes.join(","));
            }
            started.push(Server { port: *port, command, child: None });
        }
        let mut world = Self { servers: started, ..world };
        world.servers.iter_mut().for_each(Server::start);
        if servers > 1 {
            // The cluster chooses a leader.
            std::thread::sleep(Duration::from_secs(5));
        }
        world
    }

    /// With a server of the test's own.
    pub fn without_servers(tasks: &str) -> Self {
        let world = Self { directory: tempfile::tempdir().unwrap(), servers: Vec::new(), log: Log::default() };
        let agent = world.path("agent.sh");
        std::fs::write(&agent, AGENT).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&agent).status().unwrap().success());
        std::fs::create_dir_all(world.path("config/ralph/agents")).unwrap();
        let definition = format!(
            "id: steps\nname: Steps\ncommands: [\"{}\"]\ndialect: plain\nprompt: {{by: stdin}}\n",
            agent.display()
        );
        std::fs::write(world.path("config/ralph/agents/steps.yml"), definition).unwrap();
        std::fs::write(world.path("config/ralph/ralph.yml"), "worker: {sandbox: off, agents: [steps]}\n").unwrap();
        let git = |directory: &Path, args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(directory).output().unwrap();
            assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        };
        git(world.directory.path(), &["init", "-q", "--bare", "-b", "main", "bare.git"]);
        git(world.directory.path(), &["init", "-q", "-b", "main", "work"]);
        for (name, text) in
            [("tasks.yml", tasks), ("shared.txt", "line\n"), ("ralph.yml", "verify: ['test -e shared.txt']\n")]
        {
            std::fs::write(world.work().join(name), text).unwrap();
        }
        for args in [
            &["config", "user.name", "t"][..],
            &["config", "user.email", "t@t.invalid"],
            &["add", "-A"],
            &["commit", "-qm", "init"],
            &["push", "-q", "../bare.git", "main"],
        ] {
            git(&world.work(), args);
        }
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub fn repo(&self) -> String {
        self.path("bare.git").display().to_string()
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git").args(args).current_dir(self.work()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn urls(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(|it| format!("nats://127.0.0.1:{}", it.port)).collect();
        urls.join(",")
    }

    pub fn command(&self, state: &str, args: &[&str]) -> Command {
        let own = std::env::var("RALPH_BIN").unwrap_or_else(|_| env!("CARGO_BIN_EXE_ralph").to_owned());
        let mut command = Command::new(own);
        command.args(args).current_dir(self.work()).env("HOME", self.directory.path());
        command.env("RALPH_STATE_DIR", self.path(state)).env("XDG_CONFIG_HOME", self.path("config"));
        for name in ["XDG_RUNTIME_DIR", "NATS_TOKEN", "NATS_CREDS", "NATS_USER", "NATS_PASSWORD", "NATS_NKEY"] {
            command.env_remove(name);
        }
        command
    }

    /// Starts a program and keeps what it says.
    pub fn spawn(&self, name: &str, mut command: Command) -> Running {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for stream in streams {
            let (log, name) = (Arc::clone(&self.log), name.to_owned());
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    log.lock().unwrap().push((Instant::now(), name.clone(), line));
                }
            });
        }
        Running { name: name.to_owned(), child }
    }

    pub fn worker(&self, name: &str, url: &str, slots: &str, more: &[&str]) -> Running {
        let repo = self.repo();
        let mut args = vec!["worker", "--on", url, "--slots", slots, "--allow-repo", &repo];
        args.extend(more);
        self.spawn(name, self.command(name, &args))
    }

    pub fn batch(&self, more: &[&str]) -> Running {
        let (urls, repo) = (self.urls(), self.repo());
        let mut args = vec!["batch", "tasks.yml", "--agent", "steps", "--on", &urls, "--repo", &repo];
        args.extend(more);
        self.spawn("batch", self.command("submitter", &args))
    }

    pub fn ralph(&self, args: &[&str]) -> Output {
        self.command("submitter", args).output().unwrap()
    }

    pub fn said(&self) -> String {
        let log = self.log.lock().unwrap();
        log.iter().map(|(_, who, line)| format!("{who}: {line}\n")).collect::<Vec<_>>().concat()
    }

    /// Waits for the next event.
    pub fn wait_for(&self, what: &str, patience: Duration) -> Instant {
        let began = Instant::now();
        loop {
            if let Some((at, ..)) =
                self.log.lock().unwrap().iter().find(|(_, who, line)| format!("{who}: {line}").contains(what))
            {
                return *at;
            }
            assert!(began.elapsed() < patience, "nobody said `{what}`:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn status(&self) -> serde_json::Value {
        serde_json::from_slice(&self.ralph(&["batch", "status", "--json"]).stdout).unwrap()
    }

    /// State and reason of each task.
    pub fn states(&self) -> BTreeMap<String, (String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let tasks = self.status()["tasks"].as_array().unwrap().clone();
        tasks.iter().map(|task| (text(&task["id"]), (text(&task["state"]), text(&task["why"])))).collect()
    }

    /// The ids of the tasks on the integration branch, and a check that its history is linear.
    pub fn merged(&self) -> Vec<String> {
        let branch = format!("ralph/batch/{}", self.status()["batch"].as_str().unwrap());
        let parents = self.git(&["log", "--format=%P", &branch]);
        assert!(parents.lines().all(|line| line.split(' ').count() <= 1), "not linear");
        let log = self.git(&["log", "--format=%(trailers:key=Ralph-Task,valueonly,separator=)", &branch]);
        log.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Everything that must hold when all tasks are merged.
    pub fn assert_complete(&self, count: usize) {
        let merged = self.merged();
        assert_eq!(merged.iter().collect::<BTreeSet<_>>().len(), merged.len(), "merged twice: {merged:?}");
        assert_eq!(merged.len(), count, "{}", self.said());
        let branches = self.git(&["ls-remote", "--heads", "../bare.git"]);
        assert_eq!(branches.lines().count(), 1, "stray branches: {branches}");
        let local = self.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
        assert_eq!(local.lines().count(), 2, "stray branches: {local}");
        assert_eq!(self.journals(), count, "journals");
    }

    /// Checks each journal that the submitter received: complete and in order.
    pub fn journals(&self) -> usize {
        let mut count = 0;
        for project in std::fs::read_dir(self.path("submitter/projects")).unwrap().flatten() {
            for run in std::fs::read_dir(project.path().join("runs")).into_iter().flatten().flatten() {
                let text = std::fs::read_to_string(run.path().join("journal.jsonl")).unwrap();
                let mut last = String::new();
                for (number, line) in text.lines().enumerate() {
                    let record: serde_json::Value = serde_json::from_str(line).unwrap();
                    assert_eq!(record["seq"].as_u64(), Some(number as u64), "{}: a gap", run.path().display());
                    record["meta"]["kind"].as_str().unwrap_or_default().clone_into(&mut last);
                }
                assert_eq!(last, "run_end", "{}: not complete\n{text}", run.path().display());
                assert!(run.path().join("raw").read_dir().unwrap().next().is_some(), "no files of the run");
                count += 1;
            }
        }
        count
    }

    /// Processes that work somewhere below, other than those that the test still holds.
    pub fn left(&self) -> Vec<String> {
        let inside = |entry: std::fs::DirEntry| {
            let cwd = std::fs::read_link(entry.path().join("cwd")).ok()?;
            let name = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " ");
            cwd.starts_with(self.directory.path()).then_some(name)
        };
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(inside).collect()
    }

    /// Worktrees that workers have left.
    pub fn worktrees(&self) -> usize {
        let workers = std::fs::read_dir(self.directory.path()).unwrap().flatten();
        let workers = workers.filter(|entry| entry.file_name().to_string_lossy().starts_with("worker-"));
        let all = workers.flat_map(|entry| std::fs::read_dir(entry.path().join("worktrees")).into_iter().flatten());
        all.flatten().flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten()).count()
    }
}
