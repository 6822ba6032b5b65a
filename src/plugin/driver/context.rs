//! The loop context of the driver contract: what the agent learns about the loop, in one short line. Pure.

use std::fmt::Write as _;

/// No context is longer, in characters.
const LONGEST: usize = 500;
/// As much of the next task as is reported.
const LONGEST_TASK: usize = 100;
/// As much of the last summary as is reported.
const LONGEST_SUMMARY: usize = 200;

/// What the context is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts<'a> {
    /// Which iteration this is.
    pub(crate) iteration: u32,
    pub(crate) resumed: bool,
    /// The text of the plan, when there is one.
    pub(crate) plan: Option<&'a str>,
    /// What else the agent should hear: a failed verification, a person's words.
    pub(crate) remarks: &'a [String],
    /// What the agent said last.
    pub(crate) summary: Option<&'a str>,
}

/// The context as it is handed to `driver_build_command`. Every part ends in a blank.
pub(crate) fn loop_context(facts: &Facts<'_>) -> String {
    let mut context = format!("Loop #{}. ", facts.iteration);
    if facts.resumed {
        context.push_str("Session continued: do not read the specifications again, continue with the next task. ");
    }
    let open: Vec<&str> = facts.plan.into_iter().flat_map(open_tasks).collect();
    if facts.plan.is_some() {
        let _ = write!(context, "Remaining tasks: {}. ", open.len());
    }
    if let Some(next) = open.first() {
        let _ = write!(context, "Next: {}. ", cut(next, LONGEST_TASK));
    }
    for remark in facts.remarks {
        let _ = write!(context, "Note: {} ", remark.trim());
    }
    if let Some(summary) = facts.summary.map(str::trim).filter(|summary| !summary.is_empty()) {
        let one_line = summary.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = write!(context, "Previous: {}. ", cut(&one_line, LONGEST_SUMMARY).trim_end_matches('.'));
    }
    match context.char_indices().nth(LONGEST) {
        Some((end, _)) => context[..end].to_owned(),
        None => context,
    }
}

/// The open items of a plan, as the contract counts them: `- [ ]`.
fn open_tasks(plan: &str) -> impl Iterator<Item = &str> {
    plan.lines().filter_map(|line| line.trim_start().strip_prefix("- [ ]")).map(str::trim)
}

fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_context_says_which_loop_it_is() {
        assert_eq!(loop_context(&Facts { iteration: 1, ..Facts::default() }), "Loop #1. ");
    }

    #[test]
    fn every_part_has_its_place() {
        let plan = "# Plan\n- [x] one\n- [ ] two\n  - [ ] three\n* [ ] not counted\n";
        let facts = Facts {
            iteration: 7,
            resumed: true,
            plan: Some(plan),
            remarks: &["tests fail.".to_owned()],
            summary: Some("Did\nthis."),
        };
        assert_eq!(
            loop_context(&facts),
            "Loop #7. Session continued: do not read the specifications again, continue with the next task. \
             Remaining tasks: 2. Next: two. Note: tests fail. Previous: Did this. "
        );
    }

    #[test]
    fn it_is_never_longer_than_the_contract_allows() {
        let long = "ä".repeat(1000);
        let plan = format!("- [ ] {long}");
        let remarks = [long.clone()];
        let facts = Facts { iteration: 1, resumed: false, plan: Some(&plan), remarks: &remarks, summary: Some(&long) };
        assert_eq!(loop_context(&facts).chars().count(), LONGEST);
        let facts = Facts { remarks: &[], ..facts };
        assert!(loop_context(&facts).chars().count() < LONGEST, "task and summary are cut before the whole is");
    }
}
