//! The status block of the driver contract: `---RALPH_STATUS---`, lines of `KEY: value`, an optional end.
//!
//! Pure. The last block wins, and its explicit `EXIT_SIGNAL` beats everything else that the block says. It must only be
//! shown the agent's own words.

use std::sync::LazyLock;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::Signal;
use crate::event::{Event, Tag};

pub(crate) const BEGIN: &str = "---RALPH_STATUS---";
/// Ends a block; some agents forget it.
pub(crate) const END: &str = "---END_RALPH_STATUS---";

/// No line of a block is longer than this.
const LONGEST_LINE: usize = 4096;

static SEARCH: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(BEGIN));

/// What an agent says of its own work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StatusBlock {
    /// `STATUS`, as it is written: `IN_PROGRESS`, `COMPLETE`, `BLOCKED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `EXIT_SIGNAL`, when it is exactly `true` or `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<bool>,
    /// `TASKS_COMPLETED_THIS_LOOP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_completed: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_modified: Option<u32>,
    /// `TESTS_STATUS`: `PASSING`, `FAILING`, `NOT_RUN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_type: Option<String>,
    /// `RECOMMENDATION`: one line about what to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<String>,
}

/// What a block means to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The work is done. It must be said in consecutive iterations to count.
    Done,
    /// The work continues; no other sign of completion may count.
    NotDone,
    /// The agent cannot go on by itself.
    Blocked,
    Nothing,
}

impl StatusBlock {
    /// What it means to the loop: `EXIT_SIGNAL` first, then `STATUS`.
    pub(crate) fn claim(&self) -> Claim {
        match (self.exit_signal, self.status.as_deref()) {
            (Some(true), _) | (None, Some("COMPLETE")) => Claim::Done,
            (_, Some("BLOCKED")) => Claim::Blocked,
            (Some(false), _) | (None, Some("IN_PROGRESS")) => Claim::NotDone,
            (None, _) => Claim::Nothing,
        }
    }

    /// What the agent says to the loop, when a block is beside its other words. An explicit `EXIT_SIGNAL` beats them.
    pub(crate) fn over(&self, signal: Option<Signal>) -> Option<Signal> {
        let explicit = self.exit_signal.is_some();
        match (self.claim(), signal) {
            (Claim::Done, None | Some(Signal::NearMiss { .. })) => Some(done(explicit)),
            (Claim::Done, Some(_)) if explicit => Some(done(explicit)),
            (Claim::NotDone, Some(Signal::Complete { marker })) => {
                let reason = "the status block says that there is more to do".to_owned();
                Some(Signal::NearMiss { line: marker.clone(), marker, reason })
            }
            (Claim::Blocked, None | Some(Signal::NearMiss { .. } | Signal::Complete { .. })) => {
                let reason =
                    self.recommendation.clone().unwrap_or_else(|| "the status block says `BLOCKED`".to_owned());
                Some(Signal::Blocked { reason })
            }
            (_, signal) => signal,
        }
    }

    fn take(&mut self, key: &str, value: &str) {
        let word = || value.split_whitespace().next().map(str::to_ascii_uppercase);
        match key {
            "STATUS" => self.status = word(),
            "EXIT_SIGNAL" => {
                self.exit_signal = match value {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => None,
                }
            }
            "TASKS_COMPLETED_THIS_LOOP" => self.tasks_completed = value.parse().ok(),
            "FILES_MODIFIED" => self.files_modified = value.parse().ok(),
            "TESTS_STATUS" => self.tests = word(),
            "WORK_TYPE" => self.work_type = word(),
            "RECOMMENDATION" => self.recommendation = (!value.is_empty()).then(|| value.to_owned()),
            _ => {}
        }
    }
}

fn done(explicit: bool) -> Signal {
    Signal::Complete { marker: if explicit { "EXIT_SIGNAL: true" } else { "STATUS: COMPLETE" }.to_owned() }
}

/// The last block in a text.
#[cfg(test)]
fn last_in(text: &str) -> Option<StatusBlock> {
    let mut watch = Watch::default();
    text.lines().for_each(|line| watch.line(line));
    watch.end()
}

/// Watches the events of one iteration for blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    open: bool,
    block: Option<StatusBlock>,
    /// A line that is not whole yet.
    held: String,
}

impl Watch {
    /// Takes the next event of standard output. Only the agent's own words count.
    pub(crate) fn see(&mut self, event: &Event) {
        let Event::Text { tag: Tag::Ai, text, delta, parent: None } = event else { return };
        if !*delta {
            self.end_line();
        }
        let mut rest = text.as_str();
        if let Some((first, more)) = rest.split_once('\n') {
            self.hold(first);
            self.end_line();
            let (whole, last) = more.rsplit_once('\n').unwrap_or(("", more));
            // Nearly no words have a block in them.
            if self.open || SEARCH.find(whole.as_bytes()).is_some() {
                whole.split('\n').for_each(|line| self.line(&line[..line.floor_char_boundary(LONGEST_LINE)]));
            }
            rest = last;
        }
        self.hold(rest);
        if !*delta {
            self.end_line();
        }
    }

    /// The iteration is over: its last block.
    pub(crate) fn end(mut self) -> Option<StatusBlock> {
        self.end_line();
        self.block
    }

