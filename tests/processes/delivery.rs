//! How a prompt and an environment reach the agent.

use std::os::unix::fs::PermissionsExt;

use ralph::process::{Environment, Exit, Invocation, PrivateFile, Stdin};

use super::support::{patient, prompted, run, shell};

#[test]
fn both_streams_and_the_exit_code_arrive() {
    let seen = run(shell("echo out; echo err >&2; exit 3"), patient());
    assert_eq!((&seen.stdout[..], &seen.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(seen.ended.exit, Exit::Code(3));
    assert_eq!(seen.ended.stopped, None);
    assert!(seen.ended.pipes_closed);
    assert!(seen.ended.left_behind.is_empty());
}

#[test]
fn fifty_megabytes_go_in_while_output_comes_out() {
    let prompt: Vec<u8> = b"abcdefghij\n".iter().copied().cycle().take(50_000_000).collect();
    let invocation = Invocation { stdin: Stdin::Bytes(prompt.clone().into()), ..Invocation::new("cat", "/") };
    let seen = run(invocation, patient());
    assert!(seen.stdout == prompt, "{} bytes came back", seen.stdout.len());
}

#[test]
fn a_prompt_that_is_never_read_is_no_error() {
    let seen = run(prompted("echo fine", vec![b'x'; 1_000_000]), patient());
    assert_eq!((seen.text().as_str(), seen.ended.exit), ("fine\n", Exit::Code(0)));
}

#[test]
fn a_closed_standard_input_is_no_error() {
    let seen = run(prompted("exec 0<&-; sleep 0.2; echo fine", vec![b'x'; 1_000_000]), patient());
    assert_eq!((seen.text().as_str(), seen.ended.exit), ("fine\n", Exit::Code(0)));
}

#[test]
fn a_prompt_that_is_read_late_arrives_in_full() {
    let seen = run(prompted("sleep 0.3; wc -c", vec![b'x'; 1_000_000]), patient());
    assert_eq!(seen.text().trim(), "1000000");
}

#[test]
fn without_a_prompt_standard_input_ends_at_once() {
    let seen = run(shell("wc -c"), patient());
    assert_eq!(seen.text().trim(), "0");
}

#[test]
fn no_descriptor_is_inherited() {
    // One that is not closed on exec, as if ralph itself had been started with it.
    let file = rustix::io::fcntl_dupfd_cloexec(tempfile::tempfile().unwrap(), 300).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let script = format!("test -e /proc/$$/fd/{} || echo closed", std::os::fd::AsRawFd::as_raw_fd(&file));
    let careless = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!((careless.stdout, run(shell(&script), patient()).text()), (Vec::new(), "closed\n".to_owned()));
}

#[test]
fn the_agent_leads_a_group_and_session_of_its_own_without_a_terminal() {
    let seen = run(shell("cut -d' ' -f1,5,6,7 /proc/$$/stat"), patient());
    let text = seen.text();
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields[..3], [fields[0]; 3], "pid, group, session: {text}");
    assert_eq!(fields[3], "0", "the controlling terminal: {text}");
}

#[test]
fn signals_that_ralph_ignores_are_not_ignored_by_the_agent() {
    // The mask of ignored signals; 0x4003 are HUP, INT and TERM.
    let seen = run(shell("grep SigIgn /proc/$$/status"), patient());
    let mask = u64::from_str_radix(seen.text().split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(mask & 0x4003, 0, "{}", seen.text());
}

#[test]
fn the_working_directory_is_the_one_that_was_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let seen = run(Invocation { cwd: path.clone(), ..shell("pwd") }, patient());
    assert_eq!(seen.text().trim(), path.to_str().unwrap());
}

#[test]
fn variables_of_an_outer_agent_are_removed_by_name_and_by_prefix() {
    // `CARGO_*` is what a test process is sure to have; it stands for `CLAUDE_CODE_*`.
    let mut invocation = shell("env");
    invocation.env = Environment {
        set: vec![("RALPH_ITERATION".into(), "7".into()), ("CARGO_KEPT".into(), "set after the removal".into())],
        remove: vec!["CARGO_*".into(), "HOME".into()],
    };
    let text = run(invocation, patient()).text();
    assert!(text.contains("RALPH_ITERATION=7\n"), "{text}");
    assert!(text.contains("CARGO_KEPT=set after the removal\n"), "{text}");
    let inherited = std::env::vars().any(|(name, _)| name == "CARGO_MANIFEST_DIR");
    assert!(inherited && !text.contains("CARGO_MANIFEST_DIR="), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("HOME=")), "{text}");
}

#[test]
fn a_private_file_is_readable_by_its_owner_only_and_goes_with_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let file = PrivateFile::new(directory.path(), b"a long prompt").unwrap();
    let path = file.path().to_owned();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut invocation = shell("cat \"$0\"");
    invocation.args.push(path.clone().into());
    invocation.files.push(file);
    assert_eq!(run(invocation, patient()).text(), "a long prompt");
    assert!(!path.exists());
}
