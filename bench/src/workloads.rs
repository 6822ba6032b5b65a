//! Whole runs, from the agent's first byte to the end of the run: each row is the worst of one kind of output, or of one
//! kind of iteration, with a goal and a baseline beside it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::{Bench, mib, ms};
use crate::measure::{Accept, Cost, cost, finish};
use crate::streams;

/// How often a run is measured; the median counts.
const TIMES: usize = 3;

/// One line of the table of whole runs.
pub struct Row {
    /// What the agent does.
    pub what: String,
    /// What it may cost.
    pub goal: String,
    /// What ralph takes.
    pub ralph: String,
    /// What the baseline takes.
    pub baseline: String,
}

/// An output of an agent.
struct Output {
    what: &'static str,
    transcript: &'static str,
    /// Megabytes in full size, and milliseconds of processor time that are allowed for them.
    megabytes: u64,
    goal: u64,
    /// The memory that is allowed, in MiB.
    memory: u64,
    /// The milliseconds that are allowed on a terminal.
    on_terminal: Option<u64>,
    write: Generator,
}

const OUTPUTS: [Output; 8] = [
    output("small deltas", "claude", 100, 500, Some(700), deltas),
    output("messages of 64 KB", "claude", 500, 1800, Some(4000), messages),
    output("events of 1 KB that only count", "claude", 500, 800, None, counted),
    output("tool results of 1 KB", "claude", 100, 500, None, tools),
    output("real captures", "claude", 300, 2000, None, captures),
    Output { memory: 40, ..output("one line of JSON", "claude", 50, 200, None, one_message) },
    output("plain lines", "plain", 1000, 5000, None, plain),
    output("one plain line", "plain", 1000, 3000, None, one_line),
];

const fn output(
    what: &'static str,
    transcript: &'static str,
    megabytes: u64,
    goal: u64,
    on_terminal: Option<u64>,
    write: Generator,
) -> Output {
    Output { what, transcript, megabytes, goal, memory: 24, on_terminal, write }
}

/// What an agent does in a repository, and what an iteration may cost beyond it, in milliseconds: in a small repository
/// and in a large one.
const ITERATIONS: [(&str, &str, [u32; 2]); 3] = [
    ("prints a word", "echo word", [4, 12]),
    ("changes a file", "date +%N > d0/f1; echo word", [7, 20]),
    ("commits", "date +%N > d0/f1; git commit -qam x; echo word", [9, 25]),
];

/// The writer of an output: where to, and how many bytes.
pub type Generator = fn(&mut dyn Write, u64) -> io::Result<()>;

/// Outputs whose instructions are counted: name, transcript, generator. Captures have errors that end a run, and a line of 50 MB
/// would take too long.
pub fn counted_outputs() -> impl Iterator<Item = (&'static str, &'static str, Generator)> {
    let usable = OUTPUTS.iter().filter(|output| !["real captures", "one line of JSON"].contains(&output.what));
    usable.map(|output| (output.what, output.transcript, output.write))
}

/// Iterations whose instructions are counted: name and script.
pub fn counted_iterations() -> impl Iterator<Item = (&'static str, &'static str)> {
    ITERATIONS.iter().map(|(name, script, _)| (*name, *script))
}

/// A repository with so many files.
pub fn repository(place: &Path, files: u32) -> io::Result<std::path::PathBuf> {
    let directory = place.join("repository");
    for number in 0..files {
        let below = directory.join(format!("d{}", number / 100));
        fs::create_dir_all(&below)?;
        fs::write(below.join(format!("f{number}")), format!("content {number}\n"))?;
    }
    let mut made = Command::new("bash");
    made.args([
        "-c",
        "git init -q && git config user.name bench && git config user.email bench@localhost && git add -A && git commit -qm first",
    ]);
    succeeded(made.current_dir(&directory))?;
    Ok(directory)
}

