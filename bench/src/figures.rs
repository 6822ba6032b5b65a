//! The figures: each is measured beside its baseline, in the same minute on the same machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::chart::Group;
use crate::idle::journal;
use crate::measure::{Accept, Cost, cost, finish, repeated};
use crate::streams;

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Size {
    /// Starts of a program.
    pub starts: u32,
    /// Iterations of a loop.
    pub iterations: u32,
    /// Bytes of a stream for each dialect.
    pub stream: usize,
    /// Bytes of a large output, and of a long line.
    pub large: u64,
    /// Loops at once.
    pub loops: u32,
    /// How long a view is left alone.
    pub idle: Duration,
    /// Lines through the bridge to bash.
    pub lines: usize,
    /// Files of a large repository.
    pub files: u32,
}

/// One line of the table.
pub struct Figure {
    /// What is done.
    pub what: String,
    /// What ralph takes.
    pub ralph: String,
    /// What the baseline takes.
    pub baseline: String,
}

/// The binary and a place to work in.
pub struct Bench {
    /// The program.
    pub ralph: PathBuf,
    /// Scratch.
    pub place: PathBuf,
    /// How much.
    pub size: Size,
}

const NO_JQ: &str = "`jq` is not installed";

/// Milliseconds each.
pub fn ms(duration: Duration, count: u32) -> f64 {
    duration.as_secs_f64() * 1000.0 / f64::from(count)
}

