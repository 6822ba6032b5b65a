//! The demo agent: a real child process that plays a small coding task over three iterations and tells it
//! in RTF1. What it shows really happens, in a scratch repository of its own.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

use crate::emit;
use crate::error::UserError;
use crate::event::{Event, Known, Status, Tag, TodoItem, TodoStatus, Usage};
use crate::journal::store::is_id;
use crate::process::runtime;
use crate::process::{self, Clocks, Invocation, Output};
use crate::ui::out;

const GREET: &str = "#!/bin/sh\n# Greets whoever is named.\necho \"Helo, $1\"\n";
const TEST: &str = r#"#!/bin/sh
# Checks greet.sh; prints what is wrong.
failed=0
check() {
    if [ "$2" = "$3" ]; then echo "ok: $1"; else echo "FAILED: $1: expected '$3', got '$2'"; failed=1; fi
}
check "spelling" "$(sh greet.sh World | cut -c1-5)" "Hello"
check "name" "$(sh greet.sh Ada | tr -d '!' | cut -d' ' -f2)" "Ada"
check "punctuation" "$(sh greet.sh World)" "Hello, World!"
exit $failed
"#;

/// Plays the iteration that the environment names.
pub(crate) fn run() -> Result<u8, UserError> {
    let mut prompt = Vec::new();
    let _ = io::Read::read_to_end(&mut io::stdin(), &mut prompt);
    let iteration = number("RALPH_ITERATION").unwrap_or(1);
    let player = Player {
        scratch: Scratch::find(),
        pause: Duration::from_millis(number("RALPH_DEMO_PAUSE_MS").unwrap_or(300)),
        marker: marker(&String::from_utf8_lossy(&prompt)),
        tools: 0,
    };
    // Whoever wants it to end gets that, but not before its own directory is gone.
    let played = runtime()?.block_on(async {
        tokio::select! {
            biased;
            number = asked_to_end() => number.map(Some),
            played = player.play(iteration) => played.map(|()| None),
        }
    });
    match played {
        Ok(None) => Ok(0),
        Ok(Some(number)) => process::die_by(number),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(UserError::failed(format!("the demo agent failed: {error}"))),
    }
}

