//! Drivers in real shells: the documented command lines byte for byte, every hook, every fault.

use super::*;

/// A directory with a driver, a prompt and a command that answers as the platform's would.
struct Place {
    directory: tempfile::TempDir,
    file: PluginFile,
}

const PROMPT: &str = "Do 'this' and \"that\".\n\n$(touch x)\n\n";
const CONTEXT: &str = "Loop #2. ";

impl Place {
    fn of_text(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("drivers").join("own.sh");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::write(directory.path().join("PROMPT.md"), PROMPT).unwrap();
        let global = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let globals = vec![
            global("CLAUDE_OUTPUT_FORMAT", "json"),
            global("CLAUDE_PERMISSION_MODE", "bypassPermissions"),
            global("CLAUDE_ALLOWED_TOOLS", "Read,Bash(git *)"),
            global("CLAUDE_USE_CONTINUE", "true"),
            global("RALPHRC_FILE", ".ralphrc"),
        ];
        let file = PluginFile {
            contract: Contract::Driver,
            path,
            globals,
            exports: Vec::new(),
            live: Live::Wanted,
            helper: "none".into(),
        };
        Self { directory, file }
    }

    fn of(name: &str) -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/drivers");
        Self::of_text(&std::fs::read_to_string(fixtures.join(format!("{name}.sh"))).unwrap())
    }

    fn minimal_with(extra: &str) -> Self {
        let place = Self::of("minimal");
        let text = std::fs::read_to_string(&place.file.path).unwrap();
        std::fs::write(&place.file.path, text + extra).unwrap();
        place
    }

    fn not_live(mut self) -> Self {
        self.file.live = Live::Off;
        self
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.file.globals.push((name.to_owned(), value.to_owned()));
        self
    }

    async fn load(&self) -> Result<Driver, UserError> {
        Driver::load(&self.file, self.directory.path(), Environment::default()).await
    }

    async fn argv(&self, context: &str, session: &str) -> Vec<String> {
        let mut driver = self.load().await.unwrap();
        let prompt = self.directory.path().join("PROMPT.md");
        let built = driver.build(&prompt, context, session, self.directory.path()).await.unwrap();
        assert_eq!(built.notices, Vec::<String>::new());
        let all = std::iter::once(&built.invocation.program).chain(&built.invocation.args);
        let argv = all.map(|word| word.to_string_lossy().replace(prompt.to_str().unwrap(), "PROMPT.md"));
        let argv = argv.collect();
        driver.close().await;
        assert!(!self.directory.path().join("x").exists(), "the prompt was run");
        argv
    }

    /// What loading it, or building a command with it, complains about.
    async fn fault(&self) -> String {
        let mut driver = match self.load().await {
            Ok(driver) => driver,
            Err(error) => return error.message,
        };
        let prompt = self.directory.path().join("PROMPT.md");
        driver.build(&prompt, CONTEXT, "", self.directory.path()).await.unwrap_err().message
    }
}

/// The prompt as `$(cat file)` gives it.
const WORDS: &str = "Do 'this' and \"that\".\n\n$(touch x)";

/// A driver's name, what comes first, what a session adds, what comes last.
type Row<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

