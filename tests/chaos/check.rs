//! What must be true afterwards.

use std::path::Path;

use super::plan::{Kind, Plan, Stop};

/// What a pipe and one reading can hold when ralph dies in between.
const UNDER_WAY: u64 = 1024 * 1024 + 64 * 1024;

/// What is wrong with the outcome of an agent, if anything.
pub fn outcome(plan: &Plan, line: &str) -> Result<(), String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [exit, stopped, left_behind, survivors, output] = fields[..] else { return Err(format!("torn: {line:?}")) };
    let natural = match plan.kind {
        Kind::Finish => "code3",
        Kind::CloseStdout => "code4",
        Kind::KillSelf => "signal9",
        _ => "code0",
    };
    let reason = match plan.stop {
        Stop::Never => "None",
        Stop::Ask(_) | Stop::Kill(_) => "Asked",
        Stop::Total(_) => "Total",
    };
    let forced: &[&str] = match (plan.stop, plan.kind) {
        (Stop::Kill(_), _) | (_, Kind::IgnoreTerm) => &["signal9"],
        // The first step of the ladder is INT. A fork bomb may be so busy that it is killed.
        _ => &["signal2", "signal15", "signal9"],
    };
    let by_itself = stopped == "None" && exit == natural && !plan.kind.needs_stop();
    // A stop may come when it has just ended by itself.
    let by_force = stopped == reason && stopped != "None" && (forced.contains(&exit) || exit == natural);
    if !by_itself && !by_force {
        return Err(format!("classed wrong: {line:?}, expected {natural}/None or {forced:?}/{reason}"));
    }
    if survivors != "0" {
        return Err(format!("something could not be ended: {line:?}"));
    }
    if output != "closed" {
        return Err(format!("the output was still open: {line:?}"));
    }
    let expected = match plan.kind {
        Kind::Daemon | Kind::BareDaemon | Kind::ChildWrites => Some("1"),
        Kind::ForkBomb => Some("50"),
        _ => Some("0"),
    };
    if by_itself && expected != Some(left_behind) {
        return Err(format!("left behind: {line:?}, expected {expected:?}"));
    }
    Ok(())
}

/// Who has read the output of an agent to which end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Until the agent was gone.
    Lived,
    /// Until it was killed itself.
    Died,
}

/// What is wrong with the raw file of an agent, if anything.
pub fn raw(plan: &Plan, directory: &Path, reader: Reader) -> Result<(), String> {
    let read = |ending: &str| std::fs::read(directory.join(format!("{}.{ending}", plan.number)));
    let raw = match read("raw") {
        Ok(raw) => raw,
        Err(_) if reader == Reader::Died => return Ok(()),
        Err(error) => return Err(format!("no raw file: {error}")),
    };
    let progress = read("progress").unwrap_or_default();
    let written = progress.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let missing = written.saturating_sub(raw.len() as u64);
    if missing > if reader == Reader::Died { UNDER_WAY } else { 0 } {
        return Err(format!("{missing} of {written} bytes are missing"));
    }
    let mut rest = &raw[..];
    let mut index = 0;
    while !rest.is_empty() {
        let line = plan.line(index);
        index += 1;
        let length = line.len().min(rest.len());
        if rest[..length] != line[..length] {
            return Err(format!("line {index} is not what was written"));
        }
        rest = &rest[length..];
    }
    Ok(())
}