impl Bench {
    /// All rows.
    pub fn whole_runs(&self) -> io::Result<Vec<Row>> {
        let mut rows = Vec::new();
        for files in [20, self.size.files] {
            let repository = repository(&self.place, files)?;
            for (what, script, goals) in ITERATIONS {
                let goal = goals[usize::from(files > 20)];
                rows.push(self.iterations(&repository, files, what, script, goal)?);
            }
            fs::remove_dir_all(repository)?;
        }
        for output in &OUTPUTS {
            rows.extend(self.output(output)?);
        }
        Ok(rows)
    }

    fn output(&self, output: &Output) -> io::Result<Vec<Row>> {
        let bytes = output.megabytes * 1_000_000 * self.size.large / 1_000_000_000;
        let file = self.place.join("output");
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(&file)?);
        (output.write)(&mut writer, bytes)?;
        writer.flush()?;
        let agent = format!("cat {}", file.display());
        let words = ["--agent-cmd", &agent, "--transcript", output.transcript];
        let accept = if output.what == "real captures" { Accept::AnyEnd } else { Accept::Limit };
        let ralph = median(|| self.one_iteration(&words, accept))?;
        let cat = median(|| cost(&mut self.shell("cat output | cat")))?;
        let shown = |cost: Cost| format!("{} ms", cost.cpu.as_millis());
        let goal = |full: u64| format!("{} ms", full * self.size.large / 1_000_000_000);
        let what = format!("{} MB of output: {}", bytes / 1_000_000, output.what);
        let mut rows = vec![Row {
            what: what.clone(),
            goal: format!("{}, {} MiB", goal(output.goal), output.memory),
            ralph: format!("{}, {}", shown(ralph), mib(ralph.peak)),
            baseline: format!("`cat \\| cat`: {}", shown(cat)),
        }];
        if let Some(on_terminal) = output.on_terminal {
            let ralph = median(|| self.on_terminal(&words, accept))?;
            let cat = median(|| cost(&mut self.shell("script -qec 'cat output' /dev/null")))?;
            rows.push(Row {
                what: format!("{what}, on a terminal (with `script`, which is counted)"),
                goal: goal(on_terminal),
                ralph: shown(ralph),
                baseline: format!("`cat` on one: {}", shown(cat)),
            });
        }
        fs::remove_file(&file)?;
        Ok(rows)
    }

    /// The same on a terminal.
    fn on_terminal(&self, words: &[&str], accept: Accept) -> io::Result<Cost> {
        let quoted = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let run = format!("'{}' run 'do it' -n 1 {quoted}", self.ralph.display());
        let mut command = Command::new("script");
        command.args(["-qec", &run, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let directory = self.place.join("output-run");
        fs::create_dir_all(&directory)?;
        command.env("RALPH_STATE_DIR", directory.join("state")).env("TERM", "xterm-256color").current_dir(&directory);
        let begun = Instant::now();
        let spent = finish(command.spawn()?, begun, accept)?;
        fs::remove_dir_all(directory)?;
        Ok(spent)
    }

    /// The line view of a run with one iteration.
    fn one_iteration(&self, words: &[&str], accept: Accept) -> io::Result<Cost> {
        let mut command = self.run("output-run", &["run", "do it", "-n", "1"])?;
        let begun = Instant::now();
        let spent = finish(command.args(words).stdin(Stdio::null()).spawn()?, begun, accept)?;
        fs::remove_dir_all(self.place.join("output-run"))?;
        Ok(spent)
    }

    fn iterations(&self, repository: &Path, files: u32, what: &str, script: &str, goal: u32) -> io::Result<Row> {
        let count = self.size.iterations;
        let agent = format!("sh -c '{script}'");
        let looped = |times: u32| {
            let times = times.to_string();
            let mut command = Command::new(&self.ralph);
            command.args(["run", "do it", "--max-stalled", "0", "--agent-cmd", &agent, "-n", &times]);
            command.env("RALPH_STATE_DIR", self.place.join("state")).current_dir(repository);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            finish(command.spawn()?, begun, Accept::Limit)
        };
        // The first iteration pays for the start of the run, and is taken off.
        let first = median(|| looped(1))?;
        let all = median(|| looped(count + 1))?;
        let bare = median(|| {
            let again = format!("cd repository; for i in $(seq {count}); do {agent}; done");
            cost(&mut self.shell(&again))
        })?;
        let each = |cost: Duration, first: Duration| ms(cost.saturating_sub(first), count);
        let bare = each(bare.cpu, Duration::ZERO);
        let ralph = each(all.cpu, first.cpu);
        Ok(Row {
            what: format!("an iteration whose agent {what}, {files} files"),
            goal: format!("{goal} ms beyond the agent"),
            ralph: format!("{:.1} ms beyond the agent ({ralph:.1} ms in all)", (ralph - bare).max(0.0)),
            baseline: format!("a bash loop: {bare:.1} ms"),
        })
    }
}

fn succeeded(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("cannot make a repository: {status}"))) }
}

