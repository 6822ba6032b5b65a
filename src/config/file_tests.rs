use std::time::Duration;

use super::*;
use crate::config::{CommandLine, Origin, PromptMode, Setting};
use crate::transcript::Choice;

fn read(text: &str) -> Result<FileLayer, UserError> {
    read_text(Path::new("ralph.yml"), text)
}

#[test]
fn the_documents_example_is_read() {
    let file = read(
        "cli:\n  backend: custom\n  command: /opt/corp-ai/agent\n  args: [\"--headless\", \"--json\"]\n  prompt_mode: arg\n  \
         prompt_flag: --prompt\nadapters:\n  custom:\n    timeout: 300\nevent_loop:\n  max_iterations: 7\n",
    )
    .unwrap();
    assert_eq!(file.warnings, Vec::<String>::new());
    let layer = file.layer;
    assert_eq!(layer.agent.as_ref().unwrap().value, "custom");
    let command = layer.clone().settle().custom_command().unwrap();
    assert_eq!(command.value, ["/opt/corp-ai/agent", "--headless", "--json"]);
    assert_eq!(command.origin, Origin::File { path: "ralph.yml".into(), line: 3 });
    assert_eq!(layer.prompt_mode.unwrap().value, Some(PromptMode::Arg));
    let max = layer.max_iterations.unwrap();
    assert_eq!((max.value, max.origin), (7, Origin::File { path: "ralph.yml".into(), line: 11 }));
    assert_eq!(file.adapters[0].1.timeout.as_ref().unwrap().value, Some(Duration::from_secs(300)));
}

#[test]
fn arguments_before_the_command_make_the_same_command_line() {
    let file = read("cli:\n  args: [a, 1]\n  command: agent\n").unwrap();
    assert_eq!(file.layer.settle().custom_command().unwrap().value, ["agent", "a", "1"]);
}

#[test]
fn a_transcript_is_a_name_or_a_command() {
    assert_eq!(read("transcript: rtf1").unwrap().layer.transcript.unwrap().value, Choice::Named("rtf1".into()));
    let command = Choice::Command(vec!["my filter".into(), "-x".into()]);
    assert_eq!(read("transcript: {command: \"'my filter' -x\"}").unwrap().layer.transcript.unwrap().value, command);
    assert_eq!(read("transcript:\n  command: [my filter, -x]").unwrap().layer.transcript.unwrap().value, command);
}

#[test]
fn an_unknown_key_is_an_error_that_points_at_it() {
    let error = read("cli:\n  backnd: demo\nfeathers: {}\n").unwrap_err();
    assert_eq!(
        error.message,
        "unknown key `cli.backnd`, did you mean `cli.backend`?\n --> ralph.yml:2:3\n  |\n2 |   backnd: demo\n  |   ^"
    );
    let error = read("verifi: [make test]\n").unwrap_err();
    assert!(error.message.starts_with("unknown key `verifi`, did you mean `verify`?"), "{}", error.message);
}

#[test]
fn in_a_file_of_another_program_only_the_safety_net_is_strict() {
    for mark in ["max_iterations: 5\n", "event_loop: {checkpoint_interval: 3}\n", "tasks: {}\n"] {
        let file = read(&format!("{mark}feathers: {{}}\n")).unwrap();
        assert!(file.warnings.iter().any(|warning| warning.starts_with("unknown key `feathers`")), "{mark}");
        for strict in ["limits: {max_wiat: 5}", "verify: [{run: make, timout: 5}]"] {
            let error = read(&format!("{mark}{strict}\n")).unwrap_err();
            assert!(error.message.contains("unknown key"), "{mark} {strict}: {}", error.message);
        }
    }
}

