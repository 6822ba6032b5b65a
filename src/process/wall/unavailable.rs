//! Systems without Landlock and seccomp: a wall is refused, and nothing is started behind one.

use std::ffi::OsString;
use std::process::ExitCode;

use super::super::Invocation;
use super::super::mark::Mark;
use super::{Machine, Rules};

/// Never made.
#[derive(Debug)]
pub(in super::super) enum Prepared {}

impl Prepared {
    pub(in super::super) fn new(_rules: &Rules, _invocation: &Invocation, _mark: Mark) -> Result<Self, String> {
        Err(NOWHERE.to_owned())
    }

    pub(in super::super) fn keeps(&self, _name: &std::ffi::OsStr) -> bool {
        match *self {}
    }

    pub(in super::super) fn variables(&self) -> &[(OsString, OsString)] {
        match *self {}
    }

    pub(in super::super) fn around(&self) -> Option<(&std::path::Path, Vec<OsString>)> {
        match *self {}
    }

    pub(in super::super) fn enter(&self) -> std::io::Result<()> {
        match *self {}
    }
}

const NOWHERE: &str = "the sandbox needs Linux";

/// What this machine has.
pub(crate) fn machine() -> Machine {
    Machine {
        landlock: 0,
        seccomp: false,
        bubblewrap: Err(NOWHERE.to_owned()),
        counts_processes: false,
        counts_memory: false,
    }
}

/// Nothing is started inside here.
pub fn inside_main() -> Option<ExitCode> {
    None
}
