use std::fmt::Write as _;

use super::*;

fn read(files: &[(&str, &str)], source: &str) -> Result<Vec<Task>, String> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let found = open(Some(source), directory.path()).and_then(|source| source.read());
    let found = found.and_then(|found| check(&found, &[]).map(|()| found));
    found.map(|found| found.into_iter().map(|found| found.task).collect()).map_err(|error| error.message)
}

fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

#[test]
fn a_tasks_file_has_every_key() {
    let text = "tasks:
  - id: a
    title: First
    prompt: do it
    verify: [make test, 'true']
    agent: codex
    model: gpt-5
    touches: src/**
    priority: 7
    limits: {max_iterations: 3, max_time: 30m, max_cost: 1.5}
  - {id: 12, prompt_file: p/two.md, needs: [a]}
";
    let tasks = read(&[("tasks.yml", text), ("p/two.md", "# Two\nmore")], "tasks.yml").unwrap();
    assert_eq!(ids(&tasks), ["a", "12"]);
    assert_eq!(tasks[0].verify, ["make test", "true"]);
    assert_eq!((tasks[0].priority, tasks[0].limits.max_iterations, tasks[0].limits.max_cost), (7, Some(3), Some(1.5)));
    assert_eq!(tasks[0].touches, ["src/**"]);
    assert_eq!((tasks[1].title.as_str(), tasks[1].prompt.as_str()), ("Two", "# Two\nmore"));
    assert_eq!(tasks[1].needs[0].as_str(), "a");
}

#[test]
fn every_mistake_names_its_place() {
    for (text, message) in [
        (
            "tasks:\n  - {id: a, prompt: x}\n  - {id: a, prompt: z}\n",
            "tasks.yml:3:5: the id `a` is used twice; first in tasks.yml:2:5",
        ),
        ("tasks:\n  - {id: a, prompt: x, needs: [b]}\n", "tasks.yml:2:5: task `a` needs `b`, which does not exist"),
        ("tasks:\n  - {id: a, prompt: x, needs: [a]}\n", "tasks.yml:2:5: tasks need each other: a → a"),
        (
            "tasks:\n  - {id: a, prompt: x, needs: [b]}\n  - {id: b, prompt: x, needs: [c]}\n  - {id: c, prompt: x, needs: [a]}\n",
            "tasks.yml:2:5: tasks need each other: a → b → c → a",
        ),
        ("tasks:\n  - {id: a/b, prompt: x}\n", "`a/b` cannot be an id"),
        ("tasks:\n  - {id: a, promt: x}\n", "unknown key `promt`, did you mean `prompt`?"),
        ("tasks:\n  - {id: a}\n", "the task has neither `prompt` nor `prompt_file`"),
        ("tasks:\n  - {id: a, prompt_file: gone.md}\n", "cannot read `gone.md`"),
        ("tasks:\n  - {id: a, prompt: x, limits: {max_time: soon}}\n", "expected a time such as"),
        ("tasks: {}\n", "expected `tasks:` with a list"),
        ("tasks: [\n", "not valid YAML"),
    ] {
        let error = read(&[("tasks.yml", text)], "tasks.yml").unwrap_err();
        assert!(error.contains(message) && error.contains("tasks.yml:"), "{text}\n{error}");
    }
}

#[test]
fn a_directory_has_a_task_in_each_markdown_file() {
    let files = [
        ("t/20-b.md", "---\nid: b\nneeds: [10-a]\n---\n# Second\n\nText."),
        ("t/10-a.md", "# First\n\n--- no front matter"),
        ("t/note.txt", "no task"),
    ];
    let tasks = read(&files, "t").unwrap();
    assert_eq!(ids(&tasks), ["10-a", "b"]);
    assert_eq!((tasks[1].title.as_str(), tasks[1].prompt.as_str()), ("Second", "# Second\n\nText."));
    let error = read(&[("t/a.md", "---\nneds: [b]\n---\nx")], "t").unwrap_err();
    assert!(error.contains("unknown key `neds`") && error.contains("t/a.md:2:1"), "{error}");
}

#[test]
fn open_checkboxes_are_tasks_with_what_is_below_them() {
    let plan = "# Plan\n- [ ] Add a flag\n  with a test\n  - [ ] and docs\n- [x] done\n  - [ ] below\n\n```\n- [ ] code\n```\n* [ ] Add a flag\n";
    let tasks = read(&[("PLAN.md", plan)], "PLAN.md").unwrap();
    assert_eq!(ids(&tasks), ["add-a-flag", "add-a-flag-2"]);
    assert!(tasks[0].prompt.starts_with("Add a flag\n\n  with a test\n  - [ ] and docs\n"), "{}", tasks[0].prompt);
}

#[test]
fn stories_that_pass_are_done_and_passes_is_written_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("prd.json");
    let text = r#"{"project":"p","userStories":[
        {"id":"US-1","title":"One","acceptanceCriteria":["works"],"priority":2,"passes":false,"own":[1]},
        {"id":2,"title":"Two","priority":1},{"id":"US-3","title":"Three","passes":true}]}"#;
    std::fs::write(&path, text).unwrap();
    let source = open(Some("prd.json"), directory.path()).unwrap();
    let tasks: Vec<Task> = source.read().unwrap().into_iter().map(|found| found.task).collect();
    assert_eq!(ids(&tasks), ["US-1", "2"]);
    assert!(tasks[1].priority > tasks[0].priority && tasks[0].prompt.contains("- works"));
    source.merged(&tasks[0].id).unwrap();
    source.merged(&tasks[1].id).unwrap();
    assert!(source.read().unwrap().is_empty());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"own\"") && text.find("project").unwrap() < text.find("userStories").unwrap());
    std::fs::write(&path, "{\"userStories\":[{\"id\":\"a b\",\"title\":\"x\"}]}").unwrap();
    assert!(source.read().unwrap_err().message.contains("prd.json: story 1: `a b` cannot be an id"));
}

#[test]
fn long_chains_of_needs_are_no_cycle() {
    let mut text = "tasks:\n".to_owned();
    for number in 0..3000 {
        let needs = if number == 0 { String::new() } else { format!(", needs: [t{}]", number - 1) };
        let _ = writeln!(text, "  - {{id: t{number}, prompt: x{needs}}}");
    }
    assert_eq!(read(&[("tasks.yml", &text)], "tasks.yml").unwrap().len(), 3000);
}
