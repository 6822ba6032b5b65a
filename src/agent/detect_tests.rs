use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use super::*;
use crate::agent::definition::of_command;

/// Programs in a directory of their own, each with its definition.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn program(&self, name: &str, body: &str) -> Question {
        let path = self.0.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.definition(name)
    }

    fn definition(&self, name: &str) -> Question {
        let path = self.0.path().join(name).display().to_string();
        let definition = Definition { id: name.to_owned(), ..of_command(&path) };
        Question { definition, options: Options::default(), start: Start::InWorkspace }
    }

    fn states(&self, agents: Vec<Question>, patience: Duration) -> Vec<Installation> {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut probes = Probes::start(agents, self.0.path(), patience);
            while probes.next(&mut None::<fn(&[&str])>).await {}
            probes.answers.into_iter().flatten().map(|probe| probe.state).collect()
        })
    }

    fn first(&self, agents: Vec<Question>) -> Result<usize, Vec<Probe>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(first(agents, self.0.path(), |_| ())).map(|(index, _)| index)
    }
}

fn installed(version: &str) -> Installation {
    Installation::Installed { version: Some(version.to_owned()) }
}

#[test]
fn versions_are_read_as_the_agents_say_them() {
    for (said, expected) in [
        ("2.1.197 (Claude Code)\n", Some("2.1.197")),
        ("codex-cli 0.166.0\n", Some("0.166.0")),
        ("GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n", Some("1.0.102")),
        (" 1.52.0\n", Some("1.52.0")),
        ("0.0.1790142911-g7618fb (released 2026-09-23T05:55:11.000Z, 1mo ago)\n", Some("0.0.1790142911-g7618fb")),
        ("2026.08.11-e8db854\n", Some("2026.08.11-e8db854")),
        ("aider 0.86.2\n", Some("0.86.2")),
        ("v3.1.4\n", Some("3.1.4")),
        ("no idea\n", None),
        ("", None),
    ] {
        assert_eq!(version(said.as_bytes()).as_deref(), expected, "{said}");
    }
}

#[test]
fn what_is_missing_or_broken_is_told_apart() {
    let machine = Machine::new();
    let agents = vec![
        machine.program("good", "echo 1.2.3"),
        machine.definition("missing"),
        machine.program("failing", "echo 1.2.3; exit 7"),
        machine.program("reading", "read answer; echo 4.5.6"),
        machine.program("aside", "echo 7.8.9 >&2"),
    ];
    let states = machine.states(agents, PATIENCE);
    assert_eq!(states[0], installed("1.2.3"));
    assert_eq!(states[1], Installation::Missing);
    assert_eq!(states[2], Installation::Broken("its version command failed with exit code 7".to_owned()));
    assert_eq!(states[3], installed("4.5.6"), "its standard input is closed");
    assert_eq!(states[4], installed("7.8.9"), "standard error is heard too");
}

#[test]
fn a_program_that_waits_is_not_waited_for() {
    let machine = Machine::new();
    let agents = vec![machine.program("waiting", "exec /bin/sleep 600")];
    let states = machine.states(agents, Duration::from_secs(1));
    assert_eq!(states, [Installation::Broken("no version within 1 s".to_owned())]);
}

#[test]
fn a_person_hears_who_is_waited_for() {
    let machine = Machine::new();
    let agents = vec![machine.program("fast", "echo 1.0"), machine.program("slow", "/bin/sleep 3; echo 2.0")];
    let waited = std::cell::RefCell::new(Vec::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = |names: &[&str]| waited.borrow_mut().extend(names.iter().map(|name| (*name).to_owned()));
    let probes = runtime.block_on(probe_all(agents, machine.0.path(), told));
    assert_eq!(probes[1].state, installed("2.0"));
    assert!(waited.borrow().contains(&"slow".to_owned()), "{waited:?}");
}

#[test]
fn all_are_asked_at_the_same_time() {
    let machine = Machine::new();
    let agents = (0..14).map(|number| machine.program(&format!("agent{number}"), "/bin/sleep 2; echo 1.0")).collect();
    let begun = Instant::now();
    let states = machine.states(agents, Duration::from_secs(30));
    assert!(states.iter().all(|state| *state == installed("1.0")), "{states:?}");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "one after the other would take 28 s, this took {took:?}");
}

#[test]
fn the_order_decides_and_not_the_speed() {
    let machine = Machine::new();
    let agents = vec![
        machine.definition("missing"),
        machine.program("slow", "/bin/sleep 0.5; echo 1.0"),
        machine.program("fast", "echo 2.0"),
    ];
    assert_eq!(machine.first(agents), Ok(1));
}

#[test]
fn nobody_is_waited_for_who_comes_after_the_first() {
    let machine = Machine::new();
    let agents = vec![machine.program("good", "echo 1.0"), machine.program("waiting", "exec /bin/sleep 600")];
    let begun = Instant::now();
    assert_eq!(machine.first(agents), Ok(0));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
}

#[test]
fn a_candidate_that_is_there_wins_over_an_earlier_one_that_is_not() {
    let machine = Machine::new();
    let Question { mut definition, options, .. } = machine.program("second", "echo 1.0");
    definition.commands.insert(0, "no-such-program-anywhere".to_owned());
    let (agent, found) = locate(&definition, options, machine.0.path());
    assert_eq!(found.unwrap(), machine.0.path().join("second"));
    assert_eq!(agent.program, machine.0.path().join("second").into_os_string());
}

#[test]
fn of_several_names_that_are_not_there_the_first_is_told() {
    let machine = Machine::new();
    let Question { mut definition, options, .. } = machine.definition("agent");
    definition.commands = vec!["no-such-first".to_owned(), "no-such-second".to_owned()];
    let (agent, found) = locate(&definition, options, machine.0.path());
    assert!(found.is_err());
    assert_eq!(agent.program, "no-such-first");
}

#[test]
fn a_login_is_seen_by_a_file_that_holds_something() {
    let machine = Machine::new();
    let file = machine.0.path().join("auth.json");
    let Question { mut definition, .. } = machine.definition("agent");
    definition.auth.files = vec![file.display().to_string()];
    assert_eq!(auth(&definition), Auth::Unknown);
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(auth(&definition), Auth::Unknown, "an empty file is no login");
    std::fs::write(&file, "{\"key\": \"dummy\"}").unwrap();
    assert_eq!(auth(&definition), Auth::Seen);
}
