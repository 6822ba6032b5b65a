//! More whole runs with a goal: starts, a terminal, many loops at once, a long replay, lines through the translation.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::figures::{Bench, has_jq};
use crate::measure::{Accept, Cost, cost, finish};
use crate::streams;
use crate::workloads::{Row, median};

/// Processes that do nothing beside the loops.
const IDLE: usize = 1000;

impl Bench {
    /// All of these rows.
    pub fn goals(&self) -> io::Result<Vec<Row>> {
        let mut rows = vec![self.starts()?, self.many_loops(0)?, self.many_loops(IDLE)?];
        rows.extend([self.long_replay()?, self.few_lines()?, self.many_lines()?]);
        Ok(rows)
    }

    /// Through a shell, which adds up the times of its children more exactly than they can be read one by one.
    fn starts(&self) -> io::Result<Row> {
        let count = self.size.starts;
        let looped = |program: &str| {
            median(|| cost(&mut self.shell(&format!("for i in $(seq {count}); do {program} > /dev/null; done"))))
        };
        let ralph = looped(&format!("'{}' --version", self.ralph.display()))?;
        let nothing = looped("/usr/bin/env true")?;
        Ok(Row {
            what: format!("`ralph --version`, {count} times"),
            goal: format!("{} ms", 300 * count / 200),
            ralph: format!("{} ms", ralph.cpu.as_millis()),
            baseline: format!("`env true`: {} ms", nothing.cpu.as_millis()),
        })
    }

    /// In git repositories, with so many other processes on the machine.
    fn many_loops(&self, idle: usize) -> io::Result<Row> {
        let count = self.size.loops;
        let idle_processes = sleeping(idle)?;
        let measured = self.loops_at_once(count);
        for mut process in idle_processes {
            process.kill()?;
            process.wait()?;
        }
        let loops = measured?;
        let script = format!(
            "for j in $(seq {count}); do (for i in 1 2 3; do echo 'do it' | sh -c 'sleep 2; echo word' >> bare-$j.log; done) & done; wait"
        );
        let bare = cost(&mut self.shell(&script))?;
        let beside = if idle == 0 { String::new() } else { format!(", beside {idle} idle processes") };
        Ok(Row {
            what: format!("{count} loops at once, three iterations of `sleep 2` each, in git repositories{beside}"),
            goal: format!("{} ms", 4000 * count / 200),
            ralph: format!("{} ms; {:.1} s", loops.cpu.as_millis(), loops.wall.as_secs_f64()),
            baseline: format!("bash loops: {} ms; {:.1} s", bare.cpu.as_millis(), bare.wall.as_secs_f64()),
        })
    }

    /// From one shell, which adds up their times exactly: those of each are a few hundredths of a second, the unit of the system.
    fn loops_at_once(&self, count: u32) -> io::Result<Cost> {
        let last = count - 1;
        cost(&mut self.shell(&format!("for j in $(seq 0 {last}); do git init -q loop-$j; done")))?;
        let run = format!(
            "'{}' run 'do it' --agent-cmd \"sh -c 'sleep 2; echo word'\" -n 3 --max-stalled 0",
            self.ralph.display()
        );
        let one = format!("cd loop-$j; RALPH_STATE_DIR=$PWD/state exec {run} < /dev/null > /dev/null 2>&1");
        let spent = cost(&mut self.shell(&format!("for j in $(seq 0 {last}); do ({one}) & done; wait; true")))?;
        (0..count).try_for_each(|at| fs::remove_dir_all(self.place.join(format!("loop-{at}"))))?;
        Ok(spent)
    }

    /// A replay does not wait for anything unless it is told to.
    fn long_replay(&self) -> io::Result<Row> {
        let count = (self.size.iterations * 20).to_string();
        let words = ["run", "do it", "--max-stalled", "0", "--agent-cmd", "echo word", "-n", &count];
        let begun = Instant::now();
        finish(self.run("many", &words)?.stdin(Stdio::null()).spawn()?, begun, Accept::Limit)?;
        let replay = median(|| cost(&mut self.run("many", &["replay"])?))?;
        let cat = median(|| cost(&mut self.shell("cat many/state/projects/*/runs/*/journal.jsonl > /dev/null")))?;
        fs::remove_dir_all(self.place.join("many"))?;
        let shown = |cost: Cost| format!("{} ms, {} ms CPU", cost.wall.as_millis(), cost.cpu.as_millis());
        Ok(Row {
            what: format!("`ralph replay` of {count} iterations"),
            goal: "as fast as it can write".to_owned(),
            ralph: shown(replay),
            baseline: format!("`cat` of its journal: {}", shown(cat)),
        })
    }

    fn few_lines(&self) -> io::Result<Row> {
        let few = 2000;
        let file = streams::file(&self.place, "codex", 2_000_000)?;
        let script = format!("head -n {few} '{}' > few.jsonl", file.display());
        cost(&mut self.shell(&script))?;
        let times = 20;
        let words = format!("'{}' translate --from codex --to claude few.jsonl", self.ralph.display());
        let ralph = cost(&mut self.shell(&format!("for i in $(seq {times}); do {words} > /dev/null; done")))?;
        let script =
            "head -n 100 few.jsonl | while read -r line; do printf '%s' \"$line\" | jq -c '{type: .type}'; done";
        let jq = if has_jq() { Some(cost(&mut self.shell(script))?.cpu * (few / 100)) } else { None };
        Ok(Row {
            what: format!("`translate --from codex --to claude` of {few} lines"),
            goal: "9 ms".to_owned(),
            ralph: format!("{:.1} ms", ralph.cpu.as_secs_f64() * 1000.0 / f64::from(times)),
            baseline: jq.map_or("`jq` is not installed".to_owned(), |jq| {
                format!("a bash wrapper with a `jq` for each line: about {} ms", jq.as_millis())
            }),
        })
    }

    fn many_lines(&self) -> io::Result<Row> {
        let file = streams::file(&self.place, "codex", self.size.stream)?;
        let lines = fs::read(&file)?.iter().filter(|byte| **byte == b'\n').count();
        let path = file.to_string_lossy().into_owned();
        let ralph =
            median(|| cost(&mut self.run("wrapper", &["translate", "--from", "codex", "--to", "claude", &path])?))?;
        let cat = median(|| cost(&mut self.shell(&format!("cat '{path}' | cat"))))?;
        let rate = |cost: Cost| format!("{:.0}", lines as f64 / cost.cpu.as_secs_f64().max(0.01));
        Ok(Row {
            what: "`translate --from codex --to claude`, lines a second of processor time".to_owned(),
            goal: "1000000".to_owned(),
            ralph: rate(ralph),
            baseline: format!("`cat \\| cat`: {}", rate(cat)),
        })
    }
}

fn sleeping(count: usize) -> io::Result<Vec<Child>> {
    (0..count).map(|_| Command::new("sleep").arg("600").stdin(Stdio::null()).spawn()).collect()
}
