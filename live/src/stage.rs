//! Where the CLIs live and run: a directory under `target/`, and an environment with nothing of the user in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ralph::agent::{Answer, ask};
use ralph::process::{Environment, Exit, Invocation, Stdin};

/// Why it did not go on.
pub enum Problem {
    /// Something that is not ours could not be had.
    Unavailable(String),
    /// Something is not as it should be.
    Wrong(String),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// What a program printed that ended well.
pub type Said = Result<String, String>;

/// The directories.
pub struct Stage {
    /// Where all of it is.
    pub place: PathBuf,
}

impl Stage {
    /// Beside the binary of this program, so that `cargo clean` takes it along.
    pub fn open() -> Result<Self, Problem> {
        let own = std::env::current_exe()?;
        let target =
            own.parent().and_then(Path::parent).ok_or_else(|| Problem::Wrong("no target directory".to_owned()))?;
        let place = target.join("live");
        std::fs::create_dir_all(place.join("home"))?;
        Ok(Self { place })
    }

    /// The `ralph` that was built with this program.
    pub fn ralph() -> Result<PathBuf, Problem> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut args = vec!["build", "--quiet", "--package", "ralph", "--bin", "ralph"];
        // As this program was built: a reader that is slow makes CLIs lose the end of what they say.
        if !cfg!(debug_assertions) {
            args.push("--release");
        }
        let build =
            Invocation { args: args.into_iter().map(OsString::from).collect(), ..Invocation::new(&cargo, &root) };
        said(build, Duration::from_secs(900)).map_err(|why| Problem::Wrong(format!("cannot build ralph: {why}")))?;
        let own = std::env::current_exe()?;
        Ok(own.with_file_name("ralph"))
    }

    /// Where the installed programs are found, and what they need.
    pub fn path(programs: &Path) -> OsString {
        let node = std::env::var_os("PATH")
            .and_then(|path| std::env::split_paths(&path).find(|directory| directory.join("node").exists()))
            .unwrap_or_default();
        let path = [programs, &node, Path::new("/usr/bin"), Path::new("/bin")];
        std::env::join_paths(path).unwrap_or_default()
    }

    /// A clean environment in which the installed programs are found.
    pub fn environment(&self, programs: &Path) -> Environment {
        let set = [("PATH", Self::path(programs)), ("HOME", self.place.join("home").into())];
        Environment { set: set.map(|(name, value)| (name.into(), value)).to_vec(), remove: vec!["*".to_owned()] }
    }
}

/// What a program printed when it ended well, else why not.
pub fn said(invocation: Invocation, patience: Duration) -> Said {
    let name = invocation.program.to_string_lossy().into_owned();
    let call = Invocation { stdin: Stdin::Null, ..invocation };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    match runtime.block_on(ask(call, patience)) {
        Answer::Said { exit: Exit::Code(0), stdout, .. } => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        Answer::Said { exit, stderr, .. } => {
            let first: Vec<String> = String::from_utf8_lossy(&stderr).lines().take(3).map(str::to_owned).collect();
            Err(format!("`{name}` ended with {exit:?}: {}", first.join(" / ")))
        }
        Answer::Silent => Err(format!("`{name}` did not end within {} s", patience.as_secs())),
        Answer::Unstartable(why) => Err(why),
    }
}