    fn hold(&mut self, part: &str) {
        let room = LONGEST_LINE.saturating_sub(self.held.len());
        self.held.push_str(&part[..part.floor_char_boundary(room)]);
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.held);
        self.line(&line);
        line.clear();
        self.held = line;
    }

    fn line(&mut self, line: &str) {
        // Agents set the block in bold, in lists, in quotes.
        let line = line.trim_matches(|character: char| character.is_whitespace() || "*`>_".contains(character));
        if line == BEGIN {
            self.open = true;
            self.block = Some(StatusBlock::default());
        } else if line == END {
            self.open = false;
        } else if self.open
            && let Some(block) = &mut self.block
            && let Some((key, value)) = line.split_once(':')
        {
            let clean = |text: &'_ str| text.trim_matches(|c: char| c.is_whitespace() || "*`-".contains(c)).to_owned();
            block.take(&clean(key), &clean(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "I did it.\n---RALPH_STATUS---\nSTATUS: IN_PROGRESS\nTASKS_COMPLETED_THIS_LOOP: 1\n\
                        FILES_MODIFIED: 3\nTESTS_STATUS: PASSING\nWORK_TYPE: IMPLEMENTATION\nEXIT_SIGNAL: false\n\
                        RECOMMENDATION: go on: with b\n---END_RALPH_STATUS---\nEXIT_SIGNAL: true\n";

    #[test]
    fn every_field_is_read_and_what_follows_the_end_is_not() {
        let block = last_in(FULL).unwrap();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            block,
            StatusBlock {
                status: text("IN_PROGRESS"),
                exit_signal: Some(false),
                tasks_completed: Some(1),
                files_modified: Some(3),
                tests: text("PASSING"),
                work_type: text("IMPLEMENTATION"),
                recommendation: text("go on: with b"),
            }
        );
        assert_eq!(last_in("no block\nEXIT_SIGNAL: true"), None);
    }

    #[test]
    fn the_last_block_wins() {
        let two = format!("{FULL}---RALPH_STATUS---\nEXIT_SIGNAL: true\n");
        assert_eq!(last_in(&two).unwrap().exit_signal, Some(true));
        let example_first = format!("---RALPH_STATUS---\nEXIT_SIGNAL: true\n---END_RALPH_STATUS---\n{FULL}");
        assert_eq!(last_in(&example_first).unwrap().claim(), Claim::NotDone);
    }

    #[test]
    fn an_explicit_exit_signal_beats_the_status() {
        for (lines, claim) in [
            ("STATUS: COMPLETE\nEXIT_SIGNAL: false", Claim::NotDone),
            ("STATUS: IN_PROGRESS\nEXIT_SIGNAL: true", Claim::Done),
            ("STATUS: COMPLETE", Claim::Done),
            ("STATUS: COMPLETE\nEXIT_SIGNAL: yes", Claim::Done),
            ("STATUS: IN_PROGRESS", Claim::NotDone),
            ("STATUS: BLOCKED\nEXIT_SIGNAL: false", Claim::Blocked),
            ("STATUS: BLOCKED\nEXIT_SIGNAL: true", Claim::Done),
            ("EXIT_SIGNAL: True", Claim::Nothing),
            ("WORK_TYPE: TESTING", Claim::Nothing),
        ] {
            assert_eq!(last_in(&format!("{BEGIN}\n{lines}\n{END}")).unwrap().claim(), claim, "{lines}");
        }
    }

    #[test]
    fn a_block_beats_the_markers_beside_it() {
        let complete = || Some(Signal::Complete { marker: "m".to_owned() });
        let replan = || Some(Signal::Replan { marker: "r".to_owned() });
        let over = |lines: &str, signal| last_in(&format!("{BEGIN}\n{lines}")).unwrap().over(signal);
        let done = Some(Signal::Complete { marker: "EXIT_SIGNAL: true".to_owned() });
        assert_eq!(over("EXIT_SIGNAL: true", None), done);
        assert_eq!(over("EXIT_SIGNAL: true", replan()), done);
        assert_eq!(over("STATUS: COMPLETE", replan()), replan());
        assert!(matches!(over("EXIT_SIGNAL: false", complete()), Some(Signal::NearMiss { .. })));
        assert_eq!(over("EXIT_SIGNAL: false", replan()), replan());
        assert_eq!(over("WORK_TYPE: X", complete()), complete());
        let blocked = over("STATUS: BLOCKED\nEXIT_SIGNAL: false\nRECOMMENDATION: a key", None);
        assert_eq!(blocked, Some(Signal::Blocked { reason: "a key".to_owned() }));
    }

    #[test]
    fn decoration_does_not_hide_a_block() {
        let block = last_in("```\n**---RALPH_STATUS---**\n- **STATUS**: COMPLETE\n**EXIT_SIGNAL:** true\n```").unwrap();
        assert_eq!((block.status.as_deref(), block.exit_signal), (Some("COMPLETE"), Some(true)));
    }

    #[test]
    fn only_the_agents_own_words_count_and_fragments_join() {
        let mut watch = Watch::default();
        watch.see(&Event::text(Tag::Think, FULL));
        watch.see(&Event::text(Tag::Sys, FULL));
        watch.see(&Event::text(Tag::Ai, FULL).within("sub-agent"));
        assert_eq!(watch.clone().end(), None);
        for part in ["---RALPH_ST", "ATUS---\nEXIT_SI", "GNAL: tr", "ue\n---END", "_RALPH_STATUS---"] {
            watch.see(&Event::delta(Tag::Ai, part));
        }
        assert_eq!(watch.end().unwrap().claim(), Claim::Done);
    }
}