#[test]
fn mistakes_point_at_their_place() {
    for (text, message) in [
        (
            "event_loop:\n  max_iterations: many\n",
            "`event_loop.max_iterations` must be a whole number, found text\n --> ralph.yml:2:19",
        ),
        ("event_loop:\n  max_iterations: 0\n", "`event_loop.max_iterations` must be 1 or more\n --> ralph.yml:2:19"),
        ("cli: 5\n", "`cli` must be a mapping, found a whole number\n --> ralph.yml:1:6"),
        ("- a\n", "the file must be a mapping of sections, found a list\n --> ralph.yml:1:1"),
        (
            "cli:\n  prompt_mode: file\n",
            "`cli.prompt_mode` must be one of arg, stdin, found `file`\n --> ralph.yml:2:16",
        ),
        ("cli:\n  backend: a\n  backend: b\n", "not valid YAML: duplicate"),
        ("cli:\n\tbackend: a\n", "not valid YAML: tabs disallowed within this context"),
        ("cli: 'x\n", "not valid YAML: "),
        ("event_loop:\n  completion_promise: ''\n", "`event_loop.completion_promise` must not be empty"),
        ("transcript: {cmd: x}\n", "`transcript` must be a name, or a mapping with `command`, found a mapping"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.message.starts_with(message), "{text:?}: {}", error.message);
    }
}

#[test]
fn the_examples_in_the_documents_are_read_without_a_warning() {
    let agents = include_str!("../../docs/guide/agents.md").split("```yaml\n").nth(1).unwrap();
    let configuration = include_str!("../../docs/reference/configuration.md").split("```yaml\n").nth(1).unwrap();
    for example in [agents, configuration] {
        let file = read(example.split("```").next().unwrap()).unwrap();
        assert_eq!(file.warnings, Vec::<String>::new());
    }
}

