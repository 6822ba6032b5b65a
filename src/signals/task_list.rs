//! Task lists in Markdown: which items are open? `- [ ]`, `* [ ]`, `1. [ ]`, nested; code and quotations do not count.

use super::markdown::{Fences, list_mark_free};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Items {
    /// What is still to be done.
    pub open: Vec<String>,
    pub done: usize,
}

pub(crate) fn items(text: &str) -> Items {
    let mut items = Items::default();
    let mut fences = Fences::default();
    for line in text.lines() {
        if fences.line(line) {
            continue;
        }
        let text = line.trim_start();
        let item = list_mark_free(text).trim_start();
        if item.len() == text.len() {
            continue;
        }
        let Some((mark, rest)) = item.strip_prefix('[').and_then(|item| item.split_once(']')) else { continue };
        if !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            continue;
        }
        match mark {
            " " | "" => items.open.push(rest.trim().to_owned()),
            "x" | "X" => items.done += 1,
            _ => {}
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_items_count() {
        let plan = "# Plan\n- [ ] one\n* [x] two\n1. [ ] three\n   + [X] four\n\t- [ ] five\n```\n- [ ] code\n```\n> - [ ] quoted\n\
                    [ ] no list\n- [link](x)\n- [ ](x)\n- [-] given up\n2) [ ]\n- plain\n";
        assert_eq!(items(plan), Items { open: ["one", "three", "five", ""].map(str::to_owned).to_vec(), done: 2 });
        assert_eq!(items(""), Items::default());
    }
}
