//! Shell files of assignments, read without a shell: what `.ralphrc` and `config` have in common. Pure.
//!
//! A line that is more than `NAME=value` is skipped with a warning. How a value is written, the contracts say differently:
//! `ralphrc.rs` and `config.rs`.

/// One assignment of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) line: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assignments {
    /// In the order of the file.
    pub(crate) all: Vec<Assignment>,
    /// Lines that were skipped, and why.
    pub(crate) warnings: Vec<String>,
}

impl Assignments {
    /// The last value of a name, unless it is empty.
    pub(crate) fn find(&self, name: &str) -> Option<&Assignment> {
        self.last(name).filter(|found| !found.value.is_empty())
    }

    /// The last value of a name, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.find(name).map(|assignment| assignment.value.as_str())
    }

    fn last(&self, name: &str) -> Option<&Assignment> {
        self.all.iter().rev().find(|assignment| assignment.name == name)
    }

    /// Reads a text line by line. `value` reads what is after `NAME=`; it can look up what the lines before have set.
    pub(super) fn read(
        text: &str,
        value: impl Fn(&str, &str, &dyn Fn(&str) -> Option<String>) -> Result<String, String>,
    ) -> Self {
        let mut read = Self::default();
        for (index, line) in text.lines().enumerate() {
            let (number, line) = (index + 1, line.trim());
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let before = |name: &str| read.last(name).map(|assignment| assignment.value.clone());
            let assigned = line.split_once('=').filter(|(name, _)| is_name(name.trim_start_matches("export ")));
            let assigned = assigned.ok_or_else(|| "it is not `NAME=value`".to_owned());
            match assigned.and_then(|(name, word)| value(name, word, &before).map(|value| (name, value))) {
                Ok((name, value)) => {
                    let name = name.trim_start_matches("export ").to_owned();
                    read.all.push(Assignment { name, value, line: number });
                }
                Err(problem) => read.warnings.push(format!("line {number} was skipped: {problem}")),
            }
        }
        read
    }
}

pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
