//! What the wall does, in words: for a path, for a host, and as a whole, with what this machine does not stop.

use std::path::{Path, PathBuf};

use super::hosts::{Hosts, Target};
use super::options::{Environment, Mode, Network as Wanted};
use super::policy::Sandbox;
use crate::process::wall::{self, Backend, Machine};
use crate::process::{Invocation, Needs};

/// What may be done with a path: the rule that allows it, or the reason that it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub read: Result<String, String>,
    pub write: Result<String, String>,
}

impl Sandbox {
    /// An answer for a path, for commands that are no agent.
    pub(crate) fn path(&self, path: &Path) -> Answer {
        self.path_for(path, &Needs::default())
    }

    /// The same for an agent with its needs.
    pub(crate) fn path_for(&self, path: &Path, needs: &Needs) -> Answer {
        let path = super::real(path);
        let invocation = Invocation::new("sh", &self.workspace);
        let state = self.state(&invocation, needs);
        let hidden = self.hidden(&state);
        if path != Path::new("/dev") && path.starts_with("/dev") {
            return device(&path);
        }
        if let Some(hidden) = hidden.iter().find(|hidden| path.starts_with(hidden)) {
            let why = format!("hidden: `{}`", hidden.display());
            return Answer { read: Err(why.clone()), write: Err(why) };
        }
        let write = self.why_writable(&path, &state);
        let kept = self.protected.iter().chain(&self.settings(&invocation, needs)).any(|kept| path.starts_with(kept));
        let write = match write {
            Some(_) if kept && self.backend == Backend::Bubblewrap => {
                Err("read-only in the workspace: it is run or obeyed outside the sandbox".to_owned())
            }
            Some(why) if kept => Ok(format!("{why}; changes are handled by `sandbox.tamper`")),
            Some(why) => Ok(why),
            None => Err("outside the workspace".to_owned()),
        };
        let read = match (&write, self.options.mode) {
            (Ok(why), _) => Ok(why.clone()),
            (_, Mode::Off | Mode::Workspace) => Ok("everything that is not hidden".to_owned()),
            (_, Mode::Strict) => {
                let read = self.read(&invocation, &self.write(state));
                match read.iter().find(|root| path.starts_with(root)) {
                    Some(root) => Ok(format!("below `{}`", root.display())),
                    None => Err("not one of the directories that `strict` can read".to_owned()),
                }
            }
        };
        Answer { read, write }
    }

    fn why_writable(&self, path: &Path, state: &[PathBuf]) -> Option<String> {
        let below = |roots: &[PathBuf]| roots.iter().any(|root| path.starts_with(root));
        let wanted: Vec<PathBuf> = self.options.write.iter().map(|path| super::real(path)).collect();
        if path.starts_with(&self.workspace) {
            Some("the workspace".to_owned())
        } else if below(&self.repository) {
            Some("the git directory of the workspace".to_owned())
        } else if path.starts_with(self.temporary.path()) {
            Some("the private temporary directory".to_owned())
        } else if below(&wanted) {
            Some("`sandbox.write`".to_owned())
        } else if below(state) {
            Some("the agent's state".to_owned())
        } else if self.options.mode == Mode::Workspace {
            let cache = self.caches().iter().find(|(_, cache)| path.starts_with(cache));
            cache.map(|(tool, _)| format!("a cache of {tool}"))
        } else {
            None
        }
    }

    /// Whether a host can be reached, and which rule says so.
    pub(crate) fn host(&self, text: &str, needs: &Needs) -> Result<String, String> {
        if self.options.network == Some(Wanted::None) {
            return Err("`sandbox.network: none`".to_owned());
        }
        let invocation = Invocation::new("sh", &self.workspace);
        let Some(list) = self.hosts(&invocation, needs) else {
            return Ok("`sandbox.network: all`".to_owned());
        };
        let Some(target) = Target::parse(text, Some(443)) else { return Err("not a host".to_owned()) };
        if !Hosts::new(&list).allows(&target) {
            return Err(format!("{target} is not listed; add it to `sandbox.network`"));
        }
        let own = self.options.hosts().is_some_and(|own| Hosts::new(own).allows(&target));
        let whose = if own { "listed in `sandbox.network`" } else { "a host of the agent" };
        Ok(format!("{whose}; a name that resolves to a private address is refused"))
    }

    /// The first lines of a run: what is up, and what it does not stop.
    pub(super) fn first_lines(&self, machine: &Machine) -> Vec<String> {
        let backend = name(self.backend);
        let mut lines =
            vec![format!("sandbox: {}, {backend}; details: `ralph sandbox explain`", self.options.mode.name())];
        if self.options.backend == super::Backend::Auto
            && let (Backend::Landlock, Err(reason)) = (self.backend, &machine.bubblewrap)
        {
            lines.push(format!(
                "sandbox: {reason}, so these are not stopped: chmod, chown, times and attributes of your files outside; \
                 Unix sockets such as Docker's; writing to your other terminals"
            ));
        }
        lines.extend(self.weaknesses(machine).into_iter().map(|weakness| format!("sandbox: {weakness}")));
        lines
    }