/// Memory, for people.
pub fn mib(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

impl Bench {
    /// `ralph` in a fresh directory.
    pub fn run(&self, name: &str, words: &[&str]) -> io::Result<Command> {
        let directory = self.place.join(name);
        fs::create_dir_all(&directory)?;
        let mut command = Command::new(&self.ralph);
        command.args(words).env("RALPH_STATE_DIR", directory.join("state"));
        command.current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }

    /// A script in bash.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]).current_dir(&self.place).stdout(Stdio::null());
        command
    }

    /// Everything but the dialects.
    pub fn all(&self) -> io::Result<Vec<Figure>> {
        let mut figures = vec![self.start_up()?, self.iteration()?];
        figures.extend(self.sandbox()?);
        figures.extend(self.batch()?);
        figures.extend(self.large()?);
        figures.push(self.journal()?);
        figures.push(self.bridge()?);
        figures.extend(self.full_screen()?);
        Ok(figures)
    }

    fn start_up(&self) -> io::Result<Figure> {
        let count = self.size.starts;
        let nothing = repeated(count, || Command::new("true"))?;
        let ralph = repeated(count, || {
            let mut command = Command::new(&self.ralph);
            command.arg("--version").stdout(Stdio::null());
            command
        })?;
        Ok(Figure {
            what: format!("start-up, mean of {count}"),
            ralph: format!("{:.1} ms, {}", ms(ralph.wall, count), mib(ralph.peak)),
            baseline: format!("`true`: {:.1} ms", ms(nothing.wall, count)),
        })
    }

    fn iteration(&self) -> io::Result<Figure> {
        let count = self.size.iterations;
        let number = count.to_string();
        let agent = ["run", "do it", "--agent-cmd", "echo word", "--max-stalled", "0", "-n"];
        // It ends with code 5, the limit, so a shell makes that a success.
        let words = agent.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        fs::create_dir_all(self.place.join("iterations"))?;
        let ralph =
            cost(&mut self.shell(&format!("cd iterations; '{}' {words} {number} || true", self.ralph.display())))?;
        let bare = cost(
            &mut self.shell(&format!("for i in $(seq {count}); do echo 'do it' | sh -c 'echo word' >> bare.log; done")),
        )?;
        Ok(Figure {
            what: format!(
                "an iteration whose agent prints a word, mean of {count}: journal, raw files, git state, view"
            ),
            ralph: format!("{:.1} ms, {:.1} ms CPU", ms(ralph.wall, count), ms(ralph.cpu, count)),
            baseline: format!("a bash loop: {:.1} ms, {:.1} ms CPU", ms(bare.wall, count), ms(bare.cpu, count)),
        })
    }

    /// A whole run with a large output; then its journal again.
    fn large(&self) -> io::Result<Vec<Figure>> {
        let file = streams::file(&self.place, "claude", 50_000_000)?;
        let times = (self.size.large / fs::metadata(&file)?.len()).max(1);
        let bytes = times * fs::metadata(&file)?.len();
        let script = self.place.join("large.sh");
        fs::write(&script, format!("for i in $(seq {times}); do cat '{}'; done\n", file.display()))?;
        let agent = format!("sh {}", script.display());
        let run = self.looped("large", &["--agent-cmd", &agent, "--transcript", "claude"])?;
        let cat = cost(&mut self.shell("sh large.sh | cat"))?;
        let mut figures = vec![Figure {
            what: format!("a run whose agent prints {:.1} GB of stream-json", bytes as f64 / 1e9),
            ralph: format!("{:.0} MB/s, {:.1} s CPU, peak {}", run.rate(bytes), run.cpu.as_secs_f64(), mib(run.peak)),
            baseline: format!("`cat`: {:.0} MB/s, {:.1} s CPU", cat.rate(bytes), cat.cpu.as_secs_f64()),
        }];
        let replay = cost(&mut self.run("large", &["replay", "--output", "json"])?)?;
        let cat = cost(&mut self.shell("cat large/state/projects/*/runs/*/journal.jsonl | cat"))?;
        figures.push(Figure {
            what: "`ralph replay --output json` of that run".to_owned(),
            ralph: format!("{:.1} s, peak {}", replay.wall.as_secs_f64(), mib(replay.peak)),
            baseline: format!("`cat` of its journal: {:.1} s", cat.wall.as_secs_f64()),
        });
        fs::remove_dir_all(self.place.join("large"))?;
        Ok(figures)
    }

    /// One iteration in a directory; the limit of one iteration is no success, so a shell stands between.
    fn looped(&self, name: &str, words: &[&str]) -> io::Result<Cost> {
        let directory = self.place.join(name);
        fs::create_dir_all(&directory)?;
        let mut command = Command::new(&self.ralph);
        command.args(["run", "do it", "-n", "1", "--completion", "x", "--output", "json"]).args(words);
        command.env("RALPH_STATE_DIR", directory.join("state"));
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begun = Instant::now();
        finish(command.spawn()?, begun, Accept::AnyEnd)
    }

    /// A run that was stopped half-way is no measurement: its journal must have all of it.
    fn found(&self, name: &str, words: &str, wanted: usize) -> io::Result<()> {
        let found = fs::read_to_string(journal(&self.place.join(name))?)?.matches(words).count();
        if found >= wanted {
            return Ok(());
        }
        Err(io::Error::other(format!("{name}: {found} of {wanted} lines are in the journal")))
    }

    /// One record for each line that an agent prints.
    fn journal(&self) -> io::Result<Figure> {
        let lines = self.size.stream / 250;
        let file = self.place.join("records.rtf1");
        let line = |number| {
            format!("@@RALPH@@ {{\"type\":\"text\",\"tag\":\"AI\",\"text\":\"what an agent says, number {number}\"}}\n")
        };
        fs::write(&file, (0..lines).map(line).collect::<String>())?;
        let agent = format!("cat {}", file.display());
        let run = self.looped("journal", &["--agent-cmd", &agent, "--transcript", "rtf1"])?;
        self.found("journal", "what an agent says", lines)?;
        let script = format!("cut -c 11- '{}' | jq -c . > records.jsonl", file.display());
        let jq = if has_jq() { Some(cost(&mut self.shell(&script))?) } else { None };
        fs::remove_dir_all(self.place.join("journal"))?;
        let rate = |cost: &Cost| lines as f64 / cost.cpu.as_secs_f64().max(0.01);
        Ok(Figure {
            what: format!("a run with {lines} records in its journal, records a second of processor time"),
            ralph: format!("{:.0}", rate(&run)),
            baseline: jq.map_or(NO_JQ.to_owned(), |jq| format!("`jq -c . > file`: {:.0}", rate(&jq))),
        })
    }

    /// The display of an agent script: a `jq` for each line, which the bridge answers without a process.
    fn bridge(&self) -> io::Result<Figure> {
        let directory = self.place.join("bridge");
        fs::create_dir_all(directory.join("agents"))?;
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/scripts/streams.sh");
        let stream = directory.join("stream.jsonl");
        let text = fs::read_to_string(fixture)?
            .replace("AGENT_CLI=\"streams\"", "AGENT_CLI=cat")
            .replace("AGENT_ARGS=\"-x --json\"", &format!("AGENT_ARGS='{}'", stream.display()));
        // More than one filter in the loop: each line is a question of its own.
        let text = text.replace("read -r line; do", "read -r line; do :");
        fs::write(directory.join("agents/streams.sh"), text)?;
        let line = |number| {
            format!(
                "{{\"type\":\"assistant\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"words, number {number}\"}}]}}}}\n"
            )
        };
        fs::write(&stream, (0..self.size.lines).map(line).collect::<String>())?;
        let run = self.looped("bridge", &["--agent", "script:streams"])?;
        self.found("bridge", "DISPLAYED words", self.size.lines)?;
        let few = 300.min(self.size.lines);
        let script =
            format!("source bridge/agents/streams.sh; head -n {few} '{}' | agent_format_display", stream.display());
        let bash = if has_jq() { Some(cost(&mut self.shell(&script))?) } else { None };
        Ok(Figure {
            what: format!("a run whose agent script asks `jq` for each of {} lines, lines a second", self.size.lines),
            ralph: format!("{:.0}", self.size.lines as f64 / run.wall.as_secs_f64()),
            baseline: bash.map_or(NO_JQ.to_owned(), |bash| {
                format!("its display alone, in bash with the real `jq`: {:.0}", few as f64 / bash.wall.as_secs_f64())
            }),
        })
    }

    /// Megabytes a second of processor time for each dialect: `jq -c`, ralph.
    pub fn dialects(&self) -> io::Result<Vec<Group>> {
        let mut groups = Vec::new();
        for dialect in streams::DIALECTS {
            let file = streams::file(&self.place, dialect, self.size.stream)?;
            let bytes = fs::metadata(&file)?.len();
            let path = file.to_string_lossy().into_owned();
            let jq = if has_jq() {
                cost(&mut self.shell(&format!("jq -c . '{path}'")))?.rate_of_one_core(bytes)
            } else {
                0.0
            };
            let mut translate = self.run("dialects", &["translate", "--from", dialect, &path])?;
            let ralph = cost(&mut translate)?.rate_of_one_core(bytes);
            println!("{dialect:<9} jq -c {jq:>4.0}   ralph {ralph:>5.0} MB/s");
            groups.push(Group { name: dialect.to_owned(), bars: vec![jq, ralph] });
            fs::remove_file(file)?;
        }
        Ok(groups)
    }
}

/// True where there is a `jq` to compare with.
pub fn has_jq() -> bool {
    Path::new("/usr/bin/jq").exists() || Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok()
}