#[tokio::test]
async fn the_command_lines_of_the_five_drivers_are_the_documented_ones() {
    let joined = format!("{CONTEXT}\n\n{WORDS}");
    let claude = [
        "claude",
        "--output-format",
        "json",
        "--permission-mode",
        "bypassPermissions",
        "--allowedTools",
        "Read",
        "Bash(git *)",
    ];
    let codex = ["codex", "exec", "--json", "--sandbox", "workspace-write"];
    let opencode = ["opencode", "run", "--agent", "build", "--format", "json"];
    let copilot = ["copilot", "--autopilot", "--yolo", "--max-autopilot-continues", "50", "--no-ask-user", "-s", "-p"];
    let rows: [Row<'_>; 4] = [
        ("claude-code", &claude, &["--resume", "S"], &["--append-system-prompt", CONTEXT, "-p", WORDS]),
        ("codex", &codex, &["resume", "S"], &[&joined]),
        ("opencode", &opencode, &["--continue", "--session", "S"], &[&joined]),
        ("copilot", &copilot, &[], &[&joined]),
    ];
    for (name, head, resume, tail) in rows {
        let plain = Place::of(name).not_live();
        assert_eq!(plain.argv(CONTEXT, "").await, [head, tail].concat(), "{name}, new");
        assert_eq!(plain.argv(CONTEXT, "S").await, [head, resume, tail].concat(), "{name}, resumed");
        let off = Place::of(name).not_live().set("CLAUDE_USE_CONTINUE", "false");
        assert_eq!(off.argv(CONTEXT, "S").await, [head, tail].concat(), "{name}, without continuity");
        let live = Place::of(name).argv(CONTEXT, "S").await;
        let mut expected = [head, resume, tail].concat();
        if name == "claude-code" {
            expected[2] = "stream-json";
            expected.extend(["--verbose", "--include-partial-messages"]);
        }
        assert_eq!(live, expected, "{name}, live");
    }
    assert_eq!(Place::of("codex").argv("", "").await.last().unwrap(), WORDS, "without context the prompt goes alone");
}

#[tokio::test]
async fn the_command_line_of_cursor_begins_with_the_path_that_was_found() {
    let found = |argv: &[String]| argv[0].clone();
    let plain = Place::of("cursor").not_live().argv(CONTEXT, "S").await;
    let rest = ["-p", "--force", "--output-format", "json", "--resume", "S"];
    assert_eq!(plain[1..7], rest);
    assert_eq!(plain[7], format!("{CONTEXT}\n\n{WORDS}"));
    assert!(found(&plain).ends_with("agent"));
    let live = Place::of("cursor").argv(CONTEXT, "").await;
    assert_eq!(live[1..5], ["-p", "--force", "--output-format", "stream-json"]);
}

#[tokio::test]
async fn the_text_format_and_an_empty_allowlist_leave_their_flags_out() {
    let place = Place::of("claude-code").not_live().set("CLAUDE_OUTPUT_FORMAT", "text").set("CLAUDE_ALLOWED_TOOLS", "");
    assert_eq!(place.argv("", "").await, ["claude", "--permission-mode", "bypassPermissions", "-p", WORDS]);
}

#[tokio::test]
async fn a_driver_with_only_the_required_hooks_has_the_documented_defaults() {
    let place = Place::of("minimal");
    let mut driver = place.load().await.unwrap();
    let facts = Facts {
        name: "minimal".into(),
        display_name: "Minimal".into(),
        binary: "minimal-cli".into(),
        tools: vec!["Read".into()],
        allowlist: false,
        sessions: true,
        live: true,
    };
    assert_eq!(driver.facts, facts);
    assert_eq!(driver.filter().await.unwrap(), None, "an absent filter shows nothing and breaks nothing");
    assert!(driver.denial_help().await.unwrap().contains("Minimal"));
    assert_eq!(driver.metadata().await.unwrap(), (None, None));
    let expected =
        ["minimal-cli", "--prompt", "PROMPT.md", "--output-format", "json", "--session", "S", "--context", "C"];
    assert_eq!(place.argv("C", "S").await, expected, "the live command is a copy");
}

#[tokio::test]
async fn capabilities_are_what_the_hooks_return() {
    for (name, allowlist, sessions, live) in [
        ("claude-code", true, true, true),
        ("codex", false, true, true),
        ("opencode", false, true, true),
        ("copilot", false, false, false),
        ("cursor", false, true, true),
    ] {
        let facts = Place::of(name).load().await.unwrap().facts;
        assert_eq!((facts.allowlist, facts.sessions, facts.live), (allowlist, sessions, live), "{name}");
    }
    let mut driver = Place::of("claude-code").load().await.unwrap();
    assert_eq!(driver.metadata().await.unwrap().0.as_deref(), Some("2.0.76"));
    assert_eq!(driver.denial_help().await.unwrap(), "Allow the tool in .ralphrc so that Claude Code may use it.");
}