#[test]
fn what_a_file_says_of_one_agent_is_kept_with_its_place() {
    let file = read(
        "adapters:\n  codex:\n    enabled: false\n    command: \"npx 'my codex'\"\n    args: [a, 1]\n    extra_args: [b]\n    \
         env: {ONE: 1, TWO: \"\", THREE: true}\n    partial: true\n",
    )
    .unwrap();
    let codex = file.adapter("codex");
    assert_eq!(codex.enabled.unwrap(), Setting::new(false, Origin::File { path: "ralph.yml".into(), line: 3 }));
    assert_eq!(codex.command.unwrap().value, Some(CommandLine(vec!["npx".into(), "my codex".into()])));
    assert_eq!(codex.args.unwrap().value.unwrap(), ["a", "1"]);
    assert_eq!(codex.extra_args.unwrap().value, ["b"]);
    let env = [("ONE", "1"), ("TWO", ""), ("THREE", "true")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(codex.env.unwrap().value.0, env);
    assert!(codex.partial.unwrap().value);
    assert!(file.adapter("claude").enabled.is_none());
}

#[test]
fn mistakes_under_adapters_are_pointed_at() {
    for (text, message) in [
        ("adapters:\n  codex:\n    enabled: maybe\n", "`adapters.codex.enabled` must be true or false, found text"),
        ("adapters:\n  codex:\n    args: --json\n", "`adapters.codex.args` must be a list, found text"),
        ("adapters:\n  codex:\n    env: [A]\n", "`adapters.codex.env` must be a mapping of variables, found a list"),
        ("adapters: [codex]\n", "`adapters` must be a mapping of agents, found a list"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.message.starts_with(message), "{text}: {}", error.message);
    }
    let error = read("adapters:\n  codex:\n    timout: 5\n").unwrap_err();
    assert!(error.message.contains("did you mean `adapters.codex.timeout`?"), "{}", error.message);
}

#[test]
fn times_are_written_as_on_the_command_line() {
    let read = |time: &str| read(&format!("limits:\n  idle_timeout: {time}\n"));
    for (time, seconds) in [("90", 90), ("90s", 90), ("1h30m", 5400), ("0", 0), ("'10m'", 600)] {
        assert_eq!(read(time).unwrap().layer.idle_timeout.unwrap().value, Duration::from_secs(seconds), "{time}");
    }
    let form = "a time such as `90s`, `30m` or `1h30m`, or seconds, found";
    for (time, found) in [("soon", "`soon`"), ("-5", "`-5`"), ("1.5", "a number"), ("[1]", "a list")] {
        let message = read(time).unwrap_err().message;
        assert!(message.starts_with(&format!("`limits.idle_timeout` must be {form} {found}\n")), "{message}");
    }
}

#[test]
fn paths_belong_to_the_file_that_names_them() {
    let text = "cli: {command: ./agent}\nevent_loop: {prompt_file: notes/P.md}\ntranscript: {command: bin/filter -x}\n\
                adapters: {codex: {command: ../codex}, amp: {command: amp}}\n";
    let file = read_text(Path::new("/project/ralph.yml"), text).unwrap();
    let command = |agent| file.adapter(agent).command.unwrap().value.unwrap().0;
    assert_eq!(command("codex"), ["/project/../codex"]);
    assert_eq!(command("amp"), ["amp"], "a bare name is looked up");
    let settings = file.layer.clone().settle();
    assert_eq!(settings.custom_command().unwrap().value, ["/project/./agent"]);
    assert_eq!(settings.prompt_file.value.unwrap(), Path::new("/project/notes/P.md"));
    assert_eq!(settings.transcript.value, Choice::Command(vec!["/project/bin/filter".into(), "-x".into()]));
}

#[test]
fn a_flat_file_of_ralph_orchestrator_works_and_the_rest_is_one_warning() {
    let text = "agent: gemini\nprompt_file: P.md\nmax_iterations: 75\nmax_runtime: 7200\ncompletion_promise: DONE\n\
                checkpoint_interval: 5\nmax_cost: 50.0\nverbose: false\n\
                adapters:\n  gemini:\n    enabled: true\n    timeout: 300\n    max_retries: 3\n";
    let file = read(text).unwrap();
    let settings = file.layer.clone().settle();
    assert_eq!(settings.agent, Setting::new("gemini".into(), Origin::File { path: "ralph.yml".into(), line: 1 }));
    assert_eq!(settings.prompt_file.value.unwrap(), Path::new("P.md"));
    assert_eq!((settings.max_iterations.value, settings.max_time.value), (75, Duration::from_secs(7200)));
    assert_eq!(settings.completion_promise.value.unwrap().0, "DONE");
    assert_eq!(settings.max_cost_usd.value.unwrap().0.to_string(), "50");
    assert_eq!(
        file.warnings,
        ["these keys of ralph-orchestrator in `ralph.yml` do nothing here: `checkpoint_interval` (line 6), `verbose` \
          (line 8), `adapters.gemini.max_retries` (line 13); see `docs/coming-from.md#ralph-orchestrator`"]
    );
}

#[test]
fn a_nested_file_of_ralph_orchestrator_works_and_the_rest_is_one_warning() {
    let text = "cli:\n  backend: claude\n  default_mode: autonomous\nevent_loop:\n  completion_promise: LOOP_COMPLETE\n  \
                max_iterations: 100\n  starting_event: build.start\ncore:\n  specs_dir: ./specs/\nmemories:\n  \
                enabled: true\nhat: 5\n";
    let file = read(text).unwrap();
    assert_eq!(file.layer.agent.unwrap().value, "claude");
    assert_eq!(file.warnings.len(), 2, "{:?}", file.warnings);
    assert!(file.warnings[0].starts_with("unknown key `hat`"), "a slip is still a slip");
    for key in ["`core.specs_dir` (line 9)", "`memories` (line 10)"] {
        assert!(file.warnings[1].contains(key), "{}", file.warnings[1]);
    }
}

#[test]
fn a_flat_key_wins_over_the_nested_one_wherever_it_stands() {
    for text in ["agent: amp\ncli: {backend: codex}\n", "cli: {backend: codex}\nagent: amp\n"] {
        assert_eq!(read(text).unwrap().layer.agent.unwrap().value, "amp");
    }
    let message = read("max_iterations: many\n").unwrap_err().message;
    assert!(message.starts_with("`max_iterations` must be a whole number"), "{message}");
}