    /// What this kernel does not offer, although the wall should have it.
    fn weaknesses(&self, machine: &Machine) -> Vec<String> {
        let mut found = Vec::new();
        let landlock = self.backend == Backend::Landlock;
        if landlock && machine.landlock < 3 {
            found.push("this kernel's Landlock cannot stop truncating files outside".to_owned());
        }
        if landlock && machine.landlock < 4 && self.options.hosts().is_some() {
            found.push(
                "this kernel's Landlock knows no ports: programs that ignore the proxy can connect anywhere".to_owned(),
            );
        }
        if machine.landlock < 6 {
            let signals = if landlock { "signals to your other processes and " } else { "" };
            found.push(format!(
                "this kernel's Landlock is older than version 6: {signals}abstract sockets are not stopped"
            ));
        }
        if self.options.memory.is_some() && !machine.counts_memory {
            found.push("no control group for memory: `sandbox.memory` counts for each process".to_owned());
        }
        if self.options.processes.is_some() && !machine.counts_processes {
            let root = rustix::process::geteuid().is_root();
            found.push(if root {
                "no control group for processes, and the limit of a user does not bind root: `sandbox.processes` has no effect"
                    .to_owned()
            } else {
                "no control group for processes: `sandbox.processes` counts all processes of this user".to_owned()
            });
        }
        found
    }

    /// What the prompt says about the sandbox.
    pub(crate) fn told(&self) -> String {
        let network = match (&self.options.network, self.options.hosts()) {
            (Some(Wanted::None), _) => " There is no network.",
            (_, Some(_)) => " Only a few hosts can be reached, through the proxy in `HTTPS_PROXY`.",
            _ => "",
        };
        let reads = match self.options.mode {
            Mode::Strict => "Outside it you can read system directories and toolchains only",
            Mode::Off | Mode::Workspace => "Keys, credentials and history files cannot be read",
        };
        format!(
            "You work in a sandbox: you can write to the working directory, `$TMPDIR` and caches of build tools, not \
             elsewhere. {reads}.{network} A permission error outside the working directory is final: do not try to work \
             around it, say what you would need."
        )
    }

    /// Everything, for people.
    pub(crate) fn describe(&self, needs: &Needs, agent: Option<&str>) -> String {
        let invocation = Invocation::new("sh", &self.workspace);
        let state = self.state(&invocation, needs);
        let machine = wall::machine();
        let mut text = format!("mode     {}\nbackend  {}\n", self.options.mode.name(), name(self.backend));
        let mut add = |title: &str, lines: Vec<String>| {
            text.extend(["\n", title, "\n"]);
            text.extend(lines.into_iter().map(|line| format!("  {line}\n")));
        };
        let shown = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        let mut write = vec![format!("{}  (the workspace)", self.workspace.display())];
        write.extend(shown(&self.repository).into_iter().map(|path| format!("{path}  (its git directory)")));
        write
            .push("$TMPDIR  (a private temporary directory, removed with the run; its size is not limited)".to_owned());
        write.extend(
            self.options.write.iter().map(|path| format!("{}  (`sandbox.write`)", super::real(path).display())),
        );
        let whose = agent.map_or_else(|| "the agent's state".to_owned(), |agent| format!("state of {agent}"));
        write.extend(shown(&state).into_iter().map(|path| format!("{path}  ({whose})")));
        if self.options.mode == Mode::Workspace {
            let caches = self.caches().iter().filter(|(_, path)| path.exists());
            write.extend(caches.map(|(tool, path)| format!("{}  (cache of {tool})", path.display())));
        }
        add("can change", write);
        let mut kept = self.protected.clone();
        kept.extend(self.settings(&invocation, needs));
        kept.retain(|path| path.exists());
        add(
            match self.backend {
                Backend::Bubblewrap => "read-only in there, and compared after each iteration",
                Backend::Landlock => "compared after each iteration (`sandbox.tamper`)",
            },
            shown(&kept),
        );
        add(
            "can read",
            match self.options.mode {
                Mode::Strict => shown(&self.read(&invocation, &self.write(state.clone()))),
                Mode::Off | Mode::Workspace => vec!["everything else".to_owned()],
            },
        );
        let hidden: Vec<PathBuf> = self.hidden(&state).into_iter().filter(|path| path.exists()).collect();
        let mut hides = shown(&hidden);
        for line in hides.iter_mut().filter(|line| *line == "/dev") {
            line.push_str("  (except the devices that every program may use, such as `/dev/null`)");
        }
        if self.backend == Backend::Landlock && self.options.mode == Mode::Workspace {
            hides.push("names in hidden directories can be listed, contents cannot be read".to_owned());
            hides.push("files that appear in the home directory while a command runs cannot be read by it".to_owned());
        }
        add("hidden", hides);
        add("network", self.describe_network(&invocation, needs));
        let environment = match self.options.environment() {
            Environment::Inherit => "inherited".to_owned(),
            Environment::Clean => "only what programs need".to_owned(),
            Environment::Names(names) => format!("only what programs need, and {}", names.join(", ")),
        };
        add("environment", vec![environment]);
        add("limits", self.describe_limits(&machine));
        let mut open = self.weaknesses(&machine);
        if self.backend == Backend::Landlock {
            open.extend(landlock_leaves());
        }
        open.push("bugs of the kernel; what is in the workspace; what allowed hosts accept".to_owned());
        add("not stopped", open);
        text
    }