#[tokio::test]
async fn arrays_of_any_bytes_become_the_command_line() {
    let place = Place::minimal_with(
        "driver_build_command() { CLAUDE_CMD_ARGS=(cli $'a\\nb' '' \"it's \\\"x\\\"\" $'\\xff'); }",
    );
    let mut driver = place.load().await.unwrap();
    let built = driver.build(Path::new("p"), "", "", place.directory.path()).await.unwrap();
    let words: Vec<&[u8]> = built.invocation.args.iter().map(|word| word.as_bytes()).collect();
    assert_eq!(words, [b"a\nb".as_slice(), b"", b"it's \"x\"", b"\xff"]);
}

#[tokio::test]
async fn what_a_driver_exports_reaches_its_command_and_nothing_else_does() {
    let place = Place::minimal_with("export TOKEN_LIMIT=5; PRIVATE=1\nunset HOME");
    let mut driver = place.load().await.unwrap();
    driver.export("RALPH_ITERATION", "3").await.unwrap();
    let prompt = place.directory.path().join("PROMPT.md");
    let built = driver.build(&prompt, "", "", place.directory.path()).await.unwrap();
    let env = built.invocation.env;
    assert_eq!(env.value("TOKEN_LIMIT"), Some("5".into()));
    assert_eq!(env.value("RALPH_ITERATION"), Some("3".into()));
    assert_eq!(env.value("HOME"), None);
    assert_eq!((env.value("PRIVATE"), env.value("CLAUDE_OUTPUT_FORMAT")), (None, None));
}

