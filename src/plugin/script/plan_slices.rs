//! The slices of `implementation_plan.md` that a build prompt of an agent script's loop asks for: the header, an overview of
//! the tasks, and for process plans the next task with its neighbours. Pure.

use std::fmt::Write as _;

/// With more open tasks than this, only the first open sections are shown.
const MOST_OPEN: usize = 30;
const SECTIONS_SHOWN: usize = 3;
/// This many tasks on each side of the selected one are shown.
const NEIGHBOURS: usize = 2;

/// One `### Task` of the plan.
struct Task<'a> {
    heading: &'a str,
    /// The number of the heading's line.
    line: usize,
    status: &'a str,
    depends: &'a str,
    /// All its lines.
    block: Vec<&'a str>,
    section: usize,
}

/// A plan taken apart.
pub(crate) struct Plan<'a> {
    header: Vec<&'a str>,
    /// The `##` headings; the first is empty, for tasks before any heading.
    sections: Vec<&'a str>,
    tasks: Vec<Task<'a>>,
    is_process: bool,
}

impl<'a> Plan<'a> {
    pub(crate) fn read(text: &'a str) -> Self {
        let mut plan = Self { header: Vec::new(), sections: vec![""], tasks: Vec::new(), is_process: false };
        let mut in_task = false;
        for (index, line) in text.lines().enumerate() {
            let section = plan.sections.len() - 1;
            if is_heading(line, "###") && line[3..].trim_start().starts_with("Task ") {
                let task = Task { heading: line, line: index + 1, status: "", depends: "", block: vec![line], section };
                plan.tasks.push(task);
                in_task = true;
                continue;
            }
            if plan.tasks.is_empty() {
                plan.header.push(line);
                plan.is_process |= field(line, "Plan Type:").is_some_and(|kind| kind.starts_with("process"));
            }
            if is_heading(line, "##") {
                plan.sections.push(line);
                in_task = false;
            }
            if let (true, Some(task)) = (in_task, plan.tasks.last_mut()) {
                task.block.push(line);
                if let Some(status) = field(line, "Status:").filter(|status| !status.is_empty()) {
                    task.status = status.split_whitespace().next().unwrap_or_default().trim_matches(['`', '*']);
                }
                if field(line, "Depends on:").is_some() {
                    task.depends = line;
                }
            }
        }
        plan
    }

    /// Whether its tasks are worked on section by section.
    pub(crate) const fn is_process(&self) -> bool {
        self.is_process
    }

    /// Everything above the first task.
    pub(super) fn header(&self) -> String {
        self.header.join("\n").trim_end().to_owned()
    }

    /// The sections: one line for each that is complete, the tasks with their line numbers for the others.
    pub(super) fn overview(&self) -> String {
        let progressive = self.tasks.iter().filter(|task| !task.is_complete()).count() > MOST_OPEN;
        let (mut text, mut shown, mut left) = (String::new(), 0, (0, 0));
        for (index, name) in self.sections.iter().enumerate() {
            let tasks: Vec<&Task<'_>> = self.tasks.iter().filter(|task| task.section == index).collect();
            let open = tasks.iter().filter(|task| !task.is_complete()).count();
            if tasks.is_empty() || open == 0 {
                let count = if tasks.is_empty() { String::new() } else { format!(" ({0}/{0} complete)", tasks.len()) };
                if !name.is_empty() {
                    let _ = writeln!(text, "{name}{count}");
                }
                continue;
            }
            if progressive && shown == SECTIONS_SHOWN {
                left = (left.0 + 1, left.1 + open);
                continue;
            }
            shown += 1;
            if !name.is_empty() {
                let _ = writeln!(text, "{name}");
            }
            for task in tasks {
                let _ = writeln!(text, "  {}:{}", task.line, task.heading);
                for line in task.facts() {
                    let _ = writeln!(text, "  {line}");
                }
            }
        }
        if left.0 > 0 {
            let _ = writeln!(text, "(+{} more sections with {} planned tasks)", left.0, left.1);
        }
        text.trim_end().to_owned()
    }