    fn describe_network(&self, invocation: &Invocation, needs: &Needs) -> Vec<String> {
        if self.options.network == Some(Wanted::None) {
            return vec!["none".to_owned()];
        }
        let Some(mut hosts) = self.hosts(invocation, needs) else { return vec!["all".to_owned()] };
        if hosts.is_empty() {
            hosts.push("no host".to_owned());
        }
        hosts.push(match self.backend {
            Backend::Landlock => {
                "through a proxy; a server on the proxy's port of another machine stays reachable (Landlock names ports, \
                 not addresses)"
            }
            Backend::Bubblewrap => "through a proxy; nothing else is in its network",
        }.to_owned());
        hosts
    }

    fn describe_limits(&self, machine: &Machine) -> Vec<String> {
        let all = |counts: bool| if counts { "for everything it starts" } else { "for each process" };
        let limits = self.limits();
        let memory = limits.memory.map(|bytes| format!("memory {} MiB {}", bytes >> 20, all(machine.counts_memory)));
        let processes = limits.processes.map(|count| {
            let whose =
                if machine.counts_processes { "for everything it starts" } else { "for all processes of this user" };
            format!("{count} processes {whose}")
        });
        let files = limits.open_files.map(|count| format!("{count} open files for each process"));
        let found: Vec<String> = [memory, processes, files].into_iter().flatten().collect();
        if found.is_empty() { vec!["none".to_owned()] } else { found }
    }
}

/// What the weaker backend does not stop, with what is there on this machine.
fn landlock_leaves() -> Vec<String> {
    let mut open = vec![
        "chmod, chown, times and extended attributes of files that you own".to_owned(),
        "writing to your other terminals; command lines of other processes can be read".to_owned(),
    ];
    let mut sockets: Vec<PathBuf> =
        ["/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock"]
            .map(PathBuf::from)
            .to_vec();
    if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        sockets
            .extend(["bus", "docker.sock", "podman/podman.sock", "gnupg/S.gpg-agent"].map(|name| runtime.join(name)));
    }
    sockets.extend(std::env::var_os("SSH_AUTH_SOCK").map(PathBuf::from));
    let found: Vec<String> =
        sockets.iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    open.push(match found.as_slice() {
        [] => "connecting to Unix sockets by their path; none of the usual ones is here".to_owned(),
        found => format!("connecting to Unix sockets by their path, such as {}", found.join(", ")),
    });
    open
}

fn device(path: &Path) -> Answer {
    let usual =
        ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "stdin", "stdout", "stderr", "fd"];
    let is_usual = usual.iter().any(|name| path.starts_with(Path::new("/dev").join(name)));
    let answer =
        if is_usual { Ok("a device that every program may use".to_owned()) } else { Err("hidden: `/dev`".to_owned()) };
    Answer { read: answer.clone(), write: answer }
}

const fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Landlock => "Landlock and seccomp",
        Backend::Bubblewrap => "bubblewrap and seccomp",
    }
}

/// What this machine offers, in one line.
pub(crate) fn describe_machine(machine: &Machine) -> String {
    let landlock = match machine.landlock {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock version {version}"),
    };
    let seccomp = if machine.seccomp { "seccomp" } else { "no seccomp" };
    let bubblewrap = match &machine.bubblewrap {
        Ok(path) => format!("bubblewrap (`{}`)", path.display()),
        Err(reason) => reason.clone(),
    };
    let groups = match (machine.counts_memory, machine.counts_processes) {
        (true, true) => "control groups for memory and processes",
        (true, false) => "control groups for memory",
        (false, true) => "control groups for processes",
        (false, false) => "no control groups for limits",
    };
    format!("{landlock}, {seccomp}, {bubblewrap}, {groups}")
}
