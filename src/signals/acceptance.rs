//! Acceptance criteria in a prompt or a plan: the items with a checkbox under a heading `Acceptance`.

use super::markdown::{Fences, list_mark_free};

/// More of them are not read.
const MOST: usize = 50;

/// The criteria of a text, in order, ticked or not.
pub(crate) fn criteria(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut fences = Fences::default();
    // The level of the heading that they are under.
    let mut under = None;
    for line in text.lines() {
        if fences.line(line) {
            continue;
        }
        if let Some((level, title)) = heading(line) {
            let begins = under.is_none_or(|open| level <= open);
            if begins {
                under = is_acceptance(title).then_some(level);
            }
        } else if under.is_some()
            && let Some(item) = item(line)
            && !found.contains(&item)
            && found.len() < MOST
        {
            found.push(item);
        }
    }
    found
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| (level, title.trim()))
}

fn is_acceptance(title: &str) -> bool {
    let title = title.trim_end_matches([':', '#', ' ']).to_lowercase();
    ["acceptance", "acceptance criteria"].contains(&title.as_str())
}

fn item(line: &str) -> Option<String> {
    let text = line.trim_start();
    let item = list_mark_free(text).trim_start();
    let rest = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| item.strip_prefix(mark))?;
    let is_item = item.len() < text.len() && rest.starts_with([' ', '\t']) && !rest.trim().is_empty();
    is_item.then(|| rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_boxes_under_the_heading_are_criteria() {
        let text = "# Goal\n- [ ] a task\n## Acceptance\nAll of these:\n- [ ] one\n* [x] `two`\n### More\n1. [ ] three\n\
                    - plain\n- [ ] one\n```\n- [ ] code\n```\n- [ ]\n## Later\n- [ ] not this\n";
        assert_eq!(criteria(text), ["one", "`two`", "three"]);
        assert_eq!(criteria("## ACCEPTANCE criteria:\n- [ ] x\n"), ["x"]);
        for none in
            ["", "Acceptance\n- [ ] x\n", "## Acceptance tests\n- [ ] x\n", "```\n## Acceptance\n```\n- [ ] x\n"]
        {
            assert_eq!(criteria(none), Vec::<String>::new(), "{none}");
        }
    }
}
