//! From options, data and the machine to the rules of one command. It looks at the file system, and changes only what a
//! command needs to find: missing directories of its state and of caches.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::KnownAgent;
use super::data::{self, DATA, real};
use super::options::{Environment, Mode, Network as Wanted, Options};
use super::proxy::Proxy;
use super::refusals::Refusals;
use crate::process::wall::{Backend, Limits, Network, Rules, Wall};
use crate::process::{Invocation, Needs, PrivateDirectory};

/// The variable that tells programs inside where they are.
const INSIDE: &str = "RALPH_SANDBOX";
/// The variable with the socket for `ralph emit`.
const CONTROL: &str = "RALPH_CONTROL";

/// The wall of a run: what all its commands share.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) options: Options,
    pub(crate) backend: Backend,
    pub(crate) workspace: PathBuf,
    pub(super) home: Option<PathBuf>,
    /// The git directories that are not in the workspace.
    pub(super) repository: Vec<PathBuf>,
    /// What must not change although the workspace may.
    pub(super) protected: Vec<PathBuf>,
    /// Files with logins of all agents.
    pub(super) logins: Vec<PathBuf>,
    pub(super) temporary: PrivateDirectory,
    pub(super) proxies: Mutex<HashMap<Vec<String>, Proxy>>,
    pub(crate) refusals: Refusals,
    /// Whether missing directories may be made.
    pub(super) makes: bool,
    pub(super) agents: Vec<KnownAgent>,
    /// Looked up once: what is hidden, and the caches.
    pub(super) usual: OnceLock<Vec<PathBuf>>,
    pub(super) cached: OnceLock<Vec<(&'static str, PathBuf)>>,
}

impl Wall for Sandbox {
    fn rules(&self, invocation: &Invocation, needs: &Needs) -> Result<Rules, String> {
        let needs = &self.needs(invocation, needs);
        let state = self.state(invocation, needs);
        let network = self.network(invocation, needs)?;
        let hidden = self.hidden(&state);
        let temporary = self.temporary.path().to_owned();
        let mut set: Vec<(OsString, OsString)> = vec![(INSIDE.into(), self.options.mode.name().into())];
        let place = if self.backend == Backend::Bubblewrap { Path::new("/tmp") } else { temporary.as_path() };
        set.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), place.into())));
        set.extend(self.proxy_variables(&network, needs, invocation));
        let write = self.write(state.clone());
        Ok(Rules {
            backend: self.backend,
            read: self.read(invocation, &write),
            write,
            hidden,
            read_only: self.read_only(invocation, needs),
            sockets: invocation.env.value(CONTROL).map(PathBuf::from).into_iter().collect(),
            temporary,
            network,
            limits: self.limits(),
            keep: self.keep(needs),
            set,
        })
    }
}

