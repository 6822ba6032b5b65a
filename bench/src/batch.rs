//! What a batch costs beyond the runs and merges that it is made of.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::figures::{Bench, Figure, ms};
use crate::measure::cost;

impl Bench {
    /// Many tasks of a tiny agent: as a batch, and as runs and merges one after the other.
    pub fn batch(&self) -> io::Result<Vec<Figure>> {
        let count = self.size.loops;
        let apart = self.with_tasks("apart", count)?;
        let ralph = self.ralph.display();
        let agent = "--agent-cmd 'sh agent.sh'";
        let one_by_one = format!(
            "for n in $(seq {count}); do '{ralph}' run \"task $n\" --worktree=w$n {agent} && '{ralph}' merge || exit 1; done"
        );
        let run = |place: &Path, script: &str| {
            cost(self.shell(script).current_dir(place).env("RALPH_STATE_DIR", place.with_extension("state")))
        };
        let alone = run(&apart, &one_by_one)?;
        let together = self.with_tasks("together", count)?;
        let batch = run(&together, &format!("exec '{ralph}' batch tasks.yml --into -j 2 {agent}"))?;
        let peak = batch.peak / 1024;
        Ok(vec![Figure {
            what: format!("a batch of {count} tasks, CPU per task (goal: 1.5 times; coordinator below 60 MB)"),
            ralph: format!(
                "{:.1} ms, {:.2} times, {peak} MB",
                ms(batch.cpu, count),
                batch.cpu.as_secs_f64() / alone.cpu.as_secs_f64()
            ),
            baseline: format!("`ralph run --worktree` and `ralph merge`: {:.1} ms", ms(alone.cpu, count)),
        }])
    }

    fn with_tasks(&self, name: &str, count: u32) -> io::Result<std::path::PathBuf> {
        let place = self.place.join(format!("batch-{name}"));
        fs::create_dir_all(&place)?;
        let agent = "cat > /dev/null\necho word > \"$RALPH_RUN_ID.txt\"\ngit add -A\n\
                     git -c user.name=a -c user.email=a@a.invalid commit -qm work\necho '<promise>COMPLETE</promise>'\n";
        fs::write(place.join("agent.sh"), agent)?;
        let mut tasks = "tasks:\n".to_owned();
        for number in 1..=count {
            let _ = writeln!(tasks, "  - {{id: t{number}, prompt: task {number}}}");
        }
        fs::write(place.join("tasks.yml"), tasks)?;
        let make = "git init -qb main && git config user.name a && git config user.email a@a.invalid && git add -A && git commit -qm start";
        cost(self.shell(make).current_dir(&place))?;
        Ok(place)
    }
}
