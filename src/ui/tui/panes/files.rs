//! What an iteration changed: its commits, its files, and the difference of each, as far as git can tell.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, TryRecvError};

use super::super::actions::Actions;
use super::super::detail::Detail;
use super::super::index::Index;
use super::super::rows::{Row, difference};
use super::super::theme::Theme;
use crate::journal::Receipt;
use crate::ui::style::Ink;
use crate::ui::words;

/// More of a difference is not kept.
const LONGEST: usize = 4 * 1024 * 1024;

/// The files of one entry.
#[derive(Debug, Default)]
pub(crate) struct Files {
    entry: usize,
    receipt: Option<Receipt>,
    asked: Option<Receiver<Result<String, String>>>,
    difference: Difference,
    open: HashSet<String>,
    /// The file of each row, for opening it.
    names: Vec<Option<String>>,
}

#[derive(Debug, Default)]
enum Difference {
    #[default]
    Unknown,
    Known(Vec<(String, String)>),
    Failed(String),
}

impl Files {
    /// Of which entry this is.
    pub(crate) const fn entry(&self) -> usize {
        self.entry
    }

    /// Asks about another entry, or again about the same one.
    pub(crate) fn ask(entry: usize, index: &Index, actions: &mut dyn Actions) -> Self {
        let receipt = index.receipt(entry);
        let changed = receipt.clone().filter(|receipt| !receipt.files.is_empty());
        let asked = changed.map(|receipt| actions.difference(receipt));
        Self { entry, receipt, asked, ..Self::default() }
    }

    /// True when the iteration was not over when this was asked.
    pub(crate) const fn is_early(&self) -> bool {
        self.receipt.is_none()
    }

    /// Looks whether the answer is there.
    pub(crate) fn poll(&mut self) -> bool {
        let Some(asked) = &self.asked else { return false };
        self.difference = match asked.try_recv() {
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => Difference::Failed("git did not answer".to_owned()),
            Ok(Err(reason)) => Difference::Failed(reason),
            Ok(Ok(mut text)) => {
                text.truncate(text.floor_char_boundary(LONGEST));
                Difference::Known(by_file(&text))
            }
        };
        self.asked = None;
        true
    }

    /// Opens or closes the file of a row.
    pub(crate) fn toggle(&mut self, row: usize) {
        if let Some(Some(name)) = self.names.get(row).cloned()
            && !self.open.remove(&name)
        {
            self.open.insert(name);
        }
    }

    pub(crate) fn rows(&mut self, detail: &Detail, theme: &Theme) -> Vec<Row> {
        self.names.clear();
        let mut rows = Vec::new();
        let Some(receipt) = &self.receipt else {
            rows.push(Row::new(Ink::Dim, "known when the iteration is over; the agent names so far:"));
            rows.extend(detail.iteration.files.iter().map(|file| {
                Row::new(Ink::Dim, file.change.as_deref().unwrap_or("")).and(Ink::None, &format!(" {}", file.path))
            }));
            return rows;
        };
        for commit in &receipt.commits {
            rows.push(Row::new(Ink::Agent, "commit ").and(Ink::None, commit));
        }
        rows.push(Row::new(Ink::Strong, &words::files_changed(receipt)));
        match (&self.difference, &self.asked) {
            (_, Some(_)) => rows.push(Row::new(Ink::Dim, "asking git")),
            (Difference::Failed(reason), _) => rows.push(Row::new(Ink::Warn, reason)),
            _ => {}
        }
        self.names.resize(rows.len(), None);
        let known: &[(String, String)] = match &self.difference {
            Difference::Known(known) => known,
            _ => &[],
        };
        let mut names: Vec<&String> = receipt.files.iter().chain(known.iter().map(|(name, _)| name)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let text = known.iter().find(|(known, _)| known == name).map(|(_, text)| text);
            let is_open = self.open.contains(name);
            let sign = match (text, is_open) {
                (None, _) => " ",
                (Some(_), true) => theme.glyphs.screen.open,
                (Some(_), false) => theme.glyphs.screen.folded,
            };
            let mut row = Row::new(Ink::Dim, &format!("{sign} ")).and(Ink::None, name);
            if let Some(text) = text {
                let lines = |first: char, head: &str| {
                    text.lines().filter(|line| line.starts_with(first) && !line.starts_with(head)).count()
                };
                row = row
                    .and(Ink::Good, &format!("  +{}", lines('+', "+++")))
                    .and(Ink::Bad, &format!(" -{}", lines('-', "---")));
            }
            rows.push(row);
            self.names.push(Some(name.clone()));
            if let Some(text) = text.filter(|_| is_open) {
                rows.extend(difference(text, "    "));
                self.names.resize(rows.len(), Some(name.clone()));
            }
        }
        rows
    }
}

/// A difference of git, cut into its files.
fn by_file(text: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if line.starts_with("diff --git ") {
            let name = line.rsplit_once(" b/").map_or(line, |(_, name)| name);
            files.push((name.trim_end_matches('"').to_owned(), String::new()));
        } else if let Some((_, text)) = files.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_cut_into_its_files() {
        let text =
            "diff --git a/x y.rs b/x y.rs\n--- a/x y.rs\n+++ b/x y.rs\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/z b/z\n+c\n";
        let files = by_file(text);
        assert_eq!(files.len(), 2);
        assert_eq!((files[0].0.as_str(), files[1].1.as_str()), ("x y.rs", "+c\n"));
        assert!(files[0].1.ends_with("-a\n+b\n"));
    }
}