/// Waits for a Unix signal that asks a program to end.
async fn asked_to_end() -> io::Result<i32> {
    let (mut term, mut int, mut hup) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
    Ok(tokio::select! {
        _ = term.recv() => libc::SIGTERM,
        _ = int.recv() => libc::SIGINT,
        _ = hup.recv() => libc::SIGHUP,
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A directory of the demo's own, so that nothing of the user's is touched.
enum Scratch {
    /// It belongs to the run, whose next iteration continues in it. The last one removes it.
    OfRun(PathBuf),
    /// No other iteration needs it, so it is removed when the demo ends.
    Own(PathBuf),
}

impl Scratch {
    fn find() -> Self {
        let place = |name: &str| std::env::temp_dir().join(format!("ralph-demo-{name}"));
        match std::env::var("RALPH_RUN_ID").ok().filter(|run| is_id(run)) {
            Some(run) => Self::OfRun(place(&run)),
            None => Self::Own(place(&std::process::id().to_string())),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::OfRun(path) | Self::Own(path) => path,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Self::Own(path) = self {
            // What cannot be taken away does no harm where it is.
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// The marker that the prompt asks for.
fn marker(prompt: &str) -> String {
    let told =
        prompt.split_once("end your last message with ").and_then(|(_, rest)| rest.split_once(" on a line of its own"));
    told.map_or("<promise>COMPLETE</promise>", |(marker, _)| marker).to_owned()
}

struct Player {
    scratch: Scratch,
    pause: Duration,
    marker: String,
    tools: u32,
}

impl Player {
    async fn play(mut self, iteration: u64) -> io::Result<()> {
        if iteration == 1 || !self.scratch.path().join("greet.sh").exists() {
            self.lay_out().await?;
            // A later iteration finds the work of those before it.
            let done = [("Helo", "Hello"), ("Hello, $1\"", "Hello, $1!\"")];
            let done = done.iter().take(usize::try_from(iteration - 1).unwrap_or(0));
            let script = done.fold(GREET.to_owned(), |script, (old, new)| script.replace(old, new));
            std::fs::write(self.scratch.path().join("greet.sh"), script)?;
        }
        tell(&Known::Session { id: format!("demo-{iteration}") }.into())?;
        tell(&Known::Model { model: "demo".to_owned() }.into())?;
        match iteration {
            1 => self.first().await?,
            2 => self.second().await?,
            _ => self.third().await?,
        }
        let words = 900 + 400 * iteration;
        tell(&Event::usage(Usage {
            prompt_tokens: Some(words * 2),
            completion_tokens: Some(words / 4),
            total_tokens: Some(words * 2 + words / 4),
            cached_tokens: Some(words),
            model: Some("demo".to_owned()),
            ..Usage::default()
        }))
    }

    async fn first(&mut self) -> io::Result<()> {
        self.think("The greeting is said to be wrong. First see what the script does and what the test expects,")
            .await?;
        self.think("then fix one thing at a time.").await?;
        Self::todo([TodoStatus::InProgress, TodoStatus::Pending, TodoStatus::Pending])?;
        self.shell("cat greet.sh").await?;
        self.shell("sh test.sh").await?;
        self.say("The test fails twice: `Helo` is misspelt, and the exclamation mark is missing.").await?;
        self.edit("Helo", "Hello").await?;
        Self::todo([TodoStatus::Done, TodoStatus::Pending, TodoStatus::Pending])?;
        self.say("The spelling is fixed. The exclamation mark comes next.").await
    }

    async fn second(&mut self) -> io::Result<()> {
        self.think("The spelling was fixed in the last iteration. See what is left.").await?;
        Self::todo([TodoStatus::Done, TodoStatus::InProgress, TodoStatus::Pending])?;
        self.shell("sh test.sh").await?;
        self.edit("Hello, $1\"", "Hello, $1!\"").await?;
        Self::todo([TodoStatus::Done, TodoStatus::Done, TodoStatus::Pending])?;
        self.say("The exclamation mark is in place. I do not say that I am done before the test has passed.").await
    }

    async fn third(&mut self) -> io::Result<()> {
        self.think("Both mistakes should be gone. Run the test, then commit.").await?;
        Self::todo([TodoStatus::Done, TodoStatus::Done, TodoStatus::InProgress])?;
        let passed = self.shell("sh test.sh").await?;
        let committed = self.shell("git add -A && git commit -q -m 'Fix the greeting' && git log --oneline").await?;
        Self::todo([TodoStatus::Done; 3])?;
        let marker = self.marker.clone();
        if passed {
            let change = if committed { "the change is committed" } else { "the change is not committed" };
            // Nothing comes after this.
            let _ = std::fs::remove_dir_all(self.scratch.path());
            self.say(&format!("All checks pass, and {change}.\n\n{marker}")).await
        } else {
            self.say("The test still fails.").await
        }
    }

    /// Makes the scratch repository.
    async fn lay_out(&self) -> io::Result<()> {
        // In a directory that others can write to: it must be new, and only ours.
        let _ = std::fs::remove_dir_all(self.scratch.path());
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(self.scratch.path())?;
        std::fs::write(self.scratch.path().join("greet.sh"), GREET)?;
        std::fs::write(self.scratch.path().join("test.sh"), TEST)?;
        self.execute("git init -q . && git add -A && git commit -q -m 'A greeting'").await.map(|_| ())
    }

    async fn think(&self, text: &str) -> io::Result<()> {
        self.breathe().await;
        tell(&Event::text(Tag::Think, text))
    }

    /// Says a text as lines, the way an agent prints.
    async fn say(&self, text: &str) -> io::Result<()> {
        for line in text.lines() {
            self.breathe().await;
            let mut out = out::stdout().lock();
            writeln!(out, "{line}")?;
            out.flush()?;
        }
        Ok(())
    }

    fn todo(progress: [TodoStatus; 3]) -> io::Result<()> {
        let texts = ["fix the spelling", "add the exclamation mark", "run the test and commit"];
        let items = texts.iter().zip(progress);
        let items = items.map(|(text, status)| TodoItem { text: (*text).to_owned(), status }).collect();
        tell(&Known::Todo { items }.into())
    }

    async fn shell(&mut self, command: &str) -> io::Result<bool> {
        let id = self.next_tool("shell", &[("command", command)]).await?;
        let start = Instant::now();
        let (success, output) = self.execute(command).await?;
        if !output.is_empty() {
            tell(&Event::tool_output(&id, output))?;
        }
        Self::ended(&id, success, start)
    }

    /// Replaces text in the script.
    async fn edit(&mut self, old: &str, new: &str) -> io::Result<()> {
        let id = self.next_tool("edit", &[("path", "greet.sh"), ("old", old), ("new", new)]).await?;
        let start = Instant::now();
        let path = self.scratch.path().join("greet.sh");
        let before = std::fs::read_to_string(&path)?;
        std::fs::write(&path, before.replace(old, new))?;
        Self::ended(&id, before.contains(old), start).map(|_| ())
    }

    async fn next_tool(&mut self, name: &str, input: &[(&str, &str)]) -> io::Result<String> {
        self.breathe().await;
        self.tools += 1;
        let id = format!("t{}", self.tools);
        let input = input.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        tell(&Event::tool_start(&id, name, Some(input)))?;
        Ok(id)
    }

    fn ended(id: &str, success: bool, start: Instant) -> io::Result<bool> {
        let status = if success { Status::Ok } else { Status::Fail };
        tell(&Event::tool_end(id, status, u64::try_from(start.elapsed().as_millis()).ok()))?;
        Ok(success)
    }

    /// Runs a shell command in the repository, with a git identity of its own.
    async fn execute(&self, command: &str) -> io::Result<(bool, String)> {
        let mut invocation =
            Invocation { args: ["-c", command].map(Into::into).to_vec(), ..Invocation::new("sh", self.scratch.path()) };
        let identity = [
            ("GIT_AUTHOR_NAME", "demo"),
            ("GIT_AUTHOR_EMAIL", "demo@localhost"),
            ("GIT_COMMITTER_NAME", "demo"),
            ("GIT_COMMITTER_EMAIL", "demo@localhost"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ];
        invocation.env.set = identity.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let clocks = Clocks { total: Some(Duration::from_secs(20)), ..Clocks::default() };
        let mut process = process::start(invocation, clocks).map_err(io::Error::other)?;
        let mut output = Vec::new();
        loop {
            match process.next().await {
                Output::Bytes { bytes, .. } => output.extend_from_slice(bytes),
                Output::Ended(ended) => {
                    return Ok((ended.exit.success(), String::from_utf8_lossy(&output).trim_end().to_owned()));
                }
            }
        }
    }

    async fn breathe(&self) {
        tokio::time::sleep(self.pause).await;
    }
}

fn tell(event: &Event) -> io::Result<()> {
    let mut line = Vec::new();
    emit::rtf1(event, &mut line);
    let mut out = out::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
