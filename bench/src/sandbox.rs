//! What the wall costs: processor time of one iteration behind each backend, over one without a wall.

use std::fs;
use std::io;

use crate::figures::{Bench, Figure, ms};
use crate::measure::{Group, cost};

impl Bench {
    /// One figure for each backend that works here.
    pub fn sandbox(&self) -> io::Result<Vec<Figure>> {
        let Some(group) = Group::new() else {
            println!("no figures of the sandbox: no control group can be made here");
            return Ok(Vec::new());
        };
        let count = self.size.iterations;
        let none = self.walled(&group, "off", "mode: off")?;
        let landlock = self.walled(&group, "landlock", "mode: workspace, backend: landlock")?;
        let loop_of = |what: &str| format!("for n in $(seq {count}); do {what}; done");
        let echo = ms(group.cost(|script| self.shell(script), &loop_of("/bin/echo word"))?, count);
        let bare = ms(group.cost(|script| self.shell(script), &loop_of(&self.same_mounts()?))?, count) - echo;
        let bubblewrap = self.walled(&group, "bubblewrap", "mode: workspace, backend: bubblewrap")?;
        Ok(vec![
            Figure {
                what: format!("what Landlock adds to an iteration, mean of {count} (goal: 4 ms of CPU)"),
                ralph: format!("{:.1} ms of CPU", landlock - none),
                baseline: format!("an iteration without a wall: {none:.1} ms"),
            },
            Figure {
                what: format!(
                    "what bubblewrap adds to an iteration, mean of {count} (goal: 5 ms of CPU over `bwrap` alone)"
                ),
                ralph: format!("{:.1} ms of CPU", bubblewrap - none),
                baseline: format!("`bwrap` alone with the same mounts: {bare:.1} ms"),
            },
        ])
    }

    /// A command line of `bwrap` alone with the mounts that ralph gives it, seen by a program in its place.
    fn same_mounts(&self) -> io::Result<String> {
        let (place, seen) = (self.place.join("seen"), self.place.join("seen/words"));
        fs::create_dir_all(&place)?;
        fs::write(place.join("ralph.yml"), "sandbox: {mode: workspace, backend: bubblewrap}\n")?;
        let script = format!(
            "real=$(command -v bwrap); printf '#!/bin/sh\\nprintf \"%%s\\\\n\" \"$@\" > {seen}\\nexec %s \"$@\"\\n' $real > bwrap; \
             chmod +x bwrap; PATH=$PWD:$PATH '{ralph}' run 'do it' --agent-cmd '/bin/echo word' -n 1 || test $? = 5",
            seen = seen.display(),
            ralph = self.ralph.display(),
        );
        cost(self.shell(&script).current_dir(&place).env("RALPH_STATE_DIR", place.join("state")))?;
        let words = fs::read_to_string(seen)?;
        let mounts: Vec<&str> = words.lines().take_while(|word| *word != "--add-seccomp-fd").collect();
        // ralph removes its private directory with the run.
        for private in mounts.iter().filter(|word| word.contains("/ralph-sandbox-")) {
            fs::create_dir_all(private)?;
        }
        Ok(format!("bwrap '{}' -- /bin/echo word", mounts.join("' '")))
    }

    /// Processor time of one iteration, in milliseconds; the start of the run is taken off.
    fn walled(&self, group: &Group, name: &str, settings: &str) -> io::Result<f64> {
        let directory = self.place.join(format!("sandbox-{name}"));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("ralph.yml"), format!("sandbox: {{{settings}}}\n"))?;
        let count = self.size.iterations;
        let (place, ralph) = (directory.display(), self.ralph.display());
        let run = |times: u32| {
            // It ends with code 5, the limit, so a shell makes that a success.
            let line = format!(
                "cd '{place}'; '{ralph}' run 'do it' --agent-cmd '/bin/echo word' --max-stalled 0 -n {times} || test $? = 5"
            );
            group.cost(|script| self.shell(script), &line)
        };
        let first = run(1)?;
        Ok(ms(run(count + 1)?.saturating_sub(first), count))
    }
}
