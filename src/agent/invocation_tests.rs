use super::*;
use crate::agent::definition::{Definition, Interactive, of_command};
use crate::agent::{Options, Overrides};

fn agent(change: impl FnOnce(&mut Definition), options: Options) -> Agent {
    let mut definition = of_command("agent");
    change(&mut definition);
    Agent { definition, options, program: "agent".into(), leading: Vec::new(), plugin: None }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn turn(prompt: &str) -> Turn<'_> {
    Turn::new(prompt, Path::new("/project"))
}

#[test]
fn args_replace_what_the_file_says_and_extra_args_come_before_the_prompt() {
    let overrides = Overrides { args: Some(words(&["mine"])), extra_args: words(&["--more"]), ..Overrides::default() };
    let agent = agent(
        |definition| {
            definition.arguments.subcommand = words(&["exec"]);
            definition.arguments.approve = words(&["--yolo"]);
            definition.prompt = PromptForm { by: By::Argument, after: words(&["-p"]) };
        },
        Options { overrides, ..Options::default() },
    );
    assert_eq!(agent.arguments(&turn("test")).unwrap().args, ["mine", "--more", "-p", "test"]);
}

#[test]
fn the_users_variables_win_over_the_files_and_the_runs_over_both() {
    let environment = words(&["A", "B"]).into_iter().map(|name| (name, "user".to_owned())).collect();
    let overrides = Overrides { environment, ..Overrides::default() };
    let agent = agent(
        |definition| definition.environment.set = [("A".to_owned(), "file".to_owned())].into(),
        Options { overrides, ..Options::default() },
    );
    let turn = Turn { environment: vec![("B".into(), "run".into())], ..turn("x") };
    let environment = agent.environment(&turn);
    assert_eq!((environment.value("A"), environment.value("B")), (Some("user".into()), Some("run".into())));
}

#[test]
fn a_prompt_that_fits_no_command_line_takes_the_large_form_or_is_refused() {
    let large = "x".repeat(LONGEST_ARGUMENT + 1);
    let by_argument = |definition: &mut Definition| definition.prompt.by = By::Argument;
    let refused = agent(by_argument, Options::default()).arguments(&turn(&large)).unwrap_err();
    assert!(refused.message.contains("102401 bytes"), "{}", refused.message);
    let both = |definition: &mut Definition| {
        by_argument(definition);
        definition.large_prompt = Some(PromptForm { by: By::Stdin, after: words(&["-"]) });
    };
    let line = agent(both, Options::default()).arguments(&turn(&large)).unwrap();
    assert_eq!(line, CommandLine { args: words(&["-"]), prompt: Carried::Stdin });
}

#[test]
fn a_prompt_in_a_file_is_there_as_long_as_the_process_and_only_for_us() {
    use std::os::unix::fs::PermissionsExt as _;
    let agent =
        agent(|definition| definition.prompt = PromptForm { by: By::File, after: words(&["-f"]) }, Options::default());
    let invocation = agent.invocation(&turn("secret words")).unwrap();
    let path = std::path::PathBuf::from(&invocation.args[1]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "secret words");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(invocation);
    assert!(!path.exists());
}

#[test]
fn a_terminal_is_given_where_the_file_says_so_or_a_person_is_there() {
    let link = |agent: Agent, turn: Turn<'_>| agent.invocation(&turn).unwrap().link;
    let usual = |definition: &mut Definition| definition.interactive = Some(Interactive::default());
    assert_eq!(link(agent(usual, Options::default()), turn("x")), Link::Pipe);
    assert_eq!(link(agent(|definition| definition.tty = true, Options::default()), turn("x")), Link::Pty(TERMINAL));
    let talk = Turn { mode: Mode::Interactive, ..turn("x") };
    assert_eq!(link(agent(usual, Options::default()), talk), Link::Pty(TERMINAL));
}

#[test]
fn what_an_agent_cannot_do_is_said_and_not_left_out() {
    let with_model = Options { model: Some("big".to_owned()), ..Options::default() };
    let error = agent(|_| {}, with_model).arguments(&turn("x")).unwrap_err();
    assert!(error.message.contains("does not support `--model`"), "{}", error.message);
    let resume = Turn { session: Session::Resume("id".to_owned()), ..turn("x") };
    let error = agent(|_| {}, Options::default()).arguments(&resume).unwrap_err();
    assert!(error.message.contains("cannot resume a session"), "{}", error.message);
}

#[test]
fn a_value_is_one_word_whatever_is_in_it() {
    let options = Options { model: Some("a b; rm {prompt}".to_owned()), ..Options::default() };
    let agent = agent(|definition| definition.arguments.model = words(&["--model", "{model}"]), options);
    assert_eq!(agent.arguments(&turn("x")).unwrap().args, ["--model", "a b; rm {prompt}"]);
}

#[test]
fn who_asks_for_what_an_agent_cannot_do_is_named() {
    let options = Options {
        model: Some("big".to_owned()),
        asked: vec![("model", "ralph.yml:3".to_owned())],
        ..Options::default()
    };
    let error = agent(|_| {}, options).arguments(&turn("x")).unwrap_err();
    assert!(error.message.ends_with("does not support `model` (from ralph.yml:3)"), "{}", error.message);
}

#[test]
fn variables_that_are_taken_out_are_taken_out_of_the_pasted_line_too() {
    let of = |definition: &mut Definition| {
        definition.environment.remove = words(&["HOUSE", "SHED_*"]);
        definition.environment.set.insert("KEPT".to_owned(), "yes".to_owned());
        definition.prompt.by = By::Argument;
        definition.arguments.headless = words(&["-c", "echo $HOUSE:$SHED_A:$SHED_B:$KEPT"]);
    };
    let shell = Agent { program: "/bin/sh".into(), ..agent(of, Options::default()) };
    let line = shell.shell_line(&turn("name")).unwrap();
    assert!(line.starts_with("env -u HOUSE "), "{line}");
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &line])
        .envs([("HOUSE", "1"), ("SHED_A", "2"), ("SHED_B", "3 4")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), ":::yes\n", "{line}");
}
