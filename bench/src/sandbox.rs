//! What the wall costs: processor time of one iteration behind each backend, over one without a wall.

use std::fs;
use std::io;

use crate::figures::{Bench, Figure, ms};
use crate::measure::cost;

/// The mounts of a wall around a small workspace, for a bubblewrap that ralph has nothing to do with.
const BARE: &str = "bwrap --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --die-with-parent --cap-drop ALL \
                    --ro-bind / / --dev /dev --proc /proc --tmpfs /run --bind \"$PWD\" /tmp --bind \"$PWD\" /var/tmp \
                    --bind \"$PWD\" \"$PWD\" -- echo word";

impl Bench {
    /// One figure for each backend that works here.
    pub fn sandbox(&self) -> io::Result<Vec<Figure>> {
        let count = self.size.iterations;
        let none = self.walled("off", "mode: off")?;
        let landlock = self.walled("landlock", "mode: workspace, backend: landlock")?;
        let bare = cost(&mut self.shell(&format!("for n in $(seq {count}); do {BARE}; done")))?;
        let bubblewrap = self.walled("bubblewrap", "mode: workspace, backend: bubblewrap")?;
        let more = |walled: f64| format!("{:.1} ms of CPU more", walled - none);
        Ok(vec![
            Figure {
                what: format!("an agent behind Landlock, mean of {count}"),
                ralph: more(landlock),
                baseline: format!("without a wall: {none:.1} ms"),
            },
            Figure {
                what: format!("an agent behind bubblewrap, mean of {count}"),
                ralph: more(bubblewrap),
                baseline: format!("`bwrap` alone with the same mounts: {:.1} ms", ms(bare.cpu, count)),
            },
        ])
    }

    /// Processor time of one iteration, in milliseconds.
    fn walled(&self, name: &str, settings: &str) -> io::Result<f64> {
        let directory = self.place.join(format!("sandbox-{name}"));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("ralph.yml"), format!("sandbox: {{{settings}}}\n"))?;
        let count = self.size.iterations;
        let (place, ralph) = (directory.display(), self.ralph.display());
        // It ends with code 5, the limit, so a shell makes that a success.
        let line = format!(
            "cd '{place}'; '{ralph}' run 'do it' --agent-cmd 'echo word' --no-progress 0 -n {count} || test $? = 5"
        );
        Ok(ms(cost(&mut self.shell(&line))?.cpu, count))
    }
}
