//! Differences among other lines: where one begins, how its lines look, where it is over.

use super::style::Ink;

/// Whether the lines that come are those of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Diff {
    /// They are anything else.
    #[default]
    Outside,
    Inside,
}

impl Diff {
    /// The ink of the next line, when it belongs to a difference.
    pub(crate) fn line(&mut self, line: &str) -> Option<Ink> {
        if *self == Self::Outside && !begins(line) {
            return None;
        }
        let found = ink(line);
        *self = if found.is_some() || line.is_empty() { Self::Inside } else { Self::Outside };
        found
    }
}

/// The first line of a difference, in the forms that git, diff and patching agents write.
fn begins(line: &str) -> bool {
    const BEGINNINGS: [&str; 5] = ["diff --git ", "--- ", "@@ -", "*** Begin Patch", "Index: "];
    // A rule of Markdown, or a sentence, is no file name.
    BEGINNINGS.iter().any(|beginning| line.starts_with(beginning)) && !line.trim_end_matches(['-', ' ']).is_empty()
}

/// The ink of a line that is known to be one of a difference; none when it does not look like it.
pub(crate) fn ink(line: &str) -> Option<Ink> {
    const ABOUT: [&str; 13] = [
        "diff ",
        "index ",
        "Index: ",
        "--- ",
        "+++ ",
        "*** ",
        "new file ",
        "deleted file ",
        "old mode ",
        "new mode ",
        "similarity ",
        "rename ",
        "Binary ",
    ];
    if ABOUT.iter().any(|beginning| line.starts_with(beginning)) {
        return Some(Ink::Strong);
    }
    match line.bytes().next()? {
        b'+' => Some(Ink::Added),
        b'-' => Some(Ink::Removed),
        b'@' => Some(Ink::Hunk),
        b' ' | b'\\' => Some(Ink::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_seen_from_its_first_line_to_its_last() {
        let mut diff = Diff::default();
        let text =
            "- a list\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\nAnd then:\n- a list";
        let inks: Vec<_> = text.lines().map(|line| diff.line(line)).collect();
        let strong = Some(Ink::Strong);
        let hunk = [Some(Ink::Hunk), Some(Ink::None), Some(Ink::Removed), Some(Ink::Added)];
        assert_eq!(inks, [[None, strong, strong, strong].as_slice(), &hunk, &[None, None]].concat());
    }

    #[test]
    fn a_rule_of_markdown_is_no_difference() {
        assert_eq!(["---", "--- ", "- x", "+ x"].map(|line| Diff::default().line(line)), [None; 4]);
    }
}
