//! Plays one iteration of a script, step by step.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::dialect::{Emitter, Opening, Piece, Words};
use crate::mischief::{self, Role, Stdout};
use crate::record::{self, Recorded};
use crate::script::{Choose, Finish, Script, Status, Stdin, Step};

/// The exit code of an agent that was left hanging until its bound.
const HUNG: u8 = 99;

/// Plays the iteration that is due and returns the exit code. `arguments` are what followed the script.
pub fn play(path: &Path, arguments: &[String]) -> Result<u8, String> {
    let script = Script::read(path)?;
    // Relative to where the agent was started; a step may not change that.
    let path = fs::canonicalize(path).map_err(|error| error.to_string())?;
    let number = due(&script, &path).map_err(|error| format!("cannot count beside the script: {error}"))?;
    let Some(iteration) = script.iterations.get(number.saturating_sub(1)).or(script.iterations.last()) else {
        return Err("the script has no iterations".into());
    };
    let mut player = Player {
        path: &path,
        script: &script,
        number,
        arguments,
        prompt: String::new(),
        emitter: script.dialect.emitter(),
        begun: false,
        terminal: Terminal::Due,
    };
    player.start().map_err(|error| error.to_string())?;
    for step in &iteration.steps {
        match player.step(step) {
            Ok(None) => {}
            Ok(Some(code)) => return Ok(code),
            // Whoever read our output has gone: a real agent ends then, too.
            Err(Trouble::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(1),
            Err(Trouble::Io(error)) => return Err(error.to_string()),
            Err(Trouble::Script(message)) => return Err(message),
        }
    }
    let failed = iteration.exit != 0;
    if player.terminal == Terminal::Due {
        let finish = if failed {
            Finish::Failure { message: format!("exit code {}", iteration.exit), status: None }
        } else {
            Finish::Success
        };
        // Output may be closed by now; the exit code is what counts.
        let _ = player.words(&Words::Finish(&finish), 0);
    }
    Ok(iteration.exit)
}

fn due(script: &Script, path: &Path) -> io::Result<usize> {
    let told = std::env::var("RALPH_ITERATION").ok().and_then(|number| number.parse().ok());
    match (script.choose, told) {
        (Choose::Environment, Some(number)) => Ok(number),
        _ => record::count(path),
    }
}

#[derive(PartialEq, Eq)]
enum Terminal {
    Due,
    Sent,
    LeftOut,
}

enum Trouble {
    Io(io::Error),
    Script(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

struct Player<'a> {
    path: &'a Path,
    script: &'a Script,
    number: usize,
    arguments: &'a [String],
    prompt: String,
    emitter: Box<dyn Emitter>,
    begun: bool,
    terminal: Terminal,
}

impl Player<'_> {
    fn start(&mut self) -> io::Result<()> {
        record::note_process(self.path)?;
        match self.script.stdin {
            Stdin::Read if !io::stdin().is_terminal() => self.read_stdin(),
            Stdin::Read | Stdin::Never => self.record(None),
            Stdin::Late => Ok(()),
        }
    }

    fn read_stdin(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        self.prompt = String::from_utf8_lossy(&bytes).into_owned();
        self.record(Some(self.prompt.clone()))
    }

    fn record(&self, stdin: Option<String>) -> io::Result<()> {
        let wanted =
            |name: &str| name.starts_with("RALPH_") || self.script.record_env.iter().any(|known| known == name);
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, _)| wanted(name))
            .collect();
        Recorded {
            iteration: self.number,
            arguments: self.arguments.to_vec(),
            environment,
            stdin,
            directory: std::env::current_dir()?,
            process: std::process::id(),
        }
        .append(self.path)
    }

    /// Does one step; a number ends the agent with that exit code.
    fn step(&mut self, step: &Step) -> Result<Option<u8>, Trouble> {
        match step {
            Step::Say(speech) => self.words(&Words::Say(speech), speech.every)?,
            Step::Think(speech) => self.words(&Words::Think(speech), speech.every)?,
            Step::Tool(call) => {
                self.words(&Words::ToolStart(call), 0)?;
                sleep(Duration::from_millis(call.takes));
                if call.status != Status::Open {
                    self.words(&Words::ToolEnd(call), 0)?;
                }
            }
            Step::Usage(tokens) => self.words(&Words::Usage(*tokens), 0)?,
            Step::Finish(finish) => {
                self.words(&Words::Finish(finish), 0)?;
                self.terminal = Terminal::Sent;
            }
            Step::NoFinish => self.terminal = Terminal::LeftOut,
            Step::Raw(text) => print(text.as_bytes())?,
            Step::Bytes(bytes) => print(bytes)?,
            Step::Stderr(line) => writeln!(io::stderr(), "{line}")?,
            Step::Sleep(milliseconds) => sleep(Duration::from_millis(*milliseconds)),
            Step::BurnCpu(milliseconds) => mischief::burn(*milliseconds),
            Step::Write { path, text } => fs::write(path, text)?,
            Step::Append { path, text } => {
                File::options().append(true).create(true).open(path)?.write_all(text.as_bytes())?;
            }
            Step::Commit(message) => commit(message)?,
            Step::ReadStdin => self.read_stdin()?,
            Step::Hang(milliseconds) => {
                sleep(Duration::from_millis(*milliseconds));
                return Ok(Some(HUNG));
            }
            Step::IgnoreSignals => mischief::ignore_signals()?,
            Step::Fork { children, milliseconds } => {
                for _ in 0..*children {
                    mischief::start(self.path, Role::Linger, *milliseconds, Stdout::Closed)?;
                }
            }
            Step::Detach(milliseconds) => {
                mischief::start(self.path, Role::Detach, *milliseconds, Stdout::Closed)?.wait()?;
            }
            Step::HoldStdout(milliseconds) => {
                mischief::start(self.path, Role::Linger, *milliseconds, Stdout::Inherited)?;
            }
            Step::ChildWrites(milliseconds) => {
                mischief::start(self.path, Role::Print, *milliseconds, Stdout::Inherited)?;
            }
            Step::Flood { bytes, per_second } => mischief::flood(&mut io::stdout().lock(), *bytes, *per_second)?,
            Step::HugeLine(bytes) => mischief::huge_line(&mut io::stdout().lock(), *bytes)?,
            Step::CloseStdout => mischief::close_stdout()?,
            Step::Die(signal) => return mischief::die(*signal).map(Some).map_err(Trouble::Script),
            Step::Exec(command) => {
                let (program, arguments) =
                    command.split_first().ok_or_else(|| Trouble::Script("`exec` needs a program".into()))?;
                return Err(Command::new(program).args(arguments).exec().into());
            }
        }
        Ok(None)
    }

    /// Says words in the dialect, waiting `every` milliseconds after each piece.
    fn words(&mut self, words: &Words<'_>, every: u64) -> io::Result<()> {
        let mut pieces = Vec::new();
        if !self.begun {
            self.begun = true;
            let session = self.script.session.clone().unwrap_or_else(|| format!("fake-session-{}", self.number));
            let model = self.script.model.clone().unwrap_or_else(|| "fake-model".into());
            self.emitter.emit(&Words::Begin(&Opening { session, model, prompt: self.prompt.clone() }), &mut pieces);
        }
        self.emitter.emit(words, &mut pieces);
        for piece in pieces {
            match piece {
                Piece::Out(text) => print(text.as_bytes())?,
                Piece::Err(text) => write!(io::stderr(), "{text}")?,
            }
            sleep(Duration::from_millis(every));
        }
        Ok(())
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Commits everything, independent of the user's git configuration.
fn commit(message: &str) -> Result<(), Trouble> {
    for arguments in [vec!["add", "--all"], vec!["commit", "--quiet", "--allow-empty", "--no-verify", "-m", message]] {
        let status = Command::new("git")
            .args(["-c", "user.name=fake agent", "-c", "user.email=agent@example.com", "-c", "commit.gpgsign=false"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err(Trouble::Script(format!("git ended with {status}")));
        }
    }
    Ok(())
}