/// The one in the middle by processor time.
pub fn median(mut measured: impl FnMut() -> io::Result<Cost>) -> io::Result<Cost> {
    let mut all = (0..TIMES).map(|_| measured()).collect::<io::Result<Vec<Cost>>>()?;
    all.sort_by_key(|cost| cost.cpu);
    Ok(all[TIMES / 2])
}

const WORDS: &str = "The quick brown fox jumps over the lazy dog, and then it builds the program.\\n";
const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","num_turns":1,"usage":{"input_tokens":1,"output_tokens":1}}"#;

fn words(bytes: usize) -> String {
    WORDS.repeat(bytes.div_ceil(WORDS.len()))
}

/// Numbered lines until there are enough bytes, then the result.
fn numbered(out: &mut dyn Write, bytes: u64, line: impl Fn(u64) -> String) -> io::Result<()> {
    let (mut written, mut number) = (0, 0);
    while written < bytes {
        let line = line(number);
        writeln!(out, "{line}")?;
        written += line.len() as u64 + 1;
        number += 1;
    }
    writeln!(out, "{RESULT}")
}

fn delta(kind: &str, field: &str, text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{field}":"{text}"}}}},"session_id":"s"}}"#
    )
}

fn message(number: u64, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"session_id":"s"}}"#
    )
}

fn deltas(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    numbered(out, bytes, |number| delta("text_delta", "text", &format!("word {number} ")))
}

fn messages(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let text = words(64 * 1024);
    // The same words again and again would be a stalled agent, which is stopped.
    numbered(out, bytes, |number| message(number, &format!("Message {number}.\\n{text}")))
}

fn counted(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let line = delta("input_json_delta", "partial_json", &words(900));
    numbered(out, bytes, |_| line.clone())
}

fn tools(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let text = words(1024);
    numbered(out, bytes, |number| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"tool_use","id":"t{number}","name":"Bash","input":{{"command":"ls {number}"}}}}]}},"session_id":"s"}}
{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t{number}","content":"{text}"}}]}},"session_id":"s"}}"#
        )
    })
}

fn captures(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let once = streams::captured("claude")?;
    (0..bytes.div_ceil(once.len() as u64)).try_for_each(|_| out.write_all(&once))
}

fn one_message(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let text = words(usize::try_from(bytes).unwrap_or(usize::MAX));
    writeln!(out, "{}\n{RESULT}", message(0, &text))
}

fn plain(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut lines = String::new();
    for number in 0..10_000 {
        let _ = std::fmt::Write::write_fmt(
            &mut lines,
            format_args!("a plain line of an agent, number {number}, with some more words to fill it\n"),
        );
    }
    (0..bytes.div_ceil(lines.len() as u64)).try_for_each(|_| out.write_all(lines.as_bytes()))
}

fn one_line(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let part = vec![b'x'; 64 * 1024];
    (0..bytes.div_ceil(part.len() as u64)).try_for_each(|_| out.write_all(&part))?;
    writeln!(out)
}