#[tokio::test]
async fn every_fault_names_the_hook_the_file_and_what_it_said() {
    for (extra, expected) in [
        ("unset -f driver_name driver_valid_tools", &["lacks driver_name, driver_valid_tools"][..]),
        ("driver_cli_binary() { echo no cli >&2; return 2; }", &["`driver_cli_binary` gave exit status 2", "no cli"]),
        ("driver_display_name() { return 1; }", &["`driver_display_name` gave exit status 1", "no output on stderr"]),
        ("driver_name() { exit 3; }", &["`driver_name` gave exit status 3"]),
        (
            "driver_valid_tools() { echo oh >&2; exit 5; }",
            &["`driver_valid_tools` ended its shell with exit status 5", "oh"],
        ),
        (
            "driver_build_command() { echo no prompt >&2; return 1; }",
            &["`driver_build_command` gave exit status 1", "no prompt"],
        ),
        ("driver_build_command() { :; }", &["left `LIVE_CMD_ARGS` empty"]),
        (
            "driver_build_command() { nosuchcommand; }",
            &["`driver_build_command` gave exit status 127", "nosuchcommand"],
        ),
        ("set -e; false", &["ended its shell with exit status 1"]),
    ] {
        let fault = Place::minimal_with(extra).fault().await;
        for part in expected {
            assert!(fault.contains(part), "{extra}: {fault}");
        }
        assert!(fault.contains("own.sh"), "{extra}: {fault}");
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_told_with_the_limit_and_the_way_out() {
    let place = Place::of("codex");
    std::fs::write(place.directory.path().join("PROMPT.md"), "x".repeat(200 * 1024)).unwrap();
    let mut driver = place.load().await.unwrap();
    let prompt = place.directory.path().join("PROMPT.md");
    let error = driver.build(&prompt, "", "", place.directory.path()).await.unwrap_err();
    assert!(error.message.contains("204800 bytes") && error.message.contains("131071"), "{}", error.message);
    assert!(error.hints[0].contains("file"), "{:?}", error.hints);
    // A driver that hands the path on has no such limit.
    let by_path = Place::of("minimal");
    std::fs::write(by_path.directory.path().join("PROMPT.md"), "x".repeat(200 * 1024)).unwrap();
    assert_eq!(by_path.argv("", "").await[1..3], ["--prompt", "PROMPT.md"]);
}

#[tokio::test]
async fn a_live_command_that_cannot_be_made_leaves_the_plain_one() {
    let place = Place::minimal_with("driver_prepare_live_command() { echo cannot >&2; return 1; }");
    let mut driver = place.load().await.unwrap();
    let prompt = place.directory.path().join("PROMPT.md");
    let built = driver.build(&prompt, "", "", place.directory.path()).await.unwrap();
    assert_eq!(built.invocation.program, "minimal-cli");
    assert!(
        built.notices[0].contains("`driver_prepare_live_command` gave exit status 1: cannot"),
        "{:?}",
        built.notices
    );
}

#[tokio::test]
async fn the_session_is_found_by_the_documented_chain() {
    let own = "driver_extract_session_id_from_output() { echo own; return 1; }";
    let null = "driver_extract_session_id_from_output() { echo null; }";
    let fallback = "driver_fallback_session_id() { [[ -f $1 ]] && echo fallback; return 1; }";
    let generic = r#"{"session_id":"generic"}"#;
    for (extra, output, told, expected) in [
        (format!("{own}\n{fallback}"), generic, Some("told"), Some("own")),
        (format!("{null}\n{fallback}"), generic, Some("told"), Some("generic")),
        (format!("{null}\n{fallback}"), "{}", Some("told"), Some("fallback")),
        (String::new(), "{}", Some("told"), Some("told")),
        (String::new(), "{}", None, None),
        ("driver_supports_sessions() { return 1; }".to_owned(), generic, Some("told"), None),
    ] {
        let place = Place::minimal_with(&extra);
        let file = place.directory.path().join("output");
        std::fs::write(&file, output).unwrap();
        let mut driver = place.load().await.unwrap();
        assert_eq!(
            driver.session(&Output { path: file, start: 0 }, told).await.unwrap().as_deref(),
            expected,
            "{extra} {output}"
        );
    }
    let place = Place::of("opencode");
    let file = place.directory.path().join("output");
    std::fs::write(&file, "noise\n{\"type\":\"x\",\"session\": {\"a\":1, \"id\" : \"ses_1\"}}\n").unwrap();
    assert_eq!(
        place.load().await.unwrap().session(&Output { path: file, start: 0 }, None).await.unwrap().as_deref(),
        Some("ses_1")
    );
}

#[tokio::test]
async fn the_hooks_see_only_the_output_of_this_try() {
    let own = "driver_extract_session_id_from_output() { grep -o 'sid=[a-z]*' \"$1\" | head -n 1; }";
    let place = Place::minimal_with(own);
    let path = place.directory.path().join("output");
    let (first, second) = ("503 sid=failed\n", "sid=good\n");
    std::fs::write(&path, format!("{first}{second}")).unwrap();
    let mut driver = place.load().await.unwrap();
    let output = Output { path, start: first.len() as u64 };
    assert_eq!(driver.session(&output, None).await.unwrap().as_deref(), Some("sid=good"));
}

#[tokio::test]
async fn the_filters_of_the_drivers_are_understood() {
    for name in ["claude-code", "codex", "opencode", "cursor"] {
        let filter = Place::of(name).load().await.unwrap().filter().await.unwrap().unwrap();
        let call = crate::plugin::bash::jq::Call::parse(&["-j".to_owned(), filter]).unwrap();
        assert!(call.compile().is_ok(), "{name}");
    }
    assert_eq!(Place::of("copilot").load().await.unwrap().filter().await.unwrap(), None, "it has no live output");
    assert_eq!(Place::of("codex").not_live().load().await.unwrap().filter().await.unwrap(), None);
}
