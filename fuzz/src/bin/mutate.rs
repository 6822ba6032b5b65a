//! A fuzzer for the stable compiler: damages captured transcripts and a journal at random and feeds the adapters, the
//! journal's reader and the search for secrets with them. Seeded, so that what it finds can be found again; limited in
//! time, so that it can run anywhere.
//!
//! `cargo run --release -p fuzz --bin mutate -- [--seconds N] [--seed N] [DIALECT | journal | redaction]…`

use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ralph::transcript::DIALECTS;

/// Longer inputs only make the search slower.
const LONGEST: usize = 64 * 1024;

/// Pieces that mean something to one dialect or another.
const PIECES: &[&str] = &[
    "\n",
    "\r\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "1e999",
    "\u{feff}",
    "{\"type\":\"",
    "\"type\":\"result\"",
    "\"is_error\":true",
    "\"parent_tool_use_id\":\"t\"",
    "\"delta\":true",
    "\"text\":",
    "{\"type\":\"result\",\"result\":\"x\"}",
    "@@RALPH@@ ",
    "\u{1b}[31m",
    "[API Error: 429 x]",
    "Exit Code: 1",
    "```",
    "tokens used\n",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap_or(0)
    }
}

fn main() -> ExitCode {
    let mut seconds = 10;
    let mut seed = 1;
    let mut wanted = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|word| word.parse().ok());
        match word.as_str() {
            "--seconds" => seconds = number().unwrap_or(seconds),
            "--seed" => seed = number().unwrap_or(seed),
            _ => wanted.push(word),
        }
    }
    let targets = targets();
    if let Some(word) = wanted.iter().find(|word| targets.iter().all(|target| target.name != word.as_str())) {
        let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
        eprintln!("error: nothing here is called `{word}`; there are: {}", names.join(", "));
        return ExitCode::from(2);
    }
    let mut found = 0;
    for target in targets.iter().filter(|target| wanted.is_empty() || wanted.iter().any(|name| name == target.name)) {
        found += usize::from(!fuzz(target, Duration::from_secs(seconds), seed));
    }
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes bytes; panics when a promise is broken.
type Check = dyn Fn(&[u8]) + RefUnwindSafe;

/// Something that takes any bytes.
struct Target {
    name: &'static str,
    check: Box<Check>,
    /// Where there are good examples, below `tests/`, and how their names end.
    examples: (PathBuf, &'static str),
}

/// Every dialect, the journal's reader, the search for secrets.
fn targets() -> Vec<Target> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    let transcripts = tests.join("transcripts");
    let dialects = DIALECTS.iter().map(|dialect| {
        // Of all agents where a dialect has none of its own.
        let own = Some(transcripts.join(dialect.name)).filter(|own| own.is_dir());
        Target {
            name: dialect.name,
            check: Box::new(move |bytes| fuzz::check_adapter(dialect, bytes)),
            examples: (own.unwrap_or_else(|| transcripts.clone()), "stdout"),
        }
    });
    let journal =
        Target { name: "journal", check: Box::new(fuzz::check_journal), examples: (tests.join("cli"), "jsonl") };
    let redaction = Target {
        name: "redaction",
        check: Box::new(fuzz::check_redaction),
        examples: (transcripts.join("claude"), "stdout"),
    };
    dialects.chain([journal, redaction]).collect()
}

/// Runs one target; false when something was found.
fn fuzz(target: &Target, limit: Duration, seed: u64) -> bool {
    let Target { name, check, examples: (directory, ending) } = target;
    let mut seeds = vec![Vec::new()];
    collect(directory, ending, &mut seeds);
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let began = Instant::now();
    let mut runs = 0_u64;
    while began.elapsed() < limit {
        let mut input = seeds.get(random.below(seeds.len())).cloned().unwrap_or_default();
        for _ in 0..=random.below(6) {
            damage(&mut input, &seeds, &mut random);
        }
        input.truncate(LONGEST);
        runs += 1;
        if catch_unwind(|| check(&input)).is_err() {
            let path = std::env::temp_dir().join(format!("fuzz-{name}-{seed}-{runs}"));
            let kept =
                std::fs::write(&path, &input).map_or_else(|error| error.to_string(), |()| path.display().to_string());
            println!("{name}: found after {runs} runs, seed {seed}: {kept}");
            return false;
        }
    }
    let (seconds, seeds) = (began.elapsed().as_secs(), seeds.len());
    println!("{name}: {runs} runs in {seconds} s from {seeds} seeds, nothing found");
    true
}

/// One random change.
fn damage(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(9) {
        0 => input.truncate(at),
        1 if at < input.len() => input[at] = u8::try_from(random.below(256)).unwrap_or(0),
        2 => drop(input.drain(at..(at + random.below(60)).min(input.len()))),
        3 => drop(input.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
        4 => {
            // A piece of another transcript, perhaps another agent's.
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len());
            let to = (from + random.below(2000)).min(other.len());
            drop(input.splice(at..at, other[from..to].iter().copied()));
        }
        5 => lines(input, random, |lines, at, other| lines.swap(at, other)),
        6 => lines(input, random, |lines, at, other| lines.insert(other, lines[at])),
        7 => lines(input, random, |lines, at, _| {
            lines.remove(at);
        }),
        _ => {
            if let Some(end) = input.iter().skip(at).position(|byte| *byte == b'\n') {
                input.remove(at + end);
            }
        }
    }
}

fn lines(input: &mut Vec<u8>, random: &mut Random, change: impl Fn(&mut Vec<&[u8]>, usize, usize)) {
    let copy = input.clone();
    let mut lines: Vec<&[u8]> = copy.split(|byte| *byte == b'\n').collect();
    let (at, other) = (random.below(lines.len()), random.below(lines.len()));
    change(&mut lines, at, other);
    *input = lines.join(&b'\n');
}

/// The files below a directory whose names end so.
fn collect(directory: &Path, ending: &str, seeds: &mut Vec<Vec<u8>>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // The same order on every machine, so that a seed finds the same again.
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, ending, seeds);
        } else if path.extension().is_some_and(|found| found == ending)
            && let Ok(mut bytes) = std::fs::read(&path)
        {
            bytes.truncate(LONGEST);
            seeds.push(bytes);
        }
    }
}
