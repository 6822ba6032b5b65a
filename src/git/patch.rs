//! The difference between two states of a few files as a patch, in git's form. Pure. What git would show in another way (renames, names
//! that need quotes, large files) is left to git.

use std::fmt::Write as _;
use std::io::Write as _;

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, InternedInput};

use super::objects::hex;

/// How many unchanged lines are around a change.
const CONTEXT: u32 = 3;
/// git takes a file for binary that has a NUL within so many bytes.
const BINARY_WITHIN: usize = 8000;
const HEADING: usize = 80;
const SHORT_ID: usize = 7;

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) mode: u32,
    pub(super) id: Vec<u8>,
}

/// A file that is different now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) name: Vec<u8>,
    pub(super) before: Option<Version>,
    pub(super) now: Option<Version>,
}

/// The patch; `below` is in front of every name, `read` gives the content of a blob. `None` where git has to make it.
pub(super) fn patch(
    changes: &[Changed],
    below: &str,
    mut read: impl FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<String> {
    let came = changes.iter().any(|change| change.before.is_none());
    let went = changes.iter().any(|change| change.now.is_none());
    // One may be the other under a new name.
    if came && went {
        return None;
    }
    let mut text = Vec::new();
    for change in changes {
        let name = format!("{below}{}", std::str::from_utf8(&change.name).ok()?);
        let needs_care = |character: char| character.is_ascii_control() || matches!(character, ' ' | '"' | '\\');
        if name.contains(needs_care) {
            return None;
        }
        let mut content = |version: &Option<Version>| match version {
            Some(version) => read(&version.id),
            None => Some(Vec::new()),
        };
        let (before, now) = (content(&change.before)?, content(&change.now)?);
        file(&mut text, &name, change, &before, &now)?;
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn file(text: &mut Vec<u8>, name: &str, change: &Changed, before: &[u8], now: &[u8]) -> Option<()> {
    let short = |version: &Option<Version>| {
        version.as_ref().map_or_else(|| "0".repeat(SHORT_ID), |version| hex(&version.id)[..SHORT_ID].to_owned())
    };
    let mut head = format!("diff --git a/{name} b/{name}\n");
    let mut same_mode = String::new();
    match (&change.before, &change.now) {
        (None, Some(now)) => writeln!(head, "new file mode {:o}", now.mode).ok()?,
        (Some(before), None) => writeln!(head, "deleted file mode {:o}", before.mode).ok()?,
        (Some(before), Some(now)) if before.mode == now.mode => same_mode = format!(" {:o}", now.mode),
        (Some(before), Some(now)) => {
            writeln!(head, "old mode {:o}\nnew mode {:o}", before.mode, now.mode).ok()?;
        }
        (None, None) => return None,
    }
    let is_same = matches!((&change.before, &change.now), (Some(before), Some(now)) if before.id == now.id);
    if !is_same {
        writeln!(head, "index {}..{}{same_mode}", short(&change.before), short(&change.now)).ok()?;
    }
    text.extend(head.into_bytes());
    let side = |version: &Option<Version>, side: &str| match version {
        Some(_) => format!("{side}/{name}"),
        None => "/dev/null".to_owned(),
    };
    let (old, new) = (side(&change.before, "a"), side(&change.now, "b"));
    let is_binary = |content: &[u8]| memchr::memchr(0, &content[..content.len().min(BINARY_WITHIN)]).is_some();
    if is_same || before.is_empty() && now.is_empty() {
        return Some(());
    }
    if is_binary(before) || is_binary(now) {
        writeln!(text, "Binary files {old} and {new} differ").ok()?;
        return Some(());
    }
    write!(text, "--- {old}\n+++ {new}\n").ok()?;
    hunks(text, before, now)
}

fn hunks(text: &mut Vec<u8>, before: &[u8], now: &[u8]) -> Option<()> {
    let input = InternedInput::new(byte_lines(before), byte_lines(now));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let old = |line: u32| input.interner[input.before[line as usize]];
    let new = |line: u32| input.interner[input.after[line as usize]];
    let most = u32::try_from(input.before.len()).ok()?;
    let mut waiting = diff.hunks().peekable();
    let (mut heading, mut searched): (&[u8], u32) = (b"", 0);
    while let Some(first) = waiting.next() {
        let mut together = vec![first];
        while let Some(next) = waiting.next_if(|next| {
            together.last().is_some_and(|last| next.before.start.saturating_sub(last.before.end) <= 2 * CONTEXT)
        }) {
            together.push(next);
        }
        let last = together.last()?;
        let start = together[0].before.start.saturating_sub(CONTEXT);
        let end = (last.before.end + CONTEXT).min(most);
        let new_start = together[0].after.start - (together[0].before.start - start);
        let new_end = last.after.end + (end - last.before.end);
        // The last line before it that begins with a letter, as in git.
        let is_heading =
            |line: &&[u8]| line.first().is_some_and(|&byte| byte.is_ascii_alphabetic() || b"_$".contains(&byte));
        if let Some(found) = (searched..start).rev().map(old).find(is_heading) {
            heading = found[..found.len().min(HEADING)].trim_ascii_end();
        }
        searched = start;
        let range = |start: u32, end: u32| match end - start {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            length => format!("{},{length}", start + 1),
        };
        write!(text, "@@ -{} +{} @@", range(start, end), range(new_start, new_end)).ok()?;
        if !heading.is_empty() {
            text.push(b' ');
            text.extend_from_slice(heading);
        }
        text.push(b'\n');
        let mut put = |sign: u8, line: &[u8]| {
            text.push(sign);
            text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        };
        let mut at = start;
        for hunk in together {
            (at..hunk.before.start).for_each(|line| put(b' ', old(line)));
            hunk.before.clone().for_each(|line| put(b'-', old(line)));
            hunk.after.clone().for_each(|line| put(b'+', new(line)));
            at = hunk.before.end;
        }
        (at..end).for_each(|line| put(b' ', old(line)));
    }
    Some(())
}
