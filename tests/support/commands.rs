//! Commands that stand for the agents of drivers and scripts: small shell programs, first on `PATH`.

#![allow(dead_code, clippy::unwrap_used, missing_docs)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::support::{Ran, Test};

impl Test {
    /// Where the commands are: outside of the working directory.
    pub fn bin(&self) -> PathBuf {
        self.workspace().parent().unwrap().join("bin")
    }

    /// Puts a command of this name first on `PATH`. It notes its arguments, one in each line, and what it reads.
    pub fn stands_for(self, name: &str, body: &str) -> Self {
        let bin = self.bin();
        std::fs::create_dir_all(&bin).unwrap();
        let log = bin.join("log");
        let log = log.display();
        let text = format!(
            "#!/bin/bash\nHERE={}\nCALLS=$(($(cat \"$HERE/calls\" 2>/dev/null || echo 0) + 1))\necho $CALLS > \"$HERE/calls\"\n\
             printf '%s\\0' \"$@\" > {log}.$CALLS\n{body}\n",
            bin.display()
        );
        let path = bin.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let usual = std::env::var("PATH").unwrap();
        self.env("PATH", &format!("{}:{usual}", bin.display()))
    }

    /// A driver or script of the fixtures.
    pub fn fixture(self, fixture: &str, place: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
        let text = std::fs::read_to_string(path).unwrap();
        self.file(place, text)
    }
}

impl Ran {
    /// The arguments of the n-th call of a command, from 1.
    pub fn argv(&self, call: usize) -> Vec<String> {
        let text = std::fs::read(self.test.bin().join(format!("log.{call}"))).unwrap();
        let words = text.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut words: Vec<String> = words.collect();
        words.pop();
        words
    }

    /// How often a command was called.
    pub fn calls(&self) -> usize {
        let text = std::fs::read_to_string(self.test.bin().join("calls")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// What all displays of the run showed.
    pub fn displayed(&self) -> String {
        self.facts("display").iter().map(|fact| fact["text"].as_str().unwrap().to_owned()).collect()
    }

    /// What was told on the way.
    pub fn notices(&self) -> String {
        let all = self.facts("notice");
        all.iter().map(|fact| fact["message"].as_str().unwrap().to_owned() + "\n").collect()
    }

    /// A file of the working directory.
    pub fn left(&self, name: &str) -> String {
        std::fs::read_to_string(self.test.workspace().join(name)).unwrap_or_default()
    }
}