    /// The first planned task of the earliest open section whose dependencies are complete, and its neighbours.
    pub(super) fn selected(&self) -> Option<(String, String)> {
        let section = self.tasks.iter().find(|task| !task.is_complete())?.section;
        let of_section = |task: &Task<'_>| task.section == section && task.status == "planned" && self.is_ready(task);
        let at = self.tasks.iter().position(of_section)?;
        let neighbours = self
            .tasks
            .iter()
            .enumerate()
            .skip(at.saturating_sub(NEIGHBOURS))
            .take_while(|(index, _)| *index <= at + NEIGHBOURS);
        let neighbours = neighbours.filter(|(index, _)| *index != at).map(|(_, task)| {
            let lines: Vec<String> = std::iter::once(task.heading.to_owned()).chain(task.facts()).collect();
            lines.join("\n")
        });
        let block = self.tasks[at].block.join("\n").trim_end().to_owned();
        Some((block, neighbours.collect::<Vec<_>>().join("\n\n")))
    }

    fn is_ready(&self, task: &Task<'_>) -> bool {
        let complete = |number: &str| self.tasks.iter().any(|task| task.is_complete() && task.number() == Some(number));
        numbers(task.depends).all(complete)
    }
}

impl<'a> Task<'a> {
    fn is_complete(&self) -> bool {
        self.status == "complete"
    }

    fn number(&self) -> Option<&'a str> {
        numbers(self.heading).next()
    }

    /// Its status and its dependencies.
    fn facts(&self) -> impl Iterator<Item = String> {
        let status =
            Some(self.status).filter(|status| !status.is_empty()).map(|status| format!("**Status:** {status}"));
        status.into_iter().chain(Some(self.depends.to_owned()).filter(|line| !line.is_empty()))
    }
}

fn is_heading(line: &str, marks: &str) -> bool {
    line.strip_prefix(marks).is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// The value of `Name: value`, in bold or not.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.trim_start_matches('*').strip_prefix(name)?;
    Some(value.trim_start_matches('*').trim())
}

/// The numbers behind the word `Task`.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split("Task").skip(1).filter_map(|rest| {
        let rest = rest.trim_start();
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        (end > 0).then(|| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "Plan Type: process\nPlan Command: `ralph plan`\n\n## Notes\nBe exact.\n\n## Phase 1 — Base\n\n\
        ### Task 1 — Tables\n**Status:** complete\n\n## Phase 2 — API\n\n### Task 2: Users\nStatus: planned\nDepends on: Task 3\n\n\
        ### Task 3: Login\nStatus: `planned` soon\n**Depends on:** Task 1\nDo it well.\n\n## Phase 3 — UI\n\n### Task 4 — Page\n**Status:** planned\n";

    #[test]
    fn the_slices_are_those_of_the_documents() {
        let plan = Plan::read(PLAN);
        assert!(plan.is_process());
        assert_eq!(
            plan.header(),
            "Plan Type: process\nPlan Command: `ralph plan`\n\n## Notes\nBe exact.\n\n## Phase 1 — Base"
        );
        assert_eq!(
            plan.overview(),
            "## Notes\n## Phase 1 — Base (1/1 complete)\n## Phase 2 — API\n  14:### Task 2: Users\n  **Status:** planned\n  \
             Depends on: Task 3\n  18:### Task 3: Login\n  **Status:** planned\n  **Depends on:** Task 1\n## Phase 3 — UI\n  \
             25:### Task 4 — Page\n  **Status:** planned"
        );
        let (task, neighbours) = plan.selected().unwrap();
        assert_eq!(task, "### Task 3: Login\nStatus: `planned` soon\n**Depends on:** Task 1\nDo it well.");
        assert!(
            neighbours.starts_with("### Task 1 — Tables\n**Status:** complete\n\n### Task 2: Users"),
            "{neighbours}"
        );
        assert!(neighbours.ends_with("### Task 4 — Page\n**Status:** planned"), "{neighbours}");
    }

    #[test]
    fn a_plan_without_tasks_is_its_header() {
        let plan = Plan::read("# Plan\n\n- [ ] one\n");
        assert_eq!((plan.header().as_str(), plan.overview().as_str()), ("# Plan\n\n- [ ] one", ""));
        assert!(plan.selected().is_none() && !plan.is_process());
    }

    #[test]
    fn a_long_plan_shows_its_first_open_sections() {
        let section = |n: usize| format!("## S{n}\n") + &"### Task 1: x\nStatus: planned\n".repeat(8);
        let text: String = (1..=5).map(section).collect();
        let overview = Plan::read(&text).overview();
        assert!(overview.contains("## S3") && !overview.contains("## S4"), "{overview}");
        assert!(overview.ends_with("(+2 more sections with 16 planned tasks)"), "{overview}");
    }
}
