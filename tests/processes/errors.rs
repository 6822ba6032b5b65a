//! A command that cannot be started says why.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ralph::process::{ARGUMENT_LIMIT, Invocation, StartError, Stdin, TooLong, start};

use super::support::{patient, real_time, run, shell};

fn error(invocation: Invocation) -> StartError {
    real_time(async { start(invocation, patient()) }).expect_err("it started")
}

fn file(directory: &Path, name: &str, content: &[u8], mode: u32) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn an_unknown_command_comes_with_the_nearest_names() {
    let directory = tempfile::tempdir().unwrap();
    file(directory.path(), "claude", b"#!/bin/sh\n", 0o755);
    file(directory.path(), "unrelated", b"#!/bin/sh\n", 0o755);
    let mut invocation = Invocation::new("cluade", "/");
    invocation.env.set.push(("PATH".into(), directory.path().into()));
    match error(invocation) {
        StartError::NotFound { program, nearest } => {
            assert_eq!((program, nearest), ("cluade".into(), vec!["claude".to_owned()]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_path_of_the_agent_counts_not_that_of_ralph() {
    let mut invocation = Invocation::new("sh", "/");
    invocation.env.set.push(("PATH".into(), "/nowhere".into()));
    assert!(matches!(error(invocation), StartError::NotFound { .. }));
}

#[test]
fn a_relative_path_starts_at_the_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    file(directory.path(), "agent.sh", b"#!/bin/sh\necho hello\n", 0o755);
    assert_eq!(run(Invocation::new("./agent.sh", directory.path()), patient()).text(), "hello\n");
    assert!(matches!(error(Invocation::new("./agent.sh", "/")), StartError::NotFound { .. }));
}

#[test]
fn a_script_without_a_first_line_is_run_by_the_shell_as_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "agent.sh", b"echo hello\n", 0o755);
    assert_eq!(run(Invocation::new(path, "/"), patient()).text(), "hello\n");
}

#[test]
fn a_file_that_is_not_executable_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "agent.sh", b"#!/bin/sh\n", 0o644);
    assert!(matches!(error(Invocation::new(&path, "/")), StartError::NotExecutable { path: named } if named == path));
    assert!(matches!(error(Invocation::new(directory.path(), "/")), StartError::NotExecutable { .. }));
}

#[test]
fn a_missing_interpreter_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [(&[u8], &str); 4] = [
        (b"#!/no/such/shell -e\n", "/no/such/shell"),
        (b"#! /usr/bin/env no-such-node\n", "no-such-node"),
        (b"#!/usr/bin/env -S no-such-node --flag\n", "no-such-node"),
        (b"#!/bin/sh\r\necho windows\r\n", "/bin/sh\\r"),
    ];
    for (content, expected) in cases {
        let path = file(directory.path(), "agent", content, 0o755);
        match error(Invocation::new(path, "/")) {
            StartError::MissingInterpreter { interpreter, .. } => assert_eq!(interpreter, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn a_program_whose_loader_is_missing_names_the_loader() {
    let own = std::fs::read("/bin/sh").unwrap();
    let loader = own.windows(6).position(|bytes| bytes == b"/ld-li");
    // A statically linked shell has none; then there is nothing to see here.
    let Some(at) = loader else { return };
    let mut broken = own;
    broken[at + 1] = b'x';
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "agent", &broken, 0o755);
    match error(Invocation::new(path, "/")) {
        StartError::MissingInterpreter { interpreter, .. } => assert!(interpreter.contains("/xd-li"), "{interpreter}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_for_another_machine_is_not_handed_to_the_shell() {
    let mut foreign = std::fs::read("/bin/sh").unwrap();
    foreign[18] = if foreign[18] == 0xf3 { 0x3e } else { 0xf3 };
    let directory = tempfile::tempdir().unwrap();
    for content in [&foreign[..], b"\xfe\xed\xfa\xcf\0\0\0\0 another system"] {
        let path = file(directory.path(), "agent", content, 0o755);
        assert!(matches!(error(Invocation::new(&path, "/")), StartError::WrongFormat { path: named } if named == path));
    }
}

#[test]
fn a_working_directory_that_is_gone_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone");
    let invocation = Invocation { cwd: gone.clone(), ..shell("echo hello") };
    assert!(matches!(error(invocation), StartError::CwdGone { path } if path == gone));
}

#[test]
fn an_argument_that_is_too_long_is_told_before_the_start() {
    let mut invocation = shell("echo ${#1}");
    invocation.args.push("agent".into());
    invocation.args.push(OsString::from("x".repeat(ARGUMENT_LIMIT)));
    assert_eq!(run(invocation, patient()).text().trim(), ARGUMENT_LIMIT.to_string());
    let mut invocation = shell("echo ${#1}");
    invocation.args.push("agent".into());
    invocation.args.push(OsString::from("x".repeat(ARGUMENT_LIMIT + 1)));
    match error(invocation) {
        StartError::TooLong { what, limit } => assert_eq!((what, limit), (TooLong::Argument(4), ARGUMENT_LIMIT)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_that_are_too_long_together_are_told() {
    let mut invocation = shell("echo");
    invocation.args.extend((0..80).map(|_| OsString::from("x".repeat(100_000))));
    match error(invocation) {
        StartError::TooLong { what, limit } => assert!(what == TooLong::Everything && limit < 8_000_000, "{limit}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_variable_that_is_too_long_is_named() {
    let mut invocation = shell("echo");
    invocation.env.set.push(("PROMPT".into(), "x".repeat(ARGUMENT_LIMIT).into()));
    assert!(matches!(error(invocation), StartError::TooLong { what: TooLong::Variable(name), .. } if name == "PROMPT"));
}

#[test]
fn a_failed_start_leaves_no_process_and_no_private_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut invocation = Invocation::new("no-such-agent-at-all", "/");
    invocation.stdin = Stdin::Bytes(b"prompt"[..].into());
    invocation.files.push(ralph::process::PrivateFile::new(directory.path(), b"prompt").unwrap());
    error(invocation);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
