//! What a tool is about to change, from its arguments alone: the difference that an edit makes.

use serde_json::Value;

use crate::event::Object;

/// More lines of a difference are counted, not kept.
const MOST_KEPT: usize = 60;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// How many lines it adds.
    pub added: usize,
    /// How many it takes away.
    pub removed: usize,
    /// Its lines, each with its sign; the first of them.
    pub lines: Vec<String>,
}

impl Change {
    /// What the arguments of a tool say: an edit of a text, several of them, or a patch.
    pub(crate) fn of(input: &Object) -> Option<Self> {
        let text = |object: &Object, names: [&str; 3]| {
            names.iter().find_map(|name| object.get(*name).and_then(Value::as_str).map(str::to_owned))
        };
        let edit = |object: &Object, change: &mut Self| {
            let new = text(object, ["new_string", "newText", "new_str"])?;
            let old = text(object, ["old_string", "oldText", "old_str"]).unwrap_or_default();
            change.edit(&old, &new);
            Some(())
        };
        let mut change = Self::default();
        if edit(input, &mut change).is_some() {
            return Some(change);
        }
        if let Some(edits) = input.get("edits").and_then(Value::as_array) {
            for object in edits.iter().filter_map(Value::as_object) {
                let _ = edit(object, &mut change);
            }
        } else if let Some(patch) = text(input, ["patch", "input", "diff"]).filter(|patch| is_patch(patch)) {
            patch.lines().filter(|line| !line.starts_with("+++") && !line.starts_with("---")).for_each(|line| {
                if line.starts_with(['+', '-', '@', ' ']) || line.starts_with("*** Update") {
                    change.push(line.to_owned());
                }
            });
        }
        (change.added + change.removed > 0).then_some(change)
    }

    /// The lines that differ; those that both texts begin or end with are left out.
    fn edit(&mut self, old: &str, new: &str) {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[same..], &new[same..]);
        let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        old[..old.len() - end].iter().for_each(|line| self.push(format!("-{line}")));
        new[..new.len() - end].iter().for_each(|line| self.push(format!("+{line}")));
    }

    fn push(&mut self, line: String) {
        match line.as_bytes().first() {
            Some(b'+') => self.added += 1,
            Some(b'-') => self.removed += 1,
            _ => {}
        }
        if self.lines.len() < MOST_KEPT {
            self.lines.push(line);
        }
    }
}

fn is_patch(text: &str) -> bool {
    text.starts_with("*** Begin Patch") || text.starts_with("--- ") || text.starts_with("diff --git ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Option<(usize, usize, String)> {
        let change = Change::of(&serde_json::from_str(json).unwrap())?;
        Some((change.added, change.removed, change.lines.join("|")))
    }

    #[test]
    fn an_edit_is_the_lines_that_differ() {
        let edit = r#"{"file_path":"x","old_string":"a\nb\nc","new_string":"a\nB\nB2\nc"}"#;
        assert_eq!(of(edit), Some((2, 1, "-b|+B|+B2".into())));
        let edits = r#"{"edits":[{"oldText":"a","newText":"b"},{"oldText":"","newText":"c"}]}"#;
        assert_eq!(of(edits), Some((2, 1, "-a|+b|+c".into())));
        let patch = r#"{"input":"*** Begin Patch\n*** Update File: x\n@@\n-a\n+b\n*** End Patch"}"#;
        assert_eq!(of(patch), Some((1, 1, "*** Update File: x|@@|-a|+b".into())));
        assert_eq!(of(r#"{"command":"ls","input":"words"}"#), None);
    }
}