impl Sandbox {
    /// What a command needs. One that says nothing and is an agent by its name needs what that agent needs.
    fn needs(&self, invocation: &Invocation, needs: &Needs) -> Needs {
        let said = !needs.write.is_empty() || !needs.hosts.is_empty();
        let program = Path::new(&invocation.program).file_name().unwrap_or_default();
        let named = invocation.env.value("RALPH_AGENT").filter(|_| needs.of_agent);
        let named = named.map(|name| name.to_string_lossy().rsplit([':', '/']).next().unwrap_or_default().to_owned());
        let is = |agent: &&KnownAgent| match &named {
            Some(named) => *named == agent.id || named.starts_with(&format!("{}-", agent.id)),
            None => agent.commands.iter().any(|command| **command == *program),
        };
        match self.agents.iter().find(is).filter(|_| !said) {
            Some(agent) => agent.needs.clone(),
            None => needs.clone(),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        let Options { memory, processes, open_files, .. } = self.options;
        Limits { memory, processes, open_files }
    }

    /// The state of the command: what an agent file names. Directories end in `/`, or exist.
    pub(super) fn state(&self, invocation: &Invocation, needs: &Needs) -> Vec<PathBuf> {
        let variable = |name: &str| invocation.env.value(name);
        let mut found = Vec::new();
        for text in needs.write.iter().filter_map(|path| path.to_str()) {
            let Some(path) = data::path(text, self.home.as_deref(), &variable) else { continue };
            self.make(text, &path);
            found.push(real(&path));
        }
        found
    }

    /// Makes a directory that a command will look for. Nothing else is made.
    fn make(&self, text: &str, path: &Path) {
        if self.makes && text.ends_with('/') && !path.exists() {
            let _ = std::fs::create_dir_all(path);
        }
    }

    /// Everything that may be changed.
    pub(super) fn write(&self, state: Vec<PathBuf>) -> Vec<PathBuf> {
        let mut write = vec![self.workspace.clone(), self.temporary.path().to_owned()];
        write.extend(self.repository.iter().cloned());
        write.extend(self.options.write.iter().map(|path| real(path)));
        write.extend(state);
        if self.options.mode == Mode::Workspace {
            write.extend(self.caches().iter().map(|(_, path)| path.clone()));
        }
        write.dedup();
        write
    }

    /// The caches of the tools that are installed, each with the name of its tool.
    pub(super) fn caches(&self) -> &[(&'static str, PathBuf)] {
        self.cached.get_or_init(|| self.find_caches())
    }

    fn find_caches(&self) -> Vec<(&'static str, PathBuf)> {
        let variable = |name: &str| std::env::var_os(name);
        let on_path = std::env::var_os("PATH").unwrap_or_default();
        let is_installed = |tool: &str| std::env::split_paths(&on_path).any(|place| place.join(tool).exists());
        let mut found = Vec::new();
        for cache in &DATA.caches {
            let place = cache.at.iter().find_map(|text| data::path(text, self.home.as_deref(), &variable));
            let Some(place) = place.filter(|place| place.exists() || is_installed(&cache.tool)) else { continue };
            for name in &cache.write {
                let path = if name == "./" { place.clone() } else { place.join(name.trim_end_matches('/')) };
                self.make(name, &path);
                found.push((cache.tool.as_str(), real(&path)));
            }
        }
        found
    }

    /// Everything that may be read, as far as it is not hidden.
    pub(super) fn read(&self, invocation: &Invocation, write: &[PathBuf]) -> Vec<PathBuf> {
        if self.options.mode != Mode::Strict {
            // The home directory and programs may be in a place that has another content inside.
            let mut read = vec![PathBuf::from("/")];
            let path = invocation.env.value("PATH").unwrap_or_default();
            read.extend(std::env::split_paths(&path).filter(|place| place.is_absolute()).map(|place| real(&place)));
            read.extend(program_directories(invocation));
            read.extend(self.home.iter().map(|home| real(home)));
            read.extend(invocation.files.iter().map(|file| file.path().to_owned()));
            read.extend(self.options.read.iter().map(|path| real(path)));
            return read;
        }
        let variable = |name: &str| std::env::var_os(name);
        let mut read: Vec<PathBuf> = DATA.system.clone();
        read.extend(DATA.toolchains.iter().filter_map(|text| data::path(text, self.home.as_deref(), &variable)));
        let path = invocation.env.value("PATH").unwrap_or_default();
        read.extend(std::env::split_paths(&path).filter(|place| place.is_absolute()));
        read.extend(program_directories(invocation));
        read.extend(std::env::current_exe().ok());
        read.extend(invocation.files.iter().map(|file| file.path().to_owned()));
        read.extend(self.options.read.iter().cloned());
        let top = crate::git::Repository::around(&self.workspace).map(|repository| repository.top);
        read.extend(top);
        // A link that leads somewhere is needed as well as what it leads to.
        let both = read.into_iter().flat_map(|path| [real(&path), path]);
        let mut read: Vec<PathBuf> = both.chain(write.iter().cloned()).collect();
        read.retain(|path| path.symlink_metadata().is_ok() && path != Path::new("/"));
        read.retain(|path| self.home.as_ref().is_none_or(|home| path != home));
        read.sort();
        read.dedup();
        read
    }

    /// What is hidden, without what the user or the command itself needs.
    pub(super) fn hidden(&self, state: &[PathBuf]) -> Vec<PathBuf> {
        let usual = self.usual.get_or_init(|| {
            let variable = |name: &str| std::env::var_os(name);
            let usual = DATA.hidden.iter().filter_map(|text| data::path(text, self.home.as_deref(), &variable));
            usual.chain(self.logins.iter().cloned()).chain([PathBuf::from("/dev")]).map(|path| real(&path)).collect()
        });
        let wanted: Vec<PathBuf> = self.options.read.iter().chain(&self.options.write).map(|path| real(path)).collect();
        let mut hidden: Vec<PathBuf> = usual
            .iter()
            .filter(|path| !wanted.iter().any(|wanted| wanted == *path || wanted.starts_with(path)))
            .filter(|path| !state.iter().any(|state| path.starts_with(state) || state.starts_with(path)))
            .cloned()
            .chain(self.options.hide.iter().map(|path| real(path)))
            .collect();
        hidden.sort();
        hidden.dedup();
        hidden
    }

    /// What is read-only inside what may be changed.
    fn read_only(&self, invocation: &Invocation, needs: &Needs) -> Vec<PathBuf> {
        let settings = self.settings(invocation, needs);
        self.protected.iter().cloned().chain(settings).collect()
    }

    /// What is compared after each iteration.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        self.protected.iter().cloned().chain([self.workspace.join(".git")]).collect()
    }

    /// Settings of an agent that can name commands, by what it needs: files, and files of which one key counts.
    pub(crate) fn settings_of(&self, needs: &Needs) -> (Vec<PathBuf>, Vec<(PathBuf, String)>) {
        let invocation = Invocation::new("sh", &self.workspace);
        let variable = |name: &str| invocation.env.value(name);
        let texts = needs.settings.iter().filter_map(|path| path.to_str()?.split_once('#'));
        let keys = texts.filter_map(|(text, key)| {
            Some((real(&data::path(text, self.home.as_deref(), &variable)?), key.to_owned()))
        });
        (self.settings(&invocation, needs), keys.collect())
    }

    /// Settings of an agent that can name commands. Files that it must be able to change (`FILE#KEY`) are not among them.
    pub(super) fn settings(&self, invocation: &Invocation, needs: &Needs) -> Vec<PathBuf> {
        let variable = |name: &str| invocation.env.value(name);
        let texts = needs.settings.iter().filter_map(|path| path.to_str()).filter(|path| !path.contains('#'));
        texts.filter_map(|text| data::path(text, self.home.as_deref(), &variable)).map(|path| real(&path)).collect()
    }

    /// The hosts of one command; `None` where all can be reached.
    pub(super) fn hosts(&self, invocation: &Invocation, needs: &Needs) -> Option<Vec<String>> {
        let mut hosts = self.options.hosts()?.to_vec();
        for host in &needs.hosts {
            match host.strip_prefix('$') {
                None => hosts.push(host.clone()),
                Some(name) => hosts
                    .extend(invocation.env.value(name).and_then(|url| super::hosts::of_url(&url.to_string_lossy()))),
            }
        }
        hosts.sort();
        hosts.dedup();
        Some(hosts)
    }

    fn network(&self, invocation: &Invocation, needs: &Needs) -> Result<Network, String> {
        if self.options.network == Some(Wanted::None) {
            return Ok(Network::None);
        }
        let Some(hosts) = self.hosts(invocation, needs) else { return Ok(Network::All) };
        let mut proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        if !proxies.contains_key(&hosts) {
            let proxy = Proxy::start(&hosts, self.refusals.clone())
                .map_err(|error| format!("cannot start the proxy for `sandbox.network`: {error}"))?;
            proxies.insert(hosts.clone(), proxy);
        }
        let proxy = proxies.get(&hosts).ok_or("no proxy")?;
        Ok(Network::Proxy { port: proxy.port, sockets: proxy.sockets.clone() })
    }

    /// How programs find the proxy.
    fn proxy_variables(&self, network: &Network, needs: &Needs, invocation: &Invocation) -> Vec<(OsString, OsString)> {
        let Network::Proxy { port, .. } = network else { return Vec::new() };
        let address = format!("http://127.0.0.1:{port}");
        let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let mut variables: Vec<(OsString, OsString)> = names.map(|name| (name.into(), address.clone().into())).to_vec();
        variables.push(("NODE_USE_ENV_PROXY".into(), "1".into()));
        let hosts = self.hosts(invocation, needs).unwrap_or_default();
        // In a network of its own, the command's servers are beside it; the proxy reaches those of the machine.
        let own = self.backend == Backend::Bubblewrap && !hosts.iter().any(|host| super::hosts::is_local(host));
        let direct = if own { "localhost,127.0.0.1,::1" } else { "" };
        variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name.into(), direct.into())));
        variables
    }

    fn keep(&self, needs: &Needs) -> Option<Vec<String>> {
        let names = match self.options.environment() {
            Environment::Inherit => return None,
            Environment::Clean => Vec::new(),
            Environment::Names(names) => names,
        };
        let of_hosts = needs.hosts.iter().filter_map(|host| host.strip_prefix('$')).map(str::to_owned);
        let of_state = needs.write.iter().filter_map(|path| path.to_str()?.strip_prefix('$'));
        let of_state = of_state.map(|named| named.trim_end_matches('/').to_owned());
        Some(
            DATA.variables
                .iter()
                .cloned()
                .chain(names)
                .chain(needs.variables.clone())
                .chain(of_hosts)
                .chain(of_state)
                .collect(),
        )
    }
}

/// Where a program and its parts are: the package of a script, or the directory of a binary.
fn program_directories(invocation: &Invocation) -> Vec<PathBuf> {
    let Ok(path) = crate::process::check(invocation) else { return Vec::new() };
    let path = invocation.cwd.join(path);
    let found = real(&path);
    let package = found.ancestors().find(|place| place.file_name().is_some_and(|name| name == "node_modules"));
    let place = package.or_else(|| found.parent()).map(Path::to_owned);
    place.into_iter().chain(path.parent().map(Path::to_owned)).collect()
}
